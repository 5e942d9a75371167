/** Owns: one coordination or workflow run with all that the page draws of it. */
import type { CoordinationId, EpochMs } from "../../../agents/coordination/contracts/ids.ts";
import { hasRunEnded } from "../../../agents/coordination/contracts/workflows/workflow-summary.ts";
import { checkPlan } from "../../../agents/coordination/plan/check-plan.ts";
import type { StepGraph } from "../../../agents/coordination/plan/step-graph.ts";
import {
  readCoordination,
  type CoordinationView,
  type StepView,
} from "../../../agents/coordination/runtime/log/coordination-view.ts";
import type { ReportedLedger } from "../../reports/reported-ledger.ts";
import { textOf } from "../../reports/find-coordination.ts";
import { createShowReport, readDetails, readTimeline } from "../../reports/show-report.ts";
import { findShownOutput } from "../../reports/shown-resource.ts";
import { readTree, withUsageOfTree } from "../../reports/tree.ts";
import type { CoordinationDetail, PlanShape, RunDetail, StepResult } from "../contract/runs.ts";
import { createWorkflow } from "./list-runs.ts";
import { PAGE_BOUNDS } from "./page-bounds.ts";

/** `undefined` for an id that the ledger does not know. @throws CoordinationError as `LedgerStore.read` */
export async function readRunDetail(
  reader: ReportedLedger,
  id: CoordinationId,
  now: EpochMs,
): Promise<RunDetail | undefined> {
  const entry = await reader.entry(id);
  if (!entry) return readWorkflowDetail(reader, id, now);
  const view = await readCoordination(reader, id);
  return view && readCoordinationDetail(reader, view, { sequence: entry.length - 1, now });
}

async function readWorkflowDetail(
  { workflows }: ReportedLedger,
  id: CoordinationId,
  now: EpochMs,
): Promise<RunDetail | undefined> {
  const entry = await workflows.entry(id);
  if (!entry) return undefined;
  const { summary, length } = entry;
  return {
    kind: "run",
    id,
    view: createWorkflow(entry),
    hasEnded: hasRunEnded(summary.status),
    sequence: length - 1,
    atMs: now,
  };
}

async function readCoordinationDetail(
  reader: ReportedLedger,
  view: CoordinationView,
  { sequence, now }: { readonly sequence: number; readonly now: EpochMs },
): Promise<CoordinationDetail> {
  const plan = await readPlanShape(reader, view);
  const tree = await readTree(reader, view, now);
  const billed = withUsageOfTree(view, tree);
  return {
    kind: view.plan ? "plan" : "coordination",
    id: view.coordinationId,
    view: createShowReport(await readDetails(reader, billed)),
    timeline: (await readTimeline(reader, billed, now)).timeline,
    tree,
    ...(plan && { plan }),
    sequence,
    atMs: now,
  };
}

/** Reads the shape of a plan whose text is kept; this release may find fault with what an older one took. */
async function readPlanShape(
  reader: ReportedLedger,
  { plan }: CoordinationView,
): Promise<PlanShape | undefined> {
  const text = plan && (await textOf(reader, plan.content));
  if (!text) return undefined;
  const checked = checkPlan(JSON.parse(text));
  return checked.kind === "refused" ? undefined : createPlanShape(checked.graph);
}

export function createPlanShape({ steps, criticalPath }: StepGraph): PlanShape {
  return {
    criticalPath,
    steps: steps.map(({ stepId, agent, lane, dependsOn, fanIn, timeoutMs }) => {
      return { stepId, agent, lane, dependsOn, fanIn, timeoutMs };
    }),
  };
}

/** `undefined` where the step has no result. @throws CoordinationError as `ContentStore.get` */
export async function readStepResult(
  reader: ReportedLedger,
  step: StepView,
): Promise<StepResult | undefined> {
  const output = findShownOutput(step);
  if (!output) return undefined;
  const text = (await textOf(reader, output)) ?? undefined;
  return {
    stepId: step.stepId,
    text: text?.slice(0, PAGE_BOUNDS.textCharsMax) ?? null,
    sha256: output.sha256,
    bytes: output.bytes,
    isHeld: step.held !== undefined,
    isCut: text !== undefined && text.length > PAGE_BOUNDS.textCharsMax,
  };
}
