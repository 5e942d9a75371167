/** Owns: every limit of the OpenWOP host's HTTP server: requests, answers, streams, polling and timeouts. */
import { WORKFLOW_BOUNDS } from "../../../agents/coordination/contracts/workflows/workflow-bounds.ts";

/** Every limit of the HTTP face, by name. */
export const HTTP_BOUNDS = {
  bodyBytesMax: WORKFLOW_BOUNDS.bodyBytesMax,
  depthMax: WORKFLOW_BOUNDS.depthMax,
  /** Values of a body in all: each costs time wherever the body, and the run that it becomes, is looked at. */
  bodyValuesMax: 50_000,
  /** All headers of a request together. */
  headerBytesMax: 16_384,
  /** Characters of an id in a path. */
  idCharsMax: 256,
  tokenCharsMax: 4_096,
  bulkRunsMax: 100,
  /** Events of one read of a log. */
  pageEvents: 64,
  /** Events of one answer that is not a stream. */
  answerEventsMax: 10_000,
  bufferMsMax: 5_000,
  /** Events of a batch before it is sent early. */
  batchEventsMax: 512,
  batchCharsMax: 262_144,
  pollSecondsDefault: 30,
  pollSecondsMax: 60,
  keepAliveMs: 15_000,
  /** Keep-alives that a client may leave unread before its stream is dropped. */
  unreadKeepAlivesMax: 8,
  streamsMax: 5_000,
  /** For how long a request with an idempotency key counts as under way. */
  requestLeaseMs: 60_000,
  tracestateCharsMax: 512,
  /** A request must have arrived after. */
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  timeoutCheckMs: 5_000,
  keepAliveTimeoutMs: 65_000,
  connectionsMax: 10_000,
  /** How long a stop waits for requests that are under way. */
  stopMs: 5_000,
  stopCheckMs: 20,
} as const;
