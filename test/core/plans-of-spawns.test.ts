/** Plans of subagents that models spawned by themselves: refused inside of a plan, elsewhere over with a spawn that fails. */
import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId, SessionKey, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { ChildEnding } from "../../src/agents/coordination/contracts/observation.ts";
import { nameNestedPlanReference } from "../../src/agents/coordination/ledger/summary.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { createWorld, OWNER, type World } from "../support/fake-clock-host.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import {
  createScriptedRunner,
  endDone,
  endFailing,
  type ScriptedAttempt,
} from "../support/scripted-runner.ts";
import { listEvents, spawnChild, waitUntilQuiet } from "./gates-world.ts";
import { AGENT, PLAN_ID, plan, runPlan, scriptOf, step, type Fields, type PlanRun } from "./planned-world.ts";

const SPAWN = { coordinationId: "co-1" as CoordinationId, stepId: "step-1" as StepId };

const submitFrom = (coordinator: Coordinator, session: SessionKey) =>
  coordinator.submitPlan({
    // Its own time is longer than that of the spawn.
    plan: plan([step("n", { timeoutMs: 36_000_000 })], { coordinationId: "nested", ownerSession: session }),
    submittedBy: session,
    ownerAgent: AGENT,
  });

const TOO_LATE = { kind: "refused", problems: [{ code: "NESTED_LATE" }] };

describe("a session that was spawned inside of a plan", () => {
  const REFUSED = { kind: "refused", problems: [{ code: "NESTED_SPAWN" }] };
  const spawnInPlan = async (): Promise<{ run: PlanRun; session: SessionKey }> => {
    const run = await runPlan({ a: ["work"] }, plan([step("a")], { budget: { spawns: 10 } }));
    const agent = run.ordersOf("a").at(-1)!.childSessionKey;
    const { session } = await spawnChild(run.world, run.coordinator, "t", agent);
    return { run, session };
  };

  it("can submit no plan, because nothing would wait for it, cancel it or count what it uses", async () => {
    const { run, session } = await spawnInPlan();
    expect(await submitFrom(run.coordinator, session)).toMatchObject(REFUSED);
    expect(run.ordersOf("n")).toEqual([]);
    await run.close();
  });

  it("can submit none either when its spawn is over and the plan still runs", async () => {
    const { run, session } = await spawnInPlan();
    await run.coordinator.endChild(session, { outcome: "completed" });
    expect(await submitFrom(run.coordinator, session)).toMatchObject(REFUSED);
    await run.close();
  });

  it("can submit none when the plan is over and the step that it was spawned for has failed", async () => {
    const { run, session } = await spawnInPlan();
    await run.coordinator.endChild(session, { outcome: "completed" });
    run.world.plans.end("a", endFailing());
    await run.advance(10_000);
    expect((await run.view()).status).toBe("failed");
    expect(await submitFrom(run.coordinator, session)).toMatchObject(TOO_LATE);
    await run.close();
  });

  it("may submit one when the plan is over", async () => {
    const { run, session } = await spawnInPlan();
    await run.coordinator.endChild(session, { outcome: "completed" });
    run.world.plans.end("a", endDone());
    await run.advance(10_000);
    expect((await run.view()).status).toBe("success");
    expect(await submitFrom(run.coordinator, session)).toMatchObject({ kind: "accepted" });
    await run.close();
  });
});

const FAIL_FAST = {
  failurePolicy: { retryBudget: 5, timeoutPolicy: "fail_fast", escalationPolicy: "none" },
};

