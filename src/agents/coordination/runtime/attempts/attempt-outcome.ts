/** Owns: which commands follow from how the child of a planned step ended. */
import type { Command, StatedConfidence } from "../../contracts/commands.ts";
import {
  createStepError,
  usageSchema,
  type ContentRef,
  type StepError,
  type Usage,
} from "../../contracts/fact-fields.ts";
import { assertNever } from "../../contracts/errors.ts";
import type { StepId } from "../../contracts/ids.ts";
import type { ChildEnding } from "../../contracts/observation.ts";
import { findHeldBackName, isOnlyPlaceholders, replacePlaceholders } from "../../gates/placeholder.ts";
import { readConfidenceOfCutText, readStatedConfidence } from "../../gates/stated-confidence.ts";
import { isDelivery } from "../../ledger/plan-progress.ts";
import { findSessionOfPhase, type Step } from "../../ledger/state.ts";
import { outputsFromReply } from "../../plan/read-outputs.ts";
import type { JsonObject } from "../../plan/step-graph.ts";
import type { ContentInput } from "../../ports/content-store.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import type { OpenStep } from "../log/step-of-child.ts";

/** The commands that record what became of an attempt, and the contents to keep with them. */
export interface AttemptOutcome {
  readonly commands: readonly Command[];
  readonly contents: readonly ContentInput[];
}

/** An attempt whose agent has ended. */
interface EndedAttempt {
  readonly current: OpenStep;
  /** Reads the attempt as the ledger has it now; `undefined` once it is over. */
  readonly readAttempt: () => Promise<OpenStep | undefined>;
}

/**
 * Returns the outcome of an ended attempt, drafted with the newest report of its agent, which may have come while its
 * end was waited for. The report counts once it is on disk, because only then its text is there, so this waits for
 * that.
 */
export async function readNewestOutcome(
  dependencies: RuntimeDependencies,
  { current, readAttempt }: EndedAttempt,
  ending: ChildEnding,
): Promise<AttemptOutcome> {
  const session = findSessionOfPhase(current.step.phase);
  // Its last words may still be on their way to the disk.
  if (session) await dependencies.withheld.settled(session);
  for (let attemptRead = (await readAttempt()) ?? current; ;) {
    const outcome = await draftAttemptOutcome(dependencies, attemptRead, ending);
    // Where the report cannot be brought there, the attempt is read without it.
    if (attemptRead.step.report) await dependencies.runs.settled(attemptRead.state.coordinationId);
    const latest = await readAttempt();
    if (!latest || latest.step.report === attemptRead.step.report) return outcome;
    attemptRead = latest;
  }
}

type OutcomeDependencies = Pick<RuntimeDependencies, "plans" | "contract" | "refOf" | "content" | "withheld">;

/** An attempt within a coordination, named by its step and its number. */
interface AttemptId {
  readonly stepId: StepId;
  readonly attempt: number;
}

/**
 * Drafts the commands, with the contents to keep, that record how the child of a step ended: completed, failed, timed
 * out or cancelled.
 */
export async function draftAttemptOutcome(
  dependencies: OutcomeDependencies,
  { state, step }: OpenStep,
  childEnding: ChildEnding,
): Promise<AttemptOutcome> {
  const about = { stepId: step.spec.stepId, attempt: step.phase.attempt };
  const ending = { ...childEnding, ...cleanUsage(childEnding.usage) };
  switch (ending.outcome) {
    case "completed":
      return draftCompletion(dependencies, { state, step }, ending);
    case "timed_out":
      return createOutcomeOfCommand({
        type: "timeOutStep",
        ...about,
        via: "runner",
        ...(ending.usage && { usage: ending.usage }),
      });
    case "failed":
      return createFailureOutcome(about, createChildError(ending), ending);
    case "cancelled":
      return createFailureOutcome(
        about,
        createStepError("child_cancelled", ending.message ?? "the agent was cancelled"),
        ending,
      );
    default:
      return assertNever(ending.outcome, "child outcome");
  }
}

function createChildError({ refusal, message = "the agent failed" }: ChildEnding): StepError {
  return createStepError(refusal ? "provider_refused" : "child_failed", message);
}

/**
 * Returns the usage; an empty one where there is none, or where its numbers cannot be true: the ledger would refuse
 * such an event.
 */
function cleanUsage(usage: Usage | undefined): { usage?: Usage } {
  const parsed = usageSchema.safeParse(usage);
  return { ...(parsed.success ? { usage: parsed.data } : { usage: {} }) };
}

