/** Owns: how a run names itself to another host in a header, and what a replay says where a model answered or refused otherwise than before. */
import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  REFUSED,
  type CallingRun,
  type WorkflowDraft,
  type WorkflowEvent,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import {
  draftDivergenceAtRefusal,
  draftDivergenceAtRequest,
  classifyEnvelope,
  findRecordedEnvelope,
  type EnvelopeKind,
} from "../../src/agents/coordination/workflow/envelope-kind.ts";
import type { EffectOutcome } from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import {
  PARENT_HEADER,
  readParentHeader,
  formatParentHeader,
} from "../../src/agents/coordination/workflow/parent-header.ts";
import { timeAt } from "./workflow-evolve-scene.ts";
import { createNodeRun, createRun, RUN, withNodes } from "./workflow-view-scene.ts";

const PARENT: CallingRun = {
  runId: "run-1",
  hostId: "host-a",
  cause: "core.subWorkflow",
  wellKnownUrl: "https://a.example/.well-known/openwop",
};
const createHeader = (more: Readonly<Record<string, unknown>>): string =>
  JSON.stringify({ ...PARENT, ...more });

describe("the header of a calling run", () => {
  it("has the name that other hosts look for", () => {
    expect(PARENT_HEADER).toBe("openwop-parent");
  });

  it("names the run, its host and where to ask for it, and nothing else of it", () => {
    const parent = { ...PARENT, nodeId: "a", secret: "s" };
    expect(JSON.parse(formatParentHeader(parent))).toEqual(PARENT);
  });

  it("names the event and the depth where they are known", () => {
    const parent = { ...PARENT, eventId: createEventId(RUN, 7), depth: 2 };
    expect(JSON.parse(formatParentHeader(parent))).toEqual(parent);
  });

  it("writes what is not visible ASCII with escapes of four digits", () => {
    const text = formatParentHeader({ ...PARENT, runId: "ä ~\u007f", hostId: "日\ud83d" });
    expect(text).toContain(String.raw`"runId":"\u00e4 ~\u007f","hostId":"\u65e5\ud83d"`);
  });
});

describe("the parent that a header names", () => {
  it.each(["https://a.example/", "http://a.example/"])("is read with its address %s", (wellKnownUrl) => {
    const more = { wellKnownUrl, eventId: createEventId(RUN, 7), depth: 2 };
    expect(readParentHeader(createHeader(more))).toEqual({ ...PARENT, ...more });
  });

  it("is read without the node, which the other host does not tell", () => {
    expect(readParentHeader(createHeader({ nodeId: "a", more: 1 }))).toStrictEqual(PARENT);
  });

  it("is read from a header of 4096 characters, and not from a longer one", () => {
    const text = createHeader({});
    expect(readParentHeader(text.padEnd(4_096))).toEqual(PARENT);
    expect(readParentHeader(text.padEnd(4_097))).toBeUndefined();
  });

  it.each([
    undefined,
    "",
    "null",
    "{",
    createHeader({ cause: "mine" }),
    createHeader({ runId: "" }),
    createHeader({ hostId: undefined }),
    createHeader({ depth: -1 }),
    createHeader({ wellKnownUrl: undefined }),
    createHeader({ wellKnownUrl: "no address" }),
    createHeader({ wellKnownUrl: "javascript:alert(1)" }),
  ])("is none where the header cannot be read or followed: %s", (text) => {
    expect(readParentHeader(text)).toBeUndefined();
  });
});

const ANSWERED: EffectOutcome = { kind: "model_answered", text: "yes", model: "m", usage: {} };
const SOURCE = { sourceRunId: "source-1", nodeId: "a" };
const ERROR = { code: "broken", message: "it broke" };

describe("the outcome of a model", () => {
  it.each<readonly [string, EffectOutcome, EnvelopeKind | undefined]>([
    ["an answer", ANSWERED, "valid"],
    ["an answer without problems", { ...ANSWERED, problems: [] }, "valid"],
    ["an answer that is not what was asked for", { ...ANSWERED, problems: ["no object"] }, undefined],
    ["a refusal", { kind: "model_refused", model: "m", usage: {} }, "refusal"],
    ["a failure", { kind: "failed", error: ERROR }, undefined],
  ])("is an envelope or none: %s", (_which, outcome, kind) => {
    expect(classifyEnvelope(outcome)).toBe(kind);
  });
});

