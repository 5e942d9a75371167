/** Spawns by agents of completed steps when the plan stops: they are stopped with it, and may begin nothing more. */
import { describe, expect, it } from "vitest";
import type { Observation } from "../../src/agents/coordination/contracts/observation.ts";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { CheckAnswer } from "../../src/agents/coordination/ports/verifier.ts";
import { findSpawnRow, observeRow } from "../../src/plugins/openclaw/runners/host-runner.ts";
import { createWorld, spawnOf, type World } from "../support/fake-clock-host.ts";
import type { GivenGates } from "../support/gate-dependencies.ts";
import { createScriptedRunner, endDone, endFailing } from "../support/scripted-runner.ts";
import {
  createGatesWith,
  createRuling,
  createScriptedVerifier,
  spawnChild,
  waitForever,
  waitUntilQuiet,
  type Answers,
  type SpawnedChild,
} from "./gates-world.ts";
import { PLAN_ID, plan, scriptOf, step, submitTo, type Fields, type PlanRun } from "./planned-world.ts";

interface SpawnAtWork extends Pick<SpawnedChild, "session"> {
  readonly run: PlanRun;
  readonly child: SpawnedChild;
}

/** A world whose later attempts of the spawn work on, and nobody hears of their end. */
function createDeafWorld(gates: GivenGates = {}): World {
  const runner = createScriptedRunner(scriptOf({ a: ["work"], b: ["work"], "@step-3": ["work"] }));
  const ignoreEnd: typeof runner.follow = (attempt, signal) =>
    attempt.idempotencyKey.includes("@step-3")
      ? new Promise((resolve) => {
          signal.addEventListener("abort", () => resolve({ kind: "unknown" }));
        })
      : runner.follow(attempt, signal);
  return createWorld({}, { ...runner, follow: ignoreEnd }, gates);
}

/** Has step `b` fail, and expects the spawn to be at work until the host delivers its words. */
async function expectWaitedForUntilDelivered(run: PlanRun, child: SpawnedChild): Promise<void> {
  run.world.plans.end("b", endFailing("no"));
  await run.advance(30_000);
  expect(await run.fates()).toMatchObject({ "@step-3": "running" });
  await child.ends();
  expect(await run.fates()).toMatchObject({ "@step-3": "completed" });
  await run.advance(10_000);
  await run.close();
}

/** A plan whose step `a` completed while what its agent spawned goes on, and whose step `b` is at work. */
async function runWithSpawn(fields: Fields, gates: GivenGates = {}): Promise<SpawnAtWork> {
  const run = await submitTo(createDeafWorld(gates), plan([step("a"), step("b")], fields));
  const agent = run.ordersOf("a").at(-1)!.childSessionKey;
  const child = await spawnChild(run.world, run.coordinator, "t", agent);
  run.world.plans.end("a", endDone());
  await run.advance(10_000);
  expect(await run.fates()).toMatchObject({ a: "completed", b: "running", "@step-3": "running" });
  return { run, child, session: child.session };
}

const createChecks = (answers: Answers): GivenGates => ({
  gates: createGatesWith(["lint"]),
  verifier: createScriptedVerifier(answers).verifier,
});

const FAIL_FAST = {
  failurePolicy: { retryBudget: 5, timeoutPolicy: "fail_fast", escalationPolicy: "none" },
};

describe("what the agent of a completed step has spawned", () => {
  it("is stopped where another step fails and the plan fails fast, and the owner is told", async () => {
    const { run, session } = await runWithSpawn(FAIL_FAST);
    run.world.plans.end("b", endFailing("no"));
    await run.advance(10_000);
    expect(run.world.host.children.get(session)?.ending).toEqual({ outcome: "cancelled" });
    expect((await run.view()).status).toBe("failed");
    await run.close();
  });

  it("is stopped at the deadline of the plan, and the owner is told", async () => {
    const { run, session } = await runWithSpawn({ deadlineMs: 60_000 });
    run.world.plans.end("b", endDone());
    await run.advance(40_000);
    expect(run.world.host.children.get(session)?.ending).toBeUndefined();
    await run.advance(20_000);
    expect(run.world.host.children.get(session)?.ending).toEqual({ outcome: "cancelled" });
    expect((await run.view()).status).toBe("success");
    await run.close();
  });

  it("may spawn nothing more once the plan has stopped", async () => {
    const { run, session } = await runWithSpawn(FAIL_FAST);
    // The host does not answer, so the child is still at work.
    run.world.host.stop = () => new Promise(() => undefined);
    run.world.plans.end("b", endFailing("no"));
    await waitUntilQuiet(run.world);
    expect(await run.coordinator.admitSpawn(spawnOf({ task: "more", source: session }))).toEqual({
      kind: "refused",
      code: "PLAN_STOPPED",
      reason: "the plan that this work belongs to has stopped: fail_fast; finish without another subagent",
    });
    await run.coordinator.stop();
  });
});

