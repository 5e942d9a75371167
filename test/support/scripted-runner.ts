/**
 * Owns: an `AgentRunner` without agents. It remembers what it was asked over restarts, as a host does, and does what the
 * script says of each attempt.
 */
import type { Usage } from "../../src/agents/coordination/contracts/fact-fields.ts";
import type { IdempotencyKey, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { ChildEnding, Observation } from "../../src/agents/coordination/contracts/observation.ts";
import type {
  AgentRunner,
  Attempt,
  AttemptOrder,
  Start,
} from "../../src/agents/coordination/ports/agent-runner.ts";

export type Script = (order: AttemptOrder) => ScriptedAttempt;

/** The course of an attempt, as the script of a test says. */
export type ScriptedAttempt =
  /** Ends at once. */
  | ChildEnding
  /** Works until the test ends it. */
  | "work"
  /** The same, and has used so much when it is stopped. */
  | { readonly using: Usage }
  | { readonly refuse: string }
  /** Begins to work, and the answer is lost. */
  | "silent"
  /** Begins to work, and answers only when the test lets it. */
  | "hang"
  /** Begins nothing, and fails where it may only refuse. */
  | "throw"
  /** Begins to work, and speaks of another session. */
  | { readonly as: SessionKey };

interface Run {
  readonly order: AttemptOrder;
  /** The session that it says to be its own. */
  readonly session: SessionKey;
  /** Its use when it is stopped. */
  readonly usage?: Usage;
  ending?: ChildEnding;
  readonly ended: PromiseWithResolvers<Observation>;
  /** Lets a start that hangs answer. */
  answer?: () => void;
}

export interface ScriptedRunner extends AgentRunner {
  /** Every start that was asked for, replays included. */
  readonly orders: readonly AttemptOrder[];
  /** The attempts that began, by key. */
  readonly runs: ReadonlyMap<IdempotencyKey, Run>;
  readonly cancelled: readonly IdempotencyKey[];
  /** Ends the newest attempt of a step. */
  end(stepId: string, ending: ChildEnding): void;
  /** Lets the start of the newest attempt of a step answer, which hung. */
  answer(stepId: string): void;
  /** Forgets an attempt, as a host that crashed may. */
  forget(stepId: string): void;
}

export const endDone = (outputs: object = {}): ChildEnding => ({
  outcome: "completed",
  reply: JSON.stringify(outputs),
});
export const endFailing = (message = "it went wrong"): ChildEnding => ({ outcome: "failed", message });

export function createScriptedRunner(script: Script = () => endDone()): ScriptedRunner {
  const runs = new Map<IdempotencyKey, Run>();
  const orders: AttemptOrder[] = [];
  const cancelled: IdempotencyKey[] = [];
  const newestOf = (stepId: string): Run => {
    const run = [...runs.values()].findLast(({ order }) => order.envelope.stepId === stepId);
    if (!run) throw new Error(`no attempt of ${stepId} began`);
    return run;
  };
  const finish = (run: Run, ending: ChildEnding): void => {
    if (run.ending) return;
    run.ending = ending;
    run.ended.resolve(observeRun(run));
  };
  return {
    orders,
    runs,
    cancelled,
    end: (stepId, ending) => {
      finish(newestOf(stepId), ending);
    },
    forget: (stepId) => {
      runs.delete(newestOf(stepId).order.idempotencyKey);
    },
    answer: (stepId) => {
      newestOf(stepId).answer?.();
    },
    start: (order) => {
      orders.push(order);
      const knownRun = runs.get(order.idempotencyKey);
      if (knownRun) return Promise.resolve(startOf(knownRun));
      const scripted = script(order);
      if (scripted === "throw") return Promise.reject(new Error("the host broke down"));
      if (typeof scripted === "object" && "refuse" in scripted)
        return Promise.resolve({ kind: "refused", message: scripted.refuse });
      const run = createRun(order, scripted);
      runs.set(order.idempotencyKey, run);
      if (typeof scripted === "object" && "outcome" in scripted) finish(run, scripted);
      return scripted === "hang" ? hangRun(run) : Promise.resolve(answerOf(run, scripted));
    },
    observe: ({ idempotencyKey }) => {
      const run = runs.get(idempotencyKey);
      return Promise.resolve(run ? observeRun(run) : { kind: "absent" });
    },
    follow: (attempt, signal) => followRun(runs.get(attempt.idempotencyKey), signal),
    cancel: ({ idempotencyKey }: Attempt) => {
      cancelled.push(idempotencyKey);
      const run = runs.get(idempotencyKey);
      if (!run || run.ending) return Promise.resolve("already_ended");
      finish(run, { outcome: "cancelled", ...(run.usage && { usage: run.usage }) });
      return Promise.resolve("stopped");
    },
  };
}

function createRun(order: AttemptOrder, scripted: ScriptedAttempt): Run {
  const ended = Promise.withResolvers<Observation>();
  const run: Run = { order, session: order.childSessionKey, ended };
  if (typeof scripted !== "object") return run;
  if ("as" in scripted) return { ...run, session: scripted.as };
  return "using" in scripted ? { ...run, usage: scripted.using } : run;
}

function followRun(run: Run | undefined, signal: AbortSignal): Promise<Observation> {
  if (!run) return Promise.resolve({ kind: "absent" });
  const aborted = new Promise<Observation>((resolve) => {
    signal.addEventListener("abort", () => resolve({ kind: "unknown" }), { once: true });
  });
  return Promise.race([run.ended.promise, aborted]);
}

function answerOf(run: Run, scripted: ScriptedAttempt): Start {
  return scripted === "silent" ? { kind: "unknown", message: "silent" } : startOf(run);
}

function hangRun(run: Run): Promise<Start> {
  return new Promise((resolve) => {
    run.answer = () => {
      resolve(startOf(run));
    };
  });
}

function childOf({ order, session }: Run): { childSessionKey: SessionKey; childRunId: string } {
  return { childSessionKey: session, childRunId: order.idempotencyKey };
}

function observeRun(run: Run): Observation {
  return run.ending
    ? { kind: "ended", ...childOf(run), ...run.ending }
    : { kind: "running", ...childOf(run) };
}

function startOf(run: Run): Start {
  return { kind: "started", child: childOf(run), ...(run.ending && { ending: run.ending }) };
}
