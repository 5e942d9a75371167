/**
 * Owns: the sentences about what went wrong with an agent process.
 *
 * They are kept in the ledger, so they carry nothing that the agent wrote: neither its standard error nor the text of
 * its error answers, which may quote a prompt or a secret. Codes and numbers only.
 */
import { RequestError } from "@agentclientprotocol/sdk";

/** Says in a sentence what is wrong with an agent. */
export class AgentFailure extends Error {
  override readonly name = "AgentFailure";
}

/** https://www.jsonrpc.org/specification#error_object, and the codes that ACP adds. */
const MEANINGS: Readonly<Record<number, string>> = {
  [-32700]: "parse error",
  [-32600]: "invalid request",
  [-32601]: "method not found",
  [-32602]: "invalid params",
  [-32603]: "internal error",
  [-32800]: "request cancelled",
  [-32000]: "authentication required",
  [-32002]: "resource not found",
};

/**
 * Returns an agent's error answer to a request as an `AgentFailure` with its code. Any other error is returned as it
 * is: the end of a connection is for the exit to explain.
 */
export function convertRequestError(method: string, error: unknown): unknown {
  if (!(error instanceof RequestError)) return error;
  const meaning = MEANINGS[error.code];
  return new AgentFailure(
    `The agent answered ${method} with error ${error.code}${meaning ? ` (${meaning})` : ""}.`,
  );
}

/** Returns the sentence why an agent did not answer: its own fault where that is known, else how its process ended. */
export function describeMissingAnswer(error: unknown, exit: ProcessExit | undefined): string {
  if (error instanceof AgentFailure) return error.message;
  if (!exit || exit.forced) return "The agent closed its output before it answered.";
  return exit.signal
    ? `The agent's process was ended by ${exit.signal} before it answered.`
    : `The agent's process ended with exit code ${exit.code ?? "unknown"} before it answered.`;
}

/** How the process of an agent ended. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** We signalled it. */
  readonly forced: boolean;
}
