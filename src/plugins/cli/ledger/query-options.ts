/** Owns: the options by which `list` and `events` find what a ledger has, and what they mean. */
import { CoordinationError, isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import {
  createEventId,
  type AgentId,
  type CoordinationId,
  type EpochMs,
  type SessionKey,
} from "../../../agents/coordination/contracts/ids.ts";
import type { LedgerReader } from "../../ledger-reader.ts";
import type { CommandGroup, Terminal } from "../terminal/cli-host.ts";
import { parseMoment } from "../terminal/moment.ts";
import { maskPasswords, formatPrintable } from "../terminal/printable.ts";
import { resolveCoordinationId } from "../../reports/find-coordination.ts";

/** A command of the program that takes options of a query. */
type QueryCommand = ReturnType<CommandGroup["command"]>;

export type LedgerFilter = Parameters<LedgerReader["findEvents"]>[0]["filter"];

export interface QueryOptions {
  readonly trace?: string;
  readonly cause?: string;
  readonly session?: string;
  readonly agent?: string;
  readonly childSession?: string;
  readonly since?: string;
  readonly until?: string;
}

/** Words of the options in the help of a command. */
interface OptionWording {
  readonly cause: string;
  readonly session: string;
  readonly agent: string;
  readonly childSession: string;
  /** Which things at what time. */
  readonly recorded: string;
}

const NAMES = ["trace", "cause", "session", "agent", "childSession", "since", "until"] as const;

/**
 * Adds the options that filter the ledger (`--trace`, `--cause`, `--session` and the like) to a command and returns
 * it. `wording`: the help of those that mean another thing for each command.
 */
export function withQueryOptions(command: QueryCommand, wording: OptionWording): QueryCommand {
  const { cause, session, agent, childSession, recorded } = wording;
  return command
    .option("--trace <id>", "only of the trace with this id")
    .option("--cause <id>", cause)
    .option("--session <key>", session)
    .option("--agent <id>", agent)
    .option("--child-session <key>", childSession)
    .option(
      "--since <time>",
      `only ${recorded} at this time or later: 2026-01-31T12:00:00Z, or 2h for two hours ago`,
    )
    .option("--until <time>", `only ${recorded} before this time`);
}

/** Returns whether any of the options that filter the ledger was given. */
export function hasQueryOption(options: QueryOptions): boolean {
  return NAMES.some((name) => options[name] !== undefined);
}

/**
 * Returns the given options that filter the ledger as they were typed but for passwords, made safe for a terminal; an
 * empty text without any.
 */
export function describeQuery(options: QueryOptions, { unicode }: Terminal): string {
  const words = NAMES.flatMap((name) => {
    const value = options[name];
    return value === undefined ? [] : [`--${name === "childSession" ? "child-session" : name} ${value}`];
  });
  return formatPrintable(maskPasswords(words.join(" ")), unicode);
}

/**
 * Returns the ledger filter that the typed options mean; the prefix of an id is looked up in the ledger. @throws
 * CoordinationError `INPUT_INVALID` for an option that cannot be read
 */
export async function resolveFilter(
  reader: LedgerReader,
  options: QueryOptions,
  now: EpochMs,
): Promise<LedgerFilter> {
  const { trace, cause, session, agent, childSession } = options;
  return {
    ...(trace !== undefined && { traceId: trace }),
    ...(cause !== undefined && { cause: await resolveCause(reader, cause) }),
    ...(session !== undefined && { session: session as SessionKey }),
    ...(agent !== undefined && { agent: agent as AgentId }),
    ...(childSession !== undefined && { childSession: childSession as SessionKey }),
    ...parseTimeRange(options, now),
  };
}

function parseTimeRange({ since, until }: QueryOptions, now: EpochMs): LedgerFilter {
  const from = since === undefined ? undefined : parseMoment(since, { option: "--since", now });
  const before = until === undefined ? undefined : parseMoment(until, { option: "--until", now });
  if (from !== undefined && before !== undefined && from >= before) {
    const times = `${new Date(from).toISOString()} and ${new Date(before).toISOString()}`;
    throw new CoordinationError(
      "INPUT_INVALID",
      `--since: expected a time before that of --until, got ${times}`,
    );
  }
  return { ...(from !== undefined && { since: from }), ...(before !== undefined && { until: before }) };
}

/**
 * Resolves the id of an event, or of a coordination, either by a unique prefix. The id of a plan may end as that of an
 * event does: where the ledger has exactly this coordination, it is meant.
 */
async function resolveCause(reader: LedgerReader, text: string): Promise<NonNullable<LedgerFilter["cause"]>> {
  const [, prefix, sequence] = /^(.+):(\d{1,15})$/u.exec(text) ?? [];
  if (prefix === undefined) return { coordinationId: await resolveIdOrKeep(reader, text) };
  const [exact] = await reader.read(text as CoordinationId, { from: 0, limit: 1 });
  if (exact) return { coordinationId: exact.runId };
  const coordinationId = await resolveIdOrKeep(reader, prefix);
  return { coordinationId, eventId: createEventId(coordinationId, Number(sequence)) };
}

/** Resolves an id by its prefix; returns one that the ledger does not know as it is. To find nothing is no mistake. */
async function resolveIdOrKeep(reader: LedgerReader, id: string): Promise<CoordinationId> {
  try {
    return await resolveCoordinationId(reader, id);
  } catch (error) {
    if (isCoordinationError(error) && error.code === "COORDINATION_NOT_FOUND") return id as CoordinationId;
    throw error;
  }
}
