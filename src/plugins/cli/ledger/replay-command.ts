/** Owns: `replay`: whether a history follows from what was told, and what would have been decided under another policy. */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import { WORKFLOW_BOUNDS } from "../../../agents/coordination/contracts/workflows/workflow-bounds.ts";
import { replayCoordination } from "../../../agents/coordination/runtime/replay-coordination.ts";
import { checkReplay } from "../../../agents/coordination/runtime/workflow-host/check-replay.ts";
import type { LedgerReader } from "../../ledger-reader.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { withLedger } from "./open-ledger.ts";
import { resolveEitherId } from "../../reports/find-coordination.ts";
import { parsePolicyFile } from "../files/policy-file.ts";
import { renderReplay, type ReplayOutcome } from "./replay-text.ts";
import {
  parseSequence,
  parseShare,
  runCommand,
  withExamples,
  withReaderOptions,
  writeJson,
  writeLines,
  type ReaderOptions,
} from "../terminal/run-command.ts";

interface ReplayOptions extends ReaderOptions {
  readonly from?: string;
  readonly to?: string;
  readonly policy?: string;
  readonly confidenceFloor?: string;
  readonly escalationThreshold?: string;
}

/** The options that `serve` has too, by their names on the command line, with its defaults. */
const SERVE_SHARES = { "--confidence-floor": "0.5", "--escalation-threshold": "0.7" } as const;

/**
 * Adds the command `replay`, which decides a recorded coordination or workflow run again from its log, and exits with
 * 1 where it differs.
 */
export function addReplayCommand(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("replay"))
    .description(
      "Decide a coordination or a workflow run again from its log, nothing executed; exit code 1 where it differs",
    )
    .argument("<id>", "the id of a coordination or of a workflow run, or a unique prefix of one")
    .option("--from <sequence>", "take what comes before as it is recorded")
    .option("--to <sequence>", "stop before this event, behind the decision that it belongs to")
    .option(
      "--policy <file>",
      "tell what would have been decided under this policy (JSON or YAML; - reads it from stdin)",
    )
    .option("--confidence-floor <share>", "of a workflow run: as `serve` had it (default: 0.5)")
    .option("--escalation-threshold <share>", "of a workflow run: as `serve` had it (default: 0.7)")
    .action((id: string, options: ReplayOptions) =>
      runCommand(host, options, () => replayAndReport(host, id, options)),
    );
  withExamples(command, host, [
    "replay co-1f0c",
    "replay co-1f0c --from 120 --to 400",
    "replay co-1f0c --policy stricter.yaml",
    "replay co-1f0c --from 120 --policy stricter.yaml --json",
    "replay run-6f1c2f6e-... --ledger ./runs.sqlite",
  ]);
}

async function replayAndReport(host: CliHost, id: string, options: ReplayOptions): Promise<void> {
  await withLedger(host, options, async (reader) => {
    const beganAtMs = host.now();
    const { kind, id: fullId } = await resolveEitherId(reader, id);
    const replayOne = kind === "run" ? replayWorkflowRun : replayCoordinationLog;
    const outcome = await replayOne(reader, fullId, options);
    if (outcome.replayed.difference) host.failWith(1);
    const tookMs = host.now() - beganAtMs;
    if (options.json) await writeJson(host, createReplayJson(outcome, tookMs));
    else await writeLines(host, renderReplay(outcome, tookMs, host.stdout.terminal));
  });
}

async function replayCoordinationLog(
  reader: LedgerReader,
  id: CoordinationId,
  options: ReplayOptions,
): Promise<ReplayOutcome> {
  const { confidenceFloor, escalationThreshold } = options;
  assertNotGiven("workflow runs, and this is a coordination", {
    "--confidence-floor": confidenceFloor,
    "--escalation-threshold": escalationThreshold,
  });
  const from = parseSequence(options.from, "--from") ?? 0;
  const to = parseSequence(options.to, "--to");
  if (to !== undefined && to <= from)
    throw new CoordinationError("INPUT_INVALID", `--to: expected a place behind ${from}, got ${to}`);
  const policy = options.policy === undefined ? undefined : await parsePolicyFile(options.policy);
  const replayed = await replayCoordination(reader, id, {
    from,
    ...(to !== undefined && { to }),
    ...(policy && { policy }),
  });
  return { kind: "coordination", replayed };
}

async function replayWorkflowRun(
  { workflows }: LedgerReader,
  runId: CoordinationId,
  options: ReplayOptions,
): Promise<ReplayOutcome> {
  const { policy, to, confidenceFloor, escalationThreshold } = options;
  assertNotGiven("coordinations, and this is a workflow run", { "--policy": policy, "--to": to });
  const replayed = await checkReplay(workflows, runId, {
    from: parseSequence(options.from, "--from") ?? 0,
    settings: {
      hostId: "replay",
      confidenceFloor: parseServeShare(confidenceFloor, "--confidence-floor"),
      escalationThreshold: parseServeShare(escalationThreshold, "--escalation-threshold"),
      nodeExecutionsMax: WORKFLOW_BOUNDS.nodeExecutionsMax,
      loopIterationsMax: WORKFLOW_BOUNDS.loopIterationsMax,
      runDurationMsMax: WORKFLOW_BOUNDS.runDurationMsMax,
    },
    loadPlay: async () => (await (await import("../../load-conformance.ts")).loadConformance()).nodePlay,
  });
  return { kind: "run", replayed };
}

function parseServeShare(value: string | undefined, option: keyof typeof SERVE_SHARES): number {
  return parseShare(value ?? SERVE_SHARES[option], option);
}

/** @throws CoordinationError `INPUT_INVALID` where one of the options is given, which are for something else. */
function assertNotGiven(subject: string, options: Readonly<Record<string, string | undefined>>): void {
  const [option] = Object.entries(options).find(([, value]) => value !== undefined) ?? [];
  if (option !== undefined) throw new CoordinationError("INPUT_INVALID", `${option} is for ${subject}`);
}

function createReplayJson({ kind, replayed }: ReplayOutcome, tookMs: number): object {
  const { difference, from, to, ...rest } = replayed;
  const derived = Math.max(0, to - from);
  return {
    kind,
    ...rest,
    from,
    to,
    equal: difference === undefined,
    ...(difference && { difference }),
    eventsPerSecond: tookMs > 0 ? Math.round((derived * 1_000) / tookMs) : null,
  };
}
