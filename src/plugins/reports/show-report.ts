/** Owns: one coordination with all that its log and what lies beside it say, as `show --json` prints it. */
import type { EpochMs } from "../../agents/coordination/contracts/ids.ts";
import type {
  CoordinationView,
  QuestionView,
  StepView,
} from "../../agents/coordination/runtime/log/coordination-view.ts";
import type { ReportedLedger } from "./reported-ledger.ts";
import { readEarlierAttempts } from "./attempts.ts";
import { readChangeLog, type ChangeLog, type ConflictRecord } from "./conflict-log.ts";
import {
  addEffectivePrivileges,
  readEffectivePrivileges,
  type EffectivePrivilege,
  type EffectivePrivileges,
} from "./effective-privileges.ts";
import { readKeptText } from "./find-coordination.ts";
import { readGatewayField, type GatewayReport } from "./gateway-report.ts";
import { readGateLog, type GateLog, type RevisionRecord, type VerdictRecord } from "./gate-log.ts";
import {
  createProgressField,
  readProgressReports,
  type ProgressByStep,
  type ProgressReport,
} from "./progress-report.ts";
import { createTimeline, type Timeline } from "./timeline.ts";

/** The details of a coordination besides its folded state. */
export interface CoordinationDetails {
  readonly view: CoordinationView;
  readonly objective: string | null;
  readonly log: ChangeLog;
  readonly gates: GateLog;
  readonly progress: ProgressByStep;
  readonly privileges: EffectivePrivileges;
  /** Where several gateways share the ledger. */
  readonly gateway?: GatewayReport;
}

/** A step as `show --json` prints it. */
export type StepReport = Omit<StepView, "progress"> & {
  readonly effectivePrivilege?: readonly EffectivePrivilege[];
  readonly progress?: ProgressReport | StepView["progress"];
};

export interface ShowReport extends Omit<
  CoordinationView,
  "steps" | "escalations" | "conflicts" | "objective" | "gateway"
> {
  /** Where several gateways share the ledger. */
  readonly gateway?: GatewayReport;
  readonly steps: readonly StepReport[];
  readonly escalations: readonly (QuestionView & { readonly status: "open" | "closed" })[];
  readonly conflicts: readonly ConflictRecord[];
  readonly changes: number;
  readonly objective: string | null;
  /** Verdicts of every attempt; the steps have those of what is held now. */
  readonly verdicts?: readonly VerdictRecord[];
  readonly revisions?: readonly RevisionRecord[];
}

/**
 * Reads what `show` tells beside `view`, whose usage has that of plans in it: objective, conflicts, gates, progress,
 * privileges and gateways. @throws CoordinationError as `LedgerStore.read`
 */
export async function readCoordinationDetails(
  reader: ReportedLedger,
  view: CoordinationView,
): Promise<CoordinationDetails> {
  return {
    view,
    objective: await readKeptText(reader, view.objective),
    log: await readChangeLog(reader, view.coordinationId),
    gates: await readGateLog(reader, view.coordinationId),
    progress: await readProgressReports(reader, view),
    privileges: await readEffectivePrivileges(reader, view),
    ...(await readGatewayField(reader, view)),
  };
}

/** Returns the report of a coordination that `show --json` prints, from details that were read. */
export function createShowReport(details: CoordinationDetails): ShowReport {
  const { view, objective, log, gates, progress, privileges, gateway } = details;
  const { conflicts, changes } = log;
  const { gateway: _, ...folded } = view;
  return {
    ...folded,
    ...(gateway && { gateway }),
    steps: addEffectivePrivileges(view.steps, privileges).map((step) => ({
      ...step,
      ...createProgressField(step.stepId, progress),
    })),
    escalations: view.escalations.map(addQuestionStatus),
    conflicts,
    changes,
    objective,
    ...createGateFields(gates),
  };
}

/**
 * Reads what `timeline --json` prints of `view`, whose usage has that of plans in it, and returns it with the logs
 * that it was made from. @throws CoordinationError as `LedgerStore.read`
 */
export async function readCoordinationTimeline(
  reader: ReportedLedger,
  view: CoordinationView,
  now: EpochMs,
): Promise<{ readonly timeline: Timeline; readonly gates: GateLog; readonly log?: ChangeLog }> {
  const attempts = await readEarlierAttempts(reader, view);
  const log = view.conflicts.length > 0 ? await readChangeLog(reader, view.coordinationId) : undefined;
  const gates = await readGateLog(reader, view.coordinationId);
  const progress = await readProgressReports(reader, view);
  const past = { attempts, gates, progress, ...(log && { log }), ...(await readGatewayField(reader, view)) };
  const timeline = createTimeline(view, now, past);
  return { timeline, gates, ...(log && { log }) };
}

/** Returns the question with whether it is open, which readers of JSON need not work out. */
function addQuestionStatus(question: QuestionView): QuestionView & { readonly status: "open" | "closed" } {
  return { ...question, status: question.closed ? "closed" : "open" };
}

function createGateFields({ verdicts, revisions }: GateLog): Partial<ShowReport> {
  return { ...(verdicts.length > 0 && { verdicts }), ...(revisions.length > 0 && { revisions }) };
}
