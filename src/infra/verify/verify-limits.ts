/** Owns: every limit on checks of results by programs, files and critics: waiting times, sizes and tries. */

/** Every bound on a check, by name: times in milliseconds, sizes in bytes, texts in UTF-16 code units. */
export const VERIFY_LIMITS = {
  /** A timer may fire so much before its time. */
  earlyMs: 10,
  /** After the deadline, for a program to be killed and its folder to be removed. */
  stopMs: 2_000,
  /** After a program's exit, for the rest of its output: somebody outside of its group may hold the pipe open. */
  drainMs: 500,
  /** For its folder to be removed; the rest is removed behind the answer. */
  removeMs: 1_000,
  /** All output of a program. */
  outputBytesMax: 64 * 1_024 * 1_024,
  /** The line in which a program says more than its exit code. */
  lineBytesMax: 16 * 1_024,
  /** The input of a program, as JSON. */
  inputCharsMax: 4_000_000,
  /** Larger files have no hash here. */
  fileBytesMax: 1_024 * 1_024 * 1_024,
  /** The size of one read. */
  chunkBytes: 256 * 1_024,
  /** The prompt of a critic. Nothing is cut off: the rest might be wrong. */
  promptCharsMax: 600_000,
  /** The answer of a critic. */
  answerCharsMax: 16_000,
  /** How often a critic is asked until its answer can be read. */
  asksMax: 2,
} as const;
