import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { parseReplayPolicy } from "../../src/agents/coordination/contracts/config/replay-policy.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { fold } from "../../src/agents/coordination/ledger/evolve.ts";
import { replayCoordination } from "../../src/agents/coordination/runtime/replay-coordination.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { endDone, endFailing } from "../support/scripted-runner.ts";
import { plan, PLAN_ID, createRetries, step } from "./planned-world.ts";
import {
  DELIVERY,
  forkInPart,
  LARGE_IDS,
  runLarge,
  FORK,
  STEPS,
  BROKEN,
  run,
  fork,
  readRefusal,
  viewOf,
  fatesOf,
  logOf,
  placeOf,
  startsOf,
  ALL_DONE,
  createDyingAt,
} from "./plan-forks-scene.ts";

describe("a fork of a plan", () => {
  it("keeps what had completed, does the rest anew and tells its owner", async () => {
    const planRun = await run();
    expect(await planRun.fates()).toMatchObject({
      a: "completed",
      b: "completed",
      c: "failed",
      d: "skipped",
    });
    const before = JSON.stringify(logOf(planRun, PLAN_ID));
    const forked = await fork(planRun);
    expect(forked).toMatchObject({ kind: "accepted", carried: ["a", "b"], anew: ["c", "d"] });
    expect(startsOf(planRun, FORK)).toEqual(["c", "d", DELIVERY]);
    expect(await fatesOf(planRun, FORK)).toEqual(ALL_DONE);
    const view = await viewOf(planRun, FORK);
    expect(view.status).toBe("success");
    expect(view.forkedFrom).toEqual({ coordinationId: PLAN_ID, sequence: logOf(planRun, PLAN_ID).length });
    const order = planRun.world.plans.orders.findLast(({ envelope }) => envelope.stepId === "d");
    expect(order?.message).toContain('"text": "b"');
    expect(JSON.stringify(logOf(planRun, PLAN_ID))).toBe(before);
    await planRun.close();
  });

  it("names what completed each step that it has from its source, and hands nothing off for it", async () => {
    const planRun = await run();
    await fork(planRun);
    const { steps } = await viewOf(planRun, FORK);
    expect(steps.map(({ stepId, carriedFrom, attempt }) => [stepId, carriedFrom, attempt])).toEqual([
      ["a", `${PLAN_ID}:${placeOf(planRun, "step.completed", "a")}`, 0],
      ["b", `${PLAN_ID}:${placeOf(planRun, "step.completed", "b")}`, 0],
      ["c", undefined, 1],
      ["d", undefined, 1],
      [DELIVERY, undefined, 1],
    ]);
    const decided = logOf(planRun, FORK).flatMap((event) =>
      event.type === "runOrchestrator.decided" && event.payload.decision.kind === "next-worker"
        ? event.payload.decision.nextWorkerIds
        : [],
    );
    expect(decided).toEqual(["c", "d", DELIVERY]);
    const handedOff = logOf(planRun, FORK).filter(({ type }) => type === "core.workflowChain.event");
    expect(new Set(handedOff.map(({ nodeId }) => nodeId))).toEqual(new Set(["c", "d", DELIVERY]));
    await planRun.close();
  });

  it("has what had completed at its place, from any index", async () => {
    const planRun = await run();
    const log = logOf(planRun, PLAN_ID);
    for (let from = 0; from <= log.length; from += 1) {
      const completed = log
        .slice(0, from)
        .flatMap((event) => (event.type === "step.completed" ? [event.payload.stepId] : []));
      const { carried } = await fork(planRun, { from, coordinationId: `fork-${from}` as CoordinationId });
      expect(carried).toEqual(completed.filter((stepId) => stepId !== DELIVERY));
      expect(await fatesOf(planRun, `fork-${from}` as CoordinationId)).toEqual(ALL_DONE);
      const anew = ["a", "b", "c", "d", DELIVERY].filter(
        (stepId) => !carried.some((kept) => kept === stepId),
      );
      expect(startsOf(planRun, `fork-${from}` as CoordinationId).toSorted()).toEqual(anew.toSorted());
    }
    await planRun.close();
  });
});

