/** Owns: which commands follow from how the child of a planned step ended. */
import type { Command, StatedConfidence } from "../../contracts/commands.ts";
import {
  stepError,
  usageSchema,
  type ContentRef,
  type StepError,
  type Usage,
} from "../../contracts/fact-fields.ts";
import { assertNever } from "../../contracts/errors.ts";
import type { StepId } from "../../contracts/ids.ts";
import type { ChildEnding } from "../../contracts/observation.ts";
import { findHeldBack, isOnlyPlaceholders, replaceHeldBack } from "../../gates/placeholder.ts";
import { readConfidenceOfCut, readStatedConfidence } from "../../gates/stated-confidence.ts";
import { isDelivery } from "../../ledger/plan-progress.ts";
import { sessionOf, type Step } from "../../ledger/state.ts";
import { outputsFromReply } from "../../plan/read-outputs.ts";
import type { JsonObject } from "../../plan/step-graph.ts";
import type { ContentInput } from "../../ports/content-store.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import type { OpenStep } from "../log/step-of-child.ts";

export interface Outcome {
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
 * Returns the outcome of an attempt with the newest report of its agent, which may have come while its end was waited for. The report
 * counts once it is on disk, because only then its text is there.
 */
export async function readNewestOutcome(
  dependencies: RuntimeDependencies,
  { current, readAttempt }: EndedAttempt,
  ending: ChildEnding,
): Promise<Outcome> {
  const session = sessionOf(current.step.phase);
  // Its last words may still be on their way to the disk.
  if (session) await dependencies.withheld.settled(session);
  for (let now = (await readAttempt()) ?? current; ;) {
    const outcome = await outcomeOf(dependencies, now, ending);
    // Where the report cannot be brought there, the attempt is read without it.
    if (now.step.report) await dependencies.runs.settled(now.state.coordinationId);
    const latest = await readAttempt();
    if (!latest || latest.step.report === now.step.report) return outcome;
    now = latest;
  }
}

type OutcomeDependencies = Pick<RuntimeDependencies, "plans" | "contract" | "refOf" | "content" | "withheld">;

interface About {
  readonly stepId: StepId;
  readonly attempt: number;
}

export async function outcomeOf(
  dependencies: OutcomeDependencies,
  { state, step }: OpenStep,
  childEnding: ChildEnding,
): Promise<Outcome> {
  const about = { stepId: step.spec.stepId, attempt: step.phase.attempt };
  const ending = { ...childEnding, ...cleanUsage(childEnding.usage) };
  switch (ending.outcome) {
    case "completed":
      return draftCompletion(dependencies, { state, step }, ending);
    case "timed_out":
      return createOutcomeOf({
        type: "timeOutStep",
        ...about,
        via: "runner",
        ...(ending.usage && { usage: ending.usage }),
      });
    case "failed":
      return createFailure(about, describeFailure(ending), ending);
    case "cancelled":
      return createFailure(
        about,
        stepError("child_cancelled", ending.message ?? "the agent was cancelled"),
        ending,
      );
    default:
      return assertNever(ending.outcome, "child outcome");
  }
}

function describeFailure({ refusal, message = "the agent failed" }: ChildEnding): StepError {
  return stepError(refusal ? "provider_refused" : "child_failed", message);
}

/** Drops numbers that cannot be true, because an event that breaks a bound could not be recorded at all. */
function cleanUsage(usage: Usage | undefined): { usage?: Usage } {
  const parsed = usageSchema.safeParse(usage);
  return { ...(parsed.success ? { usage: parsed.data } : { usage: {} }) };
}

/** Drafts the completion of an attempt. The child's report counts, as it is then; without one its last words do. */
async function draftCompletion(
  dependencies: OutcomeDependencies,
  { state, step }: OpenStep,
  ending: ChildEnding,
): Promise<Outcome> {
  const about = { stepId: step.spec.stepId, attempt: step.phase.attempt };
  const { report } = step;
  if (report?.outcome === "failed") return createCompletion(about, report.output, ending);
  const words = await readLastWords(dependencies, step, ending);
  if (!words)
    return createFailure(
      about,
      stepError("result_lost", "what the agent said was held back and is lost"),
      ending,
    );
  const { reply, replyEnd } = words;
  const stated = replyEnd === undefined ? readStatedConfidence(reply) : readConfidenceOfCut(reply, replyEnd);
  if (report) return createCompletion(about, report.output, { ...ending, stated });
  const read = await readOutputs(dependencies, { state, step }, words);
  if (read.kind === "unusable") return createFailure(about, stepError("output_invalid", read.why), ending);
  const { ref } = read.content;
  return { ...createCompletion(about, ref, { ...ending, stated }), contents: [read.content] };
}

interface LastWords {
  readonly reply: string;
  /** Absent where `reply` is whole. */
  readonly replyEnd?: string;
}

/** The words of the agent, also where the host has only what stands for them; `undefined` where they are lost. */
async function readLastWords(
  { content, withheld }: OutcomeDependencies,
  { withheld: kept, phase }: Step,
  { reply: shownReply = "", replyEnd }: ChildEnding,
): Promise<LastWords | undefined> {
  const session = sessionOf(phase);
  const restore = (text: string): string =>
    session ? replaceHeldBack(text, (name, shown) => withheld.textOf(session, name) ?? shown) : text;
  const reply = restore(shownReply);
  const words = { reply, ...(replyEnd !== undefined && { replyEnd: restore(replyEnd) }) };
  if (findHeldBack(`${reply}${words.replyEnd ?? ""}`) === undefined) return words;
  if (kept?.attempt === phase.attempt) {
    const keptText = await content.get(kept.text.sha256);
    return keptText === undefined ? undefined : { reply: keptText };
  }
  // A placeholder for a text of another session is only quoted.
  return isOnlyPlaceholders(reply) ? undefined : words;
}

function createCompletion(
  about: About,
  output: ContentRef,
  { usage, stated }: ChildEnding & { readonly stated?: StatedConfidence },
): Outcome {
  return createOutcomeOf({
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

async function readOutputs(
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
  return { kind: "outputs", content: contentFromOutputs(dependencies, read.outputs) };
}

/** Outputs as they are kept: other steps may need them as long as the plan runs. */
export function contentFromOutputs({ refOf }: OutcomeDependencies, outputs: JsonObject): ContentInput {
  const text = JSON.stringify(outputs);
  return { ref: refOf(text), text, keepWhileRunning: true };
}

export function createFailure(
  about: About,
  error: StepError,
  { usage, refusal }: Pick<ChildEnding, "usage" | "refusal"> = {},
): Outcome {
  const cancelled = error.code === "child_cancelled";
  return createOutcomeOf({
    type: "failStep",
    ...about,
    error,
    cancelled,
    via: "runner",
    ...(usage && { usage }),
    ...(refusal?.retryAfterMs !== undefined && { retryAfterMs: refusal.retryAfterMs }),
  });
}

function createOutcomeOf(command: Command): Outcome {
  return { commands: [command], contents: [] };
}
