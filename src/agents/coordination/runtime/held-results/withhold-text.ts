/** Owns: which sessions are gated, and bringing what a gated child says into the ledger. H3: whose child a session is says the ledger. */
import type { ContentSource } from "../../ports/content-store.ts";
import type { StatedConfidence } from "../../contracts/commands.ts";
import type { CoordinationId, SessionKey, StepId } from "../../contracts/ids.ts";
import type { Gate } from "../../contracts/verification.ts";
import { replacePlaceholders } from "../../gates/placeholder.ts";
import { readStatedConfidence } from "../../gates/stated-confidence.ts";
import { findSessionOfPhase, type Step } from "../../ledger/state.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { findStepOfChild, type StepOfChild } from "../log/step-of-child.ts";
import { isEverythingWithheld, isResultReleased } from "../../ledger/withheld-words.ts";

/** A gated session, as a host must know it to keep back its agent's words. */
export interface GatedSession {
  readonly session: SessionKey;
  readonly coordinationId: CoordinationId;
  readonly stepId: StepId;
  readonly gate: Gate;
  /** Every text is kept back, whatever it states. */
  readonly isStrict: boolean;
  /** The confidence that the agent stated with its report. */
  readonly reported?: StatedConfidence;
  /** The newest text that was kept back, for the agent itself after a restart. */
  readonly keptText?: string;
}

export interface HeldSessions {
  /** Returns the gate of the step that a session works on, also of one whose log was pruned; `undefined` for any other session. */
  gated(session: SessionKey): Promise<GatedSession | undefined>;
  /** Brings the last text of a turn to the disk, where placeholders are all that others get of it. */
  keep(session: SessionKey, shown: string): Promise<true>;
}

/**
 * Creates the access to sessions with gates: it finds which gate holds a session's results, and keeps in the ledger
 * the whole of a text that was shown with placeholders.
 */
export function createHeldSessions(dependencies: RuntimeDependencies): HeldSessions {
  return {
    gated: async (session) => {
      const found = await findStepOfChild(dependencies, session);
      return found
        ? readGatedSession(dependencies, session, found)
        : findPrunedGatedSession(dependencies, session);
    },
    keep: async (session, shown) => {
      const text = replacePlaceholders(
        shown,
        (name, put) => dependencies.withheld.textOf(session, name) ?? put,
      );
      if (text !== shown) await keepWithheldText(dependencies, session, text);
      return true;
    },
  };
}

/** Holds everything: nobody can tell any more which gate that was. */
const PRUNED_GATE: Gate = { threshold: 10_000, requireConfidence: true };

async function findPrunedGatedSession(
  { store }: RuntimeDependencies,
  session: SessionKey,
): Promise<GatedSession | undefined> {
  if (!(await store.pruned.listBindings(session)).includes("gate")) return undefined;
  const unknown = { coordinationId: "" as CoordinationId, stepId: "" as StepId };
  return { session, ...unknown, gate: PRUNED_GATE, isStrict: true };
}

/** Reads how the session of a step is gated; `undefined` where nothing holds its words, or no longer. */
async function readGatedSession(
  { content }: ContentSource,
  session: SessionKey,
  { state: { coordinationId }, step }: StepOfChild,
): Promise<GatedSession | undefined> {
  const { gate, stepId } = step.spec;
  // Words of an earlier attempt were refused, whatever became of a later one.
  const isEarlier = findSessionOfPhase(step.phase) !== session;
  if (!gate || (isResultReleased(step) && !isEarlier)) return undefined;
  const keptText = step.withheld && (await content.get(step.withheld.text.sha256));
  return {
    session,
    coordinationId,
    stepId,
    gate,
    isStrict: isEverythingWithheld(step, session),
    ...readReportedConfidence(step),
    ...(keptText !== undefined && { keptText }),
  };
}

function readReportedConfidence({ report, phase }: Step): Pick<GatedSession, "reported"> {
  const confidence = report?.attempt === phase.attempt ? report.confidence : undefined;
  return confidence === undefined ? {} : { reported: { confidence } };
}

async function keepWithheldText(
  dependencies: RuntimeDependencies,
  session: SessionKey,
  text: string,
): Promise<void> {
  const found = await findStepOfChild(dependencies, session);
  if (!found || findSessionOfPhase(found.step.phase) !== session) return;
  const {
    state: { coordinationId },
    step,
  } = found;
  dependencies.withheld.add(session, text);
  const ref = dependencies.refOf(text);
  const submitted = await dependencies.runs.submit(
    coordinationId,
    [
      {
        type: "withholdText",
        stepId: step.spec.stepId,
        attempt: step.phase.attempt,
        text: ref,
        ...readStatedConfidence(text),
      },
    ],
    [{ ref, text, keepWhileRunning: true }],
  );
  if (submitted.kind === "refused" && submitted.code === "TOO_MANY_TEXTS") throw new Error(submitted.reason);
}
