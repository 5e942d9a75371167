/** Owns: what was asked of the child that a session is, and bringing what the host says of it into the ledger (H3). */
import type { ChildRun } from "../../contracts/fact-fields.ts";
import type { CoordinationId, SessionKey, StepId } from "../../contracts/ids.ts";
import type { AskedOfChild } from "../../gates/child-differences.ts";
import { findSessionOfPhase, type Step } from "../../ledger/state.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { findStepOfChild } from "../log/step-of-child.ts";

/** A child at work. */
export interface WatchedChild {
  readonly coordinationId: CoordinationId;
  readonly stepId: StepId;
  readonly attempt: number;
  readonly asked: AskedOfChild;
  /** The child as the log has it. */
  readonly ran: ChildRun;
  /** Its result is held where it does not run as it was asked. */
  readonly isHeldOnMismatch: boolean;
}

export interface SeenRun {
  readonly ran: ChildRun;
  /** The names of the tools that its model was offered, sorted; they are kept beside the log. */
  readonly toolNames?: readonly string[];
  /** The run is stopped before its model is called. */
  readonly refused?: true;
}

export interface ChildWatch {
  /** The child that a session is; `undefined` for a session that works on no step now. */
  find(session: SessionKey): Promise<WatchedChild | undefined>;
  /** Records what is new. @throws CoordinationError when the ledger could not record it. */
  observe(child: WatchedChild, seen: SeenRun): Promise<true>;
}

/** Creates the watch over child sessions, which finds the step of a session and records what was seen of its runs. */
export function createChildWatch(dependencies: RuntimeDependencies): ChildWatch {
  return {
    find: async (session) => {
      const found = await findStepOfChild(dependencies, session);
      return found && createWatchedChild(found.state.coordinationId, found.step, session);
    },
    observe: async (child, seen) => {
      await recordObservedRun(dependencies, child, seen);
      return true;
    },
  };
}

/** Returns the child as it is watched; `undefined` where the session does not work on the step now. */
function createWatchedChild(
  coordinationId: CoordinationId,
  { spec, phase, observed }: Step,
  session: SessionKey,
): WatchedChild | undefined {
  const isAtWork = phase.status === "running" || phase.status === "dispatched";
  if (!isAtWork || findSessionOfPhase(phase) !== session) return undefined;
  const { stepId, agentId, requested, gate } = spec;
  return {
    coordinationId,
    stepId,
    attempt: phase.attempt,
    asked: { ...requested, agentId },
    ran: observed?.ran ?? {},
    isHeldOnMismatch: gate?.holdMismatch === true,
  };
}

async function recordObservedRun(
  { refOf, runs, settings }: RuntimeDependencies,
  { coordinationId, stepId, attempt }: WatchedChild,
  { ran, toolNames, refused }: SeenRun,
): Promise<void> {
  const text = toolNames?.join("\n");
  const ref = text === undefined ? undefined : refOf(text);
  const tools = ref && toolNames ? { tools: { count: toolNames.length, sha256: ref.sha256 } } : {};
  const contents = ref && text !== undefined && settings.contentMs > 0 ? [{ ref, text }] : [];
  await runs.submit(
    coordinationId,
    [{ type: "observeChild", stepId, attempt, ran: { ...ran, ...tools }, ...(refused && { refused }) }],
    contents,
  );
}
