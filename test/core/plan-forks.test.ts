import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { parseReplayPolicy } from "../../src/agents/coordination/contracts/config/replay-policy.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { fold } from "../../src/agents/coordination/ledger/evolve.ts";
import { replayCoordination } from "../../src/agents/coordination/runtime/replay-coordination.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { settled } from "../support/fake-clock.ts";
import { done, failing } from "../support/scripted-runner.ts";
import { plan, PLAN_ID, retries, step } from "./planned-world.ts";
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
  refusal,
  viewOf,
  fatesOf,
  logOf,
  placeOf,
  startsOf,
  ALL_DONE,
  dyingAt,
} from "./plan-forks-scene.ts";

describe("a fork of a plan", () => {
  it("keeps what had completed, does the rest anew and tells its owner", async () => {
    const it = await run();
    expect(await it.fates()).toMatchObject({ a: "completed", b: "completed", c: "failed", d: "skipped" });
    const before = JSON.stringify(logOf(it, PLAN_ID));
    const forked = await fork(it);
    expect(forked).toMatchObject({ kind: "accepted", carried: ["a", "b"], anew: ["c", "d"] });
    expect(startsOf(it, FORK)).toEqual(["c", "d", DELIVERY]);
    expect(await fatesOf(it, FORK)).toEqual(ALL_DONE);
    const view = await viewOf(it, FORK);
    expect(view.status).toBe("success");
    expect(view.forkedFrom).toEqual({ coordinationId: PLAN_ID, sequence: logOf(it, PLAN_ID).length });
    const told = it.it.plans.orders.findLast(({ envelope }) => envelope.stepId === "d");
    expect(told?.message).toContain('"text": "b"');
    expect(JSON.stringify(logOf(it, PLAN_ID))).toBe(before);
    await it.close();
  });

  it("names what completed each step that it has from its source, and hands nothing off for it", async () => {
    const it = await run();
    await fork(it);
    const { steps } = await viewOf(it, FORK);
    expect(steps.map(({ stepId, carriedFrom, attempt }) => [stepId, carriedFrom, attempt])).toEqual([
      ["a", `${PLAN_ID}:${placeOf(it, "step.completed", "a")}`, 0],
      ["b", `${PLAN_ID}:${placeOf(it, "step.completed", "b")}`, 0],
      ["c", undefined, 1],
      ["d", undefined, 1],
      [DELIVERY, undefined, 1],
    ]);
    const decided = logOf(it, FORK).flatMap((event) =>
      event.type === "runOrchestrator.decided" && event.payload.decision.kind === "next-worker"
        ? event.payload.decision.nextWorkerIds
        : [],
    );
    expect(decided).toEqual(["c", "d", DELIVERY]);
    const handedOff = logOf(it, FORK).filter(({ type }) => type === "core.workflowChain.event");
    expect(new Set(handedOff.map(({ nodeId }) => nodeId))).toEqual(new Set(["c", "d", DELIVERY]));
    await it.close();
  });

  it("has what had completed at its place, from any index", async () => {
    const it = await run();
    const log = logOf(it, PLAN_ID);
    for (let from = 0; from <= log.length; from += 1) {
      const completed = log
        .slice(0, from)
        .flatMap((event) => (event.type === "step.completed" ? [event.payload.stepId] : []));
      const { carried } = await fork(it, { from, coordinationId: `fork-${from}` as CoordinationId });
      expect(carried).toEqual(completed.filter((stepId) => stepId !== DELIVERY));
      expect(await fatesOf(it, `fork-${from}` as CoordinationId)).toEqual(ALL_DONE);
      const anew = ["a", "b", "c", "d", DELIVERY].filter(
        (stepId) => !carried.some((kept) => kept === stepId),
      );
      expect(startsOf(it, `fork-${from}` as CoordinationId).toSorted()).toEqual(anew.toSorted());
    }
    await it.close();
  });
});

