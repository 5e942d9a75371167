/** Owns: every limit on workflow definitions, their runs, and the memory, workspaces and requests kept with them. */

/** Every limit on workflows and their runs, by name. Sizes are in UTF-16 code units for text. */
export const WORKFLOW_BOUNDS = {
  nameCharsMax: 256,
  textCharsMax: 200_000,
  /** One event's payload. */
  eventCharsMax: 1_200_000,
  depthMax: 40,
  /** Bounds the characters of all values of one run in its log: it is read, folded and answered as a whole. */
  runCharsMax: 16_000_000,
  /** One request's body, in bytes. */
  bodyBytesMax: 1_000_000,
  definitionCharsMax: 1_000_000,
  nodesMax: 1_000,
  edgesMax: 5_000,
  variablesMax: 500,
  workersPerDecisionMax: 100,
  tagsMax: 100,
  tagCharsMax: 256,
  metadataCharsMax: 50_000,
  /** How long a process that drives runs may be silent before others take them over, unless the operator says otherwise. */
  leaseMs: 10_000,
  /** Runs within runs. */
  nestingMax: 16,
  /** Forks of forks. */
  forksMax: 64,
  /** How long after its end a run can be forked, unless the operator says otherwise. */
  replayRetentionMs: 7 * 24 * 3_600_000,
  /** Node executions of one run. */
  nodeExecutionsMax: 1_000,
  runDurationMsMax: 600_000,
  loopIterationsMax: 100,
  loopbackIterations: 5,
  memoryEntryBytesMax: 65_536,
  memoryListMax: 1_000,
  /** Bounds a file of a workspace; with the escapes of JSON it fits into a request's body. */
  workspaceFileBytesMax: 131_072,
  /** Files of a workspace that are there at once. */
  workspaceFilesMax: 500,
  /** Versions of a file whose contents are kept. */
  workspaceVersionsMax: 50,
  /** Versions that are looked at for what a workspace held before an event. */
  workspaceScanMax: 20_000,
  /** Events that each turn of a supervisor is told, the last ones before it. */
  transcriptWindow: 200,
  /** To which an operator may set it. */
  transcriptWindowMax: 2_000,
  interruptTokenMs: 30 * 60_000,
  idempotencyKeyCharsMax: 255,
  idempotencyKeptMs: 24 * 3_600_000,
} as const;
