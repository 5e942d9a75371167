/**
 * Owns: telling the host's agent event stream of every event of a coordination (QM2 7.1), so that other plugins and the Control UI
 * see it.
 *
 * E1 Ids and types only: what an event says stays in the ledger, where held words are withheld. E2 The stream is told after the
 * event is on disk, outside of the append, and nothing that the stream does reaches a coordination. It is no record: what happens
 * while the plugin is reloaded is in the ledger alone.
 */
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../../agents/coordination/contracts/run-event.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import { runOutsideCalls } from "./outside-calls.ts";
import type { OpenClawPluginApi } from "./sdk.ts";

/** The host wants the plugin's id before the dot. */
const STREAM = "coordination.events";

export type TellAppended = (events: readonly RunEvent[], ownerSession: SessionKey) => void;

/**
 * Creates the function that sends appended events to the host's event stream, after the append and outside of it; the
 * first event that is not taken is logged, and later ones are not.
 */
export function createEventTeller(api: OpenClawPluginApi, logger: Logger): TellAppended {
  let hasFailed = false;
  const reportOnce = (reason: string): void => {
    if (hasFailed) return;
    hasFailed = true;
    logger.warn({ reason }, "the host's agent event stream does not take events of coordinations");
  };
  const tell = (event: RunEvent, sessionKey: SessionKey): void => {
    try {
      const outcome = api.agent.events.emitAgentEvent({
        runId: event.runId,
        stream: STREAM,
        sessionKey,
        data: pickEventIds(event),
      });
      if (!outcome.emitted) reportOnce(outcome.reason);
    } catch (error) {
      reportOnce(describeError(error));
    }
  };
  return (events, ownerSession) => {
    // Immediates keep their order.
    runOutsideCalls(() => {
      setImmediate(() => {
        for (const event of events) tell(event, ownerSession);
      });
    });
  };
}

/** Returns the type and the ids of an event, without what it says. */
function pickEventIds({
  type,
  eventId,
  runId,
  sequence,
  nodeId,
  causationId,
}: RunEvent): Record<string, string | number> {
  return {
    type,
    eventId,
    coordinationId: runId,
    sequence,
    ...(nodeId !== undefined && { stepId: nodeId }),
    ...(causationId !== undefined && { causationId }),
  };
}