describe("a session that was spawned inside of a plan, in a turn that goes on after the plan has ended", () => {
  /** The spawn of step `a`'s agent has completed, and its session is in a turn; step `b` is at work. */
  async function runInTurn(fields: Fields): Promise<{ run: PlanRun; session: SessionKey }> {
    const run = await runPlan({ a: ["work"], b: ["work"] }, plan([step("a"), step("b")], fields));
    const agent = run.ordersOf("a").at(-1)!.childSessionKey;
    const child = await spawnChild(run.world, run.coordinator, "t", agent);
    await child.ends();
    run.coordinator.turnBegan(child.session, "woken");
    run.world.plans.end("a", endDone());
    await run.advance(10_000);
    return { run, session: child.session };
  }

  it.each<[string, Fields, (run: PlanRun) => unknown]>([
    ["it failed fast", FAIL_FAST, ({ world }) => world.plans.end("b", endFailing("no"))],
    ["its deadline came", { deadlineMs: 60_000 }, () => undefined],
    [
      "it was cancelled",
      {},
      ({ coordinator }) => coordinator.cancel({ coordinationId: PLAN_ID, by: "operator" }),
    ],
  ])("can submit none where %s, and may in a later turn", async (_, fields, stop) => {
    const { run, session } = await runInTurn(fields);
    await stop(run);
    await run.advance(60_000);
    expect(run.events("coordination.terminal")).toHaveLength(1);
    expect(await submitFrom(run.coordinator, session)).toMatchObject(TOO_LATE);
    await run.coordinator.turnEnded(session, "woken");
    run.coordinator.turnBegan(session, "asked-by-a-person");
    expect(await submitFrom(run.coordinator, session)).toMatchObject({ kind: "accepted" });
    await run.coordinator.stop();
  });

  it("may submit one where the plan ended by itself", async () => {
    const { run, session } = await runInTurn({});
    run.world.plans.end("b", endDone());
    await run.advance(60_000);
    expect(run.events("coordination.terminal")).toHaveLength(1);
    expect(await submitFrom(run.coordinator, session)).toMatchObject({ kind: "accepted" });
    await run.coordinator.stop();
  });
});