const createEvent = (draft: WorkflowDraft, sequence = 3): WorkflowEvent => ({
  eventId: createEventId(RUN, sequence),
  runId: RUN,
  sequence,
  timestamp: new Date(timeAt(sequence)).toISOString(),
  ...draft,
});
const complete = (nodeId = "a"): WorkflowDraft => ({ type: "node.completed", nodeId, payload: { nodeId } });
const fail = (code: string): WorkflowDraft => ({
  type: "node.failed",
  nodeId: "a",
  payload: { nodeId: "a", error: { code, message: "it failed" } },
});
const REFUSAL: WorkflowDraft = {
  type: "envelope.refusal",
  nodeId: "a",
  payload: { nodeId: "a", provider: "p", model: "m" },
};
const USAGE: WorkflowDraft = { type: "provider.usage", nodeId: "a", payload: {} };
const RETRIED: WorkflowDraft = { type: "node.retried", nodeId: "a", payload: { nodeId: "a", attempt: 1 } };
const STOPPED: WorkflowDraft = { type: "node.cancelled", nodeId: "a", payload: { nodeId: "a" } };

describe("the recorded envelope of a node", () => {
  it.each<readonly [EnvelopeKind, WorkflowDraft]>([
    ["refusal", REFUSAL],
    ["refusal", fail(REFUSED)],
    ["valid", complete()],
  ])("is a %s by the event that tells, behind others of the node and of other nodes", (kind, draft) => {
    const event = createEvent(draft, 5);
    const events = [createEvent(complete("b"), 3), createEvent(USAGE, 4), event, createEvent(REFUSAL, 6)];
    expect(findRecordedEnvelope("a", events)).toEqual({ kind, event });
  });

  it.each([fail("broken"), RETRIED, STOPPED])("is none where the call had none: $type", (draft) => {
    expect(findRecordedEnvelope("a", [createEvent(draft, 3), createEvent(complete(), 4)])).toBeUndefined();
  });

  it("is none where no event tells", () => {
    expect(findRecordedEnvelope("a", [createEvent(USAGE)])).toBeUndefined();
    expect(findRecordedEnvelope("a", [])).toBeUndefined();
  });
});

describe("a replay that differs", () => {
  const createReplay = () =>
    createRun(
      withNodes(createNodeRun("a", "running"), createNodeRun("b", "running"), createNodeRun("c", "failed")),
    );

  it.each([
    ["refusal", "valid", complete(), "the model refused to answer what it answered before"],
    ["valid", "refusal", REFUSAL, "the model answered what it refused to answer before"],
  ] as const)("ends with a %s in place of a %s", (replayed, kind, draft, message) => {
    const original = { kind, event: createEvent(draft) };
    const error = { code: "replay_diverged_at_refusal", message };
    expect(draftDivergenceAtRefusal(createReplay(), { ...SOURCE, original, replayed })).toEqual([
      {
        type: "replay.divergedAtRefusal",
        nodeId: "a",
        payload: {
          ...SOURCE,
          atSequence: 3,
          originalEventId: createEventId(RUN, 3),
          originalEnvelopeKind: kind,
          replayEnvelopeKind: replayed,
        },
      },
      { type: "node.failed", nodeId: "a", payload: { nodeId: "a", error } },
      { type: "node.cancelled", nodeId: "b", payload: { nodeId: "b", reason: message } },
      { type: "run.failed", payload: { error, failedNodeId: "a" } },
    ]);
  });

  it("ends with another request than the recorded one", () => {
    const message = "the model would be asked something else than it was";
    const error = { code: "replay_diverged", message };
    expect(draftDivergenceAtRequest(createReplay(), { ...SOURCE, event: createEvent(USAGE) })).toEqual([
      {
        type: "replay.diverged",
        nodeId: "a",
        payload: {
          sourceRunId: "source-1",
          atSequence: 3,
          originalEventId: createEventId(RUN, 3),
          divergenceKind: "output",
          divergencePoint: "provider.usage",
        },
      },
      { type: "node.failed", nodeId: "a", payload: { nodeId: "a", error } },
      { type: "node.cancelled", nodeId: "b", payload: { nodeId: "b", reason: message } },
      { type: "run.failed", payload: { error, failedNodeId: "a" } },
    ]);
  });
});
