/** Owns: how `status` and `doctor` tell whether the running gateway goes by the configuration that is written. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readBootName, readProcessName } from "../../src/platform/process-name.ts";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import { createMemoryConfig, runCli } from "../cli/run-cli.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { createFakeHost } from "./fake-host.ts";

let folder: TempFolder;
let gateway: HookHandlers;

beforeEach(() => {
  folder = createTempFolder();
});

afterEach(async () => {
  await gateway.stop();
  folder[Symbol.dispose]();
});

const nameHealthFile = (): string => join(folder.path, "coordination", "health.json");

async function startGateway(phase1: Record<string, unknown>): Promise<void> {
  gateway = createHookHandlers(createFakeHost({ stateDir: folder.path, phase1 }).api);
  await gateway.start();
}

/** Reads what the commands say where this stands in the configuration file. */
async function readCommands(phase1: object) {
  const config = createMemoryConfig({
    plugins: {
      entries: {
        coordination: {
          enabled: true,
          hooks: { allowConversationAccess: true },
          config: { coordination: { phase1 } },
        },
      },
    },
  });
  const setting = { stateDir: folder.path, config };
  const { takenUp } = JSON.parse((await runCli(["status", "--json"], setting)).stdout) as {
    takenUp?: boolean;
  };
  const { stdout: text } = await runCli(["status"], setting);
  const { checks } = JSON.parse((await runCli(["doctor", "--json"], setting)).stdout) as {
    checks: readonly {
      readonly name: string;
      readonly status: string;
      readonly message: string;
      readonly advice?: string;
    }[];
  };
  return { takenUp, text, check: checks.find(({ name }) => name === "taken-up") };
}

const SENTENCE = "the running gateway goes by another configuration";

// Where the system does not name processes, nobody can tell whether the gateway still runs.
describe.skipIf(readProcessName() === undefined)("a configuration under a running gateway", () => {
  it("is taken up where the gateway goes by it, however it is written", async () => {
    await startGateway({ sweepMs: 5_000, lanes: { data: 4, control: 2 } });
    const same = { lanes: { control: 2, data: 4 }, sweepMs: 5_000, settleMs: 3_000, enabled: true };
    const { takenUp, text, check } = await readCommands(same);
    expect({ takenUp, check }).toMatchObject({ takenUp: true, check: { status: "ok" } });
    expect(text).not.toContain("taken up");
  });

  it("is not taken up where the gateway goes by another one, and both commands say what to do", async () => {
    await startGateway({ sweepMs: 5_000 });
    for (const changed of [
      { enabled: true, sweepMs: 6_000 },
      { enabled: false, sweepMs: 5_000 },
    ]) {
      const { takenUp, text, check } = await readCommands(changed);
      expect(takenUp).toBe(false);
      expect(text).toContain(SENTENCE);
      expect(text).toContain("`openclaw plugins reload coordination`");
      expect(check).toMatchObject({ status: "warn", advice: expect.stringContaining("reload") as string });
    }
  });

  it("is taken up where only secrets differ, which the environment of each process may fill in", async () => {
    const describeSecrets = (secret: string, peer = "https://peer.example") => ({
      enabled: true,
      openwop: { tokens: [{ token: secret }], peerTokens: { [peer]: secret } },
      escalations: { webhooks: { duty: { url: "https://duty.example", secret } } },
      acpAgents: { coder: { command: "/usr/bin/coder", env: { API_KEY: secret } } },
      telemetry: { headers: { authorization: secret } },
    });
    await startGateway(describeSecrets("secret-of-the-gateway"));
    const { takenUp, check } = await readCommands(describeSecrets("secret-of-the-shell"));
    expect({ takenUp, check }).toMatchObject({
      takenUp: true,
      check: {
        status: "ok",
        message:
          "the running gateway goes by this configuration; values of secrets, headers and `env` are not compared",
      },
    });
    const changed = describeSecrets("secret-of-the-gateway", "https://other.example");
    expect((await readCommands(changed)).takenUp).toBe(false);
  });

  it.each([
    ["an agent", (name: string) => ({ acpAgents: { env: { command: `/usr/bin/${name}` } } })],
    ["a model", (name: string) => ({ openwop: { modelClasses: { token: name, secret: name } } })],
  ])(
    "is not taken up where a setting of %s that is called like a secret differs",
    async (_, describeSetting) => {
      await startGateway(describeSetting("one"));
      expect((await readCommands({ enabled: true, ...describeSetting("two") })).takenUp).toBe(false);
      expect((await readCommands({ enabled: true, ...describeSetting("one") })).takenUp).toBe(true);
    },
  );

  it("is taken up where it is off and the plugin was stopped, and not where it is on", async () => {
    await startGateway({});
    await gateway.stop();
    expect((await readCommands({ enabled: false })).takenUp).toBe(true);
    const { takenUp, text } = await readCommands({ enabled: true });
    expect(takenUp).toBe(false);
    expect(text).toContain(SENTENCE);
    expect(text).toMatch(/^health +a gateway runs without coordination$/mu);
  });

  it("is taken up by a reload, after the hooks of before have been closed", async () => {
    await startGateway({ sweepMs: 5_000 });
    await gateway.stop();
    await startGateway({ sweepMs: 6_000 });
    expect((await readCommands({ enabled: true, sweepMs: 6_000 })).takenUp).toBe(true);
  });

  it("is not compared with a gateway that has ended, nor with a variable that is not known here", async () => {
    await startGateway({ sweepMs: 5_000 });
    const named = { enabled: true, escalations: { approvers: ["${PERSON}"] } };
    expect((await readCommands(named)).takenUp).toBeUndefined();
    const health = JSON.parse(readFileSync(nameHealthFile(), "utf8")) as {
      gateway: { process: string; boot?: string };
    };
    expect(health.gateway.boot).toBe(readBootName());
    const ended = { ...health, gateway: { ...health.gateway, process: `${health.gateway.process}0` } };
    writeFileSync(nameHealthFile(), JSON.stringify(ended));
    const { takenUp, text, check } = await readCommands({ enabled: true, sweepMs: 6_000 });
    expect({ takenUp, check }).toEqual({ takenUp: undefined, check: undefined });
    expect(text).not.toContain(SENTENCE);
  });

  it("is not written into the state folder", async () => {
    await startGateway({ escalations: { approvers: ["secret-person"] } });
    expect(readFileSync(nameHealthFile(), "utf8")).not.toContain("secret-person");
  });
});
