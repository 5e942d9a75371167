import { describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  parseReplayPolicy,
  type ReplayPolicy,
} from "../../src/agents/coordination/contracts/config/replay-policy.ts";
import type { ForkRequest } from "../../src/agents/coordination/runtime/plans/plan-requests.ts";
import { replayCoordination } from "../../src/agents/coordination/runtime/replay-coordination.ts";
import { fold } from "../../src/agents/coordination/ledger/evolve.ts";
import { createUnopenedCoordination } from "../../src/agents/coordination/ledger/state.ts";
import { createForkSources } from "../../src/agents/coordination/runtime/log/carried-results.ts";
import { forkPlan } from "../../src/agents/coordination/runtime/plans/fork-plan.ts";
import type { RunLog } from "../../src/agents/coordination/runtime/log/run-log.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { createGateDependencies } from "../support/gate-dependencies.ts";
import { planDependencies } from "../support/plan-dependencies.ts";
import { spawnOf } from "../support/fake-clock-host.ts";
import { endDone, endFailing } from "../support/scripted-runner.ts";
import { AGENT, plan, PLAN_ID, step } from "./planned-world.ts";
import {
  DELIVERY,
  FORK,
  createDiamond,
  BROKEN,
  run,
  fork,
  readRefusal,
  fatesOf,
  logOf,
  placeOf,
  startsOf,
} from "./plan-forks-scene.ts";

