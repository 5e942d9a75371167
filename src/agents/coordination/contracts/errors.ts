/** Owns: all error codes, what to do about each, and the exceptions for a failure of the world and for a bug. */

/** Names what a caller can do about an error. Every error code has exactly one. */
export type Recovery =
  | "reload-and-retry"
  | "back-off"
  | "free-disk-space"
  | "restore-backup"
  | "upgrade-plugin"
  | "fix-permissions"
  | "fix-input"
  | "fix-config"
  | "restart"
  | "start-gateway"
  | "report-bug";

interface ErrorCodeEntry {
  readonly recovery: Recovery;
  readonly summary: string;
  /** The sentence that tells the person at the keyboard what to do. */
  readonly advice: string;
}

/** All error codes. `docs/errors.md` holds the same table; a test keeps them equal. */
export const ERROR_CODES = {
  LEDGER_CONFLICT: {
    recovery: "reload-and-retry",
    summary: "another writer appended to the coordination first",
    advice: "Nothing to do: the write is decided again on the newer state.",
  },
  CLAIM_CONFLICT: {
    recovery: "reload-and-retry",
    summary: "another writer claimed a resource first",
    advice: "Nothing to do: the claim is ruled on again with the newer claims.",
  },
  WORKSPACE_CONFLICT: {
    recovery: "reload-and-retry",
    summary: "another writer changed a workspace file first",
    advice: "Nothing to do: the write is made again as the version after it.",
  },
  NOT_OWNER: {
    recovery: "reload-and-retry",
    summary: "another process drives the run now",
    advice: "Nothing to do: the process that took the run over goes on with it.",
  },
  LEDGER_BUSY: {
    recovery: "back-off",
    summary: "the ledger stayed locked for the whole busy timeout",
    advice: "Find the process that holds the ledger open for writing and let it finish or stop it.",
  },
  LEDGER_FULL: {
    recovery: "free-disk-space",
    summary: "the disk that holds the ledger is full",
    advice: "Free space on the disk that holds the ledger; coordination resumes with the next spawn.",
  },
  LEDGER_CORRUPT: {
    recovery: "restore-backup",
    summary: "the ledger file is damaged or is not a ledger",
    advice: "Run `openclaw coordination verify`, keep the file, and move it aside or restore a backup.",
  },
  LEDGER_TOO_NEW: {
    recovery: "upgrade-plugin",
    summary: "the ledger was written by a newer release",
    advice:
      "Upgrade openclaw-coordination, or point it at another ledger. This process changed nothing in it.",
  },
  LEDGER_INCOMPLETE: {
    recovery: "fix-input",
    summary: "the ledger is a copy that has not been completed",
    advice: "Run the same `ledger copy` again, which goes on where it was; or name another ledger.",
  },
  LEDGER_UNAVAILABLE: {
    recovery: "fix-permissions",
    summary: "the ledger cannot be opened, created or written",
    advice:
      "Check that the ledger's folder exists, is on a writable disk and belongs to this user; of a ledger on a server, its address, user and password.",
  },
  LEDGER_NOT_FOUND: {
    recovery: "fix-input",
    summary: "there is no ledger at this place",
    advice: "Enable coordination and spawn a subagent first, or pass `--ledger FILE`.",
  },
  LEDGER_CLOSED: {
    recovery: "restart",
    summary: "the ledger was closed while the call was under way",
    advice: "The gateway is stopping or reloading; the next start reconciles what was open.",
  },
  GATEWAY_REPLACED: {
    recovery: "restart",
    summary: "another process drives coordinations as this gateway now",
    advice:
      "Restart the gateway once the other process is stopped, or give one of the two a `gateway.id` of its own.",
  },
  EVENT_UNREADABLE: {
    recovery: "upgrade-plugin",
    summary: "a stored event has an unknown type or does not match its schema",
    advice: "Run `openclaw coordination verify` to see which event; upgrade if a newer release wrote it.",
  },
  COORDINATION_NOT_FOUND: {
    recovery: "fix-input",
    summary: "no coordination has this id",
    advice: "Run `openclaw coordination list` to see the ids; a unique prefix is enough.",
  },
  RUN_PRUNED: {
    recovery: "fix-input",
    summary: "a run with this id has ended and was pruned from the ledger",
    advice: "Use another id. What the run did is in backups that were made before `ledger prune`.",
  },
  INPUT_INVALID: {
    recovery: "fix-input",
    summary: "the input does not match its schema or breaks a bound",
    advice: "Correct what the message names.",
  },
  CONFIG_INVALID: {
    recovery: "fix-config",
    summary: "the plugin's configuration is not valid",
    advice: "Correct plugins.entries.coordination.config in the OpenClaw configuration.",
  },
  CONFIG_NOT_WRITABLE: {
    recovery: "fix-config",
    summary: "the OpenClaw configuration could not be changed from here",
    advice: "Run `openclaw coordination enable` where OpenClaw is installed, or edit the file by hand.",
  },
  GATEWAY_UNREACHABLE: {
    recovery: "start-gateway",
    summary: "the gateway could not be reached, or did not answer",
    advice:
      "Start it with `openclaw gateway run`; if it runs, check its address and token in the OpenClaw configuration.",
  },
  COORDINATION_OFF: {
    recovery: "fix-config",
    summary: "the gateway runs without coordination",
    advice: "Run `openclaw coordination enable`, and look at `openclaw coordination status`.",
  },
  PLAN_REFUSED: {
    recovery: "fix-input",
    summary: "the plan has problems and was not run",
    advice: "Correct what is named; `openclaw coordination plan validate FILE` names everything at once.",
  },
  REQUEST_REFUSED: {
    recovery: "fix-input",
    summary: "the coordination or step is not in a state that allows the request",
    advice: "Run `openclaw coordination show ID` to see how its steps are.",
  },
  RUNTIME_UNSUPPORTED: {
    recovery: "upgrade-plugin",
    summary: "this Node.js release cannot run the ledger",
    advice: "Use Node.js 24.16 or later, as OpenClaw itself requires.",
  },
  INVARIANT_VIOLATED: {
    recovery: "report-bug",
    summary: "a rule that the code relies on was broken",
    advice: "This is a bug in openclaw-coordination; please report it with the output of `verify --json`.",
  },
} as const satisfies Record<string, ErrorCodeEntry>;

