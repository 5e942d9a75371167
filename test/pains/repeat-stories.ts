/** P8 and P10: what is done twice. */
import { expect } from "vitest";
import { waitFor } from "../support/wait-for.ts";
import type { Stage } from "../e2e/stage.ts";
import {
  begin,
  call,
  childOf,
  createExec,
  gate,
  open,
  openGate,
  readText,
  waitForEnd,
} from "../e2e/writes-stage.ts";
import type { Pair } from "./pair.ts";
import { countWorkers, planOf, runPlan, stepOf, WAIT_MS_MAX } from "./story-parts.ts";

const waitForWorkers = (stage: Stage, label: string, count: number): Promise<unknown> =>
  waitFor(() => countWorkers(stage, label) === count, {
    what: `${count} agents at ${label}`,
    timeoutMs: WAIT_MS_MAX,
  });

/** P8: somebody who watches thinks that nothing goes on. */
export async function tellSecondStart({ plain, coordinated }: Pair): Promise<void> {
  const turns = [
    gate({ opens: ["twice began"], awaits: ["twice may end"] }),
    call(createExec("echo done >> twice.md")),
  ];
  for (let times = 1; times <= 2; times += 1) {
    await begin(plain, "twice", { spawn: [childOf("twice-work", ...turns)] });
    await waitForWorkers(plain, "twice-work", times);
  }
  await open(plain, "twice may end");
  await waitFor(() => readText(plain, "twice.md") === "done\ndone\n", {
    what: "the work of both",
    timeoutMs: WAIT_MS_MAX,
  });

  const plan = planOf("twice", [stepOf("twice-work", turns)]);
  await runPlan(coordinated, plan);
  await openGate(coordinated, "twice began");
  expect(await runPlan(coordinated, plan)).toMatchObject({ replay: true });
  const retried = coordinated.gateway.call("coordination.retry", {
    coordinationId: "twice",
    stepId: "twice-work",
  });
  await expect(retried).rejects.toThrow(/REQUEST_REFUSED/u);
  await open(coordinated, "twice may end");
  await waitForEnd(coordinated, "twice");
  expect(readText(coordinated, "twice.md")).toBe("done\n");
}

/** P10: the same is asked for again. */
export async function tellRepeatedSpawn({ plain, coordinated }: Pair): Promise<void> {
  for (let times = 1; times <= 2; times += 1) {
    await begin(plain, "again", { spawn: [childOf("again-child")] });
    await waitForWorkers(plain, "again-child", times);
  }

  const plan = planOf("again", [stepOf("again-child", [])]);
  const [first, second] = [await runPlan(coordinated, plan), await runPlan(coordinated, plan)];
  expect(second["coordinationId"]).toBe(first["coordinationId"]);
  await waitForEnd(coordinated, "again");
  expect(countWorkers(coordinated, "again-child")).toBe(1);
}
