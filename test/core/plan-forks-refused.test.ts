import { describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  parseReplayPolicy,
  type ReplayPolicy,
} from "../../src/agents/coordination/contracts/config/replay-policy.ts";
import type { ForkRequest } from "../../src/agents/coordination/runtime/plans/plan-requests.ts";
import { replayCoordination } from "../../src/agents/coordination/runtime/replay-coordination.ts";
import { fold } from "../../src/agents/coordination/ledger/evolve.ts";
import { createUnopened } from "../../src/agents/coordination/ledger/state.ts";
import { createForkSources } from "../../src/agents/coordination/runtime/log/carried-results.ts";
import { forkPlan } from "../../src/agents/coordination/runtime/plans/fork-plan.ts";
import type { RunLog } from "../../src/agents/coordination/runtime/log/run-log.ts";
import { settled } from "../support/fake-clock.ts";
import { gateParts } from "../support/gate-parts.ts";
import { planParts } from "../support/plan-parts.ts";
import { spawnOf } from "../support/fake-clock-host.ts";
import { done, failing } from "../support/scripted-runner.ts";
import { AGENT, plan, PLAN_ID, step } from "./planned-world.ts";
import {
  DELIVERY,
  FORK,
  diamond,
  BROKEN,
  run,
  fork,
  refusal,
  fatesOf,
  logOf,
  placeOf,
  startsOf,
} from "./plan-forks-scene.ts";

