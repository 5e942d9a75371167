/**
 * Owns: reading a `sessions_spawn` call into a spawn request. Its params are a model's words: bounded, described, never
 * authority (H3). `coordination: {tools, write}` among them holds the child to something: it can only narrow, and words that cannot
 * be understood stop the spawn, because the child would have more than was meant.
 */
import { hash } from "node:crypto";
import { z } from "zod";
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import { coordinationEnvelopeSchema } from "../../../agents/coordination/contracts/envelope.ts";
import {
  childRequestSchema,
  type ChildRequest,
  type InputProblem,
} from "../../../agents/coordination/contracts/fact-fields.ts";
import { parseHostAgentId } from "../../../agents/coordination/contracts/host-agent-id.ts";
import {
  agentIdSchema,
  sessionKeySchema,
  type AgentId,
  type SessionKey,
} from "../../../agents/coordination/contracts/ids.ts";
import type { FindDefaultAgent, HostNames } from "../host/host-names.ts";
import {
  describeProblems,
  ENVELOPE_BOUNDS,
  parseBounded,
} from "../../../agents/coordination/contracts/validation.ts";
import type { ContentInput } from "../../../agents/coordination/ports/content-store.ts";
import { privilegeSchema, type Privilege } from "../../../agents/coordination/contracts/privilege.ts";
import type { SpawnRequest } from "../../../agents/coordination/runtime/spawns/admit-spawn.ts";
import { isRecord } from "../../../agents/coordination/std/is-record.ts";
import { readHostParam, readHostTextParam } from "../runtime-access/host-param.ts";

export interface SpawnCall {
  readonly params: Readonly<Record<string, unknown>>;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly runId?: string | undefined;
  readonly toolCallId?: string | undefined;
  readonly trace?: { readonly traceId?: string; readonly spanId?: string } | undefined;
  /** The task of the session, where it is known. */
  readonly request?: string | undefined;
  /** Finds whom the host takes for a spawn that names no agent; `undefined`: the agent that spawns. */
  readonly findDefaultAgent?: FindDefaultAgent;
  /** The host's names of models and folders, in one form. */
  readonly names: HostNames;
}