describe("a fork of a plan under way", () => {
  it("does anew what was at work, held, waiting for a retry or for people in its source", async () => {
    const planFields = plan(
      [step("works"), step("waits", createRetries(1, 60_000)), step("asks"), step("ready")],
      {
        failurePolicy: { retryBudget: 5, timeoutPolicy: "continue_with_partial", escalationPolicy: "hitl" },
      },
    );
    const planRun = await run(
      {
        works: ["work", endDone()],
        waits: [endFailing(), endDone()],
        asks: [endFailing(), endDone()],
        ready: [endDone()],
      },
      planFields,
    );
    expect(await planRun.fates()).toEqual({
      works: "running",
      waits: "backoff",
      asks: "blocked",
      ready: "completed",
    });
    expect(await fork(planRun)).toMatchObject({ carried: ["ready"], anew: ["works", "waits", "asks"] });
    expect((await viewOf(planRun, FORK)).status).toBe("success");
    expect(await planRun.fates()).toEqual({
      works: "running",
      waits: "backoff",
      asks: "blocked",
      ready: "completed",
    });
    const listSessions = (id: CoordinationId): (string | undefined)[] =>
      logOf(planRun, id).flatMap((event) =>
        event.type === "step.dispatched" ? [event.payload.targetSession] : [],
      );
    expect(listSessions(FORK).filter((session) => listSessions(PLAN_ID).includes(session))).toEqual([]);
    await planRun.close();
  });

  it("goes on where it was when another coordinator takes over, at every point", async () => {
    const planRun = await run({ ...BROKEN, c: [endFailing(), "work"], d: ["work"] });
    await fork(planRun);
    for (const stepId of ["c", "d"]) {
      await planRun.restart();
      expect(await fatesOf(planRun, FORK)).toMatchObject({
        a: "completed",
        b: "completed",
        [stepId]: "running",
      });
      await planRun.restart(() => {
        planRun.world.plans.end(stepId, endDone({ from: stepId }));
      });
      await planRun.advance(1_000);
    }
    expect(await fatesOf(planRun, FORK)).toEqual(ALL_DONE);
    expect(startsOf(planRun, FORK)).toEqual(["c", "d", DELIVERY]);
    await planRun.close();
  });

  it.each(["before", "after"] as const)(
    "is whole, or is not there, when its process dies %s any of its appends; asked for again it is the same fork",
    async (when) => {
      let deaths = 0;
      for (let at = 1, hasDied = true; hasDied; at += 1) {
        const planRun = await run();
        await planRun.coordinator.stop();
        const dying = createDyingAt(at, when);
        const first = planRun.world.start(dying.wrap);
        await first.start();
        const forked = first.forkPlan({ source: PLAN_ID, coordinationId: FORK }).catch(() => undefined);
        await waitUntilSettled();
        await Promise.race([first.stop(), waitUntilSettled()]);
        const request = { source: PLAN_ID, from: logOf(planRun, PLAN_ID).length, coordinationId: FORK };
        const second = planRun.world.start();
        await second.start();
        expect(await second.forkPlan(request)).toMatchObject({ carried: ["a", "b"], anew: ["c", "d"] });
        await planRun.advance(60_000);
        expect(await fatesOf(planRun, FORK)).toEqual(ALL_DONE);
        expect(new Set(startsOf(planRun, FORK))).toEqual(new Set(["c", "d", DELIVERY]));
        expect((await verifyLedger(planRun.world.ledger.open(planRun.world.clock))).problems).toEqual([]);
        await second.stop();
        void forked;
        hasDied = dying.isDead();
        if (hasDied) deaths += 1;
      }
      expect(deaths).toBeGreaterThan(5);
    },
  );

  it("of a large plan has the same results however often it is taken up while it is admitted", async () => {
    const isLate = (stepId: string): boolean => Number(stepId.slice(1)) % 3 === 0;
    const planRun = await runLarge(isLate);
    await forkInPart(planRun);
    expect((await viewOf(planRun, FORK)).steps).toHaveLength(BOUNDS.stepsPerAppendMax);
    const second = planRun.world.start();
    await second.start();
    await planRun.advance(60_000);
    const view = await viewOf(planRun, FORK);
    expect(view.status).toBe("success");
    const kept = view.steps.filter(({ carriedFrom }) => carriedFrom !== undefined);
    expect(kept.map(({ stepId }) => stepId)).toEqual(LARGE_IDS.filter((stepId) => !isLate(stepId)));
    expect(startsOf(planRun, FORK)).toHaveLength(LARGE_IDS.length - kept.length + 1);
    await second.stop();
  });
});

