/** Owns: whether what is derived is what was recorded, and how the two differ. It tells names and places, never values. */
import type {
  WorkflowDraft,
  WorkflowEvent,
  WorkflowPayloads,
} from "../contracts/workflows/workflow-events.ts";
import { assertInvariant } from "../contracts/errors.ts";
import type { Values } from "./state/values.ts";

export interface Divergence {
  /** The recorded event. */
  readonly event: WorkflowEvent;
  readonly kind: NonNullable<WorkflowPayloads["replay.diverged"]["divergenceKind"]>;
  readonly point: string;
}

/** True when a recorded event has the type, node, cause and payload of a draft. */
export function isSameDraft(draft: WorkflowDraft, event: WorkflowEvent): boolean {
  return (
    draft.type === event.type &&
    draft.nodeId === event.nodeId &&
    draft.causationId === event.causationId &&
    findDifferencePath(draft.payload, event.payload) === undefined
  );
}

/**
 * Returns the recorded event at which the drafts first differ from the record, with the kind and place of the
 * difference. There is one recorded event at least.
 */
export function findDivergence(
  drafts: readonly WorkflowDraft[],
  events: readonly WorkflowEvent[],
): Divergence {
  const at = drafts.findIndex((each, index) => !events[index] || !isSameDraft(each, events[index]));
  const event = at < 0 ? events[0] : (events[at] ?? events.at(-1));
  assertInvariant(event !== undefined, "R3: a replay that has reached the end of the log cannot diverge");
  const [draft, ...behind] = drafts.slice(Math.max(0, at));
  const next = events[at + 1];
  if (!draft) return { event, kind: "missing", point: `${nameEvent(event)} follows from nothing` };
  if (behind.some((later) => isSameDraft(later, event)))
    return { event, kind: "extra", point: `${nameEvent(draft)} comes before ${nameEvent(event)}` };
  if (next && isSameDraft(draft, next))
    return { event, kind: "missing", point: `${nameEvent(event)} does not come before ${nameEvent(draft)}` };
  if (draft.type !== event.type || draft.nodeId !== event.nodeId)
    return { event, kind: "type-mismatch", point: `${nameEvent(draft)} in place of ${nameEvent(event)}` };
  const path = findDifferencePath(draft.payload, event.payload);
  return {
    event,
    kind: "output",
    point: `${nameEvent(event)}: ${path === undefined ? "its cause" : `payload${path}`}`,
  };
}

function nameEvent({ type, nodeId }: WorkflowDraft | WorkflowEvent): string {
  return nodeId === undefined ? type : `${type} of ${nodeId}`;
}

/** Returns the path at which a value differs from what was read back; `undefined` when it does not. */
function findDifferencePath(one: unknown, read: unknown): string | undefined {
  if (one === read) return undefined;
  // A number that JSON has no word for is written as null.
  if (read === null) return typeof one === "number" && !Number.isFinite(one) ? undefined : "";
  if (typeof one !== "object" || typeof read !== "object" || one === null) return "";
  return Array.isArray(one)
    ? findListDifferencePath(one, read)
    : findRecordDifferencePath(one as Values, read);
}

function findListDifferencePath(one: readonly unknown[], read: object): string | undefined {
  if (!Array.isArray(read) || one.length !== read.length) return "";
  for (let index = 0; index < one.length; index += 1) {
    const path = findDifferencePath(one[index] ?? null, read[index]);
    if (path !== undefined) return `[${index}]${path}`;
  }
  return undefined;
}

function findRecordDifferencePath(one: Values, read: object): string | undefined {
  if (Array.isArray(read)) return "";
  const other = read as Values;
  let count = 0;
  for (const key of Object.keys(one)) {
    if (one[key] === undefined) continue;
    count += 1;
    if (!Object.hasOwn(other, key)) return `.${key}`;
    const path = findDifferencePath(one[key], other[key]);
    if (path !== undefined) return `.${key}${path}`;
  }
  if (count === Object.keys(other).length) return undefined;
  return `.${Object.keys(other).find((key) => !Object.hasOwn(one, key) || one[key] === undefined)}`;
}