describe("a fork is refused, and nothing is recorded,", () => {
  const refused = async (request: Partial<ForkRequest>, given = diamond(), scripts = BROKEN) => {
    const it = await run(scripts, given);
    const runs = it.it.ledger.runs.size;
    const said = await refusal(it, request);
    expect(it.it.ledger.runs.size).toBe(runs);
    await it.close();
    return said;
  };

  it("of what is not there", async () => {
    const said = await refused({ source: "plan-9" as CoordinationId });
    expect(said).toEqual({ code: "COORDINATION_NOT_FOUND", message: 'no coordination "plan-9"' });
  });

  it("from behind the end, with where that is", async () => {
    const it = await run();
    const { length } = logOf(it, PLAN_ID);
    for (const from of [length + 1, 900, Number.MAX_SAFE_INTEGER])
      expect(await refusal(it, { from })).toEqual({
        code: "INPUT_INVALID",
        message: `from: the log of plan-1 has ${length} events, so ${length} is the last place`,
      });
    expect(await fork(it, { from: length })).toMatchObject({ kind: "accepted" });
    await it.close();
  });

  it("from a damaged log, with what and where", async () => {
    const it = await run();
    const at = placeOf(it, "step.completed", "b");
    const { events } = it.it.ledger.runs.get(PLAN_ID) ?? { events: [] };
    const [output] = /"sha256":"[0-9a-f]{8}/u.exec(events[at] ?? "") ?? [""];
    const whole = events[at] ?? "";
    events[at] = whole.replace(output, `"sha256":"${"0".repeat(8)}`);
    expect(await refusal(it)).toEqual({
      code: "LEDGER_CORRUPT",
      message: `the log of plan-1 cannot be forked: event ${at} is changed`,
    });
    const before = await fork(it, { from: at, coordinationId: "before" as CoordinationId });
    expect(before).toMatchObject({ carried: ["a"] });
    events[at] = whole.replace(`"step.completed"`, `"step.forgotten"`);
    const unreadable = await refusal(it);
    expect(unreadable.code).toBe("EVENT_UNREADABLE");
    expect(unreadable.message).toContain(`plan-1:${at}`);
    events.splice(at, 1);
    expect((await refusal(it)).code).toBe("LEDGER_CORRUPT");
    await it.coordinator.stop();
  });

  it("where nothing is left to do", async () => {
    const { message } = await refused({}, diamond(), { b: [done({ from: "b" })] });
    expect(message).toContain("nothing is left to do; fork it at an earlier event");
  });

  it("of spawns that models made", async () => {
    const it = await run();
    const spawned = await it.coordinator.admitSpawn(spawnOf({ task: "by itself" }));
    expect(spawned.kind).toBe("admitted");
    const { message } = await refusal(it, { source: "co-1" as CoordinationId });
    expect(message).toContain("co-1 runs no plan: its agents spawned by themselves");
    await it.coordinator.stop();
  });

  it("of a plan that the agent of another one's step submitted, with which to fork", async () => {
    const it = await run({ ...BROKEN, a: ["work", done()] });
    const session = it.ordersOf("a")[0]!.childSessionKey;
    const inner = plan([step("x")], { coordinationId: "inner", ownerSession: session });
    const submitted = await it.coordinator.submitPlan({
      plan: inner,
      submittedBy: session,
      ownerAgent: AGENT,
    });
    expect(submitted.kind).toBe("accepted");
    expect((await refusal(it, { source: "inner" as CoordinationId, from: 3 })).message).toBe(
      "inner was submitted by the agent of step a of plan-1, and a fork of it would be told to nobody; fork that plan",
    );
    await it.coordinator.stop();
  });

  it("of a plan whose text is kept no more", async () => {
    const it = await run();
    const [created] = logOf(it, PLAN_ID);
    if (created?.type !== "coordination.created") throw new Error("no plan");
    it.it.ledger.contents.delete(created.payload.plan?.content.sha256 ?? "");
    expect((await refusal(it)).message).toContain("is not kept any more; run it anew with `plan run`");
    await it.close();
  });

  it("by what stands against its plan, also where it is only asked what would be done", async () => {
    const it = await run(BROKEN, diamond({ deadlineMs: 1_000_000 }));
    for (const isPreview of [false, true]) {
      const policy = parseReplayPolicy({ retry: { budget: 1, backoffMs: 2_000_000 } });
      const forked = await it.coordinator.forkPlan({ source: PLAN_ID, policy, isPreview });
      expect(forked).toMatchObject({ kind: "refused" });
      if (forked.kind === "refused") expect(forked.problems[0]?.code).toBe("DEADLINE_IMPOSSIBLE");
    }
    await it.close();
  });

  it("under an id that another coordination has, and is the same fork under its own", async () => {
    const it = await run({ ...BROKEN, c: ["work", done({ from: "c" })] });
    for (const isPreview of [true, false]) {
      const taken = await it.coordinator.forkPlan({ source: PLAN_ID, coordinationId: PLAN_ID, isPreview });
      expect(taken).toMatchObject({ kind: "refused", problems: [{ code: "COORDINATION_TAKEN" }] });
    }
    await fork(it);
    const starts = startsOf(it, FORK).length;
    for (const isPreview of [true, false])
      expect(await fork(it, { isPreview })).toMatchObject({ kind: "replay", coordinationId: FORK });
    const other = await it.coordinator.forkPlan({ source: PLAN_ID, coordinationId: FORK, from: 3 });
    expect(other).toMatchObject({ kind: "refused", problems: [{ code: "COORDINATION_TAKEN" }] });
    expect(startsOf(it, FORK)).toHaveLength(starts);
    const length = logOf(it, PLAN_ID).length;
    await it.coordinator.cancel({ coordinationId: PLAN_ID, by: "operator" });
    expect(logOf(it, PLAN_ID).length).toBeGreaterThan(length);
    expect(await fork(it)).toMatchObject({ kind: "replay" });
    await it.close();
  });

  it("for none of this where it is there: neither what its source lost since nor a policy's spelling matters", async () => {
    const it = await run();
    const policy = (...agents: readonly string[]): ReplayPolicy =>
      parseReplayPolicy({
        gates: { agents: Object.fromEntries(agents.map((agent) => [agent, { confidenceThreshold: 0.9 }])) },
      });
    await fork(it, { policy: policy("writer", "critic") });
    it.it.ledger.contents.clear();
    const again = await fork(it, { policy: policy("critic", "writer") });
    expect(again).toMatchObject({ kind: "replay", carried: ["a", "b"], anew: ["c", "d"] });
    expect((await refusal(it, { policy: policy("critic") })).code).toBe("INPUT_INVALID");
    await it.coordinator.stop();
  });

  it("once, where it is asked for twice at once", async () => {
    const it = await run();
    const asked = { source: PLAN_ID, coordinationId: FORK };
    const both = await Promise.all([it.coordinator.forkPlan(asked), it.coordinator.forkPlan(asked)]);
    expect(both.map(({ kind }) => kind).toSorted()).toEqual(["accepted", "replay"]);
    await settled();
    expect(startsOf(it, FORK)).toEqual(["c", "d", DELIVERY]);
    await it.close();
  });

  it("once, where another process forked it meanwhile, and found its source at another place", async () => {
    const it = await run();
    await fork(it, { from: placeOf(it, "step.completed", "b") });
    const { ledger, clock, plans, settings } = it.it;
    const store = ledger.open(clock);
    const states = [createUnopened(FORK), fold(FORK, logOf(it, FORK))];
    const runs = {
      state: () => Promise.resolve(states.shift() ?? createUnopened(FORK)),
    } as unknown as RunLog;
    const { refOf } = planParts(plans);
    const forks = createForkSources({ store });
    const parts = { ...gateParts(), content: store, store, forks, refOf, runs, settings };
    const refused = { kind: "refused", problems: [] } as const;
    const asked = await forkPlan(
      { ...parts, newCoordinationId: () => FORK },
      { source: PLAN_ID, coordinationId: FORK },
      { preview: () => Promise.resolve(refused), submit: () => Promise.resolve(refused) },
    );
    expect(asked).toMatchObject({ kind: "replay", carried: ["a"], anew: ["b", "c", "d"] });
    await it.close();
  });

  it("where it is only asked what would be done", async () => {
    const it = await run();
    const runs = it.it.ledger.runs.size;
    expect(await fork(it, { isPreview: true })).toMatchObject({
      kind: "preview",
      carried: ["a", "b"],
      anew: ["c", "d"],
    });
    expect(it.it.ledger.runs.size).toBe(runs);
    await it.close();
  });
});

