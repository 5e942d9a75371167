/** P8, P9, P10 and P19: what is done twice, and by whom. */
import { expect } from "vitest";
import type { Json } from "../support/gateway.ts";
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
  readText,
  REFUSED,
  resultsOf,
  taskOf,
  waitForEnd,
  write,
} from "../e2e/writes-stage.ts";
import type { Pair } from "./pair.ts";
import {
  countWorkers,
  planOf,
  readChild,
  runPlan,
  stepOf,
  TRIED_AGAIN,
  WAIT_MS_MAX,
  waitUntilSaid,
} from "./story-parts.ts";

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

/** P9: the child is made, and the answer does not come back. */
export async function tellLostAnswer({ plain, coordinated }: Pair): Promise<void> {
  const spawn = [{ label: "lost-answer", task: `LOSE-THE-ANSWER ${taskOf("answer-child", [])}` }];
  await begin(plain, "answer", { spawn }, { spawn });
  expect(resultsOf(plain, "answer").map((result) => JSON.parse(result) as Json)).toMatchObject([
    { status: "error" },
    { status: "error" },
  ]);
  await waitForWorkers(plain, "answer-child", 2);

  await begin(coordinated, "answer", { spawn });
  expect(resultsOf(coordinated, "answer")[0]).toContain("error");
  const state = await waitForEnd(coordinated, "answer");
  expect(stepNamed(state, "lost-answer").phase).toMatchObject({ status: "completed" });
  expect(countWorkers(coordinated, "answer-child")).toBe(1);

  const plan = planOf("LOSE-THE-ANSWER", [stepOf("answer-step", [])]);
  const submit = call({ name: "coordination_plan", args: { plan } });
  await begin(coordinated, "answer-plan", submit, submit);
  expect(resultsOf(coordinated, "answer-plan")[1]).toContain("error");
  await waitForEnd(coordinated, "answer-plan");
  expect(countWorkers(coordinated, "answer-step")).toBe(1);
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

/** P19: an agent whose work somebody else has taken over comes back to life. */
export async function tellZombie({ plain, coordinated }: Pair): Promise<void> {
  const work = [
    call(write("zombie.md", "by its successor\n")),
    gate({ opens: ["zombie succeeded"], awaits: ["zombie over"] }),
  ];
  const wake = (stage: Stage, zombie: unknown): Promise<unknown> => {
    const turns = [call(write("zombie.md", "by a zombie\n")), call(write("zombie-2.md", "by a zombie\n"))];
    return stage.gateway.agent({ sessionKey: String(zombie), message: taskOf("zombie-again", turns) });
  };

  const spawn = [childOf("zombie-work", ...work)];
  await begin(plain, "zombie", { spawn });
  const { childSessionKey } = readChild(plain, "zombie");
  const hasFailed = (): boolean =>
    plain.model.requests.some(({ text, turn }) => turn.httpError && text.includes("zombie-work"));
  await waitFor(hasFailed, { what: "the first agent to fail", timeoutMs: WAIT_MS_MAX });
  await begin(plain, "zombie", { spawn });
  await openGate(plain, "zombie succeeded");
  await open(plain, "zombie over");
  await waitUntilSaid(plain, ["zombie-work"]);
  await wake(plain, childSessionKey);
  expect(readText(plain, "zombie.md")).toBe("by a zombie\n");

  await runPlan(coordinated, planOf("zombie", [stepOf("zombie-work", work)], TRIED_AGAIN));
  await openGate(coordinated, "zombie succeeded");
  const begun = await coordinated.until(ownerOf("zombie"), () => true);
  const dispatched = (await coordinated.events(begun)).find(({ type }) => type === "step.dispatched");
  await wake(coordinated, (dispatched!.payload as Json)["targetSession"]);
  const [first, second] = resultsOf(coordinated, "zombie-again");
  expect(first).toMatch(REFUSED);
  expect(second).toMatch(REFUSED);
  await open(coordinated, "zombie over");
  const state = await waitForEnd(coordinated, "zombie");
  expect(stepNamed(state, "zombie-work").phase).toMatchObject({ status: "completed", attempt: 2 });
  expect(readText(coordinated, "zombie.md")).toBe("by its successor\n");
  expect(readText(coordinated, "zombie-2.md")).toBeUndefined();
}