describe("what the agent of a completed step has spawned, and has ended before it could be stopped", () => {
  const COMPLETED = { outcome: "completed" } as const;
  /** The answer of a host that has not delivered the words of an ended child to its parent. */
  const answerUndelivered = (run: PlanRun): NonNullable<World["host"]["says"]> => {
    const { children } = run.world.host;
    return ({ childSessionKey }): Promise<Observation> => {
      const child = childSessionKey && children.get(childSessionKey);
      return Promise.resolve(child ? { kind: "running", ...child } : { kind: "absent" });
    };
  };

  it("has done its work where the plan fails fast", async () => {
    const { run, session } = await runWithSpawn(FAIL_FAST);
    run.world.host.end(session, COMPLETED);
    run.world.plans.end("b", endFailing("no"));
    await run.advance(10_000);
    expect(await run.fates()).toMatchObject({ "@step-3": "completed" });
    await run.close();
  });

  it("has done its work, which is checked, where the deadline of the plan comes", async () => {
    const checks = createChecks(() => createRuling("pass"));
    const { run, child } = await runWithSpawn({ deadlineMs: 60_000 }, checks);
    await child.says("all is well");
    run.world.host.end(child.session, COMPLETED);
    run.world.plans.end("b", endDone());
    await run.advance(60_000);
    expect(run.events("result.verified").map(({ payload }) => payload.stepId)).toContain("@step-3");
    expect(await run.fates()).toMatchObject({ "@step-3": "completed" });
    await run.close();
  });

  it.each<[string, Fields, (run: PlanRun) => unknown]>([
    [
      "another step fails and the plan fails fast",
      FAIL_FAST,
      ({ world }) => world.plans.end("b", endFailing("no")),
    ],
    [
      "somebody cancels the plan",
      {},
      ({ coordinator }) => coordinator.cancel({ coordinationId: PLAN_ID, by: "operator" }),
    ],
  ])("has a result that must be checked withheld where %s", async (_, fields, stop) => {
    const checks = createChecks(() => createRuling("pass"));
    const { run, child } = await runWithSpawn(fields, checks);
    await child.says("all is well");
    run.world.host.end(child.session, COMPLETED);
    await stop(run);
    await run.advance(10_000);
    expect(run.events("result.held").map(({ payload }) => payload.stepId)).toContain("@step-3");
    expect(await run.fates()).toMatchObject({ "@step-3": "cancelled" });
    expect(run.events("step.completed").map(({ payload }) => payload.stepId)).not.toContain("@step-3");
    await run.close();
  });

  it("has failed where it did", async () => {
    const { run, session } = await runWithSpawn(FAIL_FAST);
    run.world.host.end(session, { outcome: "failed", message: "no more" });
    run.world.plans.end("b", endFailing("no"));
    await run.advance(10_000);
    expect(await run.fates()).toMatchObject({ "@step-3": "failed" });
    await run.close();
  });

  it("is waited for until the host has delivered its words", async () => {
    const { run, child } = await runWithSpawn(FAIL_FAST);
    run.world.host.end(child.session, COMPLETED);
    run.world.host.says = answerUndelivered(run);
    await expectWaitedForUntilDelivered(run, child);
  });

  it("is waited for, too, where its turn ends while it is being stopped", async () => {
    const { run, session, child } = await runWithSpawn(FAIL_FAST);
    run.coordinator.turnBegan(session, "first");
    run.world.host.says = answerUndelivered(run);
    run.world.host.stop = async () => {
      await run.coordinator.turnEnded(session, "first");
      return "already_ended";
    };
    await expectWaitedForUntilDelivered(run, child);
  });

  it("is asked about again where the host does not say how it ended, and cancelled once the host cannot stop it", async () => {
    const { run, session } = await runWithSpawn(FAIL_FAST);
    const { host } = run.world;
    host.end(session, COMPLETED);
    host.says = () => Promise.resolve({ kind: "unknown" });
    run.world.plans.end("b", endFailing("no"));
    await run.advance(60_000);
    expect(await run.fates()).toMatchObject({ "@step-3": "running" });
    host.stop = () => Promise.resolve("unreachable");
    await run.advance(60_000);
    const [failed] = run.events("step.failed").filter(({ nodeId }) => nodeId === "@step-3");
    expect(failed?.payload.error).toMatchObject({ message: "cancelled; the host could not stop it" });
    expect(run.events("coordination.terminal")).toHaveLength(1);
    await run.close();
  });

  it("is cancelled where it only waited for what it had spawned itself", async () => {
    const { run, session } = await runWithSpawn(FAIL_FAST);
    await spawnChild(run.world, run.coordinator, "below", session);
    run.world.host.end(session, COMPLETED);
    run.world.host.says = answerUndelivered(run);
    run.world.plans.end("b", endFailing("no"));
    await run.advance(10_000);
    expect(await run.fates()).toMatchObject({ "@step-3": "cancelled", "@step-4": "cancelled" });
    const [failed] = run.events("step.failed").filter(({ nodeId }) => nodeId === "@step-3");
    expect(failed?.payload.error).toMatchObject({ message: "cancelled" });
    await run.close();
  });

  it("has done its work also where that was a revision", async () => {
    // The second result that is checked is the first one of the spawn.
    const checks = createChecks((_, time) => createRuling(time === 2 ? "revise" : "pass"));
    const { run, child } = await runWithSpawn({ deadlineMs: 60_000 }, checks);
    await child.says("all is well");
    await child.ends();
    await run.advance(5_000);
    expect(await run.fates()).toMatchObject({ "@step-3": "running" });
    run.world.plans.end("@step-3", endDone({ n: 2 }));
    run.world.plans.end("b", endDone());
    await run.advance(60_000);
    expect(await run.fates()).toMatchObject({ "@step-3": "completed" });
    await run.close();
  });
});

