import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { ChildRequest, ChildRun } from "../../src/agents/coordination/contracts/fact-fields.ts";
import type { Gate } from "../../src/agents/coordination/contracts/verification.ts";
import { createRefusedRunError } from "../../src/agents/coordination/dispatch/observe-child.ts";
import type { Step } from "../../src/agents/coordination/ledger/state.ts";
import { isEverythingWithheld } from "../../src/agents/coordination/ledger/withheld-words.ts";
import { createChannelQuestion } from "../../src/agents/coordination/runtime/questions/notify-people.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryLedger } from "../support/memory-store.ts";
import {
  acknowledge,
  complete,
  fail,
  nameChild,
  OPEN,
  openScene,
  spawn,
  stepId,
  type Scene,
} from "./scene.ts";

const ASKED: ChildRequest = { model: "mock/large", folder: "/repo" };
const HOLDING: Gate = { threshold: 7_000, holdMismatch: true };
const SMALL: ChildRun = { model: "mock/small" };
const LARGE: ChildRun = { model: "mock/large" };

const observe = (ran: ChildRun, change: Partial<Command & { type: "observeChild" }> = {}): Command => ({
  type: "observeChild",
  stepId: stepId(1),
  attempt: 1,
  ran,
  ...change,
});
const change = (path: string): Command => ({
  type: "recordChange",
  stepId: stepId(1),
  resource: path,
  version: "v1",
  tool: "write",
});
const openRunning = (fields: Partial<Command & { type: "admitSpawn" }> = { requested: ASKED }): Scene =>
  openScene(OPEN, spawn("a", fields), acknowledge(1));

function decideOn(scene: Scene, command: Command): string {
  const decision = scene.when(command);
  if (decision.kind === "accepted") return decision.facts.map(({ type }) => type).join(" ");
  return decision.kind === "refused" ? decision.code : "replay";
}

function stepOf({ state }: Scene): Step {
  const step = state.kind === "unopened" ? undefined : state.steps.get(stepId(1));
  if (!step) throw new Error("there is no step");
  return step;
}

