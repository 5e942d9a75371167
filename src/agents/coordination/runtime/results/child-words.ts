/**
 * Owns: whose child a session is, and recording what became of its words: its parent is shown a part of them, or they did not go to a
 * chat. H3: whose child a session is says the ledger.
 */
import type { Command } from "../../contracts/commands.ts";
import type { FactPayloads } from "../../contracts/facts.ts";
import type { CoordinationId, SessionKey, StepId } from "../../contracts/ids.ts";
import type { ContentInput } from "../../ports/content-store.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { canKeepText, findStepOfChild } from "../log/step-of-child.ts";

export interface ChildSession {
  readonly session: SessionKey;
  readonly coordinationId: CoordinationId;
  readonly stepId: StepId;
  /** The session that spawned it. */
  readonly parent: SessionKey;
  /** The host tells no parent what it says: its plan does, bounded. */
  readonly isPlanned: boolean;
  /** The ledger takes one more long text of it: not once its coordination has ended, nor where its step has its most. */
  readonly canKeepWhole: boolean;
}

/** A message that did not go to a chat. */
export type SuppressedMessage = Omit<FactPayloads["message.suppressed"], "stepId" | "attempt">;

export interface ChildWords {
  /** `undefined` for a session that is nobody's child. */
  childOf(session: SessionKey): Promise<ChildSession | undefined>;
  /** Keeps the whole of a text that the parent is shown a part of. */
  keepWhole(session: SessionKey, text: string, shownChars: number): Promise<void>;
  recordSuppressed(session: SessionKey, message: SuppressedMessage): Promise<void>;
}

/**
 * Creates the access to the words of children: it finds whose child a session is, keeps the whole of texts that a
 * parent is shown a part of, and records messages that did not go to a chat.
 */
export function createChildWords(dependencies: RuntimeDependencies): ChildWords {
  return {
    childOf: async (session) => {
      const childStep = await findStepOfChild(dependencies, session);
      if (!childStep) return undefined;
      const { state, step } = childStep;
      const { stepId, sourceSession: parent, planned } = step.spec;
      return {
        session,
        coordinationId: state.coordinationId,
        stepId,
        parent,
        isPlanned: planned !== undefined,
        canKeepWhole: canKeepText(childStep),
      };
    },
    keepWhole: async (session, text, shownChars) => {
      const ref = dependencies.refOf(text);
      const shortened = { text: ref, chars: text.length, shownChars };
      const content: ContentInput = { ref, text, keepWhileRunning: true };
      await recordChildCommand(
        dependencies,
        session,
        (about) => ({ type: "recordShortened", ...about, ...shortened }),
        [content],
      );
    },
    recordSuppressed: (session, message) =>
      recordChildCommand(dependencies, session, (about) => ({
        type: "recordSuppressed",
        ...about,
        ...message,
      })),
  };
}

/** An attempt within a coordination, named by its step and its number. */
interface AttemptId {
  readonly stepId: StepId;
  readonly attempt: number;
}

/** Submits a command about the step whose child the session is; nothing where it is nobody's child. */
async function recordChildCommand(
  dependencies: RuntimeDependencies,
  session: SessionKey,
  commandOf: (about: AttemptId) => Command,
  contents: readonly ContentInput[] = [],
): Promise<void> {
  const found = await findStepOfChild(dependencies, session);
  if (!found) return;
  const { coordinationId } = found.state;
  const { spec, phase } = found.step;
  const command = commandOf({ stepId: spec.stepId, attempt: phase.attempt });
  const submitted = await dependencies.runs.submit(coordinationId, [command], contents);
  if (submitted.kind !== "refused") return;
  const { code, reason } = submitted;
  dependencies.logger.warn(
    { runId: coordinationId, refusal: code, command: command.type },
    `not recorded: ${reason}`,
  );
}
