/** Owns: a small coordination with all that hosts tell about children and that changes no step: their progress, words, use, calls. */
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { AgentId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { PrivilegeBound } from "../../src/agents/coordination/privileges/privilege-bound.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import type { WatchedChild } from "../../src/agents/coordination/runtime/spawns/child-watch.ts";
import { createUsageBook } from "../../src/agents/coordination/runtime/usage/usage-book.ts";
import { createWorld, spawnOf, type World } from "../support/fake-clock-host.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";

const CALL = {
  model: "mock/scripted",
  inputTokens: 80,
  outputTokens: 20,
  cacheReadTokens: 40,
  cacheWriteTokens: 10,
  costNanoUsd: 400,
};

export async function recordNotes(): Promise<RunEvent[][]> {
  const world = createWorld();
  const { clock, host, ledger } = world;
  const usage = createUsageBook("meter-1");
  const coordinator = world.start(undefined, { clock, runner: host, usage, budget: { tokens: 200 } });
  await coordinator.start();
  const child = await spawnWatched(world, coordinator);
  await coordinator.progress(child, { percent: 40, line: "half of it" });
  const watched = await noteRun(coordinator, child);
  await coordinator.childWords.recordSuppressed(child, {
    through: "reply",
    channel: "telegram",
    chars: 12,
    media: 1,
  });
  await coordinator.childWords.keepWhole(child, "a long text", 6);
  await recordRefusedCall(coordinator, watched, child);
  for (let calls = 1; calls <= 2; calls += 1) {
    usage.beginCall({ session: child, runId: "run-of-child", traceId: "trace-1" });
    usage.addUsage(child, CALL);
  }
  await coordinator.usageRecorder.flush();
  await coordinator.usageRecorder.stopChild(child, "call");
  const ending = { outcome: "completed" } as const;
  host.end(child, ending);
  await coordinator.endChild(child, ending);
  await clock.advance(10_000);
  await coordinator.stop();
  return ledger.events();
}

async function spawnWatched({ host }: World, coordinator: Coordinator): Promise<SessionKey> {
  const request = spawnOf({ task: "t" });
  const withModel = { ...request, spawn: { ...request.spawn, requested: { model: "mock/large" } } };
  const admission = await coordinator.admitSpawn(withModel);
  if (admission.kind === "refused") throw new Error(admission.reason);
  const { coordinationId, stepId, sourceSession } = admission.envelope;
  const { childSessionKey, childRunId } = host.spawn(withModel);
  const call = { coordinationId, stepId, sourceSession, toolCallId: "t" };
  await coordinator.confirmSpawn(call, { childSessionKey, childRunId });
  return childSessionKey;
}

/** The child does not run with the model that was asked for. */
async function noteRun({ childWatch }: Coordinator, child: SessionKey): Promise<WatchedChild> {
  const watched = await childWatch.find(child);
  if (!watched) throw new Error("the child works on no step");
  await childWatch.observe(watched, { ran: { model: "mock/small" }, toolNames: ["exec", "read"] });
  return watched;
}

/** One call may not happen; nobody can tell what another one changes. */
async function recordRefusedCall(
  { arbiter, privileges }: Coordinator,
  watched: WatchedChild,
  session: SessionKey,
): Promise<void> {
  const { coordinationId, stepId } = watched;
  const place = { coordinationId, stepId, agentId: "main" as AgentId, session };
  const bound: PrivilegeBound = { ...place, privilege: { tools: { deny: ["exec"] } }, by: "spawn" };
  await privileges.record({ ...place, isPlanned: false }, { tool: "exec", rule: "tools.deny", bound });
  await arbiter.request({
    session,
    tool: "exec",
    callKey: "call-1",
    targets: [],
    reads: [],
    undetermined: { because: "unreadable" },
  });
  await waitUntilSettled();
}
