/**
 * Owns: reading a `sessions_spawn` call into a spawn request. Its params are a model's words: bounded, described, never
 * authority (H3).
 */
import { hash } from "node:crypto";
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import { coordinationEnvelopeSchema } from "../../../agents/coordination/contracts/envelope.ts";
import type { InputProblem } from "../../../agents/coordination/contracts/fact-fields.ts";
import { agentIdSchema, sessionKeySchema } from "../../../agents/coordination/contracts/ids.ts";
import { ENVELOPE_BOUNDS, parseBounded } from "../../../agents/coordination/contracts/validation.ts";
import type { ContentInput } from "../../../agents/coordination/ports/content-store.ts";
import type { SpawnRequest } from "../../../agents/coordination/runtime/spawns/admit-spawn.ts";

export interface SpawnCall {
  readonly params: Readonly<Record<string, unknown>>;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly runId?: string | undefined;
  readonly toolCallId?: string | undefined;
  readonly trace?: { readonly traceId?: string; readonly spanId?: string } | undefined;
  /** What the session was asked to do, where that is known. */
  readonly request?: string | undefined;
  /** Whom the host takes for a spawn over ACP that names no agent. */
  readonly acpDefaultAgent?: () => string | undefined;
}

const NAME = /^[\p{L}\p{N}][\p{L}\p{N} ._:/#-]*$/u;

export type SpawnReading =
  | { readonly kind: "spawn"; readonly request: SpawnRequest; readonly problems: readonly InputProblem[] }
  /** The call names no session or agent that could be recorded. */
  | { readonly kind: "unreadable" };

export function readSpawnCall(call: SpawnCall): SpawnReading {
  const source = sessionKeySchema.safeParse(call.sessionKey);
  const sourceAgent = agentIdSchema.safeParse(call.agentId);
  if (!source.success || !sourceAgent.success) return { kind: "unreadable" };
  const { params, trace } = call;
  const task = typeof params["task"] === "string" ? params["task"] : "";
  const target = agentIdSchema.safeParse(namedAgent(call) ?? call.agentId).data;
  const problems = problemsOf(params, target !== undefined);
  const request: SpawnRequest = {
    sourceSession: source.data,
    sourceAgent: sourceAgent.data,
    ...(trace?.traceId && { traceId: bounded(trace.traceId) }),
    input: contentOf(task),
    objective: contentOf(objectiveOf(call, nameOf(params) ?? task)),
    spawn: {
      ...spawnOf(call),
      agentId: target ?? sourceAgent.data,
      ...(problems.length > 0 && { problems }),
    },
  };
  return { kind: "spawn", request, problems };
}

/** Who would work and how; `undefined` where the call names nobody that could be told. */
export function targetOf(call: SpawnCall): Pick<SpawnRequest["spawn"], "agentId" | "runner"> | undefined {
  const named = agentIdSchema.safeParse(namedAgent(call));
  const agentId = named.success ? named.data : agentIdSchema.safeParse(call.agentId).data;
  return agentId && { agentId, runner: runnerOf(call.params) };
}

/** For the host an empty name is none. */
function namedAgent({ params, acpDefaultAgent }: SpawnCall): unknown {
  const agentId = params["agentId"];
  const isNamed = typeof agentId === "string" ? agentId.trim() !== "" : agentId != null;
  if (isNamed) return agentId;
  return runnerOf(params) === "acp" ? acpDefaultAgent?.() : undefined;
}

function runnerOf(params: SpawnCall["params"]): "acp" | "subagent" {
  return params["runtime"] === "acp" ? "acp" : "subagent";
}

function spawnOf(call: SpawnCall): Omit<SpawnRequest["spawn"], "agentId" | "problems"> {
  const { params } = call;
  const name = nameOf(params);
  const timeoutMs = timeoutOf(params["runTimeoutSeconds"]);
  return {
    runner: runnerOf(params),
    ...(name && { name }),
    ...(timeoutMs && { timeoutMs }),
    collect: params["collect"] === true,
    call: callOf(call),
  };
}

function problemsOf(params: SpawnCall["params"], targetIsValid: boolean): InputProblem[] {
  const problems: InputProblem[] = [];
  if (typeof params["task"] !== "string" || params["task"] === "")
    problems.push({ code: "PARAMS_MALFORMED", path: "task" });
  if (!targetIsValid) problems.push({ code: "PARAMS_MALFORMED", path: "agentId" });
  if (params["coordination"] === undefined) return problems;
  const claimed = parseBounded(coordinationEnvelopeSchema, params["coordination"], ENVELOPE_BOUNDS);
  if (claimed.ok) problems.push({ code: "ENVELOPE_NOT_AUTHORITATIVE", path: "coordination" });
  for (const { path } of claimed.ok ? [] : claimed.problems.slice(0, 3)) {
    problems.push({ code: "ENVELOPE_MALFORMED", path: `coordination.${path}`.slice(0, 200) });
  }
  return problems;
}

function callOf({ toolCallId, runId, trace }: SpawnCall): SpawnRequest["spawn"]["call"] {
  return {
    ...(toolCallId && { toolCallId: bounded(toolCallId) }),
    ...(runId && { runId: bounded(runId) }),
    ...(trace?.spanId && { spanId: bounded(trace.spanId) }),
  };
}

/** Labels are shown and kept in the log, so only what looks like a name passes. */
function nameOf(params: SpawnCall["params"]): string | undefined {
  for (const candidate of [params["label"], params["taskName"]]) {
    if (typeof candidate === "string" && candidate.length <= BOUNDS.nameCharsMax && NAME.test(candidate))
      return candidate;
  }
  return undefined;
}

function timeoutOf(seconds: unknown): number | undefined {
  if (typeof seconds !== "number" || !(seconds > 0)) return undefined;
  return Math.min(Math.ceil(seconds * 1_000), BOUNDS.durationMsMax);
}

function objectiveOf({ request, sessionKey }: SpawnCall, fallback: string): string {
  const text = (request ?? fallback).replace(/\s+/gu, " ").trim() || `spawns of ${sessionKey}`;
  return text.length <= 200 ? text : `${text.slice(0, 199)}…`;
}

/** The same text, cut to what an id may be long. */
function bounded(id: string): string {
  return id.slice(0, BOUNDS.sessionKeyCharsMax);
}

export function contentOf(text: string): ContentInput {
  return { text, ref: { sha256: hash("sha256", text), bytes: Buffer.byteLength(text) } };
}
