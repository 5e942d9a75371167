/** P5, P11, P17 and P18: what is made of results, files and traces. */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { isAnnounce, renderScript } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { hasEnded, type Stage } from "../e2e/stage.ts";
import {
  begin,
  call,
  childOf,
  gate,
  listConflicts,
  open,
  ownerOf,
  put,
  read,
  readText,
  REFUSED,
  resultsOf,
  waitForEnd,
  write,
} from "../e2e/writes-stage.ts";
import type { Pair } from "./pair.ts";
import {
  listRequestsOf,
  passTime,
  planOf,
  runPlan,
  stepOf,
  WAIT_MS_MAX,
  waitUntilAnnounced,
  waitUntilSaid,
} from "./story-parts.ts";

/** P5: two of three results are enough. */
export async function tellBarrier({ plain, coordinated }: Pair): Promise<void> {
  const createChildren = (of: string) =>
    [1, 2, 3].map((number) =>
      childOf(`${of}-${number}`, ...(number === 3 ? [gate({ awaits: [`${of} slow`] })] : [])),
    );

  await begin(plain, "barrier", { spawn: createChildren("barrier") });
  await waitUntilSaid(plain, ["barrier-1", "barrier-2"]);
  await waitUntilAnnounced(plain, "barrier");
  await open(plain, "barrier slow");
  await waitUntilSaid(plain, ["barrier-3"]);

  await runPlan(
    coordinated,
    planOf("barrier", [
      stepOf("one", []),
      stepOf("two", []),
      stepOf("slow", [gate({ awaits: ["join began"] })]),
      stepOf("join", [gate({ opens: ["join began"] })], {
        dependsOn: ["one", "two", "slow"],
        fanIn: { min: 2 },
      }),
    ]),
  );
  const state = await waitForEnd(coordinated, "barrier");
  expect(state).toMatchObject({ kind: "ended", status: "success" });
}

/** P11: two agents write one file. */
export async function tellLostUpdate({ plain, coordinated }: Pair): Promise<void> {
  const spawn = [
    childOf(
      "lost-a",
      call(read("lost.md")),
      gate({ opens: ["lost a read"], awaits: ["lost b read"] }),
      call(write("lost.md", "by a\n")),
      gate({ opens: ["lost a wrote"], awaits: ["lost b wrote"] }),
    ),
    childOf(
      "lost-b",
      call(read("lost.md")),
      gate({ opens: ["lost b read"], awaits: ["lost a wrote"] }),
      call(write("lost.md", "by b\n")),
      gate({ opens: ["lost b wrote"] }),
    ),
  ];
  const play = async (stage: Stage): Promise<string | undefined> => {
    put(stage, "lost.md", "before\n");
    await begin(stage, "lost", { spawn });
    await waitUntilSaid(stage, ["lost-a", "lost-b"]);
    return resultsOf(stage, "lost-b")[2];
  };

  expect(await play(plain)).not.toMatch(REFUSED);
  expect(readText(plain, "lost.md")).toBe("by b\n");

  expect(await play(coordinated)).toMatch(REFUSED);
  expect(readText(coordinated, "lost.md")).toBe("by a\n");
  const state = await waitForEnd(coordinated, "lost");
  expect(listConflicts(await coordinated.events(state))).toHaveLength(1);
}

/** P17: a parent, a child and a grandchild. */
export async function tellTraces({ plain, coordinated }: Pair): Promise<void> {
  const spawn = [childOf("trace-child", { spawn: [childOf("trace-grandchild")] })];
  const listTraces = async (stage: Stage): Promise<(string | undefined)[]> => {
    await begin(stage, "trace", { spawn });
    await waitUntilSaid(stage, ["trace-child", "trace-grandchild"]);
    const all = ["trace", "trace-child", "trace-grandchild"].flatMap((label) => listRequestsOf(stage, label));
    return [...new Set(all.map(({ traceparent }) => traceparent?.split("-")[1]))];
  };

  // The host of today has one trace for all of it. This keeps watching.
  expect(await listTraces(plain)).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/u)]);

  const [traceId] = await listTraces(coordinated);
  const state = await waitForEnd(coordinated, "trace");
  expect(state.created.trace.traceId).toBe(traceId);
}

/** P18: a child says itself that it is half done. */
export async function tellHalfResult({ plain, coordinated }: Pair): Promise<void> {
  const word = randomUUID();
  const spawn = [
    { label: "half-child", task: renderScript({ say: `Half of it: ${word}\n{"confidence": 0.4}` }) },
  ];
  const play = (stage: Stage): Promise<unknown> => begin(stage, "half", { spawn });
  const isTold = (stage: Stage) => (): boolean =>
    stage.model.requests.some(({ text }) => isAnnounce(text) && text.includes(word));

  await play(plain);
  await waitFor(isTold(plain), { what: "the result in the parent", timeoutMs: WAIT_MS_MAX });

  await play(coordinated);
  const heldState = await coordinated.until(
    ownerOf("half"),
    ({ escalations }) => escalations.size > 0,
    WAIT_MS_MAX,
  );
  await waitUntilAnnounced(coordinated, "half");
  expect(isTold(coordinated)()).toBe(false);
  const questionId = `${heldState.coordinationId}:${heldState.escalations.first()?.escalationId}`;
  await coordinated.gateway.call("coordination.answer", { questionId, answer: "deny" });
  await coordinated.until(ownerOf("half"), hasEnded, WAIT_MS_MAX);
  await passTime(coordinated, "half-later");
  expect(isTold(coordinated)()).toBe(false);
}
