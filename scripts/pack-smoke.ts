/**
 * Packs the package, installs it as the host does, without scripts and without dev or peer dependencies, and uses its
 * command line: a host serves a workflow, appends durably, and the ledger lists and verifies what it appended. All of it
 * without the conformance play, which is then missed with a sentence.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { installInto, packProject } from "./pack.ts";

/** OpenClaw copies each of them at every load: 8,800 made the start of a gateway 20 s longer. */
const FILES_MAX = 240;

const TOKEN = "smoke-test-token";

const folder = mkdtempSync(join(tmpdir(), "coordination-smoke-"));
try {
  const plugin = await installInto(join(folder, "plugin"), await packProject(folder));
  const main = join(plugin, "dist", "plugins", "cli", "main.js");
  checkFiles(plugin);
  checkChunks(plugin);
  removePlay(plugin);
  const ledger = join(folder, "ledger", "runs.sqlite");
  await serveOneRun(main, ledger);
  const runs = JSON.parse(run(main, "runs", "--json", "--ledger", ledger)) as unknown[];
  check(runs.length === 1, `runs printed ${JSON.stringify(runs)}`);
  const verified = run(main, "verify", "--ledger", ledger);
  check(verified.startsWith("ok"), `verify printed ${verified}`);
  checkMissedPlay(main, ledger);
  process.stdout.write(
    "The packed package installs without scripts, serves a run and verifies what it appended.\n",
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function checkFiles(plugin: string): void {
  const names = readdirSync(plugin);
  for (const needed of ["openclaw.plugin.json", "README.md", "LICENSE", "CHANGELOG.md"])
    check(names.includes(needed), `the package lacks ${needed}`);
  const files = readdirSync(plugin, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  check(
    files.length <= FILES_MAX,
    `the package and its dependencies have ${files.length} files, more than ${FILES_MAX}; bundle what they need`,
  );
}

/** Loads every chunk, because what a bundle lacks shows only where it is loaded. The host's own modules are not there. */
function checkChunks(plugin: string): void {
  const chunks = join(plugin, "dist", "chunks");
  const program = `
    const failed = [];
    for (const name of process.argv.slice(1))
      await import(name).catch((error) => /'openclaw'/.test(error.message) || failed.push(name + ": " + error.message));
    if (failed.length > 0) throw new Error(failed.join("\\n"));`;
  const names = readdirSync(chunks).map((name) => join(chunks, name));
  run("--input-type=module", "--eval", program, ...names);
}

function removePlay(plugin: string): void {
  const chunks = join(plugin, "dist", "chunks");
  const play = readdirSync(chunks).filter((name) => name.startsWith("conformance-suite-"));
  check(play.length > 0, "the conformance play is no chunk of its own");
  for (const name of play) rmSync(join(chunks, name));
}

async function serveOneRun(main: string, ledger: string): Promise<void> {
  const workflows = join(import.meta.dirname, "..", "examples", "workflows");
  const args = [
    "serve",
    "--ledger",
    ledger,
    "--token",
    TOKEN,
    "--workflows",
    workflows,
    "--port",
    "0",
    "--json",
  ];
  const host = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const { baseUrl } = JSON.parse(await readObject(host.stdout)) as { readonly baseUrl: string };
    const { status } = await fetch(`${baseUrl}/v1/runs`, {
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify({ workflowId: "release-notes", inputs: { version: "1" } }),
    });
    check(status === 201, `the run was answered with ${status}`);
  } finally {
    host.kill("SIGTERM");
    if (host.exitCode === null) await once(host, "exit");
  }
}

/** Reads lines up to the one that ends a JSON object, while the program goes on. */
async function readObject(output: NodeJS.ReadableStream): Promise<string> {
  let text = "";
  for await (const line of createInterface(output)) {
    text += line;
    if (line.startsWith("}") || (line.startsWith("{") && line.endsWith("}"))) return text;
  }
  throw new Error(`serve ended, having printed ${JSON.stringify(text)}`);
}

function checkMissedPlay(main: string, ledger: string): void {
  const args = [main, "serve", "--ledger", ledger, "--token", TOKEN, "--port", "0", "--test-seams"];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", timeout: 60_000 });
  check(
    status !== 0 && stderr.includes("this installation lacks the conformance play"),
    `without the conformance play: ${status} ${stderr}`,
  );
}

function run(...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  check(status === 0, `${args.join(" ")} failed:\n${stdout}${stderr}`);
  return stdout;
}

function check(condition: boolean, problem: string): asserts condition {
  if (!condition) throw new Error(problem);
}
