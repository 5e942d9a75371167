/** Owns: the tools of this host that need no server: what they are to an agent, and how their arguments are read. */
import type { BoundTool } from "../../contracts/workflows/agent-events.ts";
import type { Values } from "../state/values.ts";
import { isRecord } from "../../std/is-record.ts";

export const MEMORY_READ = "openwop:memory.read";
export const MEMORY_WRITE = "openwop:memory.write";
export const HANDOFF = "openwop:agent.handoff";

interface NativeTool {
  readonly id: string;
  readonly description: string;
  readonly parameters: Values;
  /** Only of an agent that has memory of its own. */
  readonly needsMemory: boolean;
}

const text = { type: "string" };

export const NATIVE_TOOLS: readonly NativeTool[] = [
  {
    id: MEMORY_READ,
    description: "Read what you have kept in your memory, the newest first.",
    parameters: { type: "object", properties: { tag: text, limit: { type: "integer", minimum: 1 } } },
    needsMemory: true,
  },
  {
    id: MEMORY_WRITE,
    description: "Keep a text in your memory, for this run and later ones.",
    parameters: {
      type: "object",
      properties: { content: text, tags: { type: "array", items: text } },
      required: ["content"],
    },
    needsMemory: true,
  },
  {
    id: HANDOFF,
    description: "Hand the task over to another agent. It goes on with it, and you are done.",
    parameters: {
      type: "object",
      properties: { toAgentId: text, task: {}, reason: text },
      required: ["toAgentId"],
    },
    needsMemory: false,
  },
];

/** Names of functions have no other characters, and are short. */
const CALL_CHARS_MAX = 64;

/**
 * Returns a name by which a model may call a tool, made of the tool's id and unlike those already taken. It does not
 * add it to them.
 */
export function chooseCallName(id: string, takenNames: ReadonlySet<string>): string {
  const plain = id.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, CALL_CHARS_MAX);
  for (let more = 2, name = plain; ; more += 1) {
    if (!takenNames.has(name)) return name;
    name = `${plain.slice(0, CALL_CHARS_MAX - 4)}_${more}`;
  }
}

/**
 * Returns the tool that a model means by a name; `undefined` where none or several fit. The beginning of a tool's id
 * up to a colon may be left out.
 */
export function findCalledTool(tools: readonly BoundTool[], call: string): BoundTool | undefined {
  const exact = tools.find((tool) => tool.call === call || tool.id === call);
  if (exact) return exact;
  const [only, ...others] = tools.filter(({ id, tool }) => tool === call || id.endsWith(`:${call}`));
  return others.length === 0 ? only : undefined;
}

/**
 * Reads from a tool's arguments the note to keep: its content as text, and at most 20 of its tags that are non-empty
 * texts; `undefined` where it has no content.
 */
export function readMemoryNote({
  content,
  tags,
}: Values): { readonly content: string; readonly tags: string[] } | undefined {
  if (content === undefined || content === null) return undefined;
  return {
    content: typeof content === "string" ? content : JSON.stringify(content),
    tags: (Array.isArray(tags) ? (tags as unknown[]) : []).filter(isNonEmptyTag).slice(0, TAGS_MAX),
  };
}

const TAGS_MAX = 20;

function isNonEmptyTag(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

export interface HandoffAsked {
  readonly toAgentId: string;
  readonly task: unknown;
  readonly reason?: string;
}

const REASON_CHARS_MAX = 1_000;

/**
 * Reads from a tool's arguments to which agent which task is to be handed, and why, cut to 1,000 characters;
 * `undefined` where they name no agent.
 */
export function readHandoffRequest({ toAgentId, task, reason }: Values): HandoffAsked | undefined {
  if (typeof toAgentId !== "string" || toAgentId === "") return undefined;
  return {
    toAgentId,
    task,
    ...(typeof reason === "string" && { reason: reason.slice(0, REASON_CHARS_MAX) }),
  };
}

/** Ids of workflows are short, and have no capital letters. */
const WORKFLOW_ID_CHARS_MAX = 120;

/**
 * Returns the id of the workflow under which an agent runs by itself: `agent.` and the agent's id in lower case, cut
 * to 120 characters.
 */
export function createAgentWorkflowId(agentId: string): string {
  return `agent.${agentId.toLowerCase()}`.slice(0, WORKFLOW_ID_CHARS_MAX);
}

/**
 * Returns the inputs of a run that is given a task: a record as it is, no inputs without a task, and anything else
 * under the name `task`.
 */
export function wrapTaskAsInputs(task: unknown): Values {
  return isRecord(task) ? task : task === undefined ? {} : { task };
}

/**
 * Returns the value of a task's member `task` where the task is a record with that member alone; `undefined`
 * otherwise.
 */
export function unwrapTask(task: unknown): unknown {
  return isRecord(task) && Object.keys(task).length === 1 ? task["task"] : undefined;
}
