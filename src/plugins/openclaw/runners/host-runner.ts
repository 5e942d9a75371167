/**
 * Owns: `SpawnObserver` for OpenClaw subagents: what the host's task rows say of a spawn, and the envelope in the child's
 * session entry (docs/openclaw.md, the carriers).
 */
import { hash } from "node:crypto";
import type { CoordinationEnvelope } from "../../../agents/coordination/contracts/envelope.ts";
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import type {
  Cancellation,
  ChildEnding,
  Observation,
} from "../../../agents/coordination/contracts/observation.ts";
import type { SpawnObserver, SpawnQuery } from "../../../agents/coordination/ports/spawn-observer.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import { cancelRowRun, cancelSpawnsBelow } from "./cancel-rows.ts";
import { findLastSpawnEnd } from "./rows-below.ts";
import { isRowOpen, formatErrorSentence } from "../host/host-runs.ts";
import type { OpenClawPluginApi } from "../host/sdk.ts";
import { writeSessionNotes } from "../host/session-entry.ts";
import { formatSentence } from "../host/spawn-result.ts";

/** The host writes the row up to 0.1 s after the intent; clocks of one machine may still differ a little. */
const ROW_EARLIER_MS_MAX = 1_000;

/** The host tries a delivery three times within a minute, and a child that was lost in a crash after half a minute. */
const DELIVERY_MS_MAX = 180_000;

/** So long after its spawn an ACP child without a row is looked for again that is to be stopped. */
const QUEUED_MS_MAX = 180_000;

type JsonObject = { [key: string]: string | number | JsonObject };

type TaskRow = Awaited<
  ReturnType<ReturnType<OpenClawPluginApi["runtime"]["tasks"]["async"]["runs"]["bindSession"]>["list"]>
>[number];

/**
 * Creates the observer of spawned children, by the host's task rows; where these cannot be read, a child's state is
 * `unknown`, and one that cannot be stopped `unreachable`, each with a warning in the log.
 */
export function createSpawnObserver(runtime: OpenClawPluginApi["runtime"], logger: Logger): SpawnObserver {
  return {
    observe: async (query) => {
      try {
        const seen = await observeSpawn(runtime, query);
        return seen.kind === "absent" && mayBeQueued(query) ? { kind: "unknown" } : seen;
      } catch (error) {
        logger.warn(
          { session: query.sourceSession },
          `the host's task rows are unreadable: ${formatErrorSentence(error)}`,
        );
        return { kind: "unknown" };
      }
    },
    stop: async (query) => {
      try {
        return await stopSpawn(runtime, query);
      } catch (error) {
        logger.warn(
          { session: query.sourceSession },
          `the host does not stop a spawn: ${formatErrorSentence(error)}`,
        );
        return "unreachable";
      }
    },
    bind: async (envelope) => {
      // Writing to an ACP child's entry races with the host's own set-up of it and can break the child.
      if (isAcpSession(envelope.targetSession)) return;
      try {
        const notes = { envelope: copyAsJson(envelope) };
        await writeSessionNotes(runtime.agent.session, envelope.targetSession, notes);
      } catch (error) {
        const { coordinationId: runId, stepId } = envelope;
        logger.warn(
          { runId, stepId },
          `the envelope is not in the child's session entry: ${formatErrorSentence(error)}`,
        );
      }
    },
  };
}

/**
 * Returns how a spawn stands by the task rows of the session that asked for it. A child that ended counts as running
 * while its delivery is pending and what it spawned is at work or has just ended.
 */
async function observeSpawn(runtime: OpenClawPluginApi["runtime"], query: SpawnQuery): Promise<Observation> {
  const rows = await runtime.tasks.async.runs.bindSession({ sessionKey: query.sourceSession }).list();
  const now = Date.now();
  const row = findSpawnRow(rows, query);
  const seen = observeRow(row, query, now);
  if (seen.kind !== "ended" || !row || !isDeliveryPending(row)) return seen;
  // The child may wait for what it has spawned without our knowledge.
  const lastEndMs = await findLastSpawnEnd(runtime, seen.childSessionKey);
  const isWaiting = lastEndMs === undefined || now - lastEndMs < DELIVERY_MS_MAX;
  const { childSessionKey, childRunId } = seen;
  return isWaiting ? { kind: "running", childSessionKey, childRunId } : seen;
}

/**
 * Stops a child and all that it has spawned. The host stops what a running child has spawned, too; what a child that
 * ended left at work is stopped by itself.
 */
