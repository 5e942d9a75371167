/** Owns: what a held result says, and where it was made, from the log and the texts that it names. */
import { worktreeKeyOf } from "../../ledger/evolve-worktrees.ts";
import { childOf, type HeldPhase, type OpenCoordination, type Step } from "../../ledger/state.ts";
import type { ContentReader, ContentSource } from "../../ports/content-store.ts";
import type { VerifiedResult } from "../../ports/verifier.ts";

/** `task`: what a plan says; that of a spawn is kept as content. `undefined` where a text that the log names is not kept any more. */
export async function readHeldResult(
  { content }: ContentSource,
  state: OpenCoordination,
  {
    step,
    task: plannedTask,
  }: { readonly step: Step & { readonly phase: HeldPhase }; readonly task: string | undefined },
): Promise<VerifiedResult | undefined> {
  const { spec, phase } = step;
  const session = childOf(phase)?.childSessionKey;
  const { confidence } = phase.stated;
  const words = await readWords(content, step);
  if (!words) return undefined;
  const task = plannedTask ?? (await content.get(spec.input.sha256));
  const folder = findFolder(state, step);
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
function findFolder({ worktrees }: OpenCoordination, { spec, phase, observed }: Step): string | undefined {
  const worktree = worktrees.get(worktreeKeyOf(spec.stepId, phase.attempt));
  return worktree?.opened?.folder ?? observed?.ran.folder ?? spec.requested?.folder;
}

type ResultWords = Pick<VerifiedResult, "text" | "outputs">;

/** G1: what is not kept any more, or never was, cannot be checked. */
async function readWords(
  content: ContentReader,
  { phase, withheld, spec }: Step & { readonly phase: HeldPhase },
): Promise<ResultWords | undefined> {
  const ownWithheld = withheld?.attempt === phase.attempt ? withheld : undefined;
  // A spawn's result is known only where it was kept back or reported: without either it was lost.
  if (!spec.planned && !ownWithheld && !phase.output) return undefined;
  const words = ownWithheld ? await content.get(ownWithheld.text.sha256) : NOTHING_SAID;
  const output = phase.output ? await content.get(phase.output.sha256) : NOTHING_SAID;
  return words === undefined || output === undefined ? undefined : createWords(words, output);
}

function createWords(words: string, output: string): ResultWords {
  const outputs = output === NOTHING_SAID ? undefined : parseOutputs(output);
  return { text: words || (findWords(outputs) ?? output), ...(outputs && { outputs }) };
}

const NOTHING_SAID = "";

/** An agent that gave no outputs is taken at its last words, which are then kept as `text`. */
function findWords(outputs: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const text = outputs?.["text"];
  return typeof text === "string" && Object.keys(outputs ?? {}).length === 1 ? text : undefined;
}

function parseOutputs(json: string): Readonly<Record<string, unknown>> | undefined {
  const value: unknown = JSON.parse(json);
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
}
