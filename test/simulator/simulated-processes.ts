/** Owns: what both worlds do with their processes: letting work settle, calls, pauses, orderly stops, and finding circles. */
import { isCoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { OwnerToken } from "../../src/agents/coordination/ports/run-owners.ts";
import { describeError } from "../../src/agents/coordination/std/describe-error.ts";
import type { OwnerRow } from "../../src/infra/ledger/owner-fence.ts";
import { drainTasks, waitUntilSettled } from "../support/fake-clock.ts";
import { pauseLife, resumeLife, type Life } from "./process-life.ts";
import type { Finding } from "./simulation.ts";

/** Lets everything happen that needs no time. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await waitUntilSettled();
}

/** A call that fails takes turns of the event loop, so that whoever makes it again at once does not stop the play. */
export function settleLives(lives: readonly Life[]): Promise<void> {
  const isFailing = lives.some(({ isDisturbed, faults }) => isDisturbed || faults.length > 0);
  return isFailing ? waitUntilSettled() : drainTasks();
}

interface WorkCounter {
  /** Counts calls of ports and timers. */
  work: number;
  readonly problems: string[];
}

/** Many times what any play has needed. */
const WORK_MAX = 200_000;

/** Finds plays that go round in a circle, also where no time passes in it. */
export function countWork(world: WorkCounter): boolean {
  world.work += 1;
  if (world.work === WORK_MAX) world.problems.push("D5: the play does not come to rest");
  return world.work < WORK_MAX;
}

/** Resolves with nothing where the process died, or the call failed, which it does only where something is wrong. */
export async function callProcess<T>(life: Life, work: () => Promise<T>): Promise<T | undefined> {
  if (life.state === "dead") return undefined;
  const noteFailure = (error: unknown): undefined => {
    if (!life.isDisturbed && !isRefusal(error)) life.report(`a call failed: ${describeError(error)}`);
  };
  return Promise.race([work().catch(noteFailure), life.ended.promise.then(() => undefined)]);
}

/** The caller asked for what there is not, or for a coordination that was taken over meanwhile. */
function isRefusal(error: unknown): boolean {
  return isCoordinationError(error) && (error.recovery === "fix-input" || error.code === "NOT_OWNER");
}

/** True for a stop that ends without any time passing, well or badly. */
export async function hasStopped(stop: Promise<void>): Promise<boolean> {
  const stopping = { isDone: false };
  const finish = (): void => {
    stopping.isDone = true;
  };
  void stop.then(finish, finish);
  for (let turn = 0; turn < 8 && !stopping.isDone; turn += 1) await settle();
  return stopping.isDone;
}

export function pauseFor(life: Life, ms: number): void {
  pauseLife(life);
  life.clock.wakeAt((life.clock.now() + ms) as EpochMs, () => resumeLife(life));
}

/** Independent of the fence: says what is wrong with a write that went through, by who the ledger named before it. */
export function findForeignWrite(
  { runId, owner }: { readonly runId: string; readonly owner?: OwnerToken },
  head: OwnerRow | undefined,
): string | undefined {
  if (!owner || !head) return undefined;
  const isSameOwner = owner.id === head.owner_id && owner.token === head.owner_token;
  return isSameOwner ? undefined : `O2: ${owner.id} wrote to ${runId}, which is ${head.owner_id}'s`;
}

interface Play<Move> {
  readonly moves: readonly Move[];
  readonly problems: readonly string[];
  readonly perform: (move: Move) => Promise<void>;
  /** Adds to the problems. */
  readonly check: () => void;
}

/** Makes the moves one after the other, until a check finds something. */
export async function playMoves<Move>({
  moves,
  problems,
  perform,
  check,
}: Play<Move>): Promise<Finding | undefined> {
  for (const [index, move] of moves.entries()) {
    await perform(move);
    check();
    if (problems.length > 0) return { problems: [...problems], atMove: index + 1 };
  }
  return undefined;
}
