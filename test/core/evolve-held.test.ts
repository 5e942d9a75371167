import { describe, expect, it } from "vitest";
import type { FactPayloads } from "../../src/agents/coordination/contracts/facts.ts";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { FactDraft } from "../../src/agents/coordination/contracts/run-event.ts";
import { evolve, fold } from "../../src/agents/coordination/ledger/evolve.ts";
import type { Step } from "../../src/agents/coordination/ledger/state.ts";
import { openOf } from "./claims-scene.ts";
import {
  acknowledge,
  complete,
  createContentRef,
  createDispatched,
  nameChild,
  OPEN,
  openScene,
  openWaitingScene,
  RUN,
  spawn,
  stepId,
  timeAt,
  type Scene,
} from "./scene.ts";

const attemptOf = (attempt = 1) => ({ stepId: stepId(1), attempt });
const createHeld = (rest: Partial<FactPayloads["result.held"]> = {}): FactDraft => ({
  type: "result.held",
  payload: { ...attemptOf(), via: "hook", ...rest },
});
const createFound = (check: string, attempt = 1): FactDraft => ({
  type: "result.verified",
  payload: { ...attemptOf(attempt), check, agentId: "agent:critic", verdict: "pass" },
});
const createFailed = (
  check: string,
  because: FactPayloads["verification.failed"]["because"] = "timed_out",
): FactDraft => ({ type: "verification.failed", payload: { ...attemptOf(), check, because } });
const createRevised = (revision = 1): FactDraft => ({
  type: "result.revised",
  payload: { ...attemptOf(), revision, criteria: ["style"] },
});

/** A spawn whose child is at work since two seconds after the start. */
const openRunning = (): Scene => openScene(OPEN, spawn("a"), acknowledge(1));
/** A spawn of which its child was not heard yet. */
const openDispatched = (): Scene => openScene(OPEN, spawn("a"));

const stepOf = (scene: Scene): Step => openOf(scene).steps.get(stepId(1))!;
const CHILD = { childSessionKey: nameChild(1), childRunId: "run-of-1" };
const TIMES = { attempt: 1, dispatchedAtMs: timeAt(1_000), deadlineAtMs: timeAt(61_000) };
const USAGE = { tokens: 12, costMicroUsd: 34 };
const OUTPUT = createContentRef("out");

/** Returns the event that verdicts are about: the agent's word behind the fact. */
const findWord = ({ log }: Scene) => log.findLast(({ type }) => type === "agent.decided")?.eventId;

describe("a result that is held", () => {
  it("keeps all that was said of it, with its times and its child", () => {
    const scene = openRunning();
    scene.happened([createHeld({ output: OUTPUT, usage: USAGE, confidence: 0, verifyByMs: timeAt(9_000) })]);
    expect(stepOf(scene).phase).toStrictEqual({
      ...TIMES,
      status: "held",
      acknowledgedAtMs: timeAt(2_000),
      endedAtMs: timeAt(3_000),
      child: CHILD,
      output: OUTPUT,
      usage: USAGE,
      stated: { confidence: 0 },
      target: findWord(scene),
      verifyByMs: timeAt(9_000),
      findings: [],
      failures: new Map(),
    });
  });

  it("has nothing that was not said", () => {
    const scene = openDispatched();
    scene.happened([createHeld()]);
    expect(stepOf(scene).phase).toStrictEqual({
      ...TIMES,
      status: "held",
      endedAtMs: timeAt(2_000),
      stated: {},
      target: findWord(scene),
      findings: [],
      failures: new Map(),
    });
  });

  it("knows that its confidence could not be read", () => {
    const scene = openRunning();
    scene.happened([createHeld({ confidenceUnreadable: true })]);
    expect(stepOf(scene).phase).toHaveProperty("stated", { confidenceUnreadable: true });
  });

  it("collects what its checks found, in their order, and why others found nothing", () => {
    const scene = openRunning();
    scene.happened([
      createHeld(),
      createFound("lint"),
      createFailed("test"),
      createFound("types"),
      createFailed("docs", "malformed"),
    ]);
    expect(stepOf(scene).phase).toMatchObject({
      findings: [
        { check: "lint", agentId: "agent:critic", verdict: "pass" },
        { check: "types", agentId: "agent:critic", verdict: "pass" },
      ],
      failures: new Map([
        ["test", "timed_out"],
        ["docs", "malformed"],
      ]),
    });
    const { phase } = stepOf(scene);
    expect(phase.status === "held" && phase.findings[0]).not.toHaveProperty("attempt");
    expect(phase.status === "held" && [...phase.failures.keys()]).toEqual(["test", "docs"]);
  });

  it("keeps the words of the newest text that was kept back, and counts them all", () => {
    const scene = openRunning();
    const withhold = (text: string): FactDraft => ({
      type: "result.withheld",
      payload: { ...attemptOf(), text: createContentRef(text), confidence: 5_000 },
    });
    scene.happened([withhold("first"), withhold("second")]);
    expect(stepOf(scene)).toMatchObject({
      withheldCount: 2,
      withheld: { attempt: 1, text: createContentRef("second"), confidence: 5_000 },
    });
    expect(stepOf(scene).withheld).not.toHaveProperty("stepId");
  });
});