/** The rows of a host whose child has ended its first turn and waits for its own children, or reads what they said. */
const answerFromRow = ({ world }: PlanRun, session: SessionKey): ((delivery: string) => void) => {
  const { childRunId, createdAtMs } = world.host.children.get(session)!;
  const row = {
    id: "row",
    runId: childRunId,
    childSessionKey: session,
    title: "t",
    status: "succeeded",
    createdAt: createdAtMs,
    endedAt: world.clock.now(),
  };
  return (deliveryStatus) => {
    world.host.says = (query) => {
      const rows = [{ ...row, deliveryStatus }] as never;
      if (query.childSessionKey !== session) return Promise.resolve({ kind: "unknown" });
      return Promise.resolve(observeRow(findSpawnRow(rows, query), query, world.clock.now()));
    };
  };
};

describe("a spawned subagent that yielded for its own, and is woken by the host when they have ended", () => {
  /** Its first turn ended 200 s before what it had spawned. */
  async function runYielded() {
    const scene = await runWithSpawn(FAIL_FAST);
    const { run, session } = scene;
    const below = await spawnChild(run.world, run.coordinator, "below", session);
    const showRow = answerFromRow(run, session);
    showRow("pending");
    await run.advance(200_000);
    await below.ends();
    return { ...scene, showRow };
  }
  const findError = (run: PlanRun) =>
    run.events("step.failed").find(({ nodeId }) => nodeId === "@step-3")?.payload.error.message;

  it("is cancelled as one that could not be stopped where the plan fails fast meanwhile", async () => {
    const { run, session } = await runYielded();
    run.world.host.end(session, { outcome: "completed" });
    run.coordinator.turnBegan(session, "woken");
    run.world.plans.end("b", endFailing("no"));
    await run.advance(10_000);
    expect(await run.fates()).toMatchObject({ "@step-3": "cancelled", "@step-4": "completed" });
    expect(findError(run)).toBe("cancelled; the host could not stop it");
    await run.close();
  });

  it("has not ended before it is woken, nor while it reads what they said, however long that takes", async () => {
    const { run, session, showRow } = await runYielded();
    await run.advance(100_000);
    expect(await run.fates()).toMatchObject({ "@step-3": "running" });
    run.coordinator.turnBegan(session, "woken");
    await run.advance(200_000);
    expect(await run.fates()).toMatchObject({ "@step-3": "running" });
    await run.coordinator.turnEnded(session, "woken");
    showRow("delivered");
    await run.advance(60_000);
    expect(await run.fates()).toMatchObject({ "@step-3": "completed" });
    await run.close();
  });

  it("has not ended while it reads what somebody said whose spawn is not recorded", async () => {
    const { run, session } = await runWithSpawn(FAIL_FAST);
    answerFromRow(run, session)("pending");
    run.coordinator.turnBegan(session, "woken");
    await run.advance(300_000);
    expect(await run.fates()).toMatchObject({ "@step-3": "running" });
    await run.coordinator.turnEnded(session, "woken");
    await run.advance(240_000);
    expect(await run.fates()).toMatchObject({ "@step-3": "completed" });
    await run.close();
  });

  it("has ended when the host has given up delivering what it said then", async () => {
    const { run, session } = await runYielded();
    run.coordinator.turnBegan(session, "woken");
    await run.advance(60_000);
    await run.coordinator.turnEnded(session, "woken");
    await run.advance(170_000);
    expect(await run.fates()).toMatchObject({ "@step-3": "running" });
    await run.advance(70_000);
    expect(await run.fates()).toMatchObject({ "@step-3": "completed" });
    await run.close();
  });
});