describe("the plan of a subagent that was spawned outside of any plan", () => {
  async function spawnAtWork(scripts: Readonly<Record<string, readonly ScriptedAttempt[]>> = {}) {
    const world = createWorld({}, createScriptedRunner(scriptOf({ n: ["work"], ...scripts })));
    const coordinator = world.start();
    await coordinator.start();
    const { session } = await spawnChild(world, coordinator);
    return { world, coordinator, session };
  }
  /** A spawn whose child has submitted a plan with the step `n`, which works on. */
  async function spawnPlanning(scripts?: Readonly<Record<string, readonly ScriptedAttempt[]>>) {
    const { world, coordinator, session } = await spawnAtWork(scripts);
    expect(await submitFrom(coordinator, session)).toMatchObject({ kind: "accepted" });
    await waitUntilQuiet(world);
    return { world, coordinator, session };
  }
  const listEnds = (world: World) =>
    listEvents(world, "coordination.terminal").map(({ runId, payload }) => [runId, payload.status]);
  const listTold = ({ plans }: World): readonly SessionKey[] =>
    plans.orders.filter(({ envelope }) => envelope.intent === "report").map((order) => order.childSessionKey);

  it.each([{ coordinationId: SPAWN.coordinationId }, SPAWN])(
    "is cancelled when people cancel %j",
    async (cancelled) => {
      const { world, coordinator } = await spawnPlanning();
      await coordinator.cancel({ ...cancelled, by: "operator" });
      await waitUntilQuiet(world);
      expect(listEvents(world, "step.failed").map(({ runId }) => runId)).toContain("co-1");
      expect(world.plans.cancelled).toContain("nested:n:1");
      await world.clock.advance(10_000);
      expect(listEnds(world)).toContainEqual(["nested", "cancelled"]);
      expect(listTold(world)).toEqual([]);
      await coordinator.stop();
    },
  );

  it("is cancelled also where it was submitted while its child was being stopped", async () => {
    const { world, coordinator, session } = await spawnAtWork();
    const stop = world.host.stop.bind(world.host);
    world.host.stop = async (query) => {
      expect(await submitFrom(coordinator, session)).toMatchObject({ kind: "accepted" });
      return stop(query);
    };
    await coordinator.cancel({ coordinationId: SPAWN.coordinationId, by: "operator" });
    await world.clock.advance(10_000);
    expect(listEnds(world)).toContainEqual(["nested", "cancelled"]);
    await coordinator.stop();
  });

  it("is cancelled also where its spawn was cancelled, and had ended, just before it was opened", async () => {
    const world = createWorld({}, createScriptedRunner(scriptOf({ n: ["work"] })));
    const interruption: { run?: () => Promise<void> } = {};
    const nested = nameNestedPlanReference(SPAWN.coordinationId, SPAWN.stepId);
    const coordinator = world.start((store) => ({
      ...store,
      find: async (name) => {
        const found = await store.find(name);
        const { run } = interruption;
        if (name !== nested || !run) return found;
        delete interruption.run;
        await run();
        return found;
      },
    }));
    await coordinator.start();
    const { session } = await spawnChild(world, coordinator);
    interruption.run = async () => {
      await coordinator.cancel({ ...SPAWN, by: "operator" });
      await world.clock.advance(1_000);
      expect(listEvents(world, "step.failed").map(({ runId }) => runId)).toEqual(["co-1"]);
    };
    expect(await submitFrom(coordinator, session)).toMatchObject({ kind: "accepted" });
    await world.clock.advance(10_000);
    expect(listEnds(world)).toContainEqual(["nested", "cancelled"]);
    await coordinator.stop();
  });

  it("is refused in a turn after its spawn once people have cancelled the coordination, while the rest is being stopped", async () => {
    const { world, coordinator } = await spawnAtWork();
    const beside = await spawnChild(world, coordinator, "beside");
    await beside.ends();
    coordinator.turnBegan(beside.session, "woken");
    await coordinator.cancel({ coordinationId: SPAWN.coordinationId, by: "operator" });
    expect(listEnds(world)).toEqual([]);
    expect(await submitFrom(coordinator, beside.session)).toMatchObject(TOO_LATE);
    await coordinator.stop();
  });

  it("is refused once its spawn was cancelled, also where the host could not stop it", async () => {
    const { world, coordinator, session } = await spawnAtWork();
    await spawnChild(world, coordinator, "beside");
    world.host.stop = () => Promise.resolve("unreachable");
    await coordinator.cancel({ ...SPAWN, by: "operator" });
    await world.clock.advance(10_000);
    expect(listEnds(world)).toEqual([]);
    expect(await submitFrom(coordinator, session)).toMatchObject(TOO_LATE);
    await coordinator.cancel({ coordinationId: SPAWN.coordinationId, by: "operator" });
    await world.clock.advance(10_000);
    expect(listEnds(world)).toEqual([["co-1", "cancelled"]]);
    expect(await submitFrom(coordinator, session)).toMatchObject(TOO_LATE);
    await coordinator.stop();
  });

  it.each<ChildEnding>([
    { outcome: "failed", message: "it broke" },
    { outcome: "timed_out" },
    { outcome: "cancelled" },
  ])("is cancelled when its child ended as %j", async (ending) => {
    const { world, coordinator, session } = await spawnPlanning();
    world.host.end(session, ending);
    await coordinator.endChild(session, ending);
    await world.clock.advance(10_000);
    expect(world.plans.cancelled).toContain("nested:n:1");
    expect(listTold(world)).toEqual([]);
    await coordinator.stop();
  });

  it("is cancelled when the host's records say that its child failed", async () => {
    const { world, coordinator, session } = await spawnPlanning();
    world.host.end(session, { outcome: "failed" });
    await world.clock.advance(world.settings.sweepMs);
    await waitUntilQuiet(world);
    expect(world.plans.cancelled).toContain("nested:n:1");
    await coordinator.stop();
  });

  it("is cancelled when its child ran out of time", async () => {
    const { world, coordinator } = await spawnPlanning();
    const { stepTimeoutMs, acknowledgeMs, sweepMs } = world.settings;
    await world.clock.advance(stepTimeoutMs + acknowledgeMs + sweepMs);
    expect(listEvents(world, "step.timed_out").map(({ runId }) => runId)).toContain("co-1");
    expect(world.plans.cancelled).toContain("nested:n:1");
    await coordinator.stop();
  });

  it("goes on when its child completed, and tells the child's session", async () => {
    const { world, coordinator, session } = await spawnPlanning();
    world.host.end(session, { outcome: "completed" });
    await coordinator.endChild(session, { outcome: "completed" });
    await world.clock.advance(10_000);
    expect(listEnds(world)).toEqual([["co-1", "success"]]);
    world.plans.end("n", endDone());
    await world.clock.advance(10_000);
    expect(listEnds(world)).toEqual([
      ["co-1", "success"],
      ["nested", "success"],
    ]);
    expect(listTold(world)).toEqual([session]);
    await coordinator.stop();
  });

  it.each<[string, { readonly coordinationId: CoordinationId; readonly stepId?: StepId }]>([
    ["what its child was spawned by", SPAWN],
    ["the whole coordination", { coordinationId: SPAWN.coordinationId }],
  ])("is cancelled where its child completed, and %s is cancelled after that", async (_, cancelled) => {
    const { world, coordinator, session: first } = await spawnAtWork();
    const source = "stepId" in cancelled ? first : OWNER;
    const { session } = await spawnChild(world, coordinator, "t", source);
    expect(await submitFrom(coordinator, session)).toMatchObject({ kind: "accepted" });
    world.host.end(session, { outcome: "completed" });
    await coordinator.endChild(session, { outcome: "completed" });
    await world.clock.advance(10_000);
    expect(listEnds(world)).toEqual([]);
    await coordinator.cancel({ ...cancelled, by: "operator" });
    await world.clock.advance(10_000);
    expect(world.plans.cancelled).toContain("nested:n:1");
    expect(listEnds(world)).toContainEqual(["nested", "cancelled"]);
    expect(listTold(world)).toEqual([]);
    await coordinator.stop();
  });

  it("ends in its time, also where its child completed and does not end the turn in which it is told", async () => {
    const { world, coordinator, session } = await spawnPlanning({ "@delivery": ["work"] });
    world.host.end(session, { outcome: "completed" });
    await coordinator.endChild(session, { outcome: "completed" });
    world.plans.end("n", endDone());
    await world.clock.advance(605_000);
    expect(listTold(world)).toEqual([session]);
    expect(listEnds(world)).toContainEqual(["nested", "success"]);
    await coordinator.stop();
  });

  /** A spawn with a plan, whose step `n` fails once, and whose log is damaged before another process takes it up. */
  async function restartDamaged() {
    const script = scriptOf({ n: [endFailing(), "work"], "@delivery": ["work"] });
    const world = createWorld({}, createScriptedRunner(script));
    const disk = { isDamaged: false };
    const damage = (store: MemoryStore): MemoryStore => ({
      ...store,
      read: (runId, range) =>
        disk.isDamaged && runId === SPAWN.coordinationId
          ? Promise.reject(new CoordinationError("LEDGER_CORRUPT", "co-1 is damaged"))
          : store.read(runId, range),
    });
    const before = world.start(damage);
    await before.start();
    const { session } = await spawnChild(world, before);
    const retry = { budget: 1, backoffMs: 5_000 };
    const fields = { coordinationId: "nested", ownerSession: session };
    await before.submitPlan({
      plan: plan([step("n", { retry })], fields),
      submittedBy: session,
      ownerAgent: AGENT,
    });
    await waitUntilQuiet(world);
    await before.stop();
    disk.isDamaged = true;
    const coordinator = world.start(damage);
    await coordinator.start();
    await world.clock.advance(10_000);
    return { world, coordinator, session };
  }
  const UNREAD = {
    level: "warn",
    fields: { runId: "nested", aroundId: "co-1", code: "LEDGER_CORRUPT" },
    message: "cannot read the coordination around this plan; the plan goes on: co-1 is damaged",
  };
  const listLinesOf = ({ logged }: World, runId: string) =>
    logged.filter(
      ({ level, fields, message }) =>
        fields.runId === runId &&
        (level === "warn" || level === "error" || message.includes("no longer fail")),
    );

  it("goes on in its time where the log of its spawn cannot be read any more", async () => {
    const { world, coordinator } = await restartDamaged();
    expect(world.plans.orders.map(({ idempotencyKey }) => idempotencyKey)).toEqual([
      "nested:n:1",
      "nested:n:2",
    ]);
    await world.clock.advance(3 * world.settings.sweepMs);
    expect(listLinesOf(world, "nested")).toEqual([UNREAD]);
    await coordinator.stop();
  });

  it("tells its owner and ends in its time where the log of its spawn cannot be read any more", async () => {
    const { world, coordinator, session } = await restartDamaged();
    world.plans.end("n", endDone());
    await world.clock.advance(595_000);
    expect(listTold(world)).toEqual([session]);
    expect(listLinesOf(world, "nested")).toEqual([UNREAD]);
    await world.clock.advance(10_000 + 3 * world.settings.sweepMs);
    expect(listEnds(world)).toEqual([["nested", "success"]]);
    expect(listLinesOf(world, "nested")).toEqual([UNREAD]);
    await coordinator.stop();
  });
});
