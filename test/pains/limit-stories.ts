/** P14 and P20: what ends work. */
import { expect } from "vitest";
import type { Turn } from "../support/scripted-model.ts";
import { stepNamed, type Stage } from "../e2e/stage.ts";
import {
  begin,
  call,
  childOf,
  gate,
  open,
  openGate,
  ownerOf,
  read,
  waitForEnd,
} from "../e2e/writes-stage.ts";
import type { Pair } from "./pair.ts";
import { hasSaid, planOf, runPlan, stepOf, waitUntilSaid } from "./story-parts.ts";

/** P14: the parent is stopped, its children are at work. */
export async function tellAbort({ plain, coordinated }: Pair): Promise<void> {
  const spawn = [
    childOf("abort-child", gate({ opens: ["abort child"], awaits: ["abort later"] }), call(read("x.md"))),
  ];
  const beginWork = async (stage: Stage): Promise<void> => {
    await begin(stage, "abort", { spawn });
    await openGate(stage, "abort child");
  };
  await beginWork(plain);
  await plain.gateway.call("chat.abort", { sessionKey: ownerOf("abort") });
  await open(plain, "abort later");
  await waitUntilSaid(plain, ["abort-child"]);

  await beginWork(coordinated);
  const { coordinationId } = await coordinated.until(ownerOf("abort"), () => true);
  await coordinated.gateway.call("coordination.cancel", { coordinationId });
  const state = await waitForEnd(coordinated, "abort");
  expect(state).toMatchObject({ status: "cancelled" });
  expect(stepNamed(state, "abort-child").phase.status).toBe("cancelled");
  await open(coordinated, "abort later");
  // Whoever was still at work would have said its last words by then.
  await begin(coordinated, "abort-after", { spawn: [childOf("abort-other")] });
  await waitUntilSaid(coordinated, ["abort-other"]);
  expect(hasSaid(coordinated, "abort-child")).toBe(false);
}

/** P20: an agent that spawns without an end. */
export async function tellEndlessSpawns({ plain, coordinated }: Pair): Promise<void> {
  const turns = [1, 2, 3, 4, 5].map((number): Turn => ({ spawn: [childOf(`budget-${number}`)] }));
  await begin(plain, "budget", ...turns);
  await waitUntilSaid(plain, ["budget-1", "budget-2", "budget-3", "budget-4", "budget-5"]);

  const steps = [1, 2, 3, 4, 5].map((number) =>
    stepOf(`step-${number}`, [], number === 1 ? {} : { dependsOn: [`step-${number - 1}`] }),
  );
  await runPlan(coordinated, planOf("budget", steps, { budget: { spawns: 3 } }));
  const state = await waitForEnd(coordinated, "budget");
  const completed = steps.map(({ stepId }) => {
    const step = [...state.steps.values()].find(({ spec }) => spec.stepId === stepId);
    return step?.phase.status === "completed";
  });
  expect(completed).toEqual([true, true, true, false, false]);
}