describe("a fork of a plan under way", () => {
  it("does anew what was at work, held, waiting for a retry or for people in its source", async () => {
    const given = plan([step("works"), step("waits", retries(1, 60_000)), step("asks"), step("ready")], {
      failurePolicy: { retryBudget: 5, timeoutPolicy: "continue_with_partial", escalationPolicy: "hitl" },
    });
    const it = await run(
      {
        works: ["work", done()],
        waits: [failing(), done()],
        asks: [failing(), done()],
        ready: [done()],
      },
      given,
    );
    expect(await it.fates()).toEqual({
      works: "running",
      waits: "backoff",
      asks: "blocked",
      ready: "completed",
    });
    expect(await fork(it)).toMatchObject({ carried: ["ready"], anew: ["works", "waits", "asks"] });
    expect((await viewOf(it, FORK)).status).toBe("success");
    expect(await it.fates()).toEqual({
      works: "running",
      waits: "backoff",
      asks: "blocked",
      ready: "completed",
    });
    const sessions = (id: CoordinationId): (string | undefined)[] =>
      logOf(it, id).flatMap((event) =>
        event.type === "step.dispatched" ? [event.payload.targetSession] : [],
      );
    expect(sessions(FORK).filter((session) => sessions(PLAN_ID).includes(session))).toEqual([]);
    await it.close();
  });

  it("goes on where it was when another coordinator takes over, at every point", async () => {
    const it = await run({ ...BROKEN, c: [failing(), "work"], d: ["work"] });
    await fork(it);
    for (const stepId of ["c", "d"]) {
      await it.restart();
      expect(await fatesOf(it, FORK)).toMatchObject({ a: "completed", b: "completed", [stepId]: "running" });
      await it.restart(() => {
        it.it.plans.end(stepId, done({ from: stepId }));
      });
      await it.advance(1_000);
    }
    expect(await fatesOf(it, FORK)).toEqual(ALL_DONE);
    expect(startsOf(it, FORK)).toEqual(["c", "d", DELIVERY]);
    await it.close();
  });

  it.each(["before", "after"] as const)(
    "is whole, or is not there, when its process dies %s any of its appends; asked for again it is the same fork",
    async (when) => {
      let deaths = 0;
      for (let at = 1, hasDied = true; hasDied; at += 1) {
        const it = await run();
        await it.coordinator.stop();
        const dying = dyingAt(at, when);
        const first = it.it.start(dying.wrap);
        await first.start();
        const forked = first.forkPlan({ source: PLAN_ID, coordinationId: FORK }).catch(() => undefined);
        await settled();
        await Promise.race([first.stop(), settled()]);
        const asked = { source: PLAN_ID, from: logOf(it, PLAN_ID).length, coordinationId: FORK };
        const second = it.it.start();
        await second.start();
        expect(await second.forkPlan(asked)).toMatchObject({ carried: ["a", "b"], anew: ["c", "d"] });
        await it.advance(60_000);
        expect(await fatesOf(it, FORK)).toEqual(ALL_DONE);
        expect(new Set(startsOf(it, FORK))).toEqual(new Set(["c", "d", DELIVERY]));
        expect((await verifyLedger(it.it.ledger.open(it.it.clock))).problems).toEqual([]);
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
    const it = await runLarge(isLate);
    await forkInPart(it);
    expect((await viewOf(it, FORK)).steps).toHaveLength(BOUNDS.stepsPerAppendMax);
    const second = it.it.start();
    await second.start();
    await it.advance(60_000);
    const view = await viewOf(it, FORK);
    expect(view.status).toBe("success");
    const kept = view.steps.filter(({ carriedFrom }) => carriedFrom !== undefined);
    expect(kept.map(({ stepId }) => stepId)).toEqual(LARGE_IDS.filter((stepId) => !isLate(stepId)));
    expect(startsOf(it, FORK)).toHaveLength(LARGE_IDS.length - kept.length + 1);
    await second.stop();
  });
});

describe("the results that a fork has from its source", () => {
  it("are kept as long as the fork runs, though the time of its source's texts is over", async () => {
    const it = await run({ ...BROKEN, c: [failing(), "work"] });
    await fork(it);
    await it.advance(1_000);
    const { ledger, clock } = it.it;
    expect(await ledger.open(clock).deleteBefore(clock.now())).toBeGreaterThan(0);
    it.it.plans.end("c", done({ from: "c" }));
    await it.advance(1_000);
    expect(it.it.plans.orders.findLast(({ envelope }) => envelope.stepId === "d")?.message).toContain(
      '"text": "b"',
    );
    expect(await fatesOf(it, FORK)).toEqual(ALL_DONE);
    await it.close();
  });

  it("are kept from its first append on, though most of its steps are admitted later", async () => {
    const reading = { dependsOn: ["s0400"], input: { text: "{{steps.s0400.outputs.from}}" } };
    const it = await runLarge((stepId) => stepId === "z", [step("z", reading)]);
    await forkInPart(it);
    await it.advance(1_000);
    const { ledger, clock } = it.it;
    await ledger.open(clock).deleteBefore(clock.now());
    const second = it.it.start();
    await second.start();
    await it.advance(60_000);
    const told = it.it.plans.orders.findLast(({ envelope }) => envelope.stepId === "z");
    expect(told?.message).toContain('"text": "s0400"');
    expect((await viewOf(it, FORK)).status).toBe("success");
    await second.stop();
  });

  it("that are lost all the same fail the step that needs them, rather than pass for nothing", async () => {
    const it = await run({ ...BROKEN, c: [failing(), "work"] });
    await fork(it);
    const [b] = (await viewOf(it, FORK)).steps.filter(({ stepId }) => stepId === "b");
    it.it.ledger.contents.delete(b?.output?.sha256 ?? "");
    it.it.plans.end("c", done({ from: "c" }));
    await it.advance(1_000);
    const d = (await viewOf(it, FORK)).steps.find(({ stepId }) => stepId === "d");
    expect(d).toMatchObject({
      status: "failed",
      error: { code: "input_unavailable", message: "what b came to is not kept any more" },
    });
    await it.close();
  });

  it("that are kept no more are named, and forked before they were there they are made again", async () => {
    const it = await run();
    const [b] = logOf(it, PLAN_ID).flatMap((event) =>
      event.type === "step.completed" && event.payload.stepId === "b"
        ? [event.payload.output?.sha256 ?? ""]
        : [],
    );
    it.it.ledger.contents.delete(b ?? "");
    const { code, message } = await refusal(it);
    expect(code).toBe("INPUT_INVALID");
    expect(message).toContain("what these steps of plan-1 came to is not kept any more: b; fork it before");
    expect(await fork(it, { from: placeOf(it, "step.completed", "b") })).toMatchObject({ carried: ["a"] });
    expect(await fatesOf(it, FORK)).toEqual(ALL_DONE);
    await it.close();
  });
});

describe("a replay of a fork", () => {
  it("under a policy leaves what was carried as it is, whatever its planner thought of it", async () => {
    const doubted = STEPS.map((each) => ({ ...each, confidence: 0.8 }));
    const it = await run(BROKEN, plan(doubted));
    await fork(it);
    const { whatIf, difference } = await replayCoordination(it.it.ledger.open(it.it.clock), FORK, {
      policy: parseReplayPolicy({ gates: { decisionFloor: 0.9, requireConfidence: true } }),
    });
    expect(difference).toBeUndefined();
    expect(new Set(whatIf?.points.map(({ stepId }) => stepId))).toEqual(new Set(["c", "d", undefined]));
    await it.close();
  });

  it("comes out as recorded, whatever was carried", async () => {
    const it = await run();
    for (const from of [0, placeOf(it, "step.completed", "a") + 1, logOf(it, PLAN_ID).length]) {
      const id = `fork-${from}` as CoordinationId;
      await fork(it, { from, coordinationId: id });
      const replayed = await replayCoordination(it.it.ledger.open(it.it.clock), id);
      expect(replayed.difference).toBeUndefined();
      expect(replayed.events).toBe(logOf(it, id).length);
    }
    await it.close();
  });

  it("L3: takes no result from nowhere", async () => {
    const it = await run();
    await fork(it);
    const [created, ...others] = logOf(it, FORK);
    if (created?.type !== "coordination.created") throw new Error("no fork");
    const { forkedFrom: _, ...payload } = created.payload;
    expect(() => fold(FORK, [{ ...created, payload }, ...others])).toThrow("a result from nowhere");
    const unplanned = logOf(it, FORK).map((event): RunEvent => {
      if (event.type !== "step.admitted") return event;
      const { planned: _planned, ...spec } = event.payload;
      return { ...event, payload: spec };
    });
    expect(() => fold(FORK, unplanned)).toThrow("a result for what is no step of a plan");
    await it.close();
  });

  it("of a fork of a fork that was still being admitted has all that this one had", async () => {
    const it = await runLarge((stepId) => stepId === "s0000");
    const { carried } = await fork(it);
    const admissions = logOf(it, FORK).filter(({ type }) => type === "step.admitted");
    const from = (admissions[BOUNDS.stepsPerAppendMax - 1]?.sequence ?? 0) + 1;
    const second = await fork(it, { source: FORK, coordinationId: "third" as CoordinationId, from });
    expect(second.carried).toEqual(carried);
    await it.close();
  });

  it("of a fork of a fork as well", async () => {
    const it = await run({ ...BROKEN, c: [failing(), failing(), done()] });
    await fork(it);
    const second = "plan-1-third" as CoordinationId;
    expect(await fork(it, { source: FORK, coordinationId: second })).toMatchObject({ carried: ["a", "b"] });
    expect(await fatesOf(it, second)).toEqual(ALL_DONE);
    expect((await viewOf(it, second)).steps[0]?.carriedFrom).toMatch(/^plan-1-again:/u);
    expect((await replayCoordination(it.it.ledger.open(it.it.clock), second)).difference).toBeUndefined();
    await it.close();
  });
});
