/** P14, P15 and P20: what ends work. */
import { expect } from "vitest";
import type { Turn } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { stepNamed, type Stage } from "../e2e/stage.ts";
import {
  begin,
  call,
  childOf,
  createExec,
  gate,
  open,
  openGate,
  ownerOf,
  read,
  readText,
  waitForEnd,
} from "../e2e/writes-stage.ts";
import type { Pair } from "./pair.ts";
import {
  hasSaid,
  passTime,
  planOf,
  readChild,
  readTaskOf,
  runPlan,
  stepOf,
  WAIT_MS_MAX,
  waitUntilSaid,
} from "./story-parts.ts";

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

/** P15: a child has a time limit, and spawned somebody who has none. */
export async function tellTimeout({ plain, coordinated }: Pair): Promise<void> {
  const timeoutSeconds = 10;
  const grandchild = childOf(
    "late-grandchild",
    gate({ opens: ["late began"], awaits: ["late later"] }),
    call(createExec("echo late >> late.md")),
  );
  const turns: Turn[] = [{ spawn: [grandchild] }, gate({ awaits: ["late later"] })];

  const child = childOf("late-child", ...turns);
  await begin(plain, "late", { spawn: [{ ...child, runTimeoutSeconds: timeoutSeconds }] });
  await runPlan(
    coordinated,
    planOf("late", [stepOf("late-child", turns, { timeoutMs: timeoutSeconds * 1_000 })]),
  );

  await openGate(plain, "late began");
  const spawned = readChild(plain, "late");
  const hasTimedOut = async (): Promise<boolean> =>
    (await readTaskOf(plain, spawned))?.["status"] === "timed_out";
  await waitFor(hasTimedOut, { what: "the host's time limit", timeoutMs: WAIT_MS_MAX, everyMs: 250 });
  await open(plain, "late later");
  await waitUntilSaid(plain, ["late-grandchild"]);
  expect(readText(plain, "late.md")).toBe("late\n");

  const state = await waitForEnd(coordinated, "late");
  expect(stepNamed(state, "late-child").phase.status).toBe("timed_out");
  await open(coordinated, "late later");
  await passTime(coordinated, "late-after");
  expect(hasSaid(coordinated, "late-grandchild")).toBe(false);
  expect(readText(coordinated, "late.md")).toBeUndefined();
}

/** P20: an agent that spawns without an end. */
export async function tellEndlessSpawns({ plain, coordinated }: Pair): Promise<void> {
  // They end after the last spawn, so that no result comes to a parent that still spawns.
  const turns = [1, 2, 3, 4, 5].map((number): Turn => ({
    spawn: [childOf(`budget-${number}`, gate({ awaits: ["budget spawned"] }))],
  }));
  await begin(plain, "budget", ...turns);
  await open(plain, "budget spawned");
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
