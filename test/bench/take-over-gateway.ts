/**
 * `node take-over-gateway.ts '{"url":...,"name":...,"leaseMs":...,"stepMs":...}'`: the coordinator of a gateway on a shared database,
 * in a process of its own, whose agents take `stepMs`. It prints a line when it has started, and one for each plan that it was
 * given as a line of standard input.
 */
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { AgentRunner } from "../../src/agents/coordination/ports/agent-runner.ts";
import { createCoordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { createSpawnGate } from "../../src/agents/coordination/runtime/spawns/spawn-gate.ts";
import { steadyClock } from "../../src/infra/clock/steady-clock.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import { createPQueueLanes } from "../../src/infra/lanes/p-queue-lanes.ts";
import { openGatewayLedger } from "../../src/plugins/gateway-ledger.ts";
import { createArbitrationDependencies } from "../support/arbitration-dependencies.ts";
import { createGateDependencies } from "../support/gate-dependencies.ts";
import { AGENT, createSilentRunner, quietLogger, TEST_SETTINGS } from "../support/ledger-fixtures.ts";
import { planDependencies } from "../support/plan-dependencies.ts";
import { planOf } from "./plan-host.ts";

interface GatewayArguments {
  readonly url: string;
  readonly name: string;
  readonly leaseMs: number;
  readonly stepMs: number;
}

interface WantedPlan {
  readonly id: string;
  readonly steps: number;
}

const { url, name, leaseMs, stepMs } = JSON.parse(process.argv[2] ?? "{}") as GatewayArguments;
const { store, shared } = await openGatewayLedger({
  place: url,
  gateway: name,
  settings: { leaseMs, orphanMs: 3_600_000 },
  logger: quietLogger,
  clock: systemClock,
  steady: steadyClock,
});
const limits = { control: 4, data: 8, escalation: 1, queueMax: 256, agingMs: TEST_SETTINGS.agingMs };
const coordinator = createCoordinator({
  store,
  content: store,
  runner: createSilentRunner(),
  ...planDependencies(createSlowRunner()),
  ...createArbitrationDependencies(),
  ...createGateDependencies(),
  clock: systemClock,
  logger: quietLogger,
  lanes: createPQueueLanes(limits, systemClock),
  gate: createSpawnGate({ clock: systemClock, limits: { spawnsMax: 1_000 } }),
  settings: { ...TEST_SETTINGS, gateway: name },
  newCoordinationId: () => "co-unused" as CoordinationId,
  ...(shared && { shared: { ...shared, onReplaced: () => process.exit(1) } }),
});
await coordinator.start();
console.log("started");
for await (const line of createInterface({ input: process.stdin })) {
  const { id, steps } = JSON.parse(line) as WantedPlan;
  const submitted = await coordinator.submitPlan({ plan: planOf(id, "chain", steps), ownerAgent: AGENT });
  console.log(submitted.kind);
}

/** Its steps end with a small result of their own. */
function createSlowRunner(): AgentRunner {
  return {
    start: async ({ childSessionKey, idempotencyKey, envelope }) => {
      await delay(stepMs);
      const child = { childSessionKey, childRunId: idempotencyKey };
      return { kind: "started", child, ending: { outcome: "completed", reply: envelope.stepId } };
    },
    observe: () => Promise.resolve({ kind: "unknown" }),
    follow: () => new Promise(() => undefined),
    cancel: () => Promise.resolve("already_ended"),
  };
}
