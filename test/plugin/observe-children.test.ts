/** The hooks of a child's run: facts that they bring into the ledger, and answers to the host. */
import { beforeEach, describe, expect, it } from "vitest";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import type { ChildRequest } from "../../src/agents/coordination/contracts/fact-fields.ts";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { isChildSessionKey } from "../../src/agents/coordination/contracts/host-agent-id.ts";
import {
  createObserveHandlers,
  type ObserveHandlers,
} from "../../src/plugins/openclaw/children/observe-handlers.ts";
import { createRecentMap } from "../../src/agents/coordination/std/recent.ts";
import { accessGateMemory } from "../../src/plugins/openclaw/runtime-access/gate-memory.ts";
import { createRunQuietly } from "../../src/plugins/openclaw/runtime-access/run-quietly.ts";
import {
  replaceRuntime,
  type ChildAtWork,
  type SharedRuntime,
} from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import { createScriptedRunner } from "../support/scripted-runner.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { createWorld, OWNER, spawnOf, type World } from "../support/fake-clock-host.ts";
import { listEvents } from "../core/gates-world.ts";
import { createHostWithoutState } from "./fake-host.ts";

const REQUESTED: ChildRequest = { model: "openai/large", folder: "/srv/work" };

interface ObservationScene {
  readonly world: World;
  readonly coordinator: Coordinator;
  readonly handlers: ObserveHandlers;
  readonly session: SessionKey;
}

type Policy = "record" | "hold" | "refuse";

async function setUp(onMismatch: Policy, requested: ChildRequest = REQUESTED): Promise<ObservationScene> {
  const world = createWorld({}, createScriptedRunner(), { truth: { onMismatch } });
  const coordinator = world.start();
  const spawn = spawnOf({ task: "t" });
  const admission = await coordinator.admitSpawn({ ...spawn, spawn: { ...spawn.spawn, requested } });
  if (admission.kind === "refused") throw new Error(admission.reason);
  const { coordinationId, stepId } = admission.envelope;
  const { childSessionKey: session, childRunId } = world.host.spawn(spawnOf({ task: "t" }));
  const claim = { coordinationId, stepId, sourceSession: OWNER, toolCallId: "t" };
  await coordinator.confirmSpawn(claim, { childSessionKey: session, childRunId });
  const runtime = {
    config: parsePluginConfig({ coordination: { phase1: { truth: { onMismatch } } } }),
    coordinator: () => Promise.resolve(coordinator),
    children: createRecentMap<ChildAtWork>(10),
    folderOf: () => "/srv/work",
    names: { modelOf: String, folderOf: String, thinkingOf: () => "off" },
    close: () => Promise.resolve(),
  } as unknown as SharedRuntime;
  await replaceRuntime(runtime);
  const handlers = createObserveHandlers({
    quietly: createRunQuietly(createHostWithoutState().api, (work) => work(runtime)),
    isChild: isChildSessionKey,
  });
  return { world, coordinator, handlers, session };
}

async function beginRun({ handlers, session }: ObservationScene, model: string, tools: unknown[] = []) {
  const [modelProviderId, modelId] = model.split("/");
  const answer = await handlers.beforeRun({
    sessionKey: session,
    agentId: "main",
    modelProviderId,
    modelId,
  } as never);
  handlers.runInput({ tools } as never, { sessionKey: session });
  return answer;
}

async function callModel({ handlers, session }: ObservationScene, model: string): Promise<void> {
  const [provider, name] = model.split("/");
  handlers.modelCallStarted({ sessionKey: session, provider, model: name } as never);
  await waitUntilSettled();
}

const observationsOf = ({ world }: ObservationScene) =>
  listEvents(world, "child.observed").map(({ payload }) => payload.ran);
const differencesOf = ({ world }: ObservationScene) =>
  listEvents(world, "child.differed").map(
    ({ payload: { stepId: _, attempt: _attempt, ...difference } }) => difference,
  );

const ROUTED = { field: "model", asked: "openai/large", ran: "openai/small" };

let setting: ObservationScene;

describe("a child that is watched", () => {
  beforeEach(async () => {
    setting = await setUp("record");
  });

  it("is recorded with its first call, and with no call of the same model", async () => {
    expect(
      await beginRun(setting, "openai/large", [{ name: "write" }, "read", { name: "read" }, null, 7]),
    ).toBe(undefined);
    expect(observationsOf(setting)).toEqual([]);
    for (let calls = 0; calls < 20; calls += 1) await callModel(setting, "openai/large");
    expect(observationsOf(setting)).toEqual([
      {
        agentId: "main",
        model: "openai/large",
        folder: "/srv/work",
        thinking: "off",
        tools: { count: 2, sha256: expect.stringMatching(/^[0-9a-f]{64}$/u) as string },
      },
    ]);
    expect(differencesOf(setting)).toEqual([]);
  });

  it("is recorded again when it changes, and differs then", async () => {
    await beginRun(setting, "openai/large");
    await callModel(setting, "openai/large");
    await callModel(setting, "openai/small");
    expect(observationsOf(setting).slice(1)).toEqual([{ model: "openai/small" }]);
    expect(differencesOf(setting)).toEqual([ROUTED]);
  });

  it("is known by its calls alone where nobody told of its run", async () => {
    await callModel(setting, "openai/small");
    await callModel(setting, "openai/small");
    expect(observationsOf(setting)).toEqual([{ model: "openai/small" }]);
  });

  it("differs by the folder that its tools had in the end", async () => {
    await beginRun(setting, "openai/large");
    await callModel(setting, "openai/large");
    await setting.handlers.beforeFinalize({ sessionKey: setting.session, cwd: "/srv/other" } as never);
    expect(differencesOf(setting)).toEqual([{ field: "folder", asked: "/srv/work", ran: "/srv/other" }]);
  });

  it("is no session of anybody else", async () => {
    const other = { ...setting, session: OWNER };
    expect(await beginRun(other, "openai/small")).toBe(undefined);
    await callModel(other, "openai/small");
    expect(observationsOf(setting)).toEqual([]);
  });
});

describe("what the operator wants of a child that does not run as it was asked", () => {
  it("refuse: its run is blocked with a sentence, and the fact is on disk before", async () => {
    setting = await setUp("refuse");
    const sentence = "model openai/large was asked, and openai/small would have run";
    expect(await beginRun(setting, "openai/small")).toEqual({
      outcome: "block",
      reason: sentence,
      message: sentence,
    });
    expect(differencesOf(setting)).toEqual([ROUTED]);
    expect(listEvents(setting.world, "child.observed")[0]?.payload.refused).toBe(true);
  });

  it("refuse: a run as it was asked goes on", async () => {
    setting = await setUp("refuse");
    expect(await beginRun(setting, "openai/large")).toBe(undefined);
  });

  it("hold: from the call on that differs everything it says is kept back, and people are asked", async () => {
    setting = await setUp("hold");
    const { coordinator, session, world } = setting;
    const gated = await coordinator.heldSessions.gated(session);
    if (!gated) throw new Error("the session is not gated");
    accessGateMemory().gated.set(session, gated);
    await beginRun(setting, "openai/small");
    expect(accessGateMemory().gated.get(session)?.isStrict).toBe(false);
    const call = callModel(setting, "openai/small");
    expect(accessGateMemory().gated.get(session)?.isStrict).toBe(true);
    await call;
    await coordinator.endChild(session, { outcome: "completed" });
    expect(listEvents(world, "coordination.escalated").map(({ payload }) => payload.cause)).toEqual([
      "mismatch",
    ]);
  });
});