describe("a fork is refused, and nothing is recorded,", () => {
  const forkAndReadRefusal = async (
    request: Partial<ForkRequest>,
    planFields = createDiamond(),
    scripts = BROKEN,
  ) => {
    const planRun = await run(scripts, planFields);
    const runs = planRun.world.ledger.runs.size;
    const refusal = await readRefusal(planRun, request);
    expect(planRun.world.ledger.runs.size).toBe(runs);
    await planRun.close();
    return refusal;
  };

  it("of what is not there", async () => {
    const refusal = await forkAndReadRefusal({ source: "plan-9" as CoordinationId });
    expect(refusal).toEqual({ code: "COORDINATION_NOT_FOUND", message: 'no coordination "plan-9"' });
  });

  it("from behind the end, with where that is", async () => {
    const planRun = await run();
    const { length } = logOf(planRun, PLAN_ID);
    for (const from of [length + 1, 900, Number.MAX_SAFE_INTEGER])
      expect(await readRefusal(planRun, { from })).toEqual({
        code: "INPUT_INVALID",
        message: `from: the log of plan-1 has ${length} events, so ${length} is the last place`,
      });
    expect(await fork(planRun, { from: length })).toMatchObject({ kind: "accepted" });
    await planRun.close();
  });

  it("from a damaged log, with what and where", async () => {
    const planRun = await run();
    const at = placeOf(planRun, "step.completed", "b");
    const { events } = planRun.world.ledger.runs.get(PLAN_ID) ?? { events: [] };
    const [output] = /"sha256":"[0-9a-f]{8}/u.exec(events[at] ?? "") ?? [""];
    const whole = events[at] ?? "";
    events[at] = whole.replace(output, `"sha256":"${"0".repeat(8)}`);
    expect(await readRefusal(planRun)).toEqual({
      code: "LEDGER_CORRUPT",
      message: `the log of plan-1 cannot be forked: event ${at} is changed`,
    });
    const before = await fork(planRun, { from: at, coordinationId: "before" as CoordinationId });
    expect(before).toMatchObject({ carried: ["a"] });
    events[at] = whole.replace(`"step.completed"`, `"step.forgotten"`);
    const unreadable = await readRefusal(planRun);
    expect(unreadable.code).toBe("EVENT_UNREADABLE");
    expect(unreadable.message).toContain(`plan-1:${at}`);
    events.splice(at, 1);
    expect((await readRefusal(planRun)).code).toBe("LEDGER_CORRUPT");
    await planRun.coordinator.stop();
  });

  it("where nothing is left to do", async () => {
    const { message } = await forkAndReadRefusal({}, createDiamond(), { b: [endDone({ from: "b" })] });
    expect(message).toContain("nothing is left to do; fork it at an earlier event");
  });

  it("of spawns that models made", async () => {
    const planRun = await run();
    const spawned = await planRun.coordinator.admitSpawn(spawnOf({ task: "by itself" }));
    expect(spawned.kind).toBe("admitted");
    const { message } = await readRefusal(planRun, { source: "co-1" as CoordinationId });
    expect(message).toContain("co-1 runs no plan: its agents spawned by themselves");
    await planRun.coordinator.stop();
  });

  it("of a plan that the agent of another one's step submitted, with which to fork", async () => {
    const planRun = await run({ ...BROKEN, a: ["work", endDone()] });
    const session = planRun.ordersOf("a")[0]!.childSessionKey;
    const inner = plan([step("x")], { coordinationId: "inner", ownerSession: session });
    const submitted = await planRun.coordinator.submitPlan({
      plan: inner,
      submittedBy: session,
      ownerAgent: AGENT,
    });
    expect(submitted.kind).toBe("accepted");
    expect((await readRefusal(planRun, { source: "inner" as CoordinationId, from: 3 })).message).toBe(
      "inner was submitted by the agent of step a of plan-1, and its result is told to that agent's session; fork that plan",
    );
    await planRun.coordinator.stop();
  });

  it("of a plan whose text is kept no more", async () => {
    const planRun = await run();
    const [created] = logOf(planRun, PLAN_ID);
    if (created?.type !== "coordination.created") throw new Error("no plan");
    planRun.world.ledger.contents.delete(created.payload.plan?.content.sha256 ?? "");
    expect((await readRefusal(planRun)).message).toContain(
      "is not kept any more; run it anew with `plan run`",
    );
    await planRun.close();
  });

  it("by what stands against its plan, also where it is only asked what would be done", async () => {
    const planRun = await run(BROKEN, createDiamond({ deadlineMs: 1_000_000 }));
    for (const isPreview of [false, true]) {
      const policy = parseReplayPolicy({ retry: { budget: 1, backoffMs: 2_000_000 } });
      const forked = await planRun.coordinator.forkPlan({ source: PLAN_ID, policy, isPreview });
      expect(forked).toMatchObject({ kind: "refused" });
      if (forked.kind === "refused") expect(forked.problems[0]?.code).toBe("DEADLINE_IMPOSSIBLE");
    }
    await planRun.close();
  });

  it("under an id that another coordination has, and is the same fork under its own", async () => {
    const planRun = await run({ ...BROKEN, c: ["work", endDone({ from: "c" })] });
    for (const isPreview of [true, false]) {
      const takenFork = await planRun.coordinator.forkPlan({
        source: PLAN_ID,
        coordinationId: PLAN_ID,
        isPreview,
      });
      expect(takenFork).toMatchObject({ kind: "refused", problems: [{ code: "COORDINATION_TAKEN" }] });
    }
    await fork(planRun);
    const starts = startsOf(planRun, FORK).length;
    for (const isPreview of [true, false])
      expect(await fork(planRun, { isPreview })).toMatchObject({ kind: "replay", coordinationId: FORK });
    const other = await planRun.coordinator.forkPlan({ source: PLAN_ID, coordinationId: FORK, from: 3 });
    expect(other).toMatchObject({ kind: "refused", problems: [{ code: "COORDINATION_TAKEN" }] });
    expect(startsOf(planRun, FORK)).toHaveLength(starts);
    const length = logOf(planRun, PLAN_ID).length;
    await planRun.coordinator.cancel({ coordinationId: PLAN_ID, by: "operator" });
    expect(logOf(planRun, PLAN_ID).length).toBeGreaterThan(length);
    expect(await fork(planRun)).toMatchObject({ kind: "replay" });
    await planRun.close();
  });

  it("for none of this where it is there: neither what its source lost since nor a policy's spelling matters", async () => {
    const planRun = await run();
    const createAgentPolicy = (...agents: readonly string[]): ReplayPolicy =>
      parseReplayPolicy({
        gates: { agents: Object.fromEntries(agents.map((agent) => [agent, { confidenceThreshold: 0.9 }])) },
      });
    await fork(planRun, { policy: createAgentPolicy("writer", "critic") });
    planRun.world.ledger.contents.clear();
    const again = await fork(planRun, { policy: createAgentPolicy("critic", "writer") });
    expect(again).toMatchObject({ kind: "replay", carried: ["a", "b"], anew: ["c", "d"] });
    expect((await readRefusal(planRun, { policy: createAgentPolicy("critic") })).code).toBe("INPUT_INVALID");
    await planRun.coordinator.stop();
  });

  it("once, where it is asked for twice at once", async () => {
    const planRun = await run();
    const request = { source: PLAN_ID, coordinationId: FORK };
    const both = await Promise.all([
      planRun.coordinator.forkPlan(request),
      planRun.coordinator.forkPlan(request),
    ]);
    expect(both.map(({ kind }) => kind).toSorted()).toEqual(["accepted", "replay"]);
    await waitUntilSettled();
    expect(startsOf(planRun, FORK)).toEqual(["c", "d", DELIVERY]);
    await planRun.close();
  });

  it("once, where another process forked it meanwhile, and found its source at another place", async () => {
    const planRun = await run();
    await fork(planRun, { from: placeOf(planRun, "step.completed", "b") });
    const { ledger, clock, plans, settings } = planRun.world;
    const store = ledger.open(clock);
    const states = [createUnopenedCoordination(FORK), fold(FORK, logOf(planRun, FORK))];
    const runs = {
      state: () => Promise.resolve(states.shift() ?? createUnopenedCoordination(FORK)),
    } as unknown as RunLog;
    const { refOf } = planDependencies(plans);
    const forks = createForkSources({ store });
    const dependencies = { ...createGateDependencies(), content: store, store, forks, refOf, runs, settings };
    const refused = { kind: "refused", problems: [] } as const;
    const forked = await forkPlan(
      { ...dependencies, newCoordinationId: () => FORK },
      { source: PLAN_ID, coordinationId: FORK },
      { preview: () => Promise.resolve(refused), submit: () => Promise.resolve(refused) },
    );
    expect(forked).toMatchObject({ kind: "replay", carried: ["a"], anew: ["b", "c", "d"] });
    await planRun.close();
  });

  it("where it is only asked what would be done", async () => {
    const planRun = await run();
    const runs = planRun.world.ledger.runs.size;
    expect(await fork(planRun, { isPreview: true })).toMatchObject({
      kind: "preview",
      carried: ["a", "b"],
      anew: ["c", "d"],
    });
    expect(planRun.world.ledger.runs.size).toBe(runs);
    await planRun.close();
  });
});

