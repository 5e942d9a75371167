/** Owns: every limit of the MCP server: messages, results, pages, waiting times and sessions. */
import { WORKFLOW_BOUNDS } from "../../agents/coordination/contracts/workflows/workflow-bounds.ts";

/** Every limit of the MCP server, by name. */
export const MCP_BOUNDS = {
  arguments: { charsMax: WORKFLOW_BOUNDS.bodyBytesMax, depthMax: WORKFLOW_BOUNDS.depthMax },
  /** Bytes of one message over stdio. */
  messageBytesMax: 2 * WORKFLOW_BOUNDS.bodyBytesMax,
  /** Characters of a result's data, which is read as a resource where it is larger, and of a page of a log, but for its last event. */
  resultCharsMax: 200_000,
  toolNameCharsMax: 64,
  /** Tools and resources of one page of a listing. */
  pageMax: 100,
  /** Events of one page of a log. */
  eventsDefault: 100,
  eventsMax: 1_000,
  /** Events that are read in one go. */
  eventsAtOnce: 64,
  runsDefault: 20,
  runsMax: 100,
  waitSecondsMax: 50,
  /** How often the gateway is asked while a call waits for a coordination. */
  pollMs: 1_000,
  /** Progress is told no more often. */
  progressMs: 100,
  callIdCharsMax: 256,
  /** Sessions of one caller, and of all; the one that was idle longest ends for a new one. */
  sessionsOfCallerMax: 64,
  sessionsMax: 1_000,
  sessionIdleMs: 3_600_000,
} as const;
