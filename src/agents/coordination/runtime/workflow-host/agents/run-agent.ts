/**
 * Owns: running an agent of a manifest to its end for a caller in this process: the chat surface of a host, and the seams of the
 * protocol's suite. It is the same run as that of every other entry point.
 */
import { hasRunEnded, type WorkflowStatus } from "../../../contracts/workflows/workflow-summary.ts";
import type {
  AgentRun,
  AgentRunAsked,
  HostAnswer,
  Caller,
  RunSnapshot,
  WorkflowHost,
} from "../records/workflow-host.ts";

/**
 * Says how far a run is followed: until it asks people something, whatever else of it works; until it does nothing but wait for
 * them, which is where it is not said; or to its end.
 */
export type FollowedUntil = "asking" | "waiting" | "ended";

/** A caller who follows a run, how far, and the signal that ends it. */
interface RunFollower {
  readonly caller: Caller;
  readonly signal: AbortSignal;
  readonly until?: FollowedUntil;
}

interface AgentRunRequest extends RunFollower {
  readonly asked: AgentRunAsked;
}

interface WaitingRun {
  readonly runId: string;
  readonly status: WorkflowStatus;
  readonly isAsking?: true;
  readonly childRuns?: readonly WaitingRun[];
}

type WatchedHost = Pick<WorkflowHost, "snapshot" | "watch">;
export type AgentRunHost = WatchedHost & Pick<WorkflowHost, "create">;

/**
 * Starts a run of an agent, and waits until it has ended, waits for people or `signal` aborts. Returns its id and
 * newest snapshot, or the refusal.
 */
export async function runAgent(
  host: AgentRunHost,
  { caller, asked: { agentId, source, ...agentRun }, signal }: AgentRunRequest,
): Promise<HostAnswer<AgentRun>> {
  const created = await host.create(caller, {
    workflowId: "",
    agent: { agentId, source },
    transport: "rest",
    ...agentRun,
  });
  if (created.kind === "refused") return created;
  const { runId } = created.value;
  const snapshot = await awaitSettledRun(host, runId, { caller, signal });
  return snapshot.kind === "refused"
    ? snapshot
    : { kind: "done", value: { runId, snapshot: snapshot.value } };
}

/**
 * Follows a run until it has ended, is as far as `until` says (by default: waits for people) or `signal` aborts.
 * Returns its newest snapshot, or the refusal of it.
 */
export async function awaitSettledRun(
  host: WatchedHost,
  runId: string,
  follower: RunFollower,
): Promise<HostAnswer<RunSnapshot>> {
  let last: HostAnswer<RunSnapshot> | undefined;
  for await (const found of followRun(host, runId, follower)) last = found;
  // It yields once at least.
  return last as HostAnswer<RunSnapshot>;
}

/**
 * Yields the newest snapshot of a run at once, and again whenever it or a run that it waits for has news, until it has
 * ended, is as far as it is followed, `signal` aborts or the snapshot is refused.
 */
export async function* followRun(
  host: WatchedHost,
  runId: string,
  { caller, signal, until = "waiting" }: RunFollower,
): AsyncGenerator<HostAnswer<RunSnapshot>> {
  let wake: () => void = () => undefined;
  const watches = new Map<string, () => void>();
  const watchOnly = (runIds: ReadonlySet<string>): void => {
    for (const id of runIds)
      if (!watches.has(id))
        watches.set(
          id,
          host.watch(id, () => wake()),
        );
    for (const [id, forget] of watches) {
      if (runIds.has(id)) continue;
      forget();
      watches.delete(id);
    }
  };
  const stop = (): void => wake();
  signal.addEventListener("abort", stop, { once: true });
  try {
    watchOnly(new Set([runId]));
    for (;;) {
      const news = new Promise<void>((resolve) => (wake = resolve));
      const newestSnapshot = await host.snapshot(caller, runId);
      yield newestSnapshot;
      if (newestSnapshot.kind === "refused" || signal.aborted) return;
      if (isFarEnough(newestSnapshot.value, until)) return;
      const runIds = listRunIds(newestSnapshot.value);
      const isChildNew = runIds.some((id) => !watches.has(id));
      // A child that asks people something appends nothing to this run.
      watchOnly(new Set(runIds));
      // A new child may have asked before it was watched: look again.
      if (!isChildNew) await news;
    }
  } finally {
    signal.removeEventListener("abort", stop);
    watchOnly(new Set());
  }
}

/** True where the run has ended, or has come as far as `until` says. */
function isFarEnough(run: RunSnapshot, until: FollowedUntil): boolean {
  if (hasRunEnded(run.status)) return true;
  if (until === "ended") return false;
  return run.status.startsWith("waiting-") || (until === "asking" && hasOpenQuestion(run));
}

/** True where the run or one that it waits for asks somebody something, whatever its status says. */
function hasOpenQuestion({ interrupt, childRuns = [] }: RunSnapshot & Partial<WaitingRun>): boolean {
  return interrupt !== undefined || childRuns.some(isAskingSomebody);
}

/** True where a run's snapshot says that the run, or a child run that it waits for, asks somebody something. */
export function isAskingSomebody({ status, isAsking, childRuns = [] }: Omit<WaitingRun, "runId">): boolean {
  return isAsking === true || status.startsWith("waiting-") || childRuns.some(isAskingSomebody);
}

/** Lists the run and all that it waits for, directly or not. */
function listRunIds({ runId, childRuns = [] }: Pick<WaitingRun, "runId" | "childRuns">): string[] {
  return [runId, ...childRuns.flatMap(listRunIds)];
}