const NAME = /^[\p{L}\p{N}][\p{L}\p{N} ._:/#-]*$/u;

/** Who would work, and how. */
export type SpawnTarget = Pick<SpawnRequest["spawn"], "agentId" | "runner" | "hasOutputSchema">;

export type SpawnReading =
  | {
      readonly kind: "spawn";
      readonly request: SpawnRequest;
      readonly target: SpawnTarget;
      readonly problems: readonly InputProblem[];
      /** The model says that it means the spawn although it repeats an earlier one. */
      readonly isMeantAgain: boolean;
      /** Why the bounds on the child cannot be understood, in words for the model. */
      readonly privilegeProblem?: string;
    }
  /** The call names no session or agent that could be recorded; `target` is absent where it names nobody at all. */
  | { readonly kind: "unreadable"; readonly session: string; readonly target?: SpawnTarget };

/**
 * Reads the arguments of a spawn call into the request to record, with their problems and the child's target;
 * `unreadable` where the session or the agents cannot be told.
 */
export function readSpawnCall(call: SpawnCall): SpawnReading {
  const sourceSession = sessionKeySchema.safeParse(call.sessionKey).data;
  const sourceAgent = parseAgentId(call.agentId);
  const namedTarget = parseAgentId(readTargetName(call) ?? call.agentId);
  const target = readTarget(call, namedTarget ?? sourceAgent);
  if (!sourceSession || !sourceAgent || !target)
    return { kind: "unreadable", session: call.sessionKey, ...(target && { target }) };
  const { askedPrivilege, privilegeProblem, rest } = readCoordinationParam(call.params["coordination"]);
  const isTargetValid = namedTarget !== undefined && isTextOrAbsent(readHostParam(call.params, "agentId"));
  const problems = listSpawnProblems(call.params, rest, isTargetValid);
  const source = { sourceSession, sourceAgent };
  return {
    kind: "spawn",
    request: createSpawnRequest(call, { source, target, problems, askedPrivilege }),
    target,
    problems,
    isMeantAgain: isInsisting(rest),
    ...(privilegeProblem !== undefined && { privilegeProblem }),
  };
}

/**
 * Returns the host's own spelling of an agent's id; `undefined` for what is none. The host runs the same agent for
 * several spellings, and the operator's rules hold for it under each.
 */
function parseAgentId(spelling: unknown): AgentId | undefined {
  const read = agentIdSchema.safeParse(spelling).data;
  return read === undefined ? undefined : parseHostAgentId(read);
}

function isTextOrAbsent(value: unknown): boolean {
  return value == null || typeof value === "string";
}

interface CoordinationParam {
  readonly askedPrivilege?: Privilege;
  /** Why the bounds on the child cannot be understood, in words for the model. */
  readonly privilegeProblem?: string;
  /** The parameter without them. */
  readonly rest: unknown;
}

/**
 * Fields that say nothing about what the child may do: those of an envelope, which claim authority, with the deadline as a child reads
 * it in its prompt (`prompt-context.ts`), and the wish to spawn again.
 */
const UNBOUNDING: ReadonlySet<string> = new Set([
  ...Object.keys(coordinationEnvelopeSchema.shape),
  "deadline",
  "again",
]);

/** Splits the parameter `coordination` into the bounds on the child, or why these are unclear, and the rest. */
function readCoordinationParam(param: unknown): CoordinationParam {
  const parsedParam = parseJsonText(param);
  if (isBlank(parsedParam)) return { rest: param };
  if (!isRecord(parsedParam)) return { privilegeProblem: describeUnclearBounds(NO_OBJECT), rest: param };
  const { tools, write, ...others } = parsedParam;
  const names = Object.keys(others);
  const isBounding = tools !== undefined || write !== undefined;
  const rest = isBounding && names.length === 0 ? undefined : others;
  // A misspelt bound must not leave the child unbounded.
  const unknownNames = names.filter((name) => !UNBOUNDING.has(name)).slice(0, 3);
  if (unknownNames.length > 0)
    return {
      privilegeProblem: describeUnclearBounds(`unknown field ${unknownNames.map(quoteName).join(", ")}`),
      rest,
    };
  return isBounding ? { ...parseAskedPrivilege(tools, write), rest } : { rest };
}

const NO_OBJECT = `expected a JSON object of at most ${BOUNDS.envelopeCharsMax} characters`;

function parseAskedPrivilege(tools: unknown, write: unknown): Omit<CoordinationParam, "rest"> {
  const fields = { ...(tools !== undefined && { tools }), ...(write !== undefined && { write }) };
  const parsed = parseBounded(privilegeSchema, fields, ENVELOPE_BOUNDS);
  return parsed.ok
    ? { askedPrivilege: parsed.value }
    : { privilegeProblem: describeUnclearBounds(describeProblems(parsed.problems.slice(0, 3))) };
}

/** True where nothing was said. */
function isBlank(value: unknown): boolean {
  return value == null || (typeof value === "string" && value.trim() === "");
}

function quoteName(name: string): string {
  return JSON.stringify(name.slice(0, BOUNDS.nameCharsMax));
}

function describeUnclearBounds(problem: string): string {
  return `what the child may do cannot be understood (coordination: ${problem}); write {"tools": {"allow": [...], "deny": [...]}, "write": [...]}, or leave coordination out, and spawn again`;
}

/** Parses a value that is a JSON text, as models write objects, too; returns any other value as it is. */
function parseJsonText(value: unknown): unknown {
  if (typeof value !== "string" || value.length > BOUNDS.envelopeCharsMax) return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}

function readTarget({ params }: SpawnCall, agentId: AgentId | undefined): SpawnTarget | undefined {
  const hasOutputSchema = isCollector(params) && isRecord(params["outputSchema"]);
  return agentId && { agentId, runner: readRunner(params), ...(hasOutputSchema && { hasOutputSchema }) };
}

interface ReadNames {
  readonly source: { readonly sourceSession: SessionKey; readonly sourceAgent: AgentId };
  readonly target: SpawnTarget;
  readonly problems: InputProblem[];
  readonly askedPrivilege: Privilege | undefined;
}

function createSpawnRequest(
  call: SpawnCall,
  { source, target, problems, askedPrivilege }: ReadNames,
): SpawnRequest {
  const { params, trace } = call;
  // The host knows the task by the trimmed text, by which a spawn without an answer is found again.
  const task = readHostTextParam(params, "task") ?? "";
  return {
    ...source,
    ...(trace?.traceId && { traceId: cutId(trace.traceId) }),
    input: createContentInput(task),
    objective: createContentInput(formatObjective(call, readLabel(params) ?? task)),
    spawn: {
      ...createSpawnFields(call, target),
      ...(problems.length > 0 && { problems }),
      ...(askedPrivilege && { askedPrivilege }),
    },
  };
}

/** Returns the agent that a spawn names, or else the host's default for it; `undefined`: the agent that spawns. */
function readTargetName({ params, agentId, findDefaultAgent }: SpawnCall): string | undefined {
  const named = readHostTextParam(params, "agentId");
  if (named !== undefined) return named;
  if (readRunner(params) === "acp") return findDefaultAgent?.("acp", agentId);
  return isCollector(params) ? findDefaultAgent?.("collector", agentId) : undefined;
}

function isCollector(params: SpawnCall["params"]): boolean {
  return params["collect"] === true;
}

function readRunner(params: SpawnCall["params"]): "acp" | "subagent" {
  return params["runtime"] === "acp" ? "acp" : "subagent";
}

function createSpawnFields(call: SpawnCall, target: SpawnTarget): SpawnRequest["spawn"] {
  const { params } = call;
  const name = readLabel(params);
  const timeoutMs = convertTimeout(readHostParam(params, "runTimeoutSeconds"));
  const requested = readChildRequest(call, target.agentId);
  return {
    ...(name && { name }),
    ...(timeoutMs && { timeoutMs }),
    collect: isCollector(params),
    ...(requested && { requested }),
    call: pickCallIds(call),
    ...target,
  };
}

/**
 * Reads the model, the thinking and the folder that the spawn asks for, as far as they can be recorded. For the host
 * an empty text is none.
 */
function readChildRequest({ params, names }: SpawnCall, agentId: AgentId): ChildRequest | undefined {
  const model = readBoundedText(params["model"]);
  const thinking = readBoundedText(params["thinking"]);
  const folder = readBoundedText(params["cwd"]);
  const requested = childRequestSchema.safeParse({
    ...(model !== undefined && { model: names.modelOf(model, agentId) }),
    ...(thinking !== undefined && { thinking }),
    ...(folder !== undefined && { folder: names.folderOf(folder) }),
  }).data;
  return requested && Object.keys(requested).length > 0 ? requested : undefined;
}

function readBoundedText(value: unknown): string | undefined {
  const text = typeof value === "string" ? value.trim() : "";
  return text === "" || text.length > BOUNDS.resourceCharsMax ? undefined : text;
}

/**
 * Lists what is malformed in the params, or claims authority. `envelope`: the parameter `coordination` without the
 * bounds on the child.
 */
function listSpawnProblems(
  params: SpawnCall["params"],
  envelope: unknown,
  targetIsValid: boolean,
): InputProblem[] {
  const problems: InputProblem[] = [];
  if (readHostTextParam(params, "task") === undefined)
    problems.push({ code: "PARAMS_MALFORMED", path: "task" });
  if (!targetIsValid) problems.push({ code: "PARAMS_MALFORMED", path: "agentId" });
  if (envelope === undefined || isInsisting(envelope)) return problems;
  const claimed = parseBounded(coordinationEnvelopeSchema, envelope, ENVELOPE_BOUNDS);
  if (claimed.ok) problems.push({ code: "ENVELOPE_NOT_AUTHORITATIVE", path: "coordination" });
  for (const { path } of claimed.ok ? [] : claimed.problems.slice(0, 3)) {
    problems.push({ code: "ENVELOPE_MALFORMED", path: `coordination.${path}`.slice(0, 200) });
  }
  return problems;
}

const againSchema = z.strictObject({ again: z.literal(true) });

/** True of `{"again": true}`, by which a model insists on a spawn. It describes a wish, and authorises nothing. */
function isInsisting(coordination: unknown): boolean {
  return againSchema.safeParse(coordination).success;
}

function pickCallIds({ toolCallId, runId, trace }: SpawnCall): SpawnRequest["spawn"]["call"] {
  return {
    ...(toolCallId && { toolCallId: cutId(toolCallId) }),
    ...(runId && { runId: cutId(runId) }),
    ...(trace?.spanId && { spanId: cutId(trace.spanId) }),
  };
}

/**
 * Returns the label, or the task's name, where it looks like a name; `undefined` otherwise. Labels are shown and kept
 * in the log.
 */
function readLabel(params: SpawnCall["params"]): string | undefined {
  for (const candidate of [params["label"], params["taskName"]]) {
    if (typeof candidate === "string" && candidate.length <= BOUNDS.nameCharsMax && NAME.test(candidate))
      return candidate;
  }
  return undefined;
}

/**
 * Converts seconds, also those in a text, to milliseconds, within the longest duration; `undefined` for what is no
 * time.
 */
function convertTimeout(param: unknown): number | undefined {
  const seconds = typeof param === "string" ? Number(param) : param;
  if (typeof seconds !== "number" || !(seconds > 0)) return undefined;
  return Math.min(Math.ceil(seconds * 1_000), BOUNDS.durationMsMax);
}

/** Returns the session's request, or else the fallback, on one line of at most 200 characters. */
function formatObjective({ request, sessionKey }: SpawnCall, fallback: string): string {
  const text = (request ?? fallback).replace(/\s+/gu, " ").trim() || `spawns of ${sessionKey}`;
  return text.length <= 200 ? text : `${text.slice(0, 199)}…`;
}

/** Cuts an id to the length that the ledger takes. */
function cutId(id: string): string {
  return id.slice(0, BOUNDS.sessionKeyCharsMax);
}

/** Returns a text together with the reference by which events name it: its digest and its length in bytes. */
export function createContentInput(text: string): ContentInput {
  return { text, ref: { sha256: hash("sha256", text), bytes: Buffer.byteLength(text) } };
}
