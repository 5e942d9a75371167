/** Owns: the next steps of a plan as they are admitted, with what a fork has of them from its source. */
import { BOUNDS } from "../contracts/bounds.ts";
import type { AdmitPlanSteps } from "../contracts/commands.ts";
import type { ForkedFrom } from "../contracts/fact-fields.ts";
import { plannedStepsOf, type PlannedStep } from "../plan/admission-of.ts";
import type { StepGraph } from "../plan/step-graph.ts";
import type { ContentInput } from "../ports/content-store.ts";
import { gatedBy } from "./gates/gate-of.ts";
import type { RuntimeParts } from "./runtime-parts.ts";

interface Admission {
  readonly graph: StepGraph;
  /** The place of the first of them in the graph. */
  readonly from: number;
  readonly forkedFrom?: ForkedFrom | undefined;
}

/** As many as one append takes. `contents`: the results that are carried over, which the fork keeps as long as it runs. */
export async function admissionFrom(
  parts: RuntimeParts,
  { graph, from, forkedFrom }: Admission,
): Promise<{ readonly command: AdmitPlanSteps; readonly contents: readonly ContentInput[] }> {
  const { runnerOf, refOf, forks } = parts;
  const carried = forkedFrom && (await forks.carriedFrom(forkedFrom));
  const { ownerSession } = graph;
  const admitting = { ownerSession, runnerOf, refOf, gated: gatedBy(parts), ...(carried && { carried }) };
  const steps = plannedStepsOf(graph, admitting, { from, to: from + BOUNDS.stepsPerAppendMax });
  return { command: { type: "admitPlanSteps", steps }, contents: await resultsOf(parts, steps) };
}

/** As far as they are kept: a step whose input needs one that is not fails and says so. */
async function resultsOf(
  { content }: Pick<RuntimeParts, "content">,
  steps: readonly PlannedStep[],
): Promise<ContentInput[]> {
  const refs = new Map(
    steps.flatMap(({ carried }) => (carried?.output ? [[carried.output.sha256, carried.output]] : [])),
  );
  if (refs.size === 0) return [];
  const texts = await content.getMany([...refs.keys()]);
  return [...refs].flatMap(([sha256, ref]) => {
    const text = texts.get(sha256);
    return text === undefined ? [] : [{ ref, text, keepWhileRunning: true }];
  });
}
