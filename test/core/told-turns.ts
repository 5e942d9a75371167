/**
 * Owns: a world whose host knows what a real one does of the turns in which sessions are told something: a session counts as told as
 * soon as the message is in it, however that turn ends; its owner's turn is stopped by nobody but the runner of subagents, and the
 * newest words of a session are the last ones of its first run, too.
 */
import type { Observation } from "../../src/agents/coordination/contracts/observation.ts";
import type { AgentRunner, Attempt } from "../../src/agents/coordination/ports/agent-runner.ts";
import { createWorld, type World } from "../support/fake-clock-host.ts";
import {
  createScriptedRunner,
  endFailing,
  type ScriptedAttempt,
  type ScriptedRunner,
} from "../support/scripted-runner.ts";
import { createEscalationsWith, createGatesWith } from "./gates-world.ts";
import { PLAN_ID, scriptOf } from "./planned-world.ts";

/** So long after a turn is due the host may have begun it without a record of it yet. */
const BEGIN_MS_MAX = 60_000;

const GATES = { gates: createGatesWith([]), escalations: createEscalationsWith({}) };

export interface ToldWorld {
  readonly world: World;
  readonly scripted: ScriptedRunner;
  /** The last words in the session of the first attempt of step `a`. */
  readonly words: { newest: string };
  /**
   * Waiting: the message waits for the turn before it, so that nobody was told yet. Silent: the host says nothing of it. Earlier: the
   * turn began in a process before, so that the owner's runner waits for its answer no longer. Second: a crash took the first run, and
   * another one tells it.
   */
  readonly queue: { isWaiting: boolean; isSilent: boolean; isEarlier: boolean; isSecond: boolean };
  /**
   * Says of the key of a turn that is to be stopped whether it is out of reach, and whether the host never answers. Unknown: the host
   * does not say how the turn goes. Mute: it never answers when it is asked how the turn goes.
   */
  readonly reach: Record<"isLost" | "isSilent" | "isUnknown" | "isMute", (key: string) => boolean>;
}

export function createToldWorld(scripts: Readonly<Record<string, readonly ScriptedAttempt[]>>): ToldWorld {
  const scripted = createScriptedRunner(scriptOf(scripts));
  const words = { newest: "Waiting" };
  const queue = { isWaiting: false, isSilent: false, isEarlier: false, isSecond: false };
  const isNone = (): boolean => false;
  const reach: ToldWorld["reach"] = { isLost: isNone, isSilent: isNone, isUnknown: isNone, isMute: isNone };
  const observe = async (attempt: Attempt): Promise<Observation> => {
    if (reach.isMute(attempt.idempotencyKey)) return new Promise(() => undefined);
    if (reach.isUnknown(attempt.idempotencyKey)) return { kind: "unknown" };
    const seen = await scripted.observe(attempt);
    const isLost = queue.isSecond && attempt.childRunId?.startsWith("plan-2:@delivery:");
    if (isLost && seen.kind === "running")
      return { ...seen, kind: "ended", ...endFailing("a crash took the run") };
    const isFirst = attempt.idempotencyKey === `${PLAN_ID}:a:1`;
    return seen.kind === "ended" && isFirst ? { ...seen, reply: words.newest } : seen;
  };
  const follow: AgentRunner["follow"] = async (attempt, signal) => {
    const seen = await scripted.follow(attempt, signal);
    return seen.kind === "ended" ? observe(attempt) : seen;
  };
  const cancel: AgentRunner["cancel"] = (attempt) => {
    if (reach.isSilent(attempt.idempotencyKey)) return new Promise(() => undefined);
    return reach.isLost(attempt.idempotencyKey) ? Promise.resolve("unreachable") : scripted.cancel(attempt);
  };
  const subagent: AgentRunner = { ...scripted, observe, follow, cancel };
  const observeTelling = async (attempt: Attempt): Promise<Observation> => {
    if (reach.isMute(attempt.idempotencyKey)) return new Promise(() => undefined);
    if (queue.isSilent) return { kind: "unknown" };
    const seen = await scripted.observe(attempt);
    const mayBegin = !queue.isEarlier && plain.clock.now() - attempt.dispatchedAtMs < BEGIN_MS_MAX;
    if (seen.kind === "absent" && mayBegin) return { kind: "unknown" };
    if ((seen.kind !== "running" && seen.kind !== "ended") || queue.isWaiting) return seen;
    const childRunId = queue.isSecond ? `run-2:${seen.childRunId}` : seen.childRunId;
    return { ...seen, childRunId, kind: "ended", outcome: "completed" };
  };
  const owner: AgentRunner = {
    ...scripted,
    observe: observeTelling,
    follow: async (attempt, signal) => {
      if (queue.isEarlier) return observeTelling(attempt);
      const seen = await scripted.follow(attempt, signal);
      return seen.kind === "ended" ? observeTelling(attempt) : seen;
    },
    cancel: () => Promise.resolve("already_ended"),
  };
  const plain = createWorld({}, scripted, GATES);
  const outside = {
    clock: plain.clock,
    runner: plain.host,
    runners: { subagent, owner, acp_stdio: subagent },
  };
  const world: World = {
    ...plain,
    get texts() {
      return plain.texts;
    },
    start: (wrap) => plain.start(wrap, outside),
  };
  return { world, scripted, words, queue, reach };
}

/** Returns the outputs with which step `a` of the plan completed. */
export function listOutputsOfA({ ledger }: World): (string | undefined)[] {
  return ledger
    .events()
    .flat()
    .flatMap((event) =>
      event.type === "step.completed" && event.runId === PLAN_ID && event.nodeId === "a"
        ? [ledger.contents.get(event.payload.output?.sha256 ?? "")?.text]
        : [],
    );
}
