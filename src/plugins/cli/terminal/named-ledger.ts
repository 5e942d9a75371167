/** Owns: advice about a ledger that was named to a command: the advice of the codes is about the gateway's. */
import { CoordinationError, type ErrorCode } from "../../../agents/coordination/contracts/errors.ts";
import { quoteShellWord } from "../../../agents/coordination/std/shell-arguments.ts";

interface NamedLedger {
  readonly program: string;
  /** As it was typed; absent where the gateway's is meant. */
  readonly ledger: string | undefined;
}

const CODES: ReadonlySet<ErrorCode> = new Set(["LEDGER_NOT_FOUND", "LEDGER_CORRUPT"]);

/**
 * Returns an error with advice about the ledger that `--ledger` names, where the usual advice of its code is about the
 * gateway's; else the error itself.
 */
export function attachLedgerAdvice(
  error: CoordinationError,
  { program, ledger }: NamedLedger,
): CoordinationError {
  if (ledger === undefined || !CODES.has(error.code)) return error;
  // An address may have a password in it.
  const place = ledger.includes("://") ? "URL" : quoteShellWord(ledger);
  const verify = `${program} verify --ledger ${place}`;
  return new NamedLedgerError(error, {
    LEDGER_NOT_FOUND: "Check the path or address of the ledger that you named.",
    LEDGER_CORRUPT: `Run \`${verify}\`, keep the file, and name a backup.`,
  });
}

class NamedLedgerError extends CoordinationError {
  readonly #advice: string;

  constructor(error: CoordinationError, advice: Readonly<Partial<Record<ErrorCode, string>>>) {
    super(error.code, error.message, { cause: error.cause });
    this.#advice = advice[error.code] ?? error.advice;
  }

  override get advice(): string {
    return this.#advice;
  }
}
