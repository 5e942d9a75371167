/**
 * Owns: nodes that keep something in memory and read it again (RFC 0004, 0039, 0057). `core.identity` with a `memoryAction`
 * is how the protocol's suite looks at a host's memory; `openclaw.memory.write` and `.read` are for workflows.
 */
import { WORKFLOW_BOUNDS } from "../../contracts/workflows/workflow-bounds.ts";
import type { WorkflowDraft } from "../../contracts/workflows/workflow-events.ts";
import {
  withNodeId,
  type MemoryNote,
  type NodeEffect,
  type NodeStep,
  type NodeType,
  type NodeView,
} from "../node-contract/node-type.ts";
import { resolveMemoryScope } from "../state/memory-scope.ts";
import { findLogIdentity } from "../state/workflow-state.ts";
import { readNodeInputs, type Values } from "../state/values.ts";
import { echo } from "./basic-nodes.ts";
import {
  draftVariableChange,
  draftConfiguredChange,
  draftNodeCompleted,
  draftFailedOutcome,
} from "./ends.ts";

const HOUR_MS = 3_600_000;
const TTL_MS_MAX = 10 * 366 * 24 * HOUR_MS;

export const identity: NodeType = {
  step: (view) => {
    const action = view.node.node.config["memoryAction"];
    return action === undefined ? echo(view) : stepMemoryProbe(view, action);
  },
  settle: (view, _effect, outcome) =>
    outcome.kind === "memory_read"
      ? draftProbeResult(view, outcome.entries)
      : draftFailedOutcome(view, outcome),
};

export const memoryWrite: NodeType = {
  step: (view) => {
    if (view.nodeRun.memoryIds.length > 0)
      return { kind: "complete", outputs: { memoryId: view.nodeRun.memoryIds[0] } };
    const { config } = view.node.node;
    const content = readNodeInputs(view.run, view.graph, view.node)["content"] ?? config["content"];
    if (content === undefined)
      return {
        kind: "fail",
        error: { code: "memory_content_missing", message: "there is no content to keep" },
      };
    const { ttlMs } = config;
    if (typeof ttlMs === "number" && !(Math.abs(ttlMs) <= TTL_MS_MAX))
      return { kind: "fail", error: { code: "memory_ttl_invalid", message: "ttlMs is beyond ten years" } };
    const text = typeof content === "string" ? content : JSON.stringify(content);
    if (new TextEncoder().encode(text).length > WORKFLOW_BOUNDS.memoryEntryBytesMax)
      return {
        kind: "fail",
        error: { code: "memory_entry_too_large", message: "the content is larger than an entry may be" },
      };
    return createMemoryStep(view, [
      {
        content: text,
        tags: Array.isArray(config["tags"]) ? config["tags"].map((tag) => String(tag).toWellFormed()) : [],
        ...(typeof ttlMs === "number" && { ttlMs }),
      },
    ]);
  },
};

export const memoryRead: NodeType = {
  check: ({ node: { id, config } }) => {
    const { limit } = config;
    const isCount = (limit ?? undefined) === undefined || (Number.isSafeInteger(limit) && Number(limit) >= 1);
    return isCount ? [] : [`limit of node ${id} is no whole number from 1 on`];
  },
  step: (view) => {
    const { tag, limit } = view.node.node.config;
    return {
      kind: "act",
      effect: {
        ...createMemoryReadEffect(view, [chooseMemoryScope(view)]),
        ...(typeof tag === "string" && { tag }),
        ...(typeof limit === "number" && { limit }),
      },
    };
  },
  settle: (view, _effect, outcome) => {
    if (outcome.kind !== "memory_read") return draftFailedOutcome(view, outcome);
    const entries = outcome.entries[0] ?? [];
    return [...draftConfiguredChange(view, entries), draftNodeCompleted(view, { entries })];
  },
};

/**
 * Returns the scope of the memory that a node uses: the one that its agent or its configuration names, unless the
 * run's memory is isolated; else that of the run.
 */
export function chooseMemoryScope({ node: { node }, run }: NodeView): string {
  const ref = node.agent?.["memoryRef"] ?? node.config["memoryRef"];
  return typeof ref === "string" && ref !== "" ? resolveMemoryScope(run, ref) : run.started.memoryScope;
}

/** A note for the memory, which has no id and scope yet. */
type NoteDraft = Omit<MemoryNote, "id" | "scope">;

