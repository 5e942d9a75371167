/**
 * Three gateways on one ledger, killed, paused, begun again and asked for things at any moment: each plan has one end, no attempt
 * is started by two gateways, only the home gateway tells the owner, and the ledger is sound.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import { DELIVERY_STEP_ID, type CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { endDone, type Script } from "../support/scripted-runner.ts";
import { AGENT, createGateways, LEASE_MS, type Gateways, type TestGateway } from "./gateways-scene.ts";
import { plan, step } from "./planned-world.ts";

const NAMES = ["a", "b", "c"] as const;
type Name = (typeof NAMES)[number];

const gatewayNames = fc.constantFrom<Name[]>(...NAMES);

const moves = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("submit" as const), at: gatewayNames }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("kill" as const), at: gatewayNames, isOnMachine: fc.boolean() }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("pause" as const), at: gatewayNames }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("resume" as const), at: gatewayNames }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("cancel" as const), at: gatewayNames, plan: fc.nat(9) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("wait" as const),
      ms: fc.integer({ min: 1, max: LEASE_MS * 2 }),
    }),
  },
);
type Move = typeof moves extends fc.Arbitrary<infer M> ? M : never;

/** Works for a while, so that gateways are killed and paused in the middle of it. */
const WORK_MS = 3_000;

interface Play {
  readonly gateways: Gateways;
  readonly running: Map<Name, TestGateway>;
  readonly paused: Set<Name>;
  /** Every process that there was. */
  readonly all: TestGateway[];
  readonly planIds: CoordinationId[];
}

async function startGateway(play: Play, name: Name): Promise<void> {
  const script: Script = ({ envelope: { stepId } }) => {
    if (stepId === DELIVERY_STEP_ID) return endDone();
    play.gateways.clock.wakeAt((play.gateways.clock.now() + WORK_MS) as never, () => {
      gateway.plans.end(stepId, endDone());
    });
    return "work";
  };
  const gateway = await play.gateways.start(name, script);
  play.running.set(name, gateway);
  play.all.push(gateway);
}

async function submit({ gateways, planIds }: Play, { coordinator, name }: TestGateway): Promise<void> {
  const coordinationId = `plan-${planIds.length}-of-${name}` as CoordinationId;
  planIds.push(coordinationId);
  const steps = [
    step(`s${planIds.length}`),
    step(`t${planIds.length}`, { dependsOn: [`s${planIds.length}`] }),
  ];
  const defaults = { retry: { budget: 20, backoffMs: 1_000 } };
  const fields = {
    coordinationId,
    defaults,
    failurePolicy: { retryBudget: 40, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
  };
  await coordinator.submitPlan({ plan: plan(steps, fields), ownerAgent: AGENT });
  await gateways.clock.advance(1);
}

async function move(play: Play, action: Move): Promise<void> {
  const { gateways, running, paused, planIds } = play;
  if (action.kind === "wait") return gateways.clock.advance(action.ms);
  const gateway = running.get(action.at);
  if (action.kind === "kill") {
    gateway?.kill(action);
    running.delete(action.at);
    paused.delete(action.at);
  } else if (!gateway) await startGateway(play, action.at);
  else if (action.kind === "pause") {
    gateway.pause();
    paused.add(action.at);
  } else if (action.kind === "resume") {
    paused.delete(action.at);
    await gateway.resume();
  } else if (!paused.has(action.at)) {
    if (action.kind === "submit") return submit(play, gateway);
    const coordinationId = planIds[action.plan % Math.max(1, planIds.length)];
    if (coordinationId) await gateway.coordinator.cancel({ coordinationId, by: "operator" });
  }
}

async function endAllPlans(play: Play): Promise<void> {
  const { gateways, running, paused } = play;
  for (const name of paused) await running.get(name)?.resume();
  await gateways.clock.advance(LEASE_MS * 3);
  for (const name of NAMES) if (!running.has(name)) await startGateway(play, name);
  await gateways.clock.advance(LEASE_MS * 60);
}

function listTerminals(events: readonly RunEvent[]): RunEvent[] {
  return events.filter(({ type }) => type === "coordination.terminal");
}

function check({ gateways, all, planIds }: Play): void {
  for (const planId of planIds) {
    const terminals = listTerminals(gateways.eventsOf(planId));
    expect(terminals, planId).toHaveLength(1);
    // Every gateway came back in time, and nobody waits for one where people cancelled.
    expect(terminals[0]?.payload, planId).not.toMatchObject({ status: "success", delivery: "not_delivered" });
  }
  const startedIn = new Map<string, string>();
  for (const { name, plans } of all)
    for (const { idempotencyKey: key, envelope } of plans.orders) {
      expect(startedIn.get(key) ?? name, `${key} is started by one gateway`).toBe(name);
      startedIn.set(key, name);
      if (envelope.stepId === DELIVERY_STEP_ID) expect(key).toContain(`-of-${name}:`);
    }
}

it("brings every plan to one end, whatever happens to the gateways", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(moves, { minLength: 5, maxLength: 40 }), async (actions) => {
      await using gateways = createGateways();
      const play: Play = { gateways, running: new Map(), paused: new Set(), all: [], planIds: [] };
      for (const name of NAMES) await startGateway(play, name);
      for (const action of actions) await move(play, action);
      await endAllPlans(play);
      await waitUntilSettled();
      check(play);
    }),
    { numRuns: 40 },
  );
});