describe("what the host says of a child", () => {
  it("is one fact at first and one for each change, however often it is said", () => {
    const scene = openRunning();
    expect(decideOn(scene, observe(LARGE))).toBe("child.observed");
    for (let calls = 0; calls < 500; calls += 1) expect(decideOn(scene, observe(LARGE))).toBe("replay");
    expect(decideOn(scene, observe({ ...LARGE, folder: "/repo" }))).toBe("child.observed");
    expect(scene.log.at(-1)?.payload).toEqual({ stepId: "step-1", attempt: 1, ran: { folder: "/repo" } });
    expect(stepOf(scene).observed).toEqual({ ran: { ...LARGE, folder: "/repo" }, changes: 2 });
  });

  it("causes nothing: what follows is caused by what happened before", () => {
    const scene = openRunning();
    const { lastFactId } = stepOf(scene);
    scene.when(observe(SMALL));
    expect(stepOf(scene).lastFactId).toBe(lastFactId);
  });

  it("is a difference, once, where it is not what was asked", () => {
    const scene = openRunning();
    expect(decideOn(scene, observe(SMALL))).toBe("child.observed child.differed");
    expect(decideOn(scene, observe(LARGE))).toBe("child.observed");
    expect(decideOn(scene, observe(SMALL))).toBe("child.observed");
    expect(stepOf(scene).differences).toEqual([{ field: "model", asked: "mock/large", ran: "mock/small" }]);
  });

  it("is refused of a step that is over, of another attempt and of no step", () => {
    const scene = openRunning();
    expect(decideOn(scene, observe(SMALL, { attempt: 2 }))).toBe("STALE_ATTEMPT");
    expect(decideOn(scene, observe(SMALL, { stepId: stepId(7) }))).toBe("UNKNOWN_STEP");
    scene.when(complete(1));
    expect(decideOn(scene, observe(SMALL))).toBe("STEP_ENDED");
  });

  it("says in its refusal what is wrong", () => {
    const scene = openRunning();
    expect(scene.when(observe(SMALL, { attempt: 2 }))).toMatchObject({
      reason: "attempt 2 of step step-1 is not the current attempt, which is 1",
    });
    expect(scene.when(observe(SMALL, { stepId: stepId(7) }))).toMatchObject({
      reason: "there is no step step-7",
    });
    scene.when(complete(1));
    expect(scene.when(observe(SMALL))).toMatchObject({ reason: "step step-1 is completed" });
  });

  it("is taken before the host has told of the child's start", () => {
    expect(decideOn(openScene(OPEN, spawn("a", { requested: ASKED })), observe(LARGE))).toBe(
      "child.observed",
    );
  });

  it("is known already with the same tools, and news with others", () => {
    const nameTools = (sha: string) => ({ tools: { count: 3, sha256: sha.repeat(64) } });
    const scene = openRunning();
    expect(decideOn(scene, observe(nameTools("a")))).toBe("child.observed");
    expect(scene.when(observe(nameTools("a")))).toEqual({ kind: "replay", stepId: "step-1" });
    expect(decideOn(scene, observe(nameTools("b")))).toBe("child.observed");
    expect(decideOn(scene, observe({ ...nameTools("b"), thinking: undefined }))).toBe("replay");
  });

  it("is no news beyond the bound, but a refused run is recorded all the same", () => {
    const scene = openRunning();
    const { observationsPerAttemptMax: allowed } = BOUNDS;
    for (let number = 0; number < allowed; number += 1)
      expect(decideOn(scene, observe({ folder: `/repo/${number}` }))).toContain("child.observed");
    expect(scene.when(observe({ folder: "/repo/more" }))).toEqual({
      kind: "refused",
      code: "TOO_MANY_CHANGES",
      reason: "enough changes of what runs step step-1 are recorded",
    });
    expect(scene.log.filter(({ type }) => type === "child.differed")).toHaveLength(
      BOUNDS.differencesPerAttemptMax,
    );
    expect(decideOn(scene, observe({ folder: "/repo/more" }, { refused: true }))).toBe("child.observed");
  });

  it("is a difference for each thing that differs, also where another one has the same name", () => {
    const scene = openRunning({ requested: { model: "same", folder: "/same" } });
    scene.when(observe({ model: "mock/other", folder: "/else" }));
    scene.when(observe({ model: "mock/third" }));
    expect(stepOf(scene).differences).toEqual([
      { field: "model", asked: "same", ran: "mock/other" },
      { field: "folder", asked: "/same", ran: "/else" },
      { field: "model", asked: "same", ran: "mock/third" },
    ]);
  });

  it("is a difference of the thinking, too, where it has the words of one of the model", () => {
    const scene = openRunning({ requested: { model: "low", thinking: "low" } });
    scene.when(observe({ model: "high" }));
    scene.when(observe({ thinking: "high" }));
    expect(stepOf(scene).differences).toEqual([
      { field: "model", asked: "low", ran: "high" },
      { field: "thinking", asked: "low", ran: "high" },
    ]);
  });

  it("is bounded, whatever a host says", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 200 }), (models) => {
        const scene = openRunning();
        for (const model of models) scene.when(observe({ model: `mock/${model}` }));
        const seen = scene.log.flatMap((event) =>
          event.type === "child.observed" ? [event.payload.ran.model] : [],
        );
        const differed = scene.log.filter(({ type }) => type === "child.differed");
        expect(seen.length).toBeLessThanOrEqual(BOUNDS.observationsPerAttemptMax);
        expect(differed.length).toBe(Math.min(new Set(seen).size, BOUNDS.differencesPerAttemptMax));
      }),
    );
  });
});

