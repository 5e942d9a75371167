/** Owns: what a held result says, and where it was made, from the log and the texts that it names. */
import { formatWorktreeKey } from "../../ledger/evolve-worktrees.ts";
import { findChildOfPhase, type HeldPhase, type OpenCoordination, type Step } from "../../ledger/state.ts";
import type { ContentReader, ContentSource } from "../../ports/content-store.ts";
import type { VerifiedResult } from "../../ports/verifier.ts";

/**
 * Reads the held result of a step in the form in which checks are given it; `undefined` where a text that the log
 * names is not kept any more. `task`: what a plan says; that of a spawn is kept as content.
 */
export async function readHeldResult(
  { content }: ContentSource,
  state: OpenCoordination,
  {
    step,
    task: plannedTask,
  }: { readonly step: Step & { readonly phase: HeldPhase }; readonly task: string | undefined },
): Promise<VerifiedResult | undefined> {
  const { spec, phase } = step;
  const session = findChildOfPhase(phase)?.childSessionKey;
  const { confidence } = phase.stated;
  const words = await readResultWords(content, step);
  if (!words) return undefined;
  const task = plannedTask ?? (await content.get(spec.input.sha256));
  const folder = findFolderOfAttempt(state, step);
  return {
    coordinationId: state.coordinationId,
    stepId: spec.stepId,
    attempt: phase.attempt,
    target: phase.target,
    agentId: spec.agentId,
    ...(session && { childSessionKey: session }),
    ...(folder !== undefined && { folder }),
    ...(task !== undefined && { task }),
    ...words,
    ...(confidence !== undefined && { confidence: confidence / 10_000 }),
  };
}

/** Finds where the attempt worked: in its worktree, else where the host says that its child ran, or was asked to. */
function findFolderOfAttempt(
  { worktrees }: OpenCoordination,
  { spec, phase, observed }: Step,
): string | undefined {
  const worktree = worktrees.get(formatWorktreeKey(spec.stepId, phase.attempt));
  return worktree?.opened?.folder ?? observed?.ran.folder ?? spec.requested?.folder;
}

type ResultWords = Pick<VerifiedResult, "text" | "outputs">;

/** Reads what the agent said and its outputs; `undefined` where that is not kept, so that it cannot be checked (G1). */
async function readResultWords(
  content: ContentReader,
  { phase, withheld, spec }: Step & { readonly phase: HeldPhase },
): Promise<ResultWords | undefined> {
  const ownWithheld = withheld?.attempt === phase.attempt ? withheld : undefined;
  // A spawn's result is known only where it was kept back or reported: without either it was lost.
  if (!spec.planned && !ownWithheld && !phase.output) return undefined;
  const words = ownWithheld ? await content.get(ownWithheld.text.sha256) : NOTHING_SAID;
  const output = phase.output ? await content.get(phase.output.sha256) : NOTHING_SAID;
  return words === undefined || output === undefined ? undefined : createResultWords(words, output);
}

function createResultWords(words: string, output: string): ResultWords {
  const outputs = output === NOTHING_SAID ? undefined : parseOutputsObject(output);
  return { text: words || (findWordsInOutputs(outputs) ?? output), ...(outputs && { outputs }) };
}

const NOTHING_SAID = "";

/**
 * Returns the words of outputs that are nothing but words, as those of an agent that gave no outputs are kept in
 * `text`; `undefined` for any other outputs.
 */
function findWordsInOutputs(outputs: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const text = outputs?.["text"];
  return typeof text === "string" && Object.keys(outputs ?? {}).length === 1 ? text : undefined;
}

function parseOutputsObject(json: string): Readonly<Record<string, unknown>> | undefined {
  const value: unknown = JSON.parse(json);
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
}
