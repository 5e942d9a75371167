/** Commands that need a gateway, as processes without one; and Ctrl-C as a real signal. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { plan, step } from "../core/plan-scene.ts";
import { createTempFolder } from "../support/temp-ledger.ts";

const MAIN = new URL("../../src/plugins/cli/main.ts", import.meta.url).pathname;
const WAITING = new URL("../../src/plugins/cli/terminal/waiting-line.ts", import.meta.url).pathname;

/** Nothing listens there once it is closed. */
async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

/** The standard output of a command, as JSON, where nothing listens. */
async function readSaidBy(args: readonly string[], gateway: object): Promise<unknown> {
  using home = createTempFolder();
  const config = home.file("openclaw.json");
  writeFileSync(config, JSON.stringify({ gateway }));
  writeFileSync(home.file("plan.json"), JSON.stringify(plan([step("a")])));
  const child = spawn(process.execPath, [MAIN, ...args, "--json"], {
    cwd: home.path,
    env: {
      PATH: process.env["PATH"],
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
      HOME: home.path,
      OPENCLAW_STATE_DIR: home.path,
      OPENCLAW_CONFIG_PATH: config,
    },
  });
  const ended = once(child, "close");
  const stdout = await text(child.stdout);
  expect(await ended).toEqual([1, null]);
  return JSON.parse(stdout);
}

describe("without a gateway", () => {
  test("plan run says how to start one, and the process ends", async () => {
    const gateway = { port: await findFreePort(), auth: { mode: "token", token: "t" } };
    expect(await readSaidBy(["plan", "run", "plan.json"], gateway)).toMatchObject({
      error: {
        code: "GATEWAY_UNREACHABLE",
        message: expect.stringContaining(String(gateway.port)) as string,
        advice: expect.stringContaining("openclaw gateway run") as string,
      },
    });
  });

  test("and without credentials, approve says what to set", async () => {
    expect(await readSaidBy(["approve", "co-1:escalation-1"], { port: await findFreePort() })).toMatchObject({
      error: {
        code: "GATEWAY_UNREACHABLE",
        message: expect.stringContaining("requires credentials") as string,
        advice: expect.stringContaining("OPENCLAW_GATEWAY_TOKEN") as string,
      },
    });
  });
});

describe("waiting", () => {
  const SCRIPT = `
    const { createInterruptibleWait } = await import(${JSON.stringify(WAITING)});
    using waiting = createInterruptibleWait();
    process.stdout.write("ready ");
    await waiting.pause(600_000);
    process.stdout.write(String(waiting.isInterrupted()) + " ");
    await waiting.pause(600_000);
    if (process.argv[1] === "again") { process.stdout.write("waits "); await new Promise((resolve) => setTimeout(resolve, 600_000)); }
  `;

  async function runInterrupted(argument: string, signals: readonly string[]) {
    const child = spawn(process.execPath, ["--input-type=module", "-e", SCRIPT, argument]);
    const ended = once(child, "close");
    let stdout = "";
    for await (const chunk of child.stdout.setEncoding("utf8") as AsyncIterable<string>) {
      stdout += chunk;
      for (const word of signals) if (chunk.includes(word)) child.kill("SIGINT");
    }
    const [exitCode, signal] = (await ended) as [number | null, string | null];
    return { stdout, exitCode, signal };
  }

  test("ends at Ctrl-C, and so does every later pause", async () => {
    expect(await runInterrupted("", ["ready"])).toEqual({ stdout: "ready true ", exitCode: 0, signal: null });
  });

  test("a second Ctrl-C ends the process", async () => {
    const ended = await runInterrupted("again", ["ready", "waits"]);
    expect(ended).toEqual({ stdout: "ready true waits ", exitCode: null, signal: "SIGINT" });
  });
});
