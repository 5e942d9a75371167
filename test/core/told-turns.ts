/**
 * Owns: a world whose host knows what a real one does of the turns in which sessions are told something: a session counts as told as
 * soon as the message is in it, its owner's turn is stopped by nobody but the runner of subagents, and the newest words of a session
 * are the last ones of its first run, too.
 */
import type { AgentRunner, Attempt } from "../../src/agents/coordination/ports/agent-runner.ts";
import { createWorld, type World } from "../support/fake-clock-host.ts";
import { createScriptedRunner, type Scripted, type ScriptedRunner } from "../support/scripted-runner.ts";
import { createEscalationsWith, createGatesWith } from "./gates-world.ts";
import { PLAN_ID, scriptOf } from "./planned-world.ts";

const GATES = { gates: createGatesWith([]), escalations: createEscalationsWith({}) };

export interface ToldWorld {
  readonly world: World;
  readonly scripted: ScriptedRunner;
  /** The last words in the session of the first attempt of step `a`. */
  readonly words: { newest: string };
  /** Waiting: the message waits for the turn before it, so that nobody was told yet. Silent: the host says nothing of it. */
  readonly queue: { isWaiting: boolean; isSilent: boolean };
}

export function createToldWorld(scripts: Readonly<Record<string, readonly Scripted[]>>): ToldWorld {
  const scripted = createScriptedRunner(scriptOf(scripts));
  const words = { newest: "Waiting" };
  const queue = { isWaiting: false, isSilent: false };
  const observe = async (attempt: Attempt) => {
    const seen = await scripted.observe(attempt);
    const isFirst = attempt.idempotencyKey === `${PLAN_ID}:a:1`;
    return seen.kind === "ended" && isFirst ? { ...seen, reply: words.newest } : seen;
  };
  const follow: AgentRunner["follow"] = async (attempt, signal) => {
    const seen = await scripted.follow(attempt, signal);
    return seen.kind === "ended" ? observe(attempt) : seen;
  };
  const subagent: AgentRunner = { ...scripted, observe, follow };
  const owner: AgentRunner = {
    ...scripted,
    observe: async (attempt) => {
      if (queue.isSilent) return { kind: "unknown" };
      const seen = await scripted.observe(attempt);
      if (seen.kind !== "running" || queue.isWaiting) return seen;
      return { ...seen, kind: "ended", outcome: "completed" };
    },
    cancel: () => Promise.resolve("already_ended"),
  };
  const plain = createWorld({}, scripted, GATES);
  const outside = {
    clock: plain.clock,
    runner: plain.host,
    runners: { subagent, owner, acp_stdio: subagent },
  };
  return { world: { ...plain, start: (wrap) => plain.start(wrap, outside) }, scripted, words, queue };
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
