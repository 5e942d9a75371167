/** Owns: which child sessions of a coordination stay bound when its log is removed, because they may live on without it. */
import { BOUNDS } from "../contracts/bounds.ts";
import { isChildSessionKey } from "../contracts/host-agent-id.ts";
import type { CoordinationId, SessionKey, StepId } from "../contracts/ids.ts";
import type { KnownCoordination, Step } from "../ledger/state.ts";
import { nameChildReference } from "../ledger/summary.ts";
import { isEverythingWithheld } from "../ledger/withheld-words.ts";
import type { Found, LedgerStore } from "../ports/ledger-store.ts";
import type { BoundChild, ChildBinding } from "../ports/run-store.ts";
import { readStoredState } from "./log/read-state.ts";

export type BoundLedger = Pick<LedgerStore, "read" | "find" | "pruned">;

/** Lists the children of a coordination that privileges or a gate bind. @throws CoordinationError as `readStoredState` */
export type ListBoundChildren = (coordinationId: CoordinationId) => Promise<readonly BoundChild[]>;

/** Steps of other coordinations that are remembered at once, in some 10 MB. */
const REMEMBERED_STEPS_MAX = 50_000;

/**
 * Returns a function that lists the children of a coordination whose sessions stay bound by privileges or a gate once
 * its log is removed, for all coordinations of one prune. Many of them have the same coordination above them, which is
 * read once.
 */
export function createBoundChildLister(ledger: BoundLedger): ListBoundChildren {
  const findRemembered = createCachedStepFinder(ledger);
  return async (coordinationId) => {
    const state = await readStoredState(ledger, coordinationId);
    // Another prune removed it meanwhile.
    if (state.kind === "unopened") return [];
    const findHold = createCachedHoldFinder(ledger, (runId, stepId) => {
      if (runId !== coordinationId) return findRemembered(runId, stepId);
      const step = state.steps.get(stepId);
      return Promise.resolve(step && createRememberedStep(step));
    });
    return collectBoundChildren(state, findHold);
  };
}

/**
 * Whether privileges hold a session, as far as the ledger knows those above it. `untold`: it was spawned, and only the host knows by
 * whom.
 */
type PrivilegeHold = "bound" | "free" | "untold";

type FindHold = (session: SessionKey) => Promise<PrivilegeHold>;

async function collectBoundChildren(
  { children, steps }: KnownCoordination,
  findHold: FindHold,
): Promise<readonly BoundChild[]> {
  const bound: BoundChild[] = [];
  for (const [session, stepId] of children) {
    const step = steps.get(stepId);
    const bindings = step ? await listBindings(step, session, findHold) : [];
    bound.push(...bindings.map((binding) => ({ session, stepId, binding })));
  }
  return bound;
}

async function listBindings(step: Step, session: SessionKey, findHold: FindHold): Promise<ChildBinding[]> {
  const bindings: ChildBinding[] = [];
  if (isEverythingWithheld(step, session)) bindings.push("gate");
  if (step.spec.privilege || (await isBoundFromAbove(step, findHold))) bindings.push("privilege");
  return bindings;
}

/**
 * True where privileges of a session above the step bind its child. Also where nobody could tell it later: the host
 * knows the parents of the children that it made for a model, and no others.
 */
async function isBoundFromAbove({ spec, phase }: Step, findHold: FindHold): Promise<boolean> {
  const hold = await findHold(spec.sourceSession);
  const isOfHost = spec.planned === undefined && phase.attempt <= 1;
  return hold === "bound" || (hold === "untold" && !isOfHost);
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

/** Returns a `FindHold` that looks each session up once: many children have the same session above them. */
function createCachedHoldFinder(ledger: BoundLedger, findStep: FindStep): FindHold {
  const holds = new Map<SessionKey, Promise<PrivilegeHold>>();
  return (session) => {
    const hold = holds.get(session) ?? walkUpToHold(ledger, findStep, session);
    holds.set(session, hold);
    return hold;
  };
}

/**
 * Returns whether privileges of a step from the session up to its owner hold it, as `findBoundsOfSession` says it
 * (H3).
 */
async function walkUpToHold(
  ledger: BoundLedger,
  findStep: FindStep,
  session: SessionKey,
): Promise<PrivilegeHold> {
  let above = session;
  for (let depth = 0; depth < BOUNDS.privilegeDepthMax; depth += 1) {
    const childReference: Found | undefined = await ledger.find(nameChildReference(above));
    const step = childReference?.stepId && (await findStep(childReference.runId, childReference.stepId));
    if (!step) return findHoldWithoutStep(ledger, above);
    if (step.isNarrowed) return "bound";
    above = step.sourceSession;
  }
  // Nobody can tell what holds a session whose way up has no end.
  return "bound";
}

/** Returns the hold of a session whose step the ledger does not have, by the bindings that prunes left. */
async function findHoldWithoutStep({ pruned }: BoundLedger, session: SessionKey): Promise<PrivilegeHold> {
  if ((await pruned.listBindings(session)).includes("privilege")) return "bound";
  return isChildSessionKey(session) ? "untold" : "free";
}

/**
 * Returns a `FindStep` that remembers the steps of the coordinations it read, and begins anew where they become too
 * many.
 */
function createCachedStepFinder(ledger: BoundLedger): FindStep {
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
