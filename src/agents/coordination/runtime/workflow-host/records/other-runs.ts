/**
 * Owns: asking for runs that are no workflow runs, where an id is not one of those. The logs of one ledger hold runs of
 * several kinds, and a client need not know which is which.
 */
import { refuse } from "./refuse.ts";
import type {
  Ancestry,
  HostAnswer,
  Caller,
  CreatedRun,
  EventPage,
  OpenInterrupt,
  QuestionPlace,
  ResolvedInterrupt,
  RunSnapshot,
  WorkflowHost,
} from "./workflow-host.ts";

/** Runs of another kind. `undefined`: the caller knows no such run. */
export interface OtherRuns {
  snapshot(caller: Caller, runId: string): Promise<HostAnswer<RunSnapshot> | undefined>;
  events(
    caller: Caller,
    runId: string,
    range: { readonly from: number; readonly limit: number },
  ): Promise<HostAnswer<EventPage> | undefined>;
  /** Returns how many events the log of a run has. Cheap: whoever watches a run asks again and again. */
  length(runId: string): Promise<number | undefined>;
  ancestry(caller: Caller, runId: string): Promise<HostAnswer<Ancestry> | undefined>;
  cancel(caller: Caller, runId: string): Promise<HostAnswer<CreatedRun> | undefined>;
  /** Returns the oldest open question that the place names. */
  question(
    caller: Caller,
    runId: string,
    question: QuestionPlace,
  ): Promise<HostAnswer<OpenInterrupt> | undefined>;
  /** Answers it. */
  resolve(
    caller: Caller,
    runId: string,
    question: QuestionPlace,
    resumeValue: unknown,
  ): Promise<HostAnswer<ResolvedInterrupt> | undefined>;
}

const UNPAUSABLE = {
  run_not_pausable: "a coordination of agents cannot be paused",
  run_not_paused: "a coordination of agents is never paused, so that it cannot be resumed",
};

/**
 * Returns the host wrapped so that a request about a run that it does not have is answered by the others. Those are
 * never paused: such a request is refused.
 */
export function withOtherRuns(host: WorkflowHost, others: OtherRuns): WorkflowHost {
  const refusePause = async (caller: Caller, runId: string, code: keyof typeof UNPAUSABLE) => {
    const snapshot = await others.snapshot(caller, runId);
    if (snapshot?.kind !== "done") return snapshot;
    const details = { runStatus: snapshot.value.status, canPause: false };
    return refuse(code, UNPAUSABLE[code], details);
  };
  return {
    ...host,
    get hostId() {
      return host.hostId;
    },
    snapshot: (caller, runId) =>
      askOtherIfUnknown(host.snapshot(caller, runId), () => others.snapshot(caller, runId)),
    events: (caller, runId, range) =>
      askOtherIfUnknown(host.events(caller, runId, range), () => others.events(caller, runId, range)),
    ancestry: (caller, runId) =>
      askOtherIfUnknown(host.ancestry(caller, runId), () => others.ancestry(caller, runId)),
    cancel: (caller, runId, request) =>
      askOtherIfUnknown(host.cancel(caller, runId, request), () => others.cancel(caller, runId)),
    pause: (caller, runId, request) =>
      askOtherIfUnknown(host.pause(caller, runId, request), () =>
        refusePause(caller, runId, "run_not_pausable"),
      ),
    resume: (caller, runId) =>
      askOtherIfUnknown(host.resume(caller, runId), () => refusePause(caller, runId, "run_not_paused")),
    question: (caller, runId, question) =>
      askOtherIfUnknown(host.question(caller, runId, question), () =>
        others.question(caller, runId, question),
      ),
    resolve: (caller, runId, question, value) =>
      askOtherIfUnknown(host.resolve(caller, runId, question, value), () =>
        others.resolve(caller, runId, question, value),
      ),
  };
}

/** Returns the first answer; where it is that there is no such run, the other one, if there is any. */
async function askOtherIfUnknown<T>(
  first: Promise<HostAnswer<T>>,
  other: () => Promise<HostAnswer<T> | undefined>,
): Promise<HostAnswer<T>> {
  const answered = await first;
  if (answered.kind === "done" || answered.code !== "not_found") return answered;
  return (await other()) ?? answered;
}
