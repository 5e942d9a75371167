import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CliResult, Json } from "../support/gateway.ts";
import { waitForReload } from "../support/gateway-reload.ts";
import { renderScript } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { isServingMethods } from "./gateway-pool.ts";
import { hasEnded, openStage, PHASE1, createPluginConfig, type Stage } from "./stage.ts";
import { editFlag, turnFlag } from "./turn-flag.ts";

let stage: Stage;

beforeAll(async () => {
  stage = await openStage({ pluginConfig: createPluginConfig({ ...PHASE1, enabled: false }) });
});

afterAll(() => stage.close());

const spawning = renderScript(
  { spawn: [{ label: "child", task: renderScript({ say: "result" }) }] },
  { say: "ok" },
);

function countAnnounced(): number {
  return stage.model.requests.filter(({ matched }) => matched === "announce").length;
}

const NOTHING = {
  hookCount: 0,
  services: [],
  toolNames: [],
  commands: [],
  httpRoutes: 0,
  gatewayDiscoveryServiceIds: [],
};

/** Returns all that the plugin has registered, as the host says. */
async function listRegistered(): Promise<Json> {
  const { stdout } = await stage.gateway.openclaw([
    "plugins",
    "inspect",
    "coordination",
    "--runtime",
    "--json",
  ]);
  return (JSON.parse(stdout) as { plugin: Json }).plugin;
}

/** Reads whether the gateway goes by what is written, as far as the command line can tell. */
async function readTakenUp(): Promise<boolean | undefined> {
  const { stdout } = await runStatus();
  return (JSON.parse(stdout) as { takenUp?: boolean }).takenUp;
}

const turn = (enabled: boolean, conversation = true): Promise<void> =>
  turnFlag(stage, { enabled, hooks: { allowConversationAccess: conversation } });

const runStatus = (): Promise<CliResult> => stage.gateway.openclaw(["coordination", "status", "--json"]);

