/** Owns: one coordination or workflow run with all that the page draws of it. */
import type { CoordinationId, EpochMs } from "../../../agents/coordination/contracts/ids.ts";
import { hasRunEnded } from "../../../agents/coordination/contracts/workflows/workflow-summary.ts";
import { checkPlan } from "../../../agents/coordination/plan/check-plan.ts";
import type { StepGraph } from "../../../agents/coordination/plan/step-graph.ts";
import {
  readCoordinationView,
  type CoordinationView,
  type StepView,
} from "../../../agents/coordination/runtime/log/coordination-view.ts";
import type { ReportedLedger } from "../../reports/reported-ledger.ts";
import { readKeptText } from "../../reports/find-coordination.ts";
import {
  createShowReport,
  readCoordinationDetails,
  readCoordinationTimeline,
} from "../../reports/show-report.ts";
import { findShownOutput } from "../../reports/shown-resource.ts";
import { readAgentTree, withUsageOfTree } from "../../reports/tree.ts";
import type { CoordinationDetail, PlanShape, RunDetail, StepResult } from "../contract/runs.ts";
import { createWorkflowListing } from "./list-runs.ts";
import { PAGE_BOUNDS } from "./page-bounds.ts";

/**
 * Returns a coordination or workflow run with all that the page draws of it; `undefined` for an id that the ledger
 * does not know. @throws CoordinationError as `LedgerStore.read`
 */
export async function readRunDetail(
  reader: ReportedLedger,
  id: CoordinationId,
  now: EpochMs,
): Promise<RunDetail | undefined> {
  const entry = await reader.entry(id);
  if (!entry) return readWorkflowDetail(reader, id, now);
  const view = await readCoordinationView(reader, id);
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
    view: createWorkflowListing(entry),
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
  const tree = await readAgentTree(reader, view, now);
  const billed = withUsageOfTree(view, tree);
  return {
    kind: view.plan ? "plan" : "coordination",
    id: view.coordinationId,
    view: createShowReport(await readCoordinationDetails(reader, billed)),
    timeline: (await readCoordinationTimeline(reader, billed, now)).timeline,
    tree,
    ...(plan && { plan }),
    sequence,
    atMs: now,
  };
}

/** Returns a plan's steps and critical path; `undefined` where its text is not kept or this release refuses it. */
async function readPlanShape(
  reader: ReportedLedger,
  { plan }: CoordinationView,
): Promise<PlanShape | undefined> {
  const text = plan && (await readKeptText(reader, plan.content));
  if (!text) return undefined;
  const checked = checkPlan(JSON.parse(text));
  return checked.kind === "refused" ? undefined : createPlanShape(checked.graph);
}

/** Returns the steps of a checked plan with what the page draws as a graph, and its critical path. */
export function createPlanShape({ steps, criticalPath }: StepGraph): PlanShape {
  return {
    criticalPath,
    steps: steps.map(({ stepId, agent, lane, dependsOn, fanIn, timeoutMs }) => {
      return { stepId, agent, lane, dependsOn, fanIn, timeoutMs };
    }),
  };
}

/**
 * Returns the digest and the cut text of a step's result, held or not, with `null` for a text that is no longer kept;
 * `undefined` where it has none. @throws CoordinationError as `ContentStore.get`
 */
export async function readStepResult(
  reader: ReportedLedger,
  step: StepView,
): Promise<StepResult | undefined> {
  const output = findShownOutput(step);
  if (!output) return undefined;
  const text = (await readKeptText(reader, output)) ?? undefined;
  return {
    stepId: step.stepId,
    text: text?.slice(0, PAGE_BOUNDS.textCharsMax) ?? null,
    sha256: output.sha256,
    bytes: output.bytes,
    isHeld: step.held !== undefined,
    isCut: text !== undefined && text.length > PAGE_BOUNDS.textCharsMax,
  };
}
