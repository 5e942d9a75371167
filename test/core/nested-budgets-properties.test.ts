/**
 * Whatever the agents of a plan submit, however their work ends and whenever the process does: the plan and the plans inside begin no
 * more attempts together than its budget allows, each of them ends, and the ledger is sound.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import type { AttemptOrder } from "../../src/agents/coordination/ports/agent-runner.ts";
import { endDone, endFailing, type Script } from "../support/scripted-runner.ts";
import { AGENT, createRetries, plan, runPlan, step, type Fields, type PlanRun } from "./planned-world.ts";

const moves = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("submit" as const),
      agent: fc.nat(9),
      steps: fc.integer({ min: 1, max: 4 }),
      spawns: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("end" as const), agent: fc.nat(9), isDone: fc.boolean() }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(100, 5_000, 70_000) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("cancel" as const), agent: fc.nat(9) }),
  },
);
type Move = typeof moves extends fc.Arbitrary<infer M> ? M : never;

const work: Script = ({ envelope }) => (envelope.stepId.startsWith("@") ? endDone() : "work");

/** The orders whose agents are at work. */
function listWorking({ world }: PlanRun): AttemptOrder[] {
  return [...world.plans.runs.values()].filter(({ ending }) => !ending).map(({ order }) => order);
}

/** Counts the plans that have no end. */
function countOpen(run: PlanRun): number {
  return run.events("coordination.created").length - run.events("coordination.terminal").length;
}

let submitted = 0;

async function perform(run: PlanRun, move: Move): Promise<void> {
  if (move.kind === "wait") return run.advance(move.ms);
  if (move.kind === "restart") {
    await run.restart();
    return;
  }
  const working = listWorking(run);
  const order = working[move.agent % Math.max(1, working.length)];
  if (!order) return;
  const { stepId, coordinationId } = order.envelope;
  if (move.kind === "end") run.world.plans.end(stepId, move.isDone ? endDone() : endFailing());
  else if (move.kind === "cancel") await run.coordinator.cancel({ coordinationId, stepId, by: "operator" });
  else await submitInside(run, order, move);
  await run.advance(100);
}

async function submitInside(
  { coordinator }: PlanRun,
  { childSessionKey: session }: AttemptOrder,
  { steps, spawns }: Extract<Move, { kind: "submit" }>,
): Promise<void> {
  submitted += 1;
  const names = Array.from({ length: steps }, (_, index) =>
    step(`n${submitted}-${index}`, createRetries(1, 500)),
  );
  const fields: Fields = {
    coordinationId: `inside-${submitted}`,
    ownerSession: session,
    ...(spawns !== undefined && { budget: { spawns } }),
  };
  await coordinator.submitPlan({ plan: plan(names, fields), submittedBy: session, ownerAgent: AGENT });
}

it("a plan and the plans inside begin no more attempts than its budget allows, and all of them end", async () => {
  let loans = 0;
  let inside = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 2, max: 9 }),
      fc.array(moves, { maxLength: 25, size: "max" }),
      async (spawns, history) => {
        const steps = ["a", "b", "c", "d"].map((name) =>
          step(name, {
            timeoutMs: 120_000,
            ...createRetries(1, 500),
            ...(name > "b" && { dependsOn: ["b"] }),
          }),
        );
        const run = await runPlan(work, plan(steps, { budget: { spawns } }));
        for (const move of history) await perform(run, move);
        for (let round = 0; round < 40 && countOpen(run) > 0; round += 1) {
          for (const { envelope } of listWorking(run)) run.world.plans.end(envelope.stepId, endDone());
          await run.advance(20_000);
        }
        const begun = run.events("step.dispatched").filter(({ payload }) => !payload.stepId.startsWith("@"));
        expect(begun.length).toBeLessThanOrEqual(spawns);
        expect(countOpen(run)).toBe(0);
        loans += run.events("budget.lent").length;
        inside += run.events("coordination.created").length - 1;
        await run.close();
      },
    ),
    { numRuns: 100 },
  );
  expect(loans).toBeGreaterThan(inside);
});