/** Returns the step that keeps notes in the node's memory. */
function createMemoryStep(view: NodeView, notes: readonly NoteDraft[]): NodeStep {
  const scope = chooseMemoryScope(view);
  const { nodeId, executions } = view.nodeRun;
  const agentId = view.node.node.agent?.agentId;
  const memory = notes.map((note, index) => ({
    ...note,
    scope,
    id: `${findLogIdentity(view.run)}:${nodeId}:${executions}:${index}`,
  }));
  const drafts = memory.map((note) => draftMemoryWritten(view, note, agentId));
  return { kind: "record", drafts, memory };
}

/** Drafts the event that a note is in memory: its scope, id, node and tags, not its content. */
export function draftMemoryWritten(
  view: NodeView,
  { scope, id, tags }: MemoryNote,
  agentId: string | undefined,
): WorkflowDraft {
  return withNodeId(view, {
    type: "memory.written",
    payload: {
      memoryRef: scope,
      memoryId: id,
      nodeId: view.nodeRun.nodeId,
      ...(agentId !== undefined && { agentId }),
      ...(tags.length > 0 && { tags: [...tags] }),
    },
  });
}

function createMemoryReadEffect(
  { nodeRun: { nodeId, executions } }: NodeView,
  scopes: readonly string[],
): NodeEffect & { kind: "read_memory" } {
  return { kind: "read_memory", id: `${nodeId}:${executions}:read`, nodeId, scopes };
}

/** A test of the memory that a node can be configured to make. */
type MemoryProbe = "write-then-read" | "ttl-probe" | "cross-tenant-probe" | "redaction-probe";

const PROBES: Readonly<Record<MemoryProbe, (view: NodeView) => readonly NoteDraft[]>> = {
  "write-then-read": (view) => [{ content: `kept by ${findLogIdentity(view.run)}`, tags: ["probe"] }],
  "ttl-probe": () => [
    { content: "fresh", tags: ["fresh"], ttlMs: HOUR_MS },
    { content: "expired", tags: ["expired"], ttlMs: -HOUR_MS },
  ],
  "cross-tenant-probe": () => [{ content: "the owner's", tags: ["owner"] }],
  "redaction-probe": ({ node: { node } }) => [
    { content: `the key is {{secret:${String(node.config["byokSecretId"])}}}`, tags: ["redaction"] },
  ],
};

/**
 * Returns the next step of the conformance suite's look at the memory: notes are kept first, then read again; fails
 * for an action that is not known.
 */
function stepMemoryProbe(view: NodeView, action: unknown): NodeStep {
  const notes =
    typeof action === "string" && Object.hasOwn(PROBES, action) ? PROBES[action as MemoryProbe] : undefined;
  if (!notes)
    return {
      kind: "fail",
      error: { code: "memory_action_unknown", message: `there is no memoryAction ${String(action)}` },
    };
  if (view.nodeRun.memoryIds.length === 0) return createMemoryStep(view, notes(view));
  const foreign = view.node.node.config["probeMemoryRef"];
  const scopes = [
    chooseMemoryScope(view),
    ...(typeof foreign === "string" ? [resolveMemoryScope(view.run, foreign)] : []),
  ];
  return { kind: "act", effect: createMemoryReadEffect(view, scopes) };
}

function draftProbeResult(
  view: NodeView,
  [ownItems = [], foreign = []]: readonly (readonly Values[])[],
): readonly WorkflowDraft[] {
  const [first, second] = view.nodeRun.memoryIds;
  const firstNote = ownItems.find(({ id }) => id === first) ?? null;
  const outputsByProbe: Readonly<Record<MemoryProbe, Values>> = {
    "write-then-read": { memoryReadback: firstNote },
    "redaction-probe": { memoryReadback: firstNote },
    "ttl-probe": { freshId: first, expiredId: second, memoryList: ownItems },
    "cross-tenant-probe": { ownerEntryId: first, ownerProbe: ownItems, crossTenantProbe: foreign },
  };
  const action = view.node.node.config["memoryAction"] as MemoryProbe;
  const changes = Object.entries(outputsByProbe[action]).map(([name, next]) =>
    draftVariableChange(view, name, next),
  );
  return [...changes, draftNodeCompleted(view, outputsByProbe[action])];
}
