/** Owns: a child's own report about the step that it works on. Which step that is says the ledger, never the child (H3). */
import { BOUNDS } from "../../contracts/bounds.ts";
import type { SessionKey } from "../../contracts/ids.ts";
import { convertToBasisPointsDown } from "../../gates/stated-confidence.ts";
import { isPlanned } from "../../dispatch/plan-rules.ts";
import { findSessionOfPhase } from "../../ledger/state.ts";
import { isWithinOutputBounds } from "../../plan/read-outputs.ts";
import { isJsonObject, type JsonObject } from "../../plan/step-graph.ts";
import type { OutputProblem } from "../../ports/output-contract.ts";
import { createOutputsContent } from "../attempts/attempt-outcome.ts";
import type { ChildReport, ReportAnswer } from "./plan-requests.ts";
import { chooseSession } from "../attempts/prepare-attempt.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { findStepOfChild, type OpenStep } from "../log/step-of-child.ts";

/**
 * Checks a child's outputs against what its step asks for, and records its report; returns the problems of outputs
 * that do not fit, and a refusal where the session works on no open step or the ledger refuses.
 */
export async function takeReport(
  dependencies: RuntimeDependencies,
  childSessionKey: SessionKey,
  report: ChildReport,
): Promise<ReportAnswer> {
  const about = await findOpenStepOfChild(dependencies, childSessionKey);
  if (!about) return { kind: "refused", reason: "this session works on no step of a coordination" };
  const checked = await checkOutputs(dependencies, about, report);
  if (checked.kind === "invalid") return checked;
  const content = createOutputsContent(dependencies, checked.outputs);
  const { coordinationId } = about.state;
  const { stepId } = about.step.spec;
  const { outcome, confidence } = report;
  const submitted = await dependencies.runs.submit(
    coordinationId,
    [
      {
        type: "reportStep",
        stepId,
        outcome,
        attempt: findAttemptOfSession(dependencies, about, childSessionKey),
        output: content.ref,
        ...(confidence !== undefined && { confidence: convertToBasisPointsDown(confidence) }),
      },
    ],
    [content],
  );
  if (submitted.kind === "refused") return { kind: "refused", reason: submitted.reason };
  return { kind: "recorded", coordinationId, stepId };
}

/**
 * Returns the step that a session works or worked on, with its open coordination; `undefined` where there is none or
 * the coordination is not open. The step may have ended.
 */
export async function findOpenStepOfChild(
  dependencies: RuntimeDependencies,
  session: SessionKey,
): Promise<OpenStep | undefined> {
  const found = await findStepOfChild(dependencies, session);
  return found?.state.kind === "open" ? { state: found.state, step: found.step } : undefined;
}

/** The outputs of a report that fit their schema, or the problems of those that do not. */
type OutputsCheck =
  | { readonly kind: "valid"; readonly outputs: JsonObject }
  | { readonly kind: "invalid"; readonly problems: readonly OutputProblem[] };

async function checkOutputs(
  { plans, contract }: RuntimeDependencies,
  { state, step }: OpenStep,
  { outcome, outputs }: ChildReport,
): Promise<OutputsCheck> {
  if (!isJsonObject(outputs) || !isWithinOutputBounds(outputs)) {
    const most = `${BOUNDS.outputCharsMax} characters and ${BOUNDS.outputDepthMax} levels`;
    return {
      kind: "invalid",
      problems: [{ path: "outputs", message: `expected a JSON object of at most ${most}` }],
    };
  }
  if (outcome === "failed" || !isPlanned(state) || !step.spec.planned) return { kind: "valid", outputs };
  const schema = (await plans.graphOf(state)).stepOf.get(step.spec.stepId)?.outputSchema;
  const problems = schema ? (await contract()).check(schema, outputs) : [];
  return problems.length > 0 ? { kind: "invalid", problems } : { kind: "valid", outputs };
}

/**
 * Returns the number of the step's attempt that a session belongs to (D3): the newest one for a spawn. Every attempt
 * of a plan's step has a session of its own; a session of none of them counts for the attempt before the newest.
 */
export function findAttemptOfSession(
  dependencies: RuntimeDependencies,
  { state, step }: OpenStep,
  childSessionKey: SessionKey,
): number {
  const { attempt } = step.phase;
  if (!isPlanned(state) || !step.spec.planned || findSessionOfPhase(step.phase) === childSessionKey)
    return attempt;
  for (let earlier = attempt; earlier >= 1; earlier -= 1)
    if (chooseSession(dependencies, state, step, earlier) === childSessionKey) return earlier;
  return Math.max(1, attempt - 1);
}
