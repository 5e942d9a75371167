/** Owns: every limit on agent programs over the Agent Client Protocol: waiting times, output, what is remembered. */

/** Every bound on an agent process, by name: times in milliseconds, sizes in bytes, texts in UTF-16 code units. */
export const ACP_LIMITS = {
  /** From the start of the process until the prompt is sent. */
  startMs: 30_000,
  /** For the answer of an agent that was told to cancel. All of its stopping has to fit into `BOUNDS.stopAgentMsMax`. */
  cancelMs: 1_500,
  /** For the exit of a process whose input was closed. */
  exitMs: 1_000,
  /** From SIGTERM to SIGKILL. */
  terminateMs: 1_000,
  /** After SIGKILL; a process that is still there counts as unreachable. */
  killMs: 1_000,
  /** One line of output. */
  messageBytesMax: 8 * 1_024 * 1_024,
  /** All output of one attempt. */
  outputBytesMax: 512 * 1_024 * 1_024,
  /** Requests of the agent whose answers it has not taken. */
  openRequestsMax: 256,
  /** Attempts that are remembered after their end. */
  endedMax: 1_000,
  /** Their replies together. */
  endedReplyCharsMax: 16_000_000,
} as const;

export type AcpLimits = { readonly [Name in keyof typeof ACP_LIMITS]: number };
