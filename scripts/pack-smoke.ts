/**
 * Packs the package, installs it as the host does, without scripts and without dev or peer dependencies, and uses it from
 * there: the command line answers, a durable event is appended and verified, and runs are served also without the folder
 * of the conformance play.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installInto, packProject } from "./pack.ts";

const PROBE = `
import { composeCoordinator, openLedgerForReading, systemClock } from "./dist/plugins/compose.js";
import { createHookHost } from "./dist/plugins/hooks/hook-host.js";
import { verifyLedger, parsePluginConfig } from "./dist/agents/coordination/index.js";

const ledgerPath = process.argv[2];
const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const observer = { observe: async () => ({ kind: "unknown" }), bind: async () => {} };
const hooks = createHookHost({ clock: systemClock, logger: quiet });
const given = { ledgerPath, config: parsePluginConfig({}), observer, hooks, channels: () => ({}), logger: quiet };
const coordinator = await composeCoordinator(given);
const content = { text: "x", ref: { sha256: "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", bytes: 1 } };
const spawn = { runner: "subagent", agentId: "main", collect: false, call: {} };
const source = { sourceSession: "agent:main:main", sourceAgent: "main" };
const admission = await coordinator.admitSpawn({ ...source, spawn, input: content, objective: content });
await coordinator.close();
const ledger = await openLedgerForReading(ledgerPath);
const { ok, events } = await verifyLedger(ledger);
await ledger.close();
if (admission.kind !== "admitted" || !ok || events !== 6) throw new Error(JSON.stringify({ admission, ok, events }));
`;

const SERVE_PROBE = `
import { startServing } from "./dist/plugins/serve-openwop.js";

const workflow = { id: "w", name: "w", version: "1", variables: [], edges: [], settings: {} };
const serving = {
  ledgerPath: process.argv[2],
  definitions: [{ ...workflow, nodes: [{ id: "n", typeId: "core.noop", config: {}, inputs: {} }] }],
  version: "0",
  port: 0,
  hostname: "127.0.0.1",
  tokens: [{ tenant: "t", token: "token" }],
  allowRemote: false,
  testSeams: false,
  verbose: false,
  confidenceFloor: 0.5,
  escalationThreshold: 0.7,
  privateOrigins: [],
  peerTokens: {},
  log: () => undefined,
};
const { baseUrl, stop } = await startServing(serving);
const headers = { authorization: "Bearer token", "content-type": "application/json" };
const { status } = await fetch(baseUrl + "/v1/runs", { method: "POST", headers, body: '{"workflowId":"w"}' });
await stop();
const refusal = await startServing({ ...serving, testSeams: true }).then(() => "served", ({ code }) => code);
console.log(status, refusal);
`;

const folder = mkdtempSync(join(tmpdir(), "coordination-smoke-"));
try {
  const plugin = await installInto(join(folder, "plugin"), await packProject(folder));
  for (const needed of ["openclaw.plugin.json", "README.md", "LICENSE", "CHANGELOG.md"]) {
    if (!readdirSync(plugin).includes(needed)) throw new Error(`the package lacks ${needed}`);
  }
  writeFileSync(join(plugin, "probe.mjs"), PROBE);
  run(plugin, "probe.mjs", join(folder, "ledger", "ledger.sqlite"));
  const listed = run(
    plugin,
    "dist/plugins/cli/main.js",
    "list",
    "--json",
    "--ledger",
    join(folder, "ledger", "ledger.sqlite"),
  );
  if ((JSON.parse(listed) as unknown[]).length !== 1) throw new Error(`list printed ${listed}`);
  checkWithoutPlay(plugin);
  process.stdout.write(
    "The packed package installs without scripts, appends durably and lists what it appended.\n",
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Serves a run without the conformance play, and is told that it is absent where it is asked for. */
function checkWithoutPlay(plugin: string): void {
  rmSync(join(plugin, "dist", "plugins", "openwop", "conformance"), { recursive: true });
  writeFileSync(join(plugin, "serve-probe.mjs"), SERVE_PROBE);
  const output = run(plugin, "serve-probe.mjs", join(folder, "ledger", "runs.sqlite"));
  if (output.trim() !== "201 INPUT_INVALID") throw new Error(`without the conformance play: ${output}`);
}

function run(cwd: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd, encoding: "utf8" });
  if (status === 0) return stdout;
  throw new Error(`${args.join(" ")} failed:\n${stdout}${stderr}`);
}
