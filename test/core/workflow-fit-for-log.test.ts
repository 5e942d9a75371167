/** Owns: which draft of a batch would make a log that nobody can read again, and how its problem is told. */
import { describe, expect, it } from "vitest";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { findUnfitDraft } from "../../src/agents/coordination/workflow/fit-for-log.ts";

const complete = (outputs: Readonly<Record<string, unknown>>): WorkflowDraft => ({
  type: "node.completed",
  payload: { nodeId: "a", outputs },
});

/** An object with so many levels of objects below it. */
function nestLevels(levels: number): Record<string, unknown> {
  let value: Record<string, unknown> = {};
  for (let level = 0; level < levels; level += 1) value = { value };
  return value;
}

const DEEP = "at most 40 levels, got a deeper value";

describe("a draft that no log may have", () => {
  it("is none among drafts that can be read again", () => {
    expect(findUnfitDraft([])).toBeUndefined();
    expect(
      findUnfitDraft([complete({}), complete({ text: "short" }), complete(nestLevels(5))]),
    ).toBeUndefined();
  });

  it("is found with its problem behind others that fit", () => {
    const unfit = complete(nestLevels(60));
    const found = findUnfitDraft([complete({}), unfit, complete({})]);
    expect(found?.draft).toBe(unfit);
    expect(found?.problem).toContain(DEEP);
  });

  it("is the first one where there are several", () => {
    const first: WorkflowDraft = { type: "workspace.updated", payload: { path: "", version: 1 } };
    expect(findUnfitDraft([first, complete(nestLevels(60))])).toEqual({
      draft: first,
      problem: 'path: expected at least 1 characters, got string ""',
    });
  });

  it("has a problem of 300 characters at most", () => {
    const strangers = Object.fromEntries(["a", "b", "c", "d", "e"].map((letter) => [letter.repeat(64), 1]));
    const unfit: WorkflowDraft = {
      type: "workspace.updated",
      payload: { path: "notes", version: 1, ...strangers },
    };
    const problem = findUnfitDraft([unfit])?.problem;
    expect(problem).toMatch(/^\(root\): expected no key "a{64}", "b{64}"/);
    expect(problem).toHaveLength(300);
  });
});

describe("a draft made of what was recorded before", () => {
  const again: readonly WorkflowDraft[] = [
    { type: "node.started", payload: { nodeId: "", typeId: "core.noop", attempt: 0 } },
    { type: "node.skipped", payload: { nodeId: "" } },
    { type: "node.cancelled", payload: { nodeId: "" } },
    { type: "run.resumed", payload: nestLevels(60) as Record<string, never> },
    { type: "run.resuming", payload: { process: "", fromStatus: "running" } },
  ];

  it.each(again)("is not looked at a second time: $type", (draft) => {
    expect(findUnfitDraft([draft])).toBeUndefined();
  });

  it("does not hide the one behind it", () => {
    const unfit = complete(nestLevels(60));
    expect(findUnfitDraft([...again, unfit])?.draft).toBe(unfit);
  });
});
