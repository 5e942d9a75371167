/** Owns: plans that children of spawns submit under the operator's budget: none may use more than is left of it. */
import { describe, expect, it } from "vitest";
import type { AgentId, CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { TreeBudget } from "../../src/agents/coordination/contracts/usage.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { createUsageBook, type UsageBook } from "../../src/agents/coordination/runtime/usage/usage-book.ts";
import { createWorld, OWNER, spawnOf, type World } from "../support/fake-clock-host.ts";
import { createScriptedRunner, endDone } from "../support/scripted-runner.ts";
import { listEvents, spawnChild, waitUntilQuiet } from "./gates-world.ts";
import { AGENT, plan, scriptOf, step, type Fields } from "./planned-world.ts";

interface Play {
  readonly world: World;
  readonly coordinator: Coordinator;
  readonly book: UsageBook;
  /** The host makes a session for it, unless there is one. */
  spawn(task: string, agent?: string, session?: SessionKey): Promise<SessionKey>;
  /** The session submits a plan of one step, whose agent works until the test ends it. */
  submit(session: SessionKey, coordinationId: string, fields?: Fields): ReturnType<Coordinator["submitPlan"]>;
  /** The budgets of the plans, by coordination. */
  listBudgets(): Readonly<Record<string, unknown>>;
}

async function openPlay(budget: TreeBudget): Promise<Play> {
  const world = createWorld({}, createScriptedRunner(scriptOf({ n: ["work"], m: ["work"] })));
  const book = createUsageBook("meter-1");
  const coordinator = world.start(undefined, {
    clock: world.clock,
    runner: world.host,
    usage: book,
    budget,
  });
  await coordinator.start();
  return {
    world,
    coordinator,
    book,
    spawn: async (task, agent = "main", session) => {
      const request = spawnOf({ task });
      const spawn = { ...request.spawn, agentId: agent as AgentId };
      const admission = await coordinator.admitSpawn({ ...request, spawn });
      if (admission.kind === "refused") throw new Error(admission.reason);
      const { coordinationId, stepId } = admission.envelope;
      const { childSessionKey: created, childRunId } = world.host.spawn(request);
      const childSessionKey = session ?? created;
      const claim = { coordinationId, stepId, sourceSession: OWNER, toolCallId: task };
      await coordinator.confirmSpawn(claim, { childSessionKey, childRunId });
      return childSessionKey;
    },
    submit: async (session, coordinationId, fields = {}) => {
      const name = coordinationId === "nested" ? "n" : "m";
      const nested = plan([step(name)], { coordinationId, ownerSession: session, ...fields });
      const submitted = await coordinator.submitPlan({
        plan: nested,
        submittedBy: session,
        ownerAgent: AGENT,
      });
      await waitUntilQuiet(world);
      return submitted;
    },
    listBudgets: () =>
      Object.fromEntries(
        listEvents(world, "coordination.created").map(({ runId, payload }) => [runId, payload.plan?.budget]),
      ),
  };
}

/** A run of the session used 150 tokens. */
function addUse(book: UsageBook, session: SessionKey): void {
  book.beginCall({ session, runId: "run-of-child" });
  book.addUsage(session, {
    model: "mock/scripted",
    inputTokens: 80,
    outputTokens: 20,
    cacheReadTokens: 40,
    cacheWriteTokens: 10,
    costNanoUsd: 400,
  });
}

const REFUSED = { kind: "refused", problems: [{ code: "NESTED_BUDGET" }] };

describe("a plan of a child under the operator's budget", () => {
  it("may use what is left of it, and no more than it asks for itself", async () => {
    const play = await openPlay({ spawns: 5, costMicroUsd: 2_000_000 });
    const session = await play.spawn("look it up");
    await play.submit(session, "nested", { budget: { spawns: 3, costUsd: 9 } });
    expect(play.listBudgets()).toMatchObject({ nested: { spawns: 3, costMicroUsd: 2_000_000 } });
    await play.coordinator.stop();
  });

  it("cannot be forked, and is to be submitted again from its session", async () => {
    const play = await openPlay({ spawns: 5 });
    const session = await play.spawn("look it up");
    await play.submit(session, "nested");
    await expect(play.coordinator.forkPlan({ source: "nested" as CoordinationId })).rejects.toThrow(
      "nested was submitted by the agent of step step-1 of co-1, and its result is told to that agent's session; submit it again from that session",
    );
    await play.coordinator.stop();
  });

  it("may not use what the children used, also where that is not recorded yet", async () => {
    const play = await openPlay({ tokens: 400 });
    const session = await play.spawn("look it up");
    addUse(play.book, session);
    await play.submit(session, "nested");
    expect(play.listBudgets()).toMatchObject({ nested: { tokens: 250 } });
    await play.coordinator.stop();
  });

  it("may not use what plans of other children may use, or have used", async () => {
    const play = await openPlay({ spawns: 5 });
    const first = await play.spawn("look it up");
    const second = await play.spawn("look again");
    await play.submit(first, "nested", { budget: { spawns: 2 } });
    await play.submit(second, "beside");
    expect(play.listBudgets()).toMatchObject({ nested: { spawns: 2 }, beside: { spawns: 1 } });
    play.world.plans.end("n", endDone());
    play.world.plans.end("m", endDone());
    await play.world.clock.advance(10_000);
    await play.submit(first, "last");
    expect(play.listBudgets()).toMatchObject({ last: { spawns: 1 } });
    await play.coordinator.stop();
  });

  it("may not use what people let a plan of another child use beyond its own budget", async () => {
    const play = await openPlay({ spawns: 7 });
    const sessions = [await play.spawn("look it up"), await play.spawn("look again")] as const;
    const steps = ["x", "y", "n"].map((name, at, names) => step(name, { dependsOn: names.slice(0, at) }));
    const failurePolicy = {
      retryBudget: 0,
      timeoutPolicy: "continue_with_partial",
      escalationPolicy: "hitl",
    };
    await play.submit(sessions[0], "nested", { steps, failurePolicy, budget: { spawns: 2 } });
    await play.coordinator.retry({ coordinationId: "nested" as CoordinationId, by: "operator" });
    await waitUntilQuiet(play.world);
    expect(play.world.plans.orders.map(({ envelope }) => envelope.stepId)).toEqual(["x", "y", "n"]);
    await play.submit(sessions[1], "beside");
    expect(play.listBudgets()).toMatchObject({ beside: { spawns: 1 } });
    await play.coordinator.stop();
  });

  it("shares it with a plan that another child submits at once", async () => {
    const play = await openPlay({ spawns: 4 });
    const sessions = [await play.spawn("look it up"), await play.spawn("look again")] as const;
    await Promise.all([play.submit(sessions[0], "nested"), play.submit(sessions[1], "beside")]);
    expect(play.listBudgets()).toMatchObject({ nested: { spawns: 2 } });
    expect(play.listBudgets()).not.toHaveProperty("beside");
    await play.coordinator.stop();
  });

  it("is refused where nothing is left", async () => {
    const play = await openPlay({ spawns: 2 });
    const first = await play.spawn("look it up");
    await play.submit(first, "nested");
    const submitted = await play.submit(await play.spawn("look again"), "beside");
    expect(submitted).toMatchObject(REFUSED);
    await play.coordinator.stop();
  });

  it("is refused on the level on which the child may spawn nobody either", async () => {
    const play = await openPlay({ depth: 1 });
    expect(await play.submit(await play.spawn("look it up"), "nested")).toMatchObject(REFUSED);
    await play.coordinator.stop();
  });

  it("is bounded by the part of the agent that submits it, too", async () => {
    const play = await openPlay({ spawns: 9, agents: { ["reader" as AgentId]: { spawns: 4 } } });
    const reader = await play.spawn("look it up", "reader");
    const other = await play.spawn("look again");
    await play.submit(reader, "nested", { budget: { spawns: 3 } });
    await play.submit(other, "beside", { budget: { spawns: 2 } });
    play.world.plans.end("n", endDone());
    play.world.plans.end("m", endDone());
    await play.world.clock.advance(10_000);
    await play.submit(reader, "last");
    expect(play.listBudgets()).toMatchObject({
      nested: { spawns: 3 },
      beside: { spawns: 2 },
      last: { spawns: 3 },
    });
    await play.coordinator.stop();
  });

  it("has no budget where the operator sets none that counts what plans use", async () => {
    const play = await openPlay({ depth: 3 });
    await play.submit(await play.spawn("look it up"), "nested");
    expect(play.listBudgets()).toMatchObject({ nested: undefined });
    await play.coordinator.stop();
  });

  it("records no usage where somebody only looks at a fork of it", async () => {
    const play = await openPlay({ tokens: 400 });
    const early = "agent:main:subagent:early" as SessionKey;
    await play.submit(early, "nested");
    await play.spawn("look it up", "main", early);
    addUse(play.book, early);
    const forked = await play.coordinator.forkPlan({ source: "nested" as CoordinationId, isPreview: true });
    expect(forked).toMatchObject({ kind: "preview", anew: ["n"] });
    expect(listEvents(play.world, "usage.recorded")).toEqual([]);
    await play.coordinator.stop();
  });
});

describe("a plan under the operator's budget whose submitter's spawn is over", () => {
  async function endSpawn({ world, coordinator }: Play, session: SessionKey): Promise<void> {
    world.host.end(session, { outcome: "completed" });
    await coordinator.endChild(session, { outcome: "completed" });
    await world.clock.advance(10_000);
  }
  async function endPlan({ world }: Play, name: string): Promise<void> {
    world.plans.end(name, endDone());
    await world.clock.advance(10_000);
  }

  it("may use no more than is left, and counts for the plans after it", async () => {
    const play = await openPlay({ spawns: 6 });
    const session = await play.spawn("look it up");
    await play.submit(session, "nested");
    await endSpawn(play, session);
    expect(listEvents(play.world, "coordination.terminal")).toMatchObject([{ runId: "co-1" }]);
    await endPlan(play, "n");
    await play.submit(session, "second", { budget: { spawns: 2 } });
    await endPlan(play, "m");
    await play.submit(session, "third");
    expect(play.listBudgets()).toMatchObject({
      nested: { spawns: 5 },
      second: { spawns: 2 },
      third: { spawns: 3 },
    });
    await play.coordinator.stop();
  });

  it("is refused where nothing is left, and beside another plan of its session", async () => {
    const play = await openPlay({ spawns: 3 });
    const session = await play.spawn("look it up");
    await endSpawn(play, session);
    await play.submit(session, "nested");
    const beside = await play.submit(session, "beside");
    expect(beside).toMatchObject({ kind: "refused", problems: [{ code: "NESTED_OPEN" }] });
    await endPlan(play, "n");
    await play.submit(session, "second");
    await endPlan(play, "m");
    expect(await play.submit(session, "third")).toMatchObject(REFUSED);
    await play.coordinator.stop();
  });

  it("is refused where the spawn was cancelled", async () => {
    const play = await openPlay({ spawns: 3 });
    const session = await play.spawn("look it up");
    await play.coordinator.cancel({ coordinationId: "co-1" as CoordinationId, by: "operator" });
    await play.world.clock.advance(10_000);
    const late = await play.submit(session, "nested");
    expect(late).toMatchObject({ kind: "refused", problems: [{ code: "NESTED_LATE" }] });
    await play.coordinator.stop();
  });

  it("is refused to what an agent of a child's plan had spawned, once that plan is over", async () => {
    const play = await openPlay({ spawns: 9 });
    await play.submit(await play.spawn("look it up"), "nested");
    const agent = play.world.plans.orders.at(-1)!.childSessionKey;
    const { session } = await spawnChild(play.world, play.coordinator, "t", agent);
    await play.coordinator.endChild(session, { outcome: "completed" });
    await endPlan(play, "n");
    const late = await play.submit(session, "second");
    expect(late).toMatchObject({ kind: "refused", problems: [{ code: "NESTED_LATE" }] });
    await play.coordinator.stop();
  });
});