async function stopSpawn(runtime: OpenClawPluginApi["runtime"], query: SpawnQuery): Promise<Cancellation> {
  const { sourceSession, childSessionKey } = query;
  if (!childSessionKey) return "unreachable";
  const rows = await runtime.tasks.async.runs.bindSession({ sessionKey: sourceSession }).list();
  const row = rows.find((candidate) => candidate.childSessionKey === childSessionKey);
  if (!row) return isOutOfReach(query) ? "unreachable" : "already_ended";
  const cancellation = isRowOpen(row) ? await cancelRowRun(runtime, sourceSession, row) : "already_ended";
  const below = await cancelSpawnsBelow(runtime, childSessionKey);
  if (below === "unreachable") return below;
  return cancellation === "already_ended" && isWaitingForOwn(row, query) ? below : cancellation;
}

/** True when the first turn of a child is over, and what it says at last is to come. In a turn it is not stopped with its own. */
function isWaitingForOwn(row: TaskRow, { quietSinceMs }: SpawnQuery): boolean {
  return isDeliveryPending(row) && quietSinceMs !== undefined;
}

/** Copies without the properties that are undefined, which the host's JSON type does not know. */
function copyAsJson(envelope: CoordinationEnvelope): JsonObject {
  return JSON.parse(JSON.stringify(envelope)) as JsonObject;
}

function isAcpSession(sessionKey: SessionKey): boolean {
  return sessionKey.split(":")[2] === "acp";
}

/**
 * True when an ACP child of this process may run without a row. The host writes the row when the child's first turn
 * starts, seconds after the spawn where the backend has to start first. Until then the turn waits in the host's
 * memory: only a new process has lost it.
 */
function mayBeQueued({ childSessionKey, dispatchedAtMs }: SpawnQuery): boolean {
  return (
    childSessionKey !== undefined && isAcpSession(childSessionKey) && dispatchedAtMs >= performance.timeOrigin
  );
}

/** True when the turn of a child still waits in the host's memory, where nobody can stop it, and no row came in time. */
function isOutOfReach(query: SpawnQuery): boolean {
  return mayBeQueued(query) && Date.now() - query.dispatchedAtMs >= QUEUED_MS_MAX;
}

/** Returns the task row of a spawn among these rows of its session; `undefined` where none is. */
export function findSpawnRow(rows: readonly TaskRow[], query: SpawnQuery): TaskRow | undefined {
  return rows.find((candidate) => isRowOfSpawn(candidate, query));
}

/**
 * Returns what the task row of a spawn says of its child: running, or ended once the host has also delivered the
 * result or no longer may; `absent` without a row or a child.
 */
export function observeRow(row: TaskRow | undefined, query: SpawnQuery, now: number): Observation {
  if (!row?.childSessionKey) return { kind: "absent" };
  const child = { childSessionKey: row.childSessionKey as SessionKey, childRunId: row.runId ?? row.id };
  const ending = isUndelivered(row, query, now) ? undefined : readSpawnEnding(row);
  return ending ? { kind: "ended", ...child, ...ending } : { kind: "running", ...child };
}

/**
 * True for the row of a spawn. A child that we know is found by its key; a spawn whose answer was lost, by its task
 * text.
 */
function isRowOfSpawn(row: TaskRow, query: SpawnQuery): boolean {
  const key = row.childSessionKey;
  if (!key || key === query.sourceSession) return false;
  if (query.childSessionKey) return key === query.childSessionKey;
  return (
    !query.taken.has(key as SessionKey) &&
    row.createdAt >= query.dispatchedAtMs - ROW_EARLIER_MS_MAX &&
    hash("sha256", row.title) === query.input.sha256
  );
}

/**
 * True while the host may still deliver the last words of a child. An orchestrator's row says "succeeded" when its
 * first turn ends, though it still waits for its children and is woken when they have ended: delivery tells. But the
 * host gives up some deliveries after three tries and leaves them pending for ever, and delivers nothing of a child
 * that was cancelled.
 */
function isUndelivered(row: TaskRow, { quietSinceMs }: SpawnQuery, now: number): boolean {
  if (!isDeliveryPending(row)) return false;
  const { endedAt } = row;
  if (quietSinceMs === undefined || endedAt === undefined) return true;
  return now - Math.max(endedAt, quietSinceMs) < DELIVERY_MS_MAX;
}

function isDeliveryPending({ status, deliveryStatus }: TaskRow): boolean {
  return deliveryStatus === "pending" && status !== "cancelled";
}

/** Returns how the child of a row ended; `undefined` while it has not, and for a status that is not known. */
function readSpawnEnding({ status, error }: TaskRow): ChildEnding | undefined {
  switch (status) {
    case "queued":
    case "running":
      return undefined;
    case "succeeded":
      return { outcome: "completed" };
    case "timed_out":
      return { outcome: "timed_out" };
    case "cancelled":
      return { outcome: "cancelled", ...(error && { message: formatSentence(error) }) };
    case "failed":
    case "lost":
      return { outcome: "failed", message: formatSentence(error ?? `the host calls the child ${status}`) };
    default:
      return undefined;
  }
}
