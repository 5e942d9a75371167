import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { waitForReload } from "../support/gateway-reload.ts";
import { renderScript, startScriptedModel, type ScriptedModel } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { waitUntilServed } from "./gateway-pool.ts";
import { runPackedProgram } from "./packed-program.ts";

let model: ScriptedModel;
let gateway: Gateway;

beforeAll(async () => {
  model = await startScriptedModel();
  gateway = await startGateway({
    modelBaseUrl: model.baseUrl,
    plugin: { kind: "packed", tarball: inject("tarball") },
    toolSearch: false,
    // As after `plugins install` alone: no permission for hooks, no flag.
    configPatch: { plugins: { entries: { coordination: { hooks: { allowConversationAccess: false } } } } },
  });
});

afterAll(async () => {
  await gateway.stop();
  await model.close();
  rmSync(gateway.home, { recursive: true, force: true });
});

async function runForJson(...args: string[]): Promise<unknown> {
  const { code, stdout, stderr } = await gateway.openclaw(["coordination", ...args, "--json"]);
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  return JSON.parse(stdout);
}

/** Returns what the plugin's own program prints, which needs a tenth of the time of the host's. */
async function readLedger(...args: string[]): Promise<unknown> {
  const ledgerPath = join(gateway.stateDir, "coordination", "ledger.sqlite");
  const { stdout } = await runPackedProgram([...args, "--json"], ledgerPath);
  return JSON.parse(stdout || "[]");
}

interface ListedCoordination {
  readonly coordinationId: string;
  readonly status: string;
}

/** The host's word on whether models are shown the plugin's skill. */
async function isSkillShown(): Promise<boolean> {
  const { skills } = (await gateway.call("skills.status")) as {
    skills: { name: string; eligible: boolean }[];
  };
  const [skill] = skills.filter(({ name }) => name === "coordination");
  expect(skill).toBeDefined();
  return skill?.eligible === true;
}

describe("an operator with the packed plugin in a live gateway", () => {
  it("enables coordination with one command, which says what it changes, and the next spawn is coordinated", async () => {
    expect(await isSkillShown()).toBe(false);
    const enabled = (await runForJson("enable")) as { changed: { path: string; to: unknown }[] };
    const changes = Object.fromEntries(enabled.changed.map(({ path, to }) => [path, to]));
    expect(changes).toMatchObject({
      "plugins.entries.coordination.hooks.allowConversationAccess": true,
      "plugins.entries.coordination.config.coordination.phase1.enabled": true,
    });
    // A host that is busy refuses it, and the operator is told to try again so.
    if (!(await waitForReload(gateway.log)).isApplied)
      expect(await gateway.openclaw(["plugins", "reload", "coordination"])).toMatchObject({ code: 0 });
    const message = renderScript(
      { spawn: [{ label: "child", task: renderScript({ say: "result" }) }] },
      { say: "ok" },
    );
    await gateway.agent({ sessionKey: "agent:main:operator", message: `Do it well. ${message}` });
    const ended = await waitFor(
      async () =>
        ((await readLedger("list")) as ListedCoordination[]).find(({ status }) => status === "success"),
      { what: "the coordination to end", timeoutMs: 60_000, everyMs: 500 },
    );
    expect(ended).toMatchObject({
      ownerSession: "agent:main:operator",
      steps: { total: 1, open: 0, failed: 0 },
    });
    expect(await readLedger("show", ended.coordinationId)).toMatchObject({
      coordinationId: ended.coordinationId,
      status: "success",
      steps: [
        {
          stepId: "step-1",
          attempt: 1,
          status: "completed",
          lane: "data",
          idempotencyKey: `${ended.coordinationId}:step-1:1`,
        },
      ],
      conflicts: [],
      escalations: [],
    });
    expect(await readLedger("verify")).toMatchObject({ ok: true, problems: [] });
  });

  it("shows the timeline and a clean doctor", async () => {
    const [timeline, doctor] = await Promise.all(
      ["timeline", "doctor"].map((command) => gateway.openclaw(["coordination", command])),
    );
    expect(timeline?.stdout).toContain("child");
    expect([doctor?.code, doctor?.stdout]).toEqual([0, expect.any(String)]);
  });

  it("shows its skill to models while it is enabled", async () => {
    expect(await isSkillShown()).toBe(true);
  });

  it("disables it again with one command", async () => {
    expect(await runForJson("disable")).toMatchObject({
      changed: [
        { path: "plugins.entries.coordination.config.coordination.phase1.enabled", from: true, to: false },
      ],
    });
    await waitUntilServed(gateway, false);
  });
});