describe("a fork under a policy", () => {
  const parsePolicy = (value: object): ReplayPolicy => parseReplayPolicy(value);

  it("holds what its source let pass", async () => {
    const planRun = await run();
    await fork(planRun, { policy: parsePolicy({ gates: { requireConfidence: true } }) });
    expect(await fatesOf(planRun, FORK)).toEqual({ a: "completed", b: "completed", c: "held", d: "waiting" });
    await planRun.close();
  });

  it("tries again as often as it says, whatever the plan said", async () => {
    const planRun = await run({ ...BROKEN, c: [endFailing(), endFailing(), endFailing(), endDone()] });
    await fork(planRun, { policy: parsePolicy({ retry: { budget: 2, backoffMs: 1_000 } }) });
    await planRun.advance(60_000);
    expect(startsOf(planRun, FORK)).toEqual(["c", "c", "c", "d", DELIVERY]);
    await planRun.close();
  });

  it("decides what a replay under the policy tells that would have been decided", async () => {
    const lint = { kind: "pattern", pattern: "^ok" };
    const replayPolicy = parsePolicy({
      gates: { verifiers: { lint }, agents: { main: { checks: ["lint"] } } },
    });
    const planRun = await run({ ...BROKEN, c: [endDone({ from: "c" })] });
    expect((await planRun.view()).status).toBe("success");
    const from = placeOf(planRun, "step.completed", "b") + 1;
    const ledger = planRun.world.ledger.open(planRun.world.clock);
    const { whatIf } = await replayCoordination(ledger, PLAN_ID, { policy: replayPolicy, from });
    expect(whatIf?.points[0]).toMatchObject({
      stepId: "c",
      would: "the result is held",
      certainty: "differs",
    });
    expect(whatIf?.would).toBe("open");
    await fork(planRun, { policy: replayPolicy, from });
    expect(await fatesOf(planRun, FORK)).toEqual({ a: "completed", b: "completed", c: "held", d: "waiting" });
    await planRun.close();
  });
});