describe("what is spawned below a step whose attempt ran out of time", () => {
  /** The agent of `a` spawned `@step-3`; its attempt is over after a minute and is tried again. */
  async function runBelow(answers: Answers = () => createRuling("pass")) {
    const retry = { budget: 1, backoffMs: 1_000 };
    const steps = [step("a", { timeoutMs: 60_000, retry }), step("b")];
    const run = await submitTo(createDeafWorld(createChecks(answers)), plan(steps));
    const agent = run.ordersOf("a").at(-1)!.childSessionKey;
    const child = await spawnChild(run.world, run.coordinator, "t", agent);
    return { run, agent, child };
  }

  it("wakes nobody when its result is ruled on after that", async () => {
    const verdict = Promise.withResolvers<CheckAnswer>();
    const { run, child } = await runBelow((_, time) => (time === 2 ? verdict.promise : createRuling("pass")));
    const below = await spawnChild(run.world, run.coordinator, "below", child.session);
    await child.says("all is well");
    await child.ends();
    await waitUntilQuiet(run.world);
    await below.says("all is well below");
    await run.advance(55_000);
    await below.ends();
    await run.advance(6_000);
    expect(await run.fates()).toMatchObject({ "@step-3": "completed", "@step-4": "held" });
    verdict.resolve(createRuling("pass"));
    await run.advance(20_000);
    expect(await run.fates()).toMatchObject({ "@step-4": "completed" });
    expect(run.events("session.told").map(({ payload }) => payload)).toContainEqual({
      tellingId: "result:@step-4:1",
      delivery: "not_delivered",
    });
    expect(run.world.plans.orders.map((order) => order.childSessionKey)).not.toContain(child.session);
    await run.coordinator.stop();
  });

  const REFUSED = {
    kind: "refused",
    code: "PLAN_STOPPED",
    reason:
      "the work that this subagent is for was cancelled or given up; end your own, and begin nothing more",
  };

  it("may spawn nothing more", async () => {
    const { run, agent, child } = await runBelow();
    await run.advance(70_000);
    expect(await run.fates()).toMatchObject({ a: "running", "@step-3": "cancelled" });
    for (const source of [agent, child.session])
      expect(await run.coordinator.admitSpawn(spawnOf({ task: "more", source }))).toEqual(REFUSED);
    await run.coordinator.stop();
  });

  it.each(["held", "completed"])(
    "may spawn nothing more either once the next attempt is %s",
    async (status) => {
      const { run, agent, child } = await runBelow(() =>
        status === "held" ? waitForever() : createRuling("pass"),
      );
      await run.advance(70_000);
      run.world.plans.end("a", endDone());
      await waitUntilQuiet(run.world);
      expect(await run.fates()).toMatchObject({ a: status, b: "running", "@step-3": "cancelled" });
      for (const source of [agent, child.session])
        expect(await run.coordinator.admitSpawn(spawnOf({ task: "more", source }))).toEqual(REFUSED);
      const newest = run.ordersOf("a").at(-1)!.childSessionKey;
      expect(await run.coordinator.admitSpawn(spawnOf({ task: "more", source: newest }))).toMatchObject({
        kind: "admitted",
      });
      await run.coordinator.stop();
    },
  );
});
