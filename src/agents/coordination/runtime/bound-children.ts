/** Owns: which child sessions of a coordination stay bound when its log is removed, because they may live on without it. */
import { BOUNDS } from "../contracts/bounds.ts";
import type { CoordinationId, SessionKey, StepId } from "../contracts/ids.ts";
import type { KnownCoordination, Step } from "../ledger/state.ts";
import { nameOfChild } from "../ledger/summary.ts";
import { isEverythingWithheld } from "../ledger/withheld-words.ts";
import type { Found, LedgerStore } from "../ports/ledger-store.ts";
import type { BoundChild, ChildBinding } from "../ports/run-store.ts";
import { readStoredState } from "./log/read-state.ts";

export type BoundLedger = Pick<LedgerStore, "read" | "find" | "pruned">;

/** Lists the children of a coordination that privileges or a gate bind. @throws CoordinationError as `readStoredState` */
export type ListBoundChildren = (coordinationId: CoordinationId) => Promise<readonly BoundChild[]>;

/** Steps of other coordinations that are remembered at once, in some 10 MB. */
const REMEMBERED_STEPS_MAX = 50_000;

/** Returns a list for all coordinations of one prune: many of them have the same coordination above them, which is read once. */
export function createBoundChildList(ledger: BoundLedger): ListBoundChildren {
  const findRemembered = createStepMemory(ledger);
  return async (coordinationId) => {
    const state = await readStoredState(ledger, coordinationId);
    // Another prune removed it meanwhile.
    if (state.kind === "unopened") return [];
    const isBound = createBoundCheck(ledger, (runId, stepId) => {
      if (runId !== coordinationId) return findRemembered(runId, stepId);
      const step = state.steps.get(stepId);
      return Promise.resolve(step && createRememberedStep(step));
    });
    return listBound(state, isBound);
  };
}

type BoundCheck = (session: SessionKey) => Promise<boolean>;

async function listBound(
  { children, steps }: KnownCoordination,
  isBound: BoundCheck,
): Promise<readonly BoundChild[]> {
  const bound: BoundChild[] = [];
  for (const [session, stepId] of children) {
    const step = steps.get(stepId);
    const binding = step && (await findBinding(step, session, isBound));
    if (binding) bound.push({ session, stepId, binding });
  }
  return bound;
}

async function findBinding(
  step: Step,
  session: SessionKey,
  isBound: BoundCheck,
): Promise<ChildBinding | undefined> {
  if (isEverythingWithheld(step, session)) return "gate";
  const { privilege, sourceSession } = step.spec;
  return privilege || (await isBound(sourceSession)) ? "privilege" : undefined;
}

/** The fields that a step was admitted with and that no later event changes. */
interface RememberedStep {
  readonly isNarrowed: boolean;
  readonly sourceSession: SessionKey;
}

type FindStep = (runId: CoordinationId, stepId: StepId) => Promise<RememberedStep | undefined>;

function createRememberedStep({ spec: { privilege, sourceSession } }: Step): RememberedStep {
  return { isNarrowed: privilege !== undefined, sourceSession };
}

/** Many children have the same session above them, so each session is looked up once. */
function createBoundCheck(ledger: BoundLedger, findStep: FindStep): BoundCheck {
  const answers = new Map<SessionKey, Promise<boolean>>();
  return (session) => {
    const answer = answers.get(session) ?? findBound(ledger, findStep, session);
    answers.set(session, answer);
    return answer;
  };
}

/** Returns whether a step from the session up to its owner is bound, as `findBoundsOfSession` says it (H3). */
async function findBound(ledger: BoundLedger, findStep: FindStep, session: SessionKey): Promise<boolean> {
  let above = session;
  for (let depth = 0; depth < BOUNDS.privilegeDepthMax; depth += 1) {
    const found: Found | undefined = await ledger.find(nameOfChild(above));
    const step = found?.stepId && (await findStep(found.runId, found.stepId));
    if (!step) return (await ledger.pruned.findBinding(above)) !== undefined;
    if (step.isNarrowed) return true;
    above = step.sourceSession;
  }
  // Nobody can tell what holds a session whose way up has no end.
  return true;
}

/** Remembers the steps of the coordinations that it read, and begins anew where they become too many. */
function createStepMemory(ledger: BoundLedger): FindStep {
  const runs = new Map<CoordinationId, ReadonlyMap<StepId, RememberedStep>>();
  let count = 0;
  return async (runId, stepId) => {
    const remembered = runs.get(runId);
    const step = remembered?.get(stepId);
    if (step) return step;
    // It was not read, or has got the step since.
    const state = await readStoredState(ledger, runId);
    if (state.kind === "unopened") return undefined;
    const read = new Map([...state.steps].map(([id, each]) => [id, createRememberedStep(each)]));
    count += read.size - (remembered?.size ?? 0);
    if (count > REMEMBERED_STEPS_MAX) {
      runs.clear();
      count = read.size;
    }
    runs.set(runId, read);
    return read.get(stepId);
  };
}
