/** Owns: `fork`: going on anew from a place in a recorded history; and of it, making a workflow run out of the events of another one. */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { CoordinationError, isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { WORKFLOW_BOUNDS } from "../../../agents/coordination/contracts/workflows/workflow-bounds.ts";
import { dropTrailingSlashes } from "../../../agents/coordination/std/foreign-text.ts";
import { formatShellArguments } from "../../../agents/coordination/std/shell-arguments.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { forkCoordination, type PlanForkOptions } from "../plans/fork-plan-command.ts";
import { withLedger } from "../ledger/open-ledger.ts";
import { resolveEitherId } from "../../reports/find-coordination.ts";
import { withWaitOptions } from "../plans/plan-wait.ts";
import { formatPrintable } from "../terminal/printable.ts";
import {
  parseChoice,
  parseSequence,
  runCommand,
  withExamples,
  withReaderOptions,
  writeJson,
  writeLines,
  type ReaderOptions,
} from "../terminal/run-command.ts";

interface ForkOptions extends ReaderOptions, PlanForkOptions {
  readonly mode?: string;
  readonly configurable?: string;
  readonly url?: string;
  readonly token?: string;
  readonly key?: string;
}

const MODES = ["branch", "replay"] as const;
const ANSWER_MS = 30_000;
const URL_DEFAULT = "http://127.0.0.1:4096";

/** By the names under which the parser has their values. */
type OptionFlags = Partial<Record<keyof ForkOptions, string>>;
const PLAN_FLAGS: OptionFlags = {
  policy: "--policy",
  as: "--as",
  dryRun: "--dry-run",
  wait: "--wait",
  timeout: "--timeout",
};
const RUN_FLAGS: OptionFlags = {
  mode: "--mode",
  configurable: "--configurable",
  url: "--url",
  token: "--token",
  key: "--key",
};

/** Another ledger may have another plan under the same id. */
const LEDGER_OF_GATEWAY =
  "a fork of a coordination goes through the gateway, which has a ledger of its own; leave --ledger out";

/** Adds the command `fork`, which goes on anew from an event of a recorded plan or workflow run. */
export function addForkCommand(parent: CommandGroup, host: CliHost): void {
  const command = withWaitOptions(withReaderOptions(parent.command("fork")))
    .description(
      "Go on anew from an event of a recorded plan or workflow run; what came before it is kept, not repeated",
    )
    .argument("<id>", "the id of a coordination or of a workflow run, or a unique prefix of one")
    .option(
      "--from <sequence>",
      "the first event that is not the source's (of a plan default: behind the last)",
    )
    .option("--policy <file>", "of a plan: what holds in place of what it says (JSON or YAML; - for stdin)")
    .option("--as <id>", "of a plan: the id of the fork; the same id again is the same fork")
    .option("--dry-run", "of a plan: only tell what would be kept and what be done anew")
    .option(
      "--mode <mode>",
      "of a workflow run: branch (default) goes on anew, replay derives the recorded run again",
    )
    .option("--configurable <json>", "of a workflow run: options in place of the source's, for a branch")
    .option("--url <url>", `of a workflow run: where its host answers (default: ${URL_DEFAULT})`)
    .option("--token <token>", "of a workflow run: bearer token (default: OPENWOP_API_KEY)")
    .option("--key <key>", "of a workflow run: the same key again within a day is the same fork")
    .action((id: string, options: ForkOptions) =>
      runCommand(host, options, () => forkPlanOrRun(host, id, options)),
    );
  withExamples(command, host, [
    "fork release-notes-2026-11 --wait",
    "fork release-notes-2026-11 --from 42 --policy stricter.yaml --dry-run",
    "fork run-6f1c2f6e-... --from 12",
    `fork run-6f1c2f6e-... --from 12 --configurable '{"temperature":0}'`,
    "fork run-6f1c2f6e-... --mode replay --url http://127.0.0.1:18789/coordination/openwop",
  ]);
}

async function forkPlanOrRun(host: CliHost, id: string, options: ForkOptions): Promise<void> {
  const source = await findSource(host, id, options);
  if (source.kind === "run") {
    assertNoFlag(findGivenFlag(options, PLAN_FLAGS), "it is for coordinations, and this is a workflow run");
    return requestRunFork(host, await source.findFullId(), options);
  }
  const why =
    options.mode === "replay"
      ? `a coordination is replayed by \`${host.program} replay ${formatShellArguments(id)}\``
      : "it is for workflow runs, and this is a coordination";
  assertNoFlag(findGivenFlag(options, RUN_FLAGS), why);
  assertNoFlag(findGivenFlag(options, { ledger: "--ledger" }), LEDGER_OF_GATEWAY);
  return forkCoordination(host, { id, findFullId: source.findFullId }, options);
}

/** The kind of the run that is to be forked, and the means to find its whole id. */
interface SourceToFork {
  readonly kind: "run" | "coordination";
  /** Fails for an id that several here begin with: the gateway may have a coordination with just this id. */
  readonly findFullId: () => Promise<string>;
}

/**
 * Returns whether the id is a run's or a coordination's: by the ledger, else by the given options or a leading `run-`.
 * Throws for an empty id, a prefix of several runs, or a coordination in a ledger that was named.
 */
async function findSource(host: CliHost, id: string, options: ForkOptions): Promise<SourceToFork> {
  try {
    const { kind, id: fullId } = await withLedger(host, options, (reader) => resolveEitherId(reader, id));
    return { kind, findFullId: () => Promise.resolve(fullId) };
  } catch (error) {
    if (!isCoordinationError(error)) throw error;
    const isPlan = findGivenFlag(options, PLAN_FLAGS) !== undefined;
    const isRun = !isPlan && (findGivenFlag(options, RUN_FLAGS) !== undefined || id.startsWith("run-"));
    const isSeveral = error.code === "INPUT_INVALID";
    // Whoever names a ledger does not ask for a coordination that only the gateway's has.
    if (id === "" || (isRun ? isSeveral : options.ledger !== undefined)) throw error;
    const findFullId = () => (isSeveral ? Promise.reject(error) : Promise.resolve(id));
    return { kind: isRun ? "run" : "coordination", findFullId };
  }
}

/** Returns the flag, like `--wait`, of the first of these options that was given; `undefined` where none was. */
function findGivenFlag(options: ForkOptions, flags: OptionFlags): string | undefined {
  return Object.entries(flags).find(([name]) => options[name as keyof ForkOptions] !== undefined)?.[1];
}

function assertNoFlag(flag: string | undefined, why: string): void {
  if (flag !== undefined) throw new CoordinationError("INPUT_INVALID", `${flag}: ${why}`);
}

async function requestRunFork(host: CliHost, id: string, options: ForkOptions): Promise<void> {
  const mode = parseChoice(options.mode ?? "branch", "--mode", MODES);
  if (mode === "branch" && options.from === undefined)
    throw new CoordinationError("INPUT_INVALID", "--from: a branch begins at an event; name its sequence");
  const fromSeq = parseSequence(options.from, "--from");
  const body = { mode, ...(fromSeq !== undefined && { fromSeq }), ...parseOverlay(options) };
  const forked = await postFork(options, `/v1/runs/${encodeURIComponent(id)}:fork`, body);
  if (options.json) await writeJson(host, forked);
  else {
    const print = (value: string): string => formatPrintable(value, host.stdout.terminal.unicode);
    const runId = typeof forked["runId"] === "string" ? forked["runId"] : "?";
    await writeLines(host, [
      `${print(runId)}  a ${mode} of ${print(id)}`,
      `See it with: ${host.program} runs ${print(formatShellArguments(runId))}`,
    ]);
  }
}

const configurableSchema = z.record(z.string(), z.json());

function parseOverlay({ configurable }: ForkOptions): { runOptionsOverlay?: object } {
  if (configurable === undefined) return {};
  const parsed = configurableSchema.safeParse(parseJsonOrNone(configurable));
  if (parsed.success) return { runOptionsOverlay: { configurable: parsed.data } };
  throw new CoordinationError("INPUT_INVALID", "--configurable: expected a JSON object");
}

function parseJsonOrNone(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The advice of these codes is for the gateway. */
class ForkError extends CoordinationError {
  override get advice(): string {
    return this.code === "GATEWAY_UNREACHABLE"
      ? "Start `openclaw-coordination serve`, or say with --url where the host answers."
      : "Run `openclaw coordination runs RUN` to see the events of the run; docs/openwop.md says what can be forked.";
  }
}

/** The host does not know the token, or lets whoever has it make no forks. */
class ForkForbidden extends CoordinationError {
  override get advice(): string {
    return "Give a token that the host accepts with --token, or in OPENWOP_API_KEY.";
  }
}

/** The host may have the request, and it is not known what became of it. */
class UnansweredFork extends CoordinationError {
  readonly #key: string;

  constructor(reason: string, key: string, cause?: unknown) {
    super("GATEWAY_UNREACHABLE", `${reason}; the fork may have been made all the same`, { cause });
    this.#key = key;
  }

  override get advice(): string {
    return `Look for it with \`openclaw coordination runs\`, or ask again with \`--key ${this.#key}\`, which makes no second fork.`;
  }
}

const refusalSchema = z.object({ error: z.string(), message: z.string() });

async function postFork(
  { url = URL_DEFAULT, token = process.env["OPENWOP_API_KEY"], ...options }: ForkOptions,
  path: string,
  body: object,
): Promise<Readonly<Record<string, unknown>>> {
  const key = parseIdempotencyKey(options);
  const response = await fetch(`${dropTrailingSlashes(url)}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "idempotency-key": key,
      ...(token && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(ANSWER_MS),
    redirect: "error",
  }).catch((cause: unknown) => {
    throw canRequestHaveArrived(cause)
      ? new UnansweredFork(`no answer came from the host at ${url}`, key, cause)
      : new ForkError("GATEWAY_UNREACHABLE", `no OpenWOP host answers at ${url}`, { cause });
  });
  const answer: unknown = await response.json().catch(() => undefined);
  if (response.ok && typeof answer === "object" && answer !== null) return { ...answer };
  throw createAnswerError(response, answer, { url, key });
}

/** Creates the error for an answer that has no run: refused, or not known whether the fork was made. */
function createAnswerError(
  { ok: isOk, status }: Response,
  answer: unknown,
  { url, key }: { readonly url: string; readonly key: string },
): CoordinationError {
  const { data: refusal } = refusalSchema.safeParse(answer);
  const why = refusal && `${refusal.message} (${refusal.error})`;
  // A host that failed does not know whether it made the fork, whatever its answer looks like.
  if (isOk || status >= 500) {
    const reason = `${url} answered with status ${status} and no run`;
    return new UnansweredFork(why === undefined ? reason : `${reason}: ${why}`, key);
  }
  const Refusal = status === 401 || status === 403 ? ForkForbidden : ForkError;
  return new Refusal("REQUEST_REFUSED", `the host refused: ${why ?? `status ${status}`}`);
}

function parseIdempotencyKey({ key = randomUUID() }: ForkOptions): string {
  const max = WORKFLOW_BOUNDS.idempotencyKeyCharsMax;
  if (key.length <= max && /^[\w.:-]+$/u.test(key)) return key;
  throw new CoordinationError(
    "INPUT_INVALID",
    `--key: expected 1 to ${max} letters, digits, dots, colons, hyphens or underscores`,
  );
}

/** By the codes of sockets and of `fetch` for a connection that ended, or stood still, after it was there. */
const LOST_CODES: ReadonlySet<unknown> = new Set([
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "UND_ERR_BODY_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_SOCKET",
]);

/** True where the answer was lost or did not come in time, so that the host may have the request. */
function canRequestHaveArrived(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = (error.cause ?? {}) as { readonly code?: unknown };
  return error.name === "TimeoutError" || LOST_CODES.has(code);
}
