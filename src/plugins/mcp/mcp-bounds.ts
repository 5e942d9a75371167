/** Owns: every limit of the MCP server: messages, results, pages, waiting times and sessions. */
import { WORKFLOW_BOUNDS } from "../../agents/coordination/contracts/workflows/workflow-bounds.ts";

/** Every limit of the MCP server, by name. */
export const MCP_BOUNDS = {
  arguments: { charsMax: WORKFLOW_BOUNDS.bodyBytesMax, depthMax: WORKFLOW_BOUNDS.depthMax },
  /** Bytes of one message over stdio. */
  messageBytesMax: 2 * WORKFLOW_BOUNDS.bodyBytesMax,
  /** Characters of a result's data; a larger one is read as a resource. */
  resultCharsMax: 200_000,
  toolNameCharsMax: 64,
  /** Tools and resources of one page of a listing. */
  pageMax: 100,
  /** Events of one page of a log. */
  eventsDefault: 100,
  eventsMax: 1_000,
  runsDefault: 20,
  runsMax: 100,
  waitSecondsMax: 50,
  /** Progress is told no more often. */
  progressMs: 100,
  callIdCharsMax: 256,
  /** Sessions of one caller, and of all; the one that was idle longest ends for a new one. */
  sessionsOfCallerMax: 64,
  sessionsMax: 1_000,
  sessionIdleMs: 3_600_000,
} as const;