describe("the flag", () => {
  it("off: spawns run as ever, and there is no hook, no service and no file", async () => {
    const { status } = await stage.gateway.agent({ sessionKey: "agent:main:off", message: spawning });
    expect(status).toBe("ok");
    await waitFor(() => countAnnounced() === 1, { what: "the announcement", timeoutMs: 30_000 });
    expect(stage.hasLedger()).toBe(false);
    expect(await listRegistered()).toMatchObject({ ...NOTHING, cliCommands: ["coordination"] });
  });

  it("off: the command line works and creates nothing", async () => {
    const { code, stdout } = await runStatus();
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ enabled: false, ledger: { exists: false } });
    expect(stage.hasLedger()).toBe(false);
  });

  it("turned on while the gateway runs: the next spawn is coordinated", async () => {
    await turn(true);
    const [registered, isTakenUp] = await Promise.all([
      listRegistered(),
      readTakenUp(),
      stage.gateway.agent({ sessionKey: "agent:main:hot", message: spawning }),
    ]);
    expect(registered).toMatchObject({ hookCount: 22, services: ["coordination"] });
    expect(isTakenUp).toBe(true);
    expect(await stage.until("agent:main:hot", hasEnded)).toMatchObject({ status: "success" });
  });

  it("goes by a policy pack for the sessions for which the operator takes one into use, at once", async () => {
    const pack = join(stage.gateway.stateDir, "lean.yaml");
    writeFileSync(pack, "name: lean\nversion: 1.0.0\nextends: careful\nsettings: {budget: {spawns: 1}}\n");
    const runPolicy = async (...args: readonly string[]): Promise<void> => {
      const before = stage.gateway.log().length;
      expect(await stage.gateway.openclaw(["coordination", "policy", ...args, "--yes"])).toMatchObject({
        code: 0,
      });
      expect((await waitForReload(stage.gateway.log, before)).isApplied).toBe(true);
    };
    await runPolicy("use", pack, "--session", "agent:*:lean");
    await Promise.all(
      ["agent:main:lean", "agent:main:usual"].map((sessionKey) =>
        stage.gateway.agent({ sessionKey, message: spawning }),
      ),
    );
    const coordination = await stage.until("agent:main:lean", ({ steps }) =>
      // The child states no confidence, and the pack demands one.
      steps.some(({ phase }) => phase.status === "held"),
    );
    expect(coordination.created).toMatchObject({
      budget: { spawns: 1, depth: 3 },
      questions: { requireDifferentApprover: true },
      policy: { name: "lean", version: "1.0.0" },
    });
    const usual = await stage.until("agent:main:usual", hasEnded);
    expect(usual).toMatchObject({ status: "success" });
    expect(usual.created).not.toHaveProperty("policy");
    await runPolicy("drop", "--session", "agent:*:lean");
  });

  it("on without the permission for prompts: spawns are recorded all the same, and the child is told nothing", async () => {
    await turn(true, false);
    const task = `unpermitted ${renderScript({ say: "result" })}`;
    const message = renderScript({ spawn: [{ label: "untold", task }] }, { say: "ok" });
    await stage.gateway.agent({ sessionKey: "agent:main:unpermitted", message });
    expect(await stage.until("agent:main:unpermitted", hasEnded)).toMatchObject({ status: "success" });
    const prompts = stage.model.requests
      .map(({ body }) => JSON.stringify(body))
      .filter((body) => body.includes("unpermitted"));
    expect(prompts.length).toBeGreaterThan(1);
    expect(prompts.join("")).not.toContain("<coordination>");
  });

  it("reloaded while a child runs: the child's end is found by asking the host", async () => {
    const slow = renderScript(
      { spawn: [{ label: "slow", task: renderScript({ delayMs: 6_000, say: "late result" }) }] },
      { say: "ok" },
    );
    await stage.gateway.agent({ sessionKey: "agent:main:reloaded", message: slow });
    await stage.until("agent:main:reloaded", ({ steps }) =>
      [...steps.values()].some(({ phase }) => phase.status === "running"),
    );
    await turn(true);
    expect(await stage.until("agent:main:reloaded", hasEnded, 90_000)).toMatchObject({ status: "success" });
  });

  it("turned off while an agent works: the host refuses it, and reloads the plugin when it is asked to later", async () => {
    const sessionKey = "agent:main:busy";
    const child = renderScript({ delayMs: 4_000, say: "result" });
    const message = renderScript(
      { spawn: [{ label: "child", task: child }] },
      { delayMs: 12_000, say: "ok" },
    );
    const owner = stage.gateway.agent({ sessionKey, message });
    await stage.until(sessionKey, ({ steps }) => steps.some(({ phase }) => phase.status === "running"));
    const before = stage.gateway.log().length;
    editFlag(stage, { enabled: false });
    expect((await waitForReload(stage.gateway.log, before)).isApplied).toBe(false);
    expect(await readTakenUp()).toBe(false);
    expect(await isServingMethods(stage.gateway)).toBe(true);
    await owner;
    expect(await stage.until(sessionKey, hasEnded)).toMatchObject({ status: "success" });
    const reload = ["plugins", "reload", "coordination"];
    await waitFor(async () => (await stage.gateway.openclaw(reload)).code === 0, {
      what: "the host to reload the plugin",
      timeoutMs: 60_000,
    });
    expect(await isServingMethods(stage.gateway)).toBe(false);
  });

  it("turned off while the gateway runs: the next spawn leaves no trace, and the ledger is sound", async () => {
    const [isTakenUp] = await Promise.all([
      readTakenUp(),
      stage.gateway.agent({ sessionKey: "agent:main:off-again", message: spawning }),
    ]);
    expect(isTakenUp).toBe(true);
    const coordinations = await stage.of("agent:main:hot");
    expect(coordinations).toHaveLength(1);
    expect(await stage.of("agent:main:off-again")).toEqual([]);
    expect((await stage.verify()).problems).toEqual([]);
  });
});
