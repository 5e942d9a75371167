/** Owns: how the time of a workflow run is counted: where it waits, and where a fork begins its own log. */
import { describe, expect, it } from "vitest";
import {
  beginWorkflow,
  isFirstOfFork,
} from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type { WorkflowRun } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import {
  append,
  ask,
  BEGUN,
  CANCELLED,
  complete,
  createOrigin,
  FIRST,
  type Moment,
  PAUSED,
  play,
  resolve,
  RESUMED,
  showRun,
  start,
  suspend,
  timeAt,
} from "./workflow-evolve-scene.ts";

describe("the time that a run waits", () => {
  const suspended: readonly Moment[] = [
    [1, start("a")],
    [2, suspend("a")],
  ];

  it.each<[string, readonly Moment[], number | undefined]>([
    ["begins when its only node is suspended", suspended, 2],
    ["goes on while it is asked for", [...suspended, [5, ask("a")]], 2],
    ["does not begin while another node runs", [[1, start("b")], ...suspended], undefined],
    [
      "does not begin while a later node runs",
      [
        [1, start("a")],
        [1, start("b")],
        [2, suspend("a")],
      ],
      undefined,
    ],
    ["begins when the other node has ended", [[1, start("b")], ...suspended, [4, complete("b")]], 4],
    [
      "does not begin when all nodes have ended",
      [
        [1, start("a")],
        [2, complete("a")],
      ],
      undefined,
    ],
    [
      "begins when it is paused with a node that runs",
      [
        [1, start("a")],
        [3, PAUSED],
      ],
      3,
    ],
    ["goes on through a pause", [...suspended, [3, PAUSED], [4, RESUMED]], 2],
  ])("%s", (_title, moments, seconds) => {
    const run = play(BEGUN, ...moments);
    expect(run.waitingSinceMs).toBe(seconds === undefined ? undefined : timeAt(seconds));
    expect(run.waitedMs).toBe(0);
  });

  it.each<[string, readonly Moment[], number]>([
    ["an answer", [[6, resolve("a")]], 4_000],
    [
      "a second answer",
      [
        [6, resolve("a")],
        [7, suspend("a")],
        [10, resolve("a")],
      ],
      7_000,
    ],
    ["the end of the run", [[9, CANCELLED]], 7_000],
    ["an answer that the clock puts before the question", [[1, resolve("a")]], 0],
  ])("is counted at %s", (_title, moments, waitedMs) => {
    const run = play(BEGUN, ...suspended, ...moments);
    expect(run.waitedMs).toBe(waitedMs);
    expect(run).not.toHaveProperty("waitingSinceMs");
  });
});

describe("the time in which no process drove a run", () => {
  const resume = (awayMs?: number): WorkflowDraft => ({
    type: "run.resuming",
    payload: { process: "p", fromStatus: "running", ...(awayMs !== undefined && { awayMs }) },
  });

  it.each<[string, readonly Moment[], number]>([
    ["is counted as waited", [[9, resume(7_000)]], 7_000],
    [
      "is added up",
      [
        [9, resume(7_000)],
        [20, resume(10_000)],
      ],
      17_000,
    ],
    ["is not known of a log of an earlier release", [[9, resume()]], 0],
    [
      "is not counted twice where the run waited",
      [
        [2, suspend("a")],
        [9, resume(7_000)],
        [10, resolve("a")],
      ],
      8_000,
    ],
  ])("%s", (_title, moments, waitedMs) => {
    expect(play(BEGUN, [1, start("a")], ...moments).waitedMs).toBe(waitedMs);
  });
});

describe("the first event that a fork appends itself", () => {
  it.each([
    ["no fork", undefined, false],
    ["a fork that takes more", createOrigin(2), false],
    ["a fork that has its own events", createOrigin(0), false],
    ["a fork that has taken all", createOrigin(1), true],
    ["the fork of a fork that has taken all", createOrigin(1, 3), true],
  ])("is the next one of %s: %s", (_title, origin, expected) => {
    expect(isFirstOfFork(beginWorkflow(FIRST, origin))).toBe(expected);
  });

  const nodes: readonly Moment[] = [
    [1, start("ended")],
    [2, complete("ended")],
    [3, start("runs")],
    [4, start("a")],
  ];
  const createFork = (...moments: readonly Moment[]): WorkflowRun => {
    const run = play(BEGUN, ...moments);
    return { ...run, origin: createOrigin(run.nextSequence) };
  };
  const DAY = 24 * 3_600;

  it("leaves all that is at work the time that it had, and what has ended as it was", () => {
    const fork = createFork(...nodes, [10, suspend("a")]);
    const { ended, runs, a } = showRun(append(fork, ask("a"), 10 + DAY)).nodes;
    const before = showRun(fork).nodes;
    expect(ended).toStrictEqual(before["ended"]);
    expect(runs).toStrictEqual({ ...before["runs"], startedAtMs: timeAt(3 + DAY) });
    expect(a?.startedAtMs).toBe(timeAt(4 + DAY));
    expect(a?.interrupt).toMatchObject({ key: "k", atMs: timeAt(10 + DAY) });
  });

  it("does not count the time before it as the run's", () => {
    const run = append(createFork(...nodes), start("b"), 4 + DAY);
    expect(run.waitedMs).toBe(DAY * 1_000);
    expect(append(run, complete("b"), 5 + DAY).waitedMs).toBe(DAY * 1_000);
  });

  it("counts the time before it once where the source waited", () => {
    const fork = createFork([1, start("a")], [2, suspend("a")]);
    expect(append(fork, resolve("a"), 5 + DAY).waitedMs).toBe((3 + DAY) * 1_000);
  });

  it("shifts nothing where the clock went back", () => {
    const run = append(createFork(...nodes), ask("a"), 1);
    expect(run.waitedMs).toBe(0);
    expect(run.nodes.get("runs")?.startedAtMs).toBe(timeAt(3));
  });
});