describe("the results that a fork has from its source", () => {
  it("are kept as long as the fork runs, though the time of its source's texts is over", async () => {
    const planRun = await run({ ...BROKEN, c: [endFailing(), "work"] });
    await fork(planRun);
    await planRun.advance(1_000);
    const { ledger, clock } = planRun.world;
    expect(await ledger.open(clock).deleteBefore(clock.now())).toBeGreaterThan(0);
    planRun.world.plans.end("c", endDone({ from: "c" }));
    await planRun.advance(1_000);
    expect(planRun.world.plans.orders.findLast(({ envelope }) => envelope.stepId === "d")?.message).toContain(
      '"text": "b"',
    );
    expect(await fatesOf(planRun, FORK)).toEqual(ALL_DONE);
    await planRun.close();
  });

  it("are kept from its first append on, though most of its steps are admitted later", async () => {
    const reading = { dependsOn: ["s0400"], input: { text: "{{steps.s0400.outputs.from}}" } };
    const planRun = await runLarge((stepId) => stepId === "z", [step("z", reading)]);
    await forkInPart(planRun);
    await planRun.advance(1_000);
    const { ledger, clock } = planRun.world;
    await ledger.open(clock).deleteBefore(clock.now());
    const second = planRun.world.start();
    await second.start();
    await planRun.advance(60_000);
    const order = planRun.world.plans.orders.findLast(({ envelope }) => envelope.stepId === "z");
    expect(order?.message).toContain('"text": "s0400"');
    expect((await viewOf(planRun, FORK)).status).toBe("success");
    await second.stop();
  });

  it("that are lost all the same fail the step that needs them, rather than pass for nothing", async () => {
    const planRun = await run({ ...BROKEN, c: [endFailing(), "work"] });
    await fork(planRun);
    const [b] = (await viewOf(planRun, FORK)).steps.filter(({ stepId }) => stepId === "b");
    planRun.world.ledger.contents.delete(b?.output?.sha256 ?? "");
    planRun.world.plans.end("c", endDone({ from: "c" }));
    await planRun.advance(1_000);
    const d = (await viewOf(planRun, FORK)).steps.find(({ stepId }) => stepId === "d");
    expect(d).toMatchObject({
      status: "failed",
      error: { code: "input_unavailable", message: "what b came to is not kept any more" },
    });
    await planRun.close();
  });

  it("that are kept no more are named, and forked before they were there they are made again", async () => {
    const planRun = await run();
    const [b] = logOf(planRun, PLAN_ID).flatMap((event) =>
      event.type === "step.completed" && event.payload.stepId === "b"
        ? [event.payload.output?.sha256 ?? ""]
        : [],
    );
    planRun.world.ledger.contents.delete(b ?? "");
    const { code, message } = await readRefusal(planRun);
    expect(code).toBe("INPUT_INVALID");
    expect(message).toContain("what these steps of plan-1 came to is not kept any more: b; fork it before");
    expect(await fork(planRun, { from: placeOf(planRun, "step.completed", "b") })).toMatchObject({
      carried: ["a"],
    });
    expect(await fatesOf(planRun, FORK)).toEqual(ALL_DONE);
    await planRun.close();
  });
});

