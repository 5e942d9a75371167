/** Owns: of `fork`: running a plan again in the gateway, from a place in the log of an earlier run of it. */
import { randomUUID } from "node:crypto";
import { CoordinationError, isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { MAY_BE_DONE } from "../../openclaw/host/gateway-call.ts";
import { askByPrefix } from "../ledger/ask-gateway.ts";
import { requestPlan } from "./ask-about-plan.ts";
import type { CliHost } from "../terminal/cli-host.ts";
import { waitForPlanEnd, parseWaitLimit, type WaitOptions } from "./plan-wait.ts";
import { loadRawPolicyFile } from "../files/policy-file.ts";
import { formatPrintable } from "../terminal/printable.ts";
import { formatCount } from "../../../agents/coordination/std/quantities.ts";
import { formatShellArguments, quoteShellWord } from "../../../agents/coordination/std/shell-arguments.ts";
import { parseSequence, writeJson } from "../terminal/run-command.ts";

export interface PlanForkOptions extends WaitOptions {
  readonly from?: string;
  readonly policy?: string;
  readonly as?: string;
  readonly dryRun?: boolean;
}

/** Steps that are named in a line. */
const NAMED_MAX = 12;

/** A coordination as it was typed, and how to find the one in the ledger of this machine that the id is a prefix of. */
interface ForkSource {
  readonly id: string;
  readonly findFullId: () => Promise<string>;
}

/**
 * Has the gateway fork a coordination's plan at an event and prints the fork; with `--wait` shows its progress until
 * it ends, with `--dry-run` nothing is started. A refused plan is printed and sets the exit code. @throws
 * CoordinationError for options that do not fit, and where the gateway refuses
 */
export async function forkCoordination(
  host: CliHost,
  source: ForkSource,
  options: PlanForkOptions,
): Promise<void> {
  const timeoutMs = parseWaitLimit(options);
  if (options.dryRun && options.wait)
    throw new CoordinationError(
      "INPUT_INVALID",
      "--wait: a dry run starts nothing, so there is nothing to wait for",
    );
  if (options.as === "") throw new CoordinationError("INPUT_INVALID", "--as: expected an id, got nothing");
  const payload = await requestFork(host, source, options);
  if (!payload) return;
  const forked = parseForkAnswer(payload);
  const head = renderForkSummary(host, forked);
  if (options.wait) await waitForPlanEnd(host, forked, { options, timeoutMs, head });
  else if (options.json) await writeJson(host, { ok: true, ...forked });
  else await host.stdout.write(head);
}

/**
 * Asks the gateway for the fork; `undefined` when it was refused. The id is chosen here, so that it can be asked for
 * again where the answer is lost.
 */
async function requestFork(
  host: CliHost,
  { id, findFullId }: ForkSource,
  options: PlanForkOptions,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const forkId = options.as ?? (options.dryRun ? undefined : `co-${randomUUID()}`);
  const forkParams = { ...(await readForkParams(options)), ...(forkId && { forkId }) };
  const askFor = (coordinationId: string) => {
    const params = { coordinationId, ...forkParams };
    return requestPlan(host, { method: "coordination.plan.fork", params, options });
  };
  try {
    return await askByPrefix(id, askFor, findFullId);
  } catch (error) {
    if (!isCoordinationError(error) || !forkId || !error.message.includes(MAY_BE_DONE)) throw error;
    const again = `ask again with --as ${quoteShellWord(forkId)}: then it is not run twice`;
    throw new CoordinationError(error.code, `${error.message}; ${again}`, { cause: error });
  }
}

async function readForkParams({ from: place, policy, dryRun }: PlanForkOptions): Promise<object> {
  const from = parseSequence(place, "--from");
  return {
    ...(from !== undefined && { from }),
    ...(policy !== undefined && { policy: await loadRawPolicyFile(policy) }),
    ...(dryRun && { preview: true }),
  };
}

/** The fork of a plan, or the preview of it. */
interface ForkedPlan {
  readonly coordinationId: string;
  readonly forkedFrom: { readonly coordinationId: string; readonly sequence: number };
  readonly steps: number;
  readonly carried: readonly string[];
  readonly anew: readonly string[];
  readonly replay: boolean;
  readonly preview: boolean;
}

function parseForkAnswer(payload: Readonly<Record<string, unknown>>): ForkedPlan {
  const { coordinationId, forkedFrom, steps, carried, anew, replay, preview } = payload;
  const { coordinationId: source, sequence } = (forkedFrom ?? {}) as Record<string, unknown>;
  return {
    coordinationId: String(coordinationId),
    forkedFrom: { coordinationId: String(source), sequence: Number(sequence) },
    steps: Number(steps),
    carried: filterTexts(carried),
    anew: filterTexts(anew),
    replay: replay === true,
    preview: preview === true,
  };
}

function filterTexts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((text) => typeof text === "string") : [];
}

function renderForkSummary({ program, stdout }: CliHost, forked: ForkedPlan): string {
  const { unicode } = stdout.terminal;
  const { forkedFrom, carried, anew, replay, preview } = forked;
  const id = formatPrintable(forked.coordinationId, unicode);
  const source = formatPrintable(forkedFrom.coordinationId, unicode);
  const outcome = preview ? "would run" : replay ? "forked before, not run twice:" : "running";
  const describeNames = (ids: readonly string[]): string => {
    const more = ids.length > NAMED_MAX ? `, and ${ids.length - NAMED_MAX} more` : "";
    return ids.length === 0 ? "" : `: ${formatPrintable(ids.slice(0, NAMED_MAX).join(", "), unicode)}${more}`;
  };
  const lines = [
    `${outcome} ${preview ? "a fork" : `${id}, a fork`} of ${source} from ${forkedFrom.sequence}`,
    `  kept   ${formatCount(carried.length, "result")}${describeNames(carried)}`,
    `  anew   ${formatCount(anew.length, "step")}${describeNames(anew)}`,
    preview
      ? "Nothing was done: leave out --dry-run to run it"
      : `See ${program} timeline ${formatPrintable(formatShellArguments(forked.coordinationId), unicode)}`,
  ];
  return `${lines.join("\n")}\n`;
}