describe("a fork under a policy", () => {
  const policy = (value: object): ReplayPolicy => parseReplayPolicy(value);

  it("holds what its source let pass", async () => {
    const it = await run();
    await fork(it, { policy: policy({ gates: { requireConfidence: true } }) });
    expect(await fatesOf(it, FORK)).toEqual({ a: "completed", b: "completed", c: "held", d: "waiting" });
    await it.close();
  });

  it("tries again as often as it says, whatever the plan said", async () => {
    const it = await run({ ...BROKEN, c: [failing(), failing(), failing(), done()] });
    await fork(it, { policy: policy({ retry: { budget: 2, backoffMs: 1_000 } }) });
    await it.advance(60_000);
    expect(startsOf(it, FORK)).toEqual(["c", "c", "c", "d", DELIVERY]);
    await it.close();
  });

  it("decides what a replay under the policy tells that would have been decided", async () => {
    const lint = { kind: "pattern", pattern: "^ok" };
    const given = policy({ gates: { verifiers: { lint }, agents: { main: { checks: ["lint"] } } } });
    const it = await run({ ...BROKEN, c: [done({ from: "c" })] });
    expect((await it.view()).status).toBe("success");
    const from = placeOf(it, "step.completed", "b") + 1;
    const ledger = it.it.ledger.open(it.it.clock);
    const { whatIf } = await replayCoordination(ledger, PLAN_ID, { policy: given, from });
    expect(whatIf?.points[0]).toMatchObject({
      stepId: "c",
      would: "the result is held",
      certainty: "differs",
    });
    expect(whatIf?.would).toBe("open");
    await fork(it, { policy: given, from });
    expect(await fatesOf(it, FORK)).toEqual({ a: "completed", b: "completed", c: "held", d: "waiting" });
    await it.close();
  });
});