describe("a replay of a fork", () => {
  it("under a policy leaves what was carried as it is, whatever its planner thought of it", async () => {
    const doubted = STEPS.map((each) => ({ ...each, confidence: 0.8 }));
    const planRun = await run(BROKEN, plan(doubted));
    await fork(planRun);
    const { whatIf, difference } = await replayCoordination(
      planRun.world.ledger.open(planRun.world.clock),
      FORK,
      {
        policy: parseReplayPolicy({ gates: { decisionFloor: 0.9, requireConfidence: true } }),
      },
    );
    expect(difference).toBeUndefined();
    expect(new Set(whatIf?.points.map(({ stepId }) => stepId))).toEqual(new Set(["c", "d", undefined]));
    await planRun.close();
  });

  it("comes out as recorded, whatever was carried", async () => {
    const planRun = await run();
    for (const from of [0, placeOf(planRun, "step.completed", "a") + 1, logOf(planRun, PLAN_ID).length]) {
      const id = `fork-${from}` as CoordinationId;
      await fork(planRun, { from, coordinationId: id });
      const replayed = await replayCoordination(planRun.world.ledger.open(planRun.world.clock), id);
      expect(replayed.difference).toBeUndefined();
      expect(replayed.events).toBe(logOf(planRun, id).length);
    }
    await planRun.close();
  });

  it("L3: takes no result from nowhere", async () => {
    const planRun = await run();
    await fork(planRun);
    const [created, ...others] = logOf(planRun, FORK);
    if (created?.type !== "coordination.created") throw new Error("no fork");
    const { forkedFrom: _, ...payload } = created.payload;
    expect(() => fold(FORK, [{ ...created, payload }, ...others])).toThrow("a result from nowhere");
    const unplanned = logOf(planRun, FORK).map((event): RunEvent => {
      if (event.type !== "step.admitted") return event;
      const { planned: _planned, ...spec } = event.payload;
      return { ...event, payload: spec };
    });
    expect(() => fold(FORK, unplanned)).toThrow("a result for what is no step of a plan");
    await planRun.close();
  });

  it("of a fork of a fork that was still being admitted has all that this one had", async () => {
    const planRun = await runLarge((stepId) => stepId === "s0000");
    const { carried } = await fork(planRun);
    const admissions = logOf(planRun, FORK).filter(({ type }) => type === "step.admitted");
    const from = (admissions[BOUNDS.stepsPerAppendMax - 1]?.sequence ?? 0) + 1;
    const second = await fork(planRun, { source: FORK, coordinationId: "third" as CoordinationId, from });
    expect(second.carried).toEqual(carried);
    await planRun.close();
  });

  it("of a fork of a fork from 0 has what this one had from its source, and the source from 0 nothing", async () => {
    const planRun = await run({});
    await fork(planRun, { from: placeOf(planRun, "step.dispatched", "c") });
    const again = { source: FORK, coordinationId: "again" as CoordinationId, from: 0 };
    expect(await fork(planRun, again)).toMatchObject({ carried: ["a"] });
    const anew = { coordinationId: "anew" as CoordinationId, from: 0 };
    expect(await fork(planRun, anew)).toMatchObject({ carried: [] });
    await planRun.close();
  });

  it("of a fork of a fork as well", async () => {
    const planRun = await run({ ...BROKEN, c: [endFailing(), endFailing(), endDone()] });
    await fork(planRun);
    const second = "plan-1-third" as CoordinationId;
    expect(await fork(planRun, { source: FORK, coordinationId: second })).toMatchObject({
      carried: ["a", "b"],
    });
    expect(await fatesOf(planRun, second)).toEqual(ALL_DONE);
    expect((await viewOf(planRun, second)).steps[0]?.carriedFrom).toMatch(/^plan-1-again:/u);
    expect(
      (await replayCoordination(planRun.world.ledger.open(planRun.world.clock), second)).difference,
    ).toBeUndefined();
    await planRun.close();
  });
});
