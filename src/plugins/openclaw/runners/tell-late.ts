/**
 * Owns: telling a session that an agent which was called there is done, when its chat no longer waits for it, by a turn of the
 * session. Nothing that the agent said is in it: the turn's model would take it for a request.
 */
import type { EpochMs, IdempotencyKey, SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import type { ChatRun } from "../../chat-agents.ts";
import { formatErrorSentence, type HostRuntime } from "../host/host-runs.ts";
import { tellSessionOnce } from "./owner-runner.ts";
import { readSessionAgent } from "../host/session-entry.ts";

/**
 * Starts a turn of a session that tells it that the agent called there is done or waits for a person; a failure is
 * logged, because the session can also ask. Never rejects.
 */
export async function tellSessionLate(
  { runtime, logger }: { readonly runtime: HostRuntime; readonly logger: Logger },
  sessionKey: SessionKey,
  { agentId, runId }: ChatRun,
): Promise<void> {
  try {
    const delivery = await tellSessionOnce(runtime, {
      idempotencyKey: `${runId}:told` as IdempotencyKey,
      agentId: readSessionAgent(sessionKey) as never,
      childSessionKey: sessionKey,
      dispatchedAtMs: Date.now() as EpochMs,
      message: `[Coordination] The agent ${agentId}, which somebody called in this chat, is done or waits for a person. Tell the person you work for, and that /coordination run ${runId} shows what came of it. There is nothing else for you to do about it.`,
    });
    if (delivery.kind !== "started")
      logger.warn({ runId }, `a chat was not told of an agent's end: ${delivery.message}`);
  } catch (error) {
    logger.warn({ runId }, `a chat was not told of an agent's end: ${formatErrorSentence(error)}`);
  }
}
