import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { CoordinationEnvelope } from "../../src/agents/coordination/contracts/envelope.ts";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import {
  addMs,
  type CoordinationId,
  type SessionKey,
  type StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { SpawnRequest } from "../../src/agents/coordination/runtime/spawns/admit-spawn.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import type { SpawnClaim } from "../../src/agents/coordination/runtime/spawns/spawn-claim.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { OWNER, spawnOf, createWorld, type SpawnWords, type World } from "../support/fake-clock-host.ts";
import type { MemoryStore } from "../support/memory-store.ts";

async function admit(coordinator: Coordinator, words: SpawnWords): Promise<CoordinationEnvelope> {
  const admission = await coordinator.admitSpawn(spawnOf(words));
  if (admission.kind === "refused") throw new Error(admission.reason);
  return admission.envelope;
}

const claimOf = (
  { coordinationId, stepId, sourceSession }: CoordinationEnvelope,
  toolCallId: string,
): SpawnClaim => ({
  coordinationId,
  stepId,
  sourceSession,
  toolCallId,
});

/** A spawn that the host has made a child for. */
async function run(
  { host }: World,
  coordinator: Coordinator,
  words: SpawnWords,
): Promise<{ readonly envelope: CoordinationEnvelope; readonly child: SessionKey }> {
  const envelope = await admit(coordinator, words);
  const child = host.spawn(spawnOf(words));
  const confirmed = await coordinator.confirmSpawn(
    claimOf(envelope, words.call ?? words.task),
    childOf(child),
  );
  if (!confirmed) throw new Error("not confirmed");
  return { envelope: confirmed, child: child.childSessionKey };
}

const childOf = ({ childSessionKey, childRunId }: { childSessionKey: SessionKey; childRunId: string }) => ({
  childSessionKey,
  childRunId,
});

const typesOf = (events: readonly RunEvent[] = [], only = /^(coordination|step)\./u): string[] =>
  events.map(({ type }) => type).filter((type) => only.test(type));

const findEventsOfType = <T extends RunEvent["type"]>(
  { ledger }: World,
  type: T,
): Extract<RunEvent, { type: T }>[] =>
  ledger
    .events()
    .flat()
    .filter((event): event is Extract<RunEvent, { type: T }> => event.type === type);

const HOUR = 3_600_000;

describe("a spawn", () => {
  it("is recorded before it is answered, and becomes a whole coordination", async () => {
    const w = createWorld();
    const coordinator = w.start();
    const envelope = await admit(coordinator, { task: "a" });
    expect(envelope).toMatchObject({ coordinationId: "co-1", stepId: "step-1", targetSession: "unbound" });
    expect(typesOf(w.ledger.events()[0])).toEqual([
      "coordination.created",
      "step.admitted",
      "step.dispatched",
    ]);
    const child = w.host.spawn(spawnOf({ task: "a" }));
    const bound = await coordinator.confirmSpawn(claimOf(envelope, "a"), childOf(child));
    expect(bound).toMatchObject({ stepId: "step-1", targetSession: child.childSessionKey });
    expect(await coordinator.envelopeForChild(child.childSessionKey)).toEqual(bound);
    await coordinator.endChild(child.childSessionKey, { outcome: "completed" });
    await w.clock.advance(w.settings.settleMs + 1_000);
    expect(typesOf(w.ledger.events()[0]).slice(3)).toEqual([
      "step.acknowledged",
      "step.completed",
      "coordination.terminal",
    ]);
    expect(await verifyLedger(w.ledger.open(w.clock))).toMatchObject({
      ok: true,
      coordinations: 1,
      problems: [],
    });
  });

  it("keeps its texts beside the log, or none where retention is 0", async () => {
    const kept = createWorld();
    await admit(kept.start(), { task: "secret task", call: "call-1" });
    expect([...kept.ledger.contents.values()].map(({ text }) => text)).toEqual([
      "secret task",
      "objective of trace-1",
    ]);
    expect(JSON.stringify(kept.ledger.events())).not.toContain("secret");
    const none = createWorld({ contentMs: 0 });
    await admit(none.start(), { task: "secret task" });
    expect(none.ledger.contents.size).toBe(0);
  });

  it("of 50 in parallel on one trace opens one coordination between them", async () => {
    const w = createWorld();
    const coordinator = w.start(slowStore);
    const tasks = Array.from({ length: 50 }, (_, index) => `task-${index}`);
    const envelopes = await Promise.all(tasks.map((task) => admit(coordinator, { task })));
    expect(w.ledger.runs.size).toBe(1);
    expect(new Set(envelopes.map(({ stepId }) => stepId)).size).toBe(50);
    expect(findEventsOfType(w, "step.dispatched")).toHaveLength(50);
  });

  it("of several in parallel opens one coordination also when the first opening fails", async () => {
    const w = createWorld();
    let appends = 0;
    const coordinator = w.start((store) =>
      slowStore({
        ...store,
        append: (request) =>
          (appends += 1) === 1
            ? Promise.reject(new CoordinationError("LEDGER_FULL", "full"))
            : store.append(request),
      }),
    );
    const results = await Promise.allSettled(
      ["a", "b", "c", "d"].map((task) => admit(coordinator, { task })),
    );
    expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled", "fulfilled"]);
    expect(w.ledger.runs.size).toBe(1);
  });

  it("on another trace, or of another session, opens another coordination", async () => {
    const w = createWorld();
    const coordinator = w.start();
    await admit(coordinator, { task: "a" });
    await admit(coordinator, { task: "a", trace: "trace-2" });
    await admit(coordinator, { task: "a", source: "agent:other:main" as SessionKey });
    expect(w.ledger.runs.size).toBe(3);
  });

  it("without a trace is grouped by the run that asked for it", async () => {
    const w = createWorld();
    const coordinator = w.start();
    const removeTrace = ({ traceId: _, ...request }: SpawnRequest): SpawnRequest => request;
    await coordinator.admitSpawn(removeTrace(spawnOf({ task: "a" })));
    await coordinator.admitSpawn(removeTrace(spawnOf({ task: "b" })));
    await coordinator.admitSpawn(removeTrace(spawnOf({ task: "c", trace: "trace-2" })));
    expect([...w.ledger.runs.values()].map(({ summary }) => summary.steps.total)).toEqual([2, 1]);
  });

  it("of a child joins the coordination of its parent, on whatever trace", async () => {
    const w = createWorld();
    const coordinator = w.start();
    const parent = await run(w, coordinator, { task: "a" });
    const nested = await run(w, coordinator, { task: "b", source: parent.child, trace: "other" });
    const deeper = await run(w, coordinator, { task: "c", source: nested.child });
    expect(w.ledger.runs.size).toBe(1);
    expect(nested.envelope).toMatchObject({ parentStepId: "step-1", sourceSession: parent.child });
    expect(deeper.envelope).toMatchObject({ parentStepId: "step-2" });
    const causes = findEventsOfType(w, "step.admitted").map(({ causationId }) => causationId);
    const acknowledged = findEventsOfType(w, "step.acknowledged").map(({ eventId }) => eventId);
    expect(causes).toEqual(["co-1:0", acknowledged[0], acknowledged[1]]);
  });

  it("after the end opens a new coordination that names the one before", async () => {
    const w = createWorld();
    const coordinator = w.start();
    const { child } = await run(w, coordinator, { task: "a" });
    await coordinator.endChild(child, { outcome: "completed" });
    await w.clock.advance(10_000);
    await admit(coordinator, { task: "b" });
    await admit(coordinator, { task: "c", source: child, trace: "other" });
    expect(findEventsOfType(w, "coordination.created").map(({ payload }) => payload.trace.causalRef)).toEqual(
      [undefined, "co-1", "co-1"],
    );
  });

  it("that is asked for twice by one call is one step, until the host has answered", async () => {
    const w = createWorld();
    const coordinator = w.start();
    const [first, second] = await Promise.all([
      admit(coordinator, { task: "a" }),
      admit(coordinator, { task: "a" }),
    ]);
    expect(second).toEqual(first);
    expect(findEventsOfType(w, "step.dispatched")).toHaveLength(1);
    await run(w, coordinator, { task: "a" });
    expect((await admit(coordinator, { task: "a" })).stepId).toBe("step-2");
  });

  it("cannot be recorded when the ledger is gone, and then nothing is", async () => {
    const w = createWorld();
    const coordinator = w.start((store) => ({
      ...store,
      append: () => Promise.reject(new CoordinationError("LEDGER_FULL", "full")),
    }));
    await expect(coordinator.admitSpawn(spawnOf({ task: "a" }))).rejects.toMatchObject({
      code: "LEDGER_FULL",
    });
    expect(w.ledger.runs.size).toBe(0);
    expect(w.clock.pending).toBe(0);
  });

  it("with a field that the ledger could not read again is refused before it is written", async () => {
    const w = createWorld();
    const request = spawnOf({ task: "a" });
    const long = { ...request, spawn: { ...request.spawn, name: "x".repeat(BOUNDS.nameCharsMax + 1) } };
    await expect(w.start().admitSpawn(long)).rejects.toMatchObject({ code: "INPUT_INVALID" });
    expect(w.ledger.runs.size).toBe(0);
  });
});

/** A store whose answers take some turns. */
function slowStore(store: MemoryStore): MemoryStore {
  const answerLater = async <T>(answer: Promise<T>): Promise<T> => {
    const result = await answer;
    await waitUntilSettled();
    return result;
  };
  return {
    ...store,
    append: async (request) => {
      await waitUntilSettled();
      await answerLater(store.append(request));
    },
    find: (name) => answerLater(store.find(name)),
    read: (runId, range) => answerLater(store.read(runId, range)),
  };
}

describe("a refused spawn", () => {
  it("is a failed step with the host's sentence, cut to its bound", async () => {
    const w = createWorld();
    const coordinator = w.start();
    const envelope = await admit(coordinator, { task: "a" });
    await coordinator.refuseSpawn(claimOf(envelope, "a"), "no ".repeat(1_000));
    const [failed] = findEventsOfType(w, "step.failed");
    expect(failed?.payload).toMatchObject({ cancelled: false, error: { code: "spawn_refused" } });
    expect(failed?.payload.error.message).toHaveLength(BOUNDS.errorMessageCharsMax);
    await w.clock.advance(10_000);
    expect(findEventsOfType(w, "coordination.terminal")[0]?.payload.status).toBe("failed");
  });

  it("does not end a step whose child the host did make for the same call", async () => {
    const w = createWorld();
    const coordinator = w.start();
    const { envelope } = await run(w, coordinator, { task: "a" });
    await coordinator.refuseSpawn(claimOf(envelope, "a"), "too many children");
    expect(findEventsOfType(w, "step.failed")).toEqual([]);
  });
});

describe("a spawn that the host answers with an error", () => {
  it.each([
    ["have the child", 0],
    ["get the child a second later", 1_000],
  ])("is no failure when the host's records %s: the step is bound to it", async (_, lateMs) => {
    const w = createWorld();
    const coordinator = w.start();
    const envelope = await admit(coordinator, { task: "a" });
    const made: ReturnType<typeof w.host.spawn>[] = [];
    w.clock.wakeAt(addMs(w.clock.now(), lateMs), () => made.push(w.host.spawn(spawnOf({ task: "a" }))));
    await w.clock.advance(0);
    const failing = coordinator.failSpawn(claimOf(envelope, "a"), "the answer was lost");
    await Promise.all([failing, w.clock.advance(2_000)]);
    expect(findEventsOfType(w, "step.failed")).toEqual([]);
    const payloads = findEventsOfType(w, "step.acknowledged").map(({ payload }) => payload);
    expect(payloads).toMatchObject(made.map(childOf));
  });

  it("is a refused spawn with the host's sentence when they have none", async () => {
    const w = createWorld();
    const coordinator = w.start();
    const envelope = await admit(coordinator, { task: "a" });
    const failing = coordinator.failSpawn(claimOf(envelope, "a"), "the session could not be made");
    await Promise.all([failing, w.clock.advance(2_000)]);
    const [failed] = findEventsOfType(w, "step.failed");
    expect(failed?.payload.error).toEqual({
      code: "spawn_refused",
      message: "the session could not be made",
    });
  });
});

describe("H3: a claim", () => {
  it.each([
    ["of another session", { sourceSession: "agent:evil:main" as SessionKey }],
    ["of another call", { toolCallId: "other" }],
    ["of a step that is not there", { stepId: "step-9" as StepId }],
    ["of a coordination that is not there", { coordinationId: "co-9" as CoordinationId }],
  ])("%s changes nothing", async (_, change) => {
    const w = createWorld();
    const coordinator = w.start();
    const envelope = await admit(coordinator, { task: "a" });
    const before = w.ledger.events();
    const claim = { ...claimOf(envelope, "a"), ...change };
    const child = w.host.spawn(spawnOf({ task: "a" }));
    expect(await coordinator.confirmSpawn(claim, childOf(child))).toBeUndefined();
    await coordinator.refuseSpawn(claim, "no");
    expect(w.ledger.events()).toEqual(before);
    expect(await coordinator.envelopeForChild(child.childSessionKey)).toBeUndefined();
  });

  it("is about no session but the children that the ledger knows", async () => {
    const w = createWorld();
    const coordinator = w.start();
    await coordinator.endChild("agent:main:main" as SessionKey, { outcome: "completed" });
    expect(await coordinator.envelopeForChild(OWNER)).toBeUndefined();
    expect(w.ledger.runs.size).toBe(0);
  });
});

describe("a child that the ledger did not expect", () => {
  it("gets a step of its own when one call made two, once", async () => {
    const w = createWorld();
    const coordinator = w.start();
    const { envelope } = await run(w, coordinator, { task: "a" });
    const second = w.host.spawn(spawnOf({ task: "a" }));
    const adopted = await coordinator.confirmSpawn(claimOf(envelope, "a"), childOf(second));
    expect(adopted).toMatchObject({ stepId: "step-2", targetSession: second.childSessionKey });
    const again = await Promise.all(
      [1, 2].map(() => coordinator.confirmSpawn(claimOf(envelope, "a"), childOf(second))),
    );
    expect(again).toEqual([adopted, adopted]);
    expect(findEventsOfType(w, "step.admitted")).toHaveLength(2);
    await coordinator.endChild(second.childSessionKey, { outcome: "failed", message: "x" });
    expect(findEventsOfType(w, "step.failed").map(({ payload }) => payload.stepId)).toEqual(["step-2"]);
  });

  it("gets a step of its own when the host made it after its step was given up", async () => {
    const w = createWorld();
    const coordinator = w.start();
    coordinator.turnBegan(OWNER, "run-1");
    const envelope = await admit(coordinator, { task: "a" });
    await w.clock.advance(40_000);
    expect(findEventsOfType(w, "step.failed")[0]?.payload.error.code).toBe("spawn_not_confirmed");
    const late = w.host.spawn(spawnOf({ task: "a" }));
    const adopted = await coordinator.confirmSpawn(claimOf(envelope, "a"), childOf(late));
    expect(adopted).toMatchObject({ stepId: "step-2", targetSession: late.childSessionKey });
  });

  it("has no envelope when it comes after the end", async () => {
    const w = createWorld();
    const coordinator = w.start();
    const envelope = await admit(coordinator, { task: "a" });
    await w.clock.advance(60_000);
    expect(findEventsOfType(w, "coordination.terminal")).toHaveLength(1);
    const late = w.host.spawn(spawnOf({ task: "a" }));
    expect(await coordinator.confirmSpawn(claimOf(envelope, "a"), childOf(late))).toBeUndefined();
  });
});

describe("the end of a coordination", () => {
  it("waits for the owner's turn, and then for quiet", async () => {
    const w = createWorld();
    const coordinator = w.start();
    coordinator.turnBegan(OWNER, "run-1");
    const { child } = await run(w, coordinator, { task: "a" });
    await coordinator.endChild(child, { outcome: "completed" });
    await w.clock.advance(HOUR);
    expect(findEventsOfType(w, "coordination.terminal")).toEqual([]);
    await coordinator.turnEnded(OWNER, "run-1");
    await w.clock.advance(w.settings.settleMs - 1);
    expect(findEventsOfType(w, "coordination.terminal")).toEqual([]);
    await w.clock.advance(w.settings.settleMs + 2);
    expect(findEventsOfType(w, "coordination.terminal")).toHaveLength(1);
  });

  it("does not wait for ever for a turn whose end was never seen", async () => {
    const w = createWorld();
    const coordinator = w.start();
    coordinator.turnBegan(OWNER, "run-1");
    const { child } = await run(w, coordinator, { task: "a" });
    await coordinator.endChild(child, { outcome: "completed" });
    await w.clock.advance(7 * HOUR);
    expect(findEventsOfType(w, "coordination.terminal")).toHaveLength(1);
  });

  it("is put off by a new spawn", async () => {
    const w = createWorld();
    const coordinator = w.start();
    const { child } = await run(w, coordinator, { task: "a" });
    await coordinator.endChild(child, { outcome: "completed" });
    await w.clock.advance(2_000);
    const next = await run(w, coordinator, { task: "b" });
    expect(next.envelope.coordinationId).toBe("co-1");
    await w.clock.advance(10_000);
    expect(findEventsOfType(w, "coordination.terminal")).toEqual([]);
  });
});