describe("a result that goes back to its agent", () => {
  it("is the next attempt's from now on, with what was not met and what there was", () => {
    const scene = openRunning();
    scene.happened([createHeld({ output: OUTPUT })]);
    scene.happened([createRevised()], 7_000);
    expect(stepOf(scene).revisions).toBe(1);
    expect(stepOf(scene).phase).toStrictEqual({
      ...TIMES,
      status: "backoff",
      cause: "failed",
      retryAtMs: timeAt(7_000),
      revision: { criteria: ["style"], output: OUTPUT },
      error: { code: "verification_failed", message: "its result is to be revised" },
      acknowledgedAtMs: timeAt(2_000),
      endedAtMs: timeAt(3_000),
      child: CHILD,
    });
  });

  it("has no output, no child and no time of one where there was none", () => {
    const scene = openDispatched();
    scene.happened([createHeld()]);
    scene.happened([createRevised(2)], 7_000);
    expect(stepOf(scene).revisions).toBe(2);
    expect(stepOf(scene).phase).toStrictEqual({
      ...TIMES,
      status: "backoff",
      cause: "failed",
      retryAtMs: timeAt(7_000),
      revision: { criteria: ["style"] },
      error: { code: "verification_failed", message: "its result is to be revised" },
      endedAtMs: timeAt(2_000),
    });
  });

  it("lets its agent try again beyond the budget of retries", () => {
    const scene = openDispatched();
    scene.happened([createHeld(), createRevised(), createDispatched(2)], 7_000);
    expect(stepOf(scene).phase).toMatchObject({ status: "dispatched", attempt: 2 });
  });
});

describe("a log is damaged in which", () => {
  it.each<readonly [string, readonly FactDraft[], string]>([
    ["another attempt's result is held", [createHeld(attemptOf(2))], "D3: result of attempt 2: co-1:"],
    ["a result is held twice", [createHeld(), createHeld()], "D5: held while held: co-1:"],
    ["a check rules on what is not held", [createFound("lint")], "G1: a verdict on what is running: co-1:"],
    ["a check of what is not held fails", [createFailed("lint")], "G1: a verdict on what is running: co-1:"],
    [
      "a check rules on another attempt",
      [createHeld(), createFound("lint", 2)],
      "G1: a verdict on what is held",
    ],
    ["what is not held is revised", [createRevised()], "G1: a verdict on what is running: co-1:"],
  ])("%s", (_, facts, message) => {
    const scene = openRunning();
    expect(() => {
      scene.happened(facts);
    }).toThrow(message);
  });

  it("a result is held of a step that did not begin, or that ended", () => {
    const waiting = openWaitingScene();
    expect(() => {
      waiting.happened([createHeld(attemptOf(0))]);
    }).toThrow("D5: held while waiting: co-1:");
    const ended = openRunning();
    ended.when(complete(1));
    expect(() => {
      ended.happened([createHeld()]);
    }).toThrow("D5: held while completed: co-1:");
  });
});

describe("the agent's word", () => {
  it("is what verdicts are about, and nothing of a step that is not held", () => {
    const scene = openRunning();
    scene.happened([createHeld()]);
    const at = scene.log.findLastIndex(({ type }) => type === "agent.decided");
    const word = scene.log[at]!;
    const running = fold(RUN, scene.log.slice(0, at - 1));
    const moved = evolve(running, {
      ...word,
      sequence: at - 1,
      eventId: createEventId(RUN, at - 1),
    });
    if (moved.kind !== "open" || running.kind !== "open") throw new Error("it is open");
    expect(moved.steps.get(stepId(1))).toEqual(running.steps.get(stepId(1)));
  });
});