/** Drafts the completion of an attempt. The child's report counts, as it is then; without one its last words do. */
async function draftCompletion(
  dependencies: OutcomeDependencies,
  { state, step }: OpenStep,
  ending: ChildEnding,
): Promise<AttemptOutcome> {
  const about = { stepId: step.spec.stepId, attempt: step.phase.attempt };
  const { report } = step;
  if (report?.outcome === "failed") return createCompletionOutcome(about, report.output, ending);
  const words = await readLastWords(dependencies, step, ending);
  if (!words)
    return createFailureOutcome(
      about,
      createStepError("result_lost", "what the agent said was held back and is lost"),
      ending,
    );
  const { reply, replyEnd } = words;
  const stated =
    replyEnd === undefined ? readStatedConfidence(reply) : readConfidenceOfCutText(reply, replyEnd);
  if (report) return createCompletionOutcome(about, report.output, { ...ending, stated });
  const read = await readOutputsFromReply(dependencies, { state, step }, words);
  if (read.kind === "unusable")
    return createFailureOutcome(about, createStepError("output_invalid", read.why), ending);
  const { ref } = read.content;
  return { ...createCompletionOutcome(about, ref, { ...ending, stated }), contents: [read.content] };
}

interface LastWords {
  readonly reply: string;
  /** Absent where `reply` is whole. */
  readonly replyEnd?: string;
}

/** Returns the last words of the agent with the real texts in place of placeholders; `undefined`: they are lost. */
async function readLastWords(
  { content, withheld }: OutcomeDependencies,
  { withheld: kept, phase }: Step,
  { reply: shownReply = "", replyEnd }: ChildEnding,
): Promise<LastWords | undefined> {
  const session = findSessionOfPhase(phase);
  const restore = (text: string): string =>
    session ? replacePlaceholders(text, (name, shown) => withheld.textOf(session, name) ?? shown) : text;
  const reply = restore(shownReply);
  const words = { reply, ...(replyEnd !== undefined && { replyEnd: restore(replyEnd) }) };
  if (findHeldBackName(`${reply}${words.replyEnd ?? ""}`) === undefined) return words;
  if (kept?.attempt === phase.attempt) {
    const keptText = await content.get(kept.text.sha256);
    return keptText === undefined ? undefined : { reply: keptText };
  }
  // A placeholder for a text of another session is only quoted.
  return isOnlyPlaceholders(reply) ? undefined : words;
}

function createCompletionOutcome(
  about: AttemptId,
  output: ContentRef,
  { usage, stated }: ChildEnding & { readonly stated?: StatedConfidence },
): AttemptOutcome {
  return createOutcomeOfCommand({
    type: "completeStep",
    ...about,
    via: "runner",
    output,
    ...(stated && { stated }),
    ...(usage && { usage }),
  });
}

type RepliedOutputs =
  | { readonly kind: "outputs"; readonly content: ContentInput }
  /** `why` begins with the path. */
  | { readonly kind: "unusable"; readonly why: string };

/** Reads the outputs from the last words of the agent, or says why they do not fit the schema of the step. */
async function readOutputsFromReply(
  dependencies: OutcomeDependencies,
  { state, step }: OpenStep,
  { reply, replyEnd }: LastWords,
): Promise<RepliedOutputs> {
  const { stepId } = step.spec;
  const schema =
    isDelivery(step) || !step.spec.planned
      ? undefined
      : (await dependencies.plans.graphOf(state)).stepOf.get(stepId)?.outputSchema;
  const read = outputsFromReply(reply, schema !== undefined, replyEnd);
  if (read.kind === "unreadable") return { kind: "unusable", why: `${read.path}: ${read.message}` };
  const [problem] = schema ? (await dependencies.contract()).check(schema, read.outputs) : [];
  if (problem) return { kind: "unusable", why: `${problem.path}: ${problem.message}` };
  return { kind: "outputs", content: createOutputsContent(dependencies, read.outputs) };
}

/**
 * Returns the JSON of a step's outputs as content to store, kept while the plan runs: other steps may need them until
 * its end.
 */
export function createOutputsContent({ refOf }: OutcomeDependencies, outputs: JsonObject): ContentInput {
  const text = JSON.stringify(outputs);
  return { ref: refOf(text), text, keepWhileRunning: true };
}

/** Returns the command that records a failed or cancelled attempt, with no content to keep. */
export function createFailureOutcome(
  about: AttemptId,
  error: StepError,
  { usage, refusal }: Pick<ChildEnding, "usage" | "refusal"> = {},
): AttemptOutcome {
  const cancelled = error.code === "child_cancelled";
  return createOutcomeOfCommand({
    type: "failStep",
    ...about,
    error,
    cancelled,
    via: "runner",
    ...(usage && { usage }),
    ...(refusal?.retryAfterMs !== undefined && { retryAfterMs: refusal.retryAfterMs }),
  });
}

function createOutcomeOfCommand(command: Command): AttemptOutcome {
  return { commands: [command], contents: [] };
}
