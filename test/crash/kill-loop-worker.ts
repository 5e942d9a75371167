/**
 * A process that runs the real coordinator on a real ledger and spawns, confirms, refuses and ends steps at random, many
 * at once, until it is killed; between, children do what else is recorded of them. It tells its parent each acknowledged
 * append, one line each on descriptor 3.
 */
import { writeSync } from "node:fs";
import { once } from "node:events";
import { flushCompileCache } from "node:module";
import type { CoordinationId, SessionKey, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Observation } from "../../src/agents/coordination/contracts/observation.ts";
import type { SpawnObserver } from "../../src/agents/coordination/ports/spawn-observer.ts";
import { createUsageBook } from "../../src/agents/coordination/runtime/usage/usage-book.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import { AGENT, nameChildSession, OWNER, spawnRequest, testCoordinator } from "../support/ledger-fixtures.ts";
import { createRandom } from "../support/random.ts";
import { openTestLedger } from "../support/temp-ledger.ts";

/** Facts about a child beside its work: what it runs as, how far it is, its words, its refused calls and its use. */
const DEEDS = ["observed", "progressed", "shortened", "suppressed", "refused a call", "used"] as const;
/** A kind of fact about a child that the worker records beside its work. */
export type ChildDeed = (typeof DEEDS)[number];

/** An operation that the worker was told is in the ledger. */
export interface AcknowledgedOperation {
  readonly operation: "admitted" | "confirmed" | "ended" | ChildDeed;
  readonly runId: CoordinationId;
  readonly stepId: string;
  /** The tool call of a spawn, or the session of a child. */
  readonly key: string;
}

const ACKNOWLEDGEMENTS_FD = 3;
const TASKS = 12;
const TRACES = 3;

const USED = {
  model: "acme/small",
  inputTokens: 80,
  outputTokens: 20,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costNanoUsd: 400,
};

const [, , path = "", round = "0"] = process.argv;
const usage = createUsageBook(`meter-${round}`);
const random = createRandom(Number(round) + 1);
const pick = (count: number): number => Math.floor(random() * count);

function tell(acknowledged: AcknowledgedOperation): void {
  writeSync(ACKNOWLEDGEMENTS_FD, `${JSON.stringify(acknowledged)}\n`);
}

const startedAtMs = Date.now();

/** A host that remembers some of what the processes before asked of it; of this one's spawns the hooks tell. */
const runner: SpawnObserver = {
  observe: ({ childSessionKey, dispatchedAtMs }) => {
    if (dispatchedAtMs >= startedAtMs) return Promise.resolve({ kind: "unknown" });
    const key = childSessionKey ?? nameChildSession(`found-${round}-${dispatchedAtMs}-${pick(1e9)}`);
    const child = { childSessionKey: key, childRunId: "host-run" };
    const answers: readonly Observation[] = [
      { kind: "unknown" },
      { kind: "absent" },
      { kind: "running", ...child },
      { kind: "ended", ...child, outcome: "completed" },
    ];
    return Promise.resolve(answers[pick(answers.length)] ?? { kind: "unknown" });
  },
  bind: () => Promise.resolve(),
  stop: () => Promise.resolve("already_ended"),
};

async function spawnAndEnd(call: string): Promise<void> {
  const request = spawnRequest({ call, trace: `trace-${round}-${pick(TRACES)}` });
  const admission = await coordinator.admitSpawn(request);
  if (admission.kind === "refused") throw new Error(admission.reason);
  const { coordinationId: runId, stepId } = admission.envelope;
  tell({ operation: "admitted", runId, stepId, key: call });
  const claim = { coordinationId: runId, stepId, sourceSession: OWNER, toolCallId: call };
  if (pick(8) === 0) {
    await coordinator.refuseSpawn(claim, "not today");
    tell({ operation: "ended", runId, stepId, key: call });
    return;
  }
  const child: SessionKey = nameChildSession(call);
  await coordinator.confirmSpawn(claim, { childSessionKey: child, childRunId: `host-${call}` });
  tell({ operation: "confirmed", runId, stepId, key: child });
  const deed = DEEDS[pick(DEEDS.length * 2)];
  if (deed) {
    await perform(deed, { runId, stepId, child });
    tell({ operation: deed, runId, stepId, key: child });
  }
  if (pick(5) === 0) return;
  const outcome = (["completed", "failed", "cancelled", "timed_out"] as const)[pick(4)] ?? "completed";
  await coordinator.endChild(child, { outcome });
  tell({ operation: "ended", runId, stepId, key: child });
}

interface ChildStep {
  readonly runId: CoordinationId;
  readonly stepId: StepId;
  readonly child: SessionKey;
}

async function perform(deed: ChildDeed, { runId, stepId, child }: ChildStep): Promise<void> {
  const { childWatch, childWords, privileges, usageRecorder } = coordinator;
  switch (deed) {
    case "observed": {
      const watched = await childWatch.find(child);
      if (!watched) throw new Error(`${child} works on nothing`);
      await childWatch.observe(watched, { ran: { model: "acme/small" } });
      return;
    }
    case "progressed":
      await coordinator.progress(child, { percent: pick(101), line: "on its way" });
      return;
    case "shortened":
      return childWords.keepWhole(child, `${child}\n`.repeat(2_000), 16_000);
    case "suppressed":
      return childWords.recordSuppressed(child, { through: "reply", channel: "chat", chars: 7, media: 0 });
    case "refused a call": {
      const { step } = await privileges.boundsOf(child, () => undefined);
      if (!step) throw new Error(`${child} is nobody's child`);
      const privilege = { tools: { allow: ["read"] } };
      const place = { coordinationId: runId, stepId, agentId: AGENT, session: child };
      const bound = { ...place, privilege, by: "spawn" as const };
      return privileges.record(step, { tool: "exec", rule: "tools.allow", bound });
    }
    case "used":
      usage.beginCall({ session: child, runId: `run of ${child}` });
      usage.addUsage(child, USED);
      return usageRecorder.flush(child);
  }
}

let spawned = 0;
async function workOn(task: number): Promise<never> {
  for (;;) await spawnAndEnd(`call-${round}-${task}-${(spawned += 1)}`);
}

// A killed process writes no cache at its end. Without one, most of a round is compiling.
flushCompileCache();
process.stdout.write("ready\n");
await once(process.stdin, "data");
const store = await openTestLedger(path, { clock: systemClock });
let opened = 0;
const coordinator = testCoordinator({
  store,
  runner,
  clock: systemClock,
  usage,
  newCoordinationId: () => `co-${round}-${(opened += 1)}` as CoordinationId,
  settings: { settleMs: 5, acknowledgeMs: 100, sweepMs: 20 },
});
await Promise.all([coordinator.start(), ...Array.from({ length: TASKS }, (_, task) => workOn(task))]);