describe("a file that a child changes", () => {
  it("outside of the folder that was asked is a difference, once", () => {
    const scene = openRunning();
    expect(decideOn(scene, change("file:/repo/a.md"))).toBe("resource.changed");
    expect(decideOn(scene, change("file:/srv/b.md"))).toBe("resource.changed child.differed");
    expect(decideOn(scene, change("file:/srv/c.md"))).toBe("resource.changed");
    expect(decideOn(scene, change("queue:mail"))).toBe("resource.changed");
    expect(stepOf(scene).differences).toEqual([{ field: "writes", asked: "/repo", ran: "/srv/b.md" }]);
  });

  it("anywhere is none where no folder was asked", () => {
    expect(decideOn(openRunning({}), change("file:/srv/b.md"))).toBe("resource.changed");
  });
});

describe("a run that was refused", () => {
  it("is told with all its differences", () => {
    const scene = openRunning();
    scene.when(observe({ ...SMALL, folder: "/else" }, { refused: true }));
    expect(createRefusedRunError(stepOf(scene))).toEqual({
      code: "not_as_asked",
      message:
        "model mock/large was asked, and mock/small would have run; folder /repo was asked, and /else would have run",
    });
  });

  it("is told without any where none is known, and one that was not refused is not told", () => {
    const scene = openRunning({});
    scene.when(observe(SMALL, { refused: true }));
    expect(createRefusedRunError(stepOf(scene))).toEqual({ code: "not_as_asked", message: "" });
    expect(createRefusedRunError(stepOf(openRunning()))).toBeUndefined();
  });
});

describe("the result of a child that does not run as it was asked", () => {
  it("counts where the operator only wants it recorded", () => {
    const scene = openRunning({ requested: ASKED, gate: { threshold: 7_000 } });
    scene.when(observe(SMALL));
    expect(decideOn(scene, complete(1))).toBe("step.completed");
  });

  it("waits for people where the operator wants that, and all that it says is kept back", () => {
    const scene = openRunning({ requested: ASKED, gate: HOLDING });
    scene.when(observe(SMALL));
    expect(isEverythingWithheld(stepOf(scene), nameChild(1))).toBe(true);
    expect(decideOn(scene, complete(1))).toBe("result.held coordination.escalated");
    expect(scene.log.find(({ type }) => type === "coordination.escalated")?.payload).toMatchObject({
      cause: "mismatch",
      stepId: "step-1",
    });
  });

  it("is said to be that also where people are asked about its confidence", async () => {
    const gate: Gate = { ...HOLDING, requireConfidence: true };
    const scene = openRunning({ requested: ASKED, gate });
    scene.when(observe(SMALL));
    scene.when(complete(1));
    const { state } = scene;
    const [question] = state.kind === "open" ? state.escalations.values() : [];
    if (state.kind !== "open" || !question) throw new Error("people were not asked");
    const content = createMemoryLedger().open(createFakeClock());
    expect(await createChannelQuestion({ content }, state, question)).toMatchObject({
      cause: "confidence",
      title:
        "The agent is not sure of the result of step step-1. Let it count? Its agent did not run as it was asked.",
    });
  });

  it("counts where it runs as it was asked", () => {
    const scene = openRunning({ requested: ASKED, gate: HOLDING });
    scene.when(observe(LARGE));
    expect(isEverythingWithheld(stepOf(scene), nameChild(1))).toBe(false);
    expect(decideOn(scene, complete(1))).toBe("step.completed");
  });

  it.each([
    ["as failed", fail(1)],
    ["as completed", complete(1)],
  ])("is a failure that says why where the run was refused, however the host tells its end: %s", (_, end) => {
    const scene = openRunning();
    expect(decideOn(scene, observe(SMALL, { refused: true }))).toBe("child.observed child.differed");
    expect(decideOn(scene, observe(SMALL, { refused: true }))).toBe("replay");
    expect(decideOn(scene, end)).toBe("step.failed");
    expect(stepOf(scene).phase).toMatchObject({
      error: {
        code: "not_as_asked",
        message: "model mock/large was asked, and mock/small would have run",
      },
    });
  });
});