/** The codes of all errors that users see; docs/errors.md says what to do about each. */
export type ErrorCode = keyof typeof ERROR_CODES;

/** The world failed. Branch on `code`, never on the text. */
export class CoordinationError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, detail: string, options?: { cause?: unknown }) {
    super(detail, options);
    this.name = "CoordinationError";
    this.code = code;
  }

  get recovery(): Recovery {
    return ERROR_CODES[this.code].recovery;
  }

  get advice(): string {
    return ERROR_CODES[this.code].advice;
  }
}

/** Our own bug: stop this coordination, record it, never retry it. */
export class InvariantViolation extends CoordinationError {
  constructor(rule: string) {
    super("INVARIANT_VIOLATED", rule);
    this.name = "InvariantViolation";
  }
}

/** Creates the error of input that is wrong, with what is wrong in it. */
export function createInputError(problem: string): CoordinationError {
  return new CoordinationError("INPUT_INVALID", problem);
}

/** Creates the error of an event in a log that cannot be read: which one, and why. */
export function createUnreadableEventError(which: string, why: string): CoordinationError {
  return new CoordinationError("EVENT_UNREADABLE", `${which}: ${why}`);
}

/** Creates the error of an id that was that of a run which is not in the ledger any more. */
export function createPrunedRunError(runId: string): CoordinationError {
  return new CoordinationError("RUN_PRUNED", `${runId} has ended and was pruned from the ledger`);
}

/** Throws when the condition does not hold. @throws InvariantViolation naming the rule */
export function assertInvariant(condition: boolean, rule: string): asserts condition {
  if (!condition) throw new InvariantViolation(rule);
}

/** Throws at the end of a switch that handles every case: no other value can come there. */
export function assertNever(value: never, description: string): never {
  throw new InvariantViolation(`unhandled ${description}: ${JSON.stringify(value)}`);
}

/** True for an error with a code of ours, also one of another copy of this module. */
export function isCoordinationError(error: unknown): error is CoordinationError {
  return error instanceof Error && "code" in error && Object.hasOwn(ERROR_CODES, String(error.code));
}

const AWAY_CODES: ReadonlySet<ErrorCode> = new Set([
  "GATEWAY_UNREACHABLE",
  "COORDINATION_OFF",
  "LEDGER_CLOSED",
  "LEDGER_BUSY",
]);

/**
 * True for an error whose code says that a gateway is away for a while, to restart or to load the plugin again. Who
 * waits may ask it once more.
 */
export function isGatewayAway(error: unknown): error is CoordinationError {
  return isCoordinationError(error) && AWAY_CODES.has(error.code);
}

const OUTAGE_CODES: ReadonlySet<ErrorCode> = new Set([
  "LEDGER_BUSY",
  "LEDGER_FULL",
  "LEDGER_UNAVAILABLE",
  "LEDGER_CLOSED",
]);

/** True for an error whose code says that a ledger cannot be used right now, which says nothing of what it holds. */
export function isLedgerOutage(error: unknown): error is CoordinationError {
  return isCoordinationError(error) && OUTAGE_CODES.has(error.code);
}

/**
 * True for an error that says that one coordination's log is damaged: unreadable, or breaking a rule. A damaged file
 * (`LEDGER_CORRUPT` without a rule that a log broke) is another thing.
 */
export function isLogDamage(error: unknown): error is CoordinationError {
  if (!isCoordinationError(error)) return false;
  if (error.code === "EVENT_UNREADABLE" || error.code === "INVARIANT_VIOLATED") return true;
  return isCoordinationError(error.cause) && error.cause.code === "INVARIANT_VIOLATED";
}

/** Returns the code by which a diagnostic log names an error: its own, or `UNKNOWN` for one that is not ours. */
export function readErrorCode(error: unknown): string {
  return isCoordinationError(error) ? error.code : "UNKNOWN";
}
