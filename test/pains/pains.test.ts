/**
 * What people who run subagents complain about, each told twice: what the plain host does, and what it does with the flag
 * on. docs/pains.md is the table of these tests.
 */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Json } from "../support/gateway.ts";
import {
  isAnnounce,
  parseScript,
  renderScript,
  textOf,
  type ChatMessage,
  type RecordedRequest,
  type Turn,
} from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { hasEnded, stepNamed, type Stage } from "../e2e/stage.ts";
import {
  begin,
  call,
  childOf,
  gate,
  listConflicts,
  open,
  openGate,
  ownerOf,
  put,
  read,
  readText,
  REFUSED,
  resultsOf,
  taskOf,
  waitForEnd,
  write,
} from "../e2e/writes-stage.ts";
import { openPair, type Pair } from "./pair.ts";

const WAIT_MS_MAX = 90_000;

let pair: Pair;

beforeAll(async () => {
  pair = await openPair();
});

afterAll(() => pair.close());

/** Whether the model of an agent has said its last words. */
const hasSaid = ({ model }: Stage, label: string): boolean =>
  model.requests.some(({ turn }) => turn.say === `${label} is at its end`);

async function waitUntilSaid(stage: Stage, labels: readonly string[]): Promise<void> {
  await waitFor(() => labels.every((label) => hasSaid(stage, label)), {
    what: labels.join(" and "),
    timeoutMs: WAIT_MS_MAX,
  });
}

/** Lists what the model of a session was asked, the host's own turns included. */
function listRequestsOf({ model }: Stage, label: string): RecordedRequest[] {
  return model.requests.filter(({ body }) => nameLastWords(body.messages) === `${label} is at its end`);
}

/** A session's first message with a script is its own task. Later ones may quote those of its children. */
function nameLastWords(messages: readonly ChatMessage[]): string | undefined {
  const task = messages.find((message) => message.role === "user" && textOf(message).includes("SCRIPT:"));
  return task && parseScript(textOf(task))?.turns.at(-1)?.say;
}

function planOf(label: string, steps: readonly Json[], fields: Json = {}): Json {
  return {
    coordinationId: label,
    objective: `objective of ${label}`,
    ownerSession: ownerOf(label),
    conflictPolicy: {},
    failurePolicy: { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
    defaults: { timeoutMs: 60_000 },
    steps,
    ...fields,
  };
}

const stepOf = (stepId: string, turns: readonly Turn[], fields: Json = {}): Json => ({
  stepId,
  agent: "main",
  task: taskOf(stepId, turns),
  ...fields,
});

const runPlan = (stage: Stage, plan: Json): Promise<Json> =>
  stage.gateway.call("coordination.plan.run", { plan });

it("P5 no barrier: an agent that needs two of three results gets them one by one", async () => {
  const createChildren = (of: string) =>
    [1, 2, 3].map((number) =>
      childOf(`${of}-${number}`, ...(number === 3 ? [gate({ awaits: [`${of} slow`] })] : [])),
    );

  const { plain, coordinated } = pair;
  await begin(plain, "barrier", { spawn: createChildren("barrier") });
  await waitUntilSaid(plain, ["barrier-1", "barrier-2"]);
  const isTold = (): boolean =>
    listRequestsOf(plain, "barrier").some(({ matched }) => matched === "announce");
  await waitFor(isTold, { what: "the first result", timeoutMs: WAIT_MS_MAX });
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
});

it("P11 lost update: the second writer of a file wins silently", async () => {
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

  expect(await play(pair.plain)).not.toMatch(REFUSED);
  expect(readText(pair.plain, "lost.md")).toBe("by b\n");

  expect(await play(pair.coordinated)).toMatch(REFUSED);
  expect(readText(pair.coordinated, "lost.md")).toBe("by a\n");
  const state = await waitForEnd(pair.coordinated, "lost");
  expect(listConflicts(await pair.coordinated.events(state))).toHaveLength(1);
});

it("P14 an abort leaves children at work", async () => {
  const spawn = [
    childOf("abort-child", gate({ opens: ["abort child"], awaits: ["abort later"] }), call(read("x.md"))),
  ];
  const beginWork = async (stage: Stage): Promise<void> => {
    await begin(stage, "abort", { spawn });
    await openGate(stage, "abort child");
  };
  const { plain, coordinated } = pair;
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
});

it("P17 one run, several traces", async () => {
  const spawn = [childOf("trace-child", { spawn: [childOf("trace-grandchild")] })];
  const listTraces = async (stage: Stage): Promise<(string | undefined)[]> => {
    await begin(stage, "trace", { spawn });
    await waitUntilSaid(stage, ["trace-child", "trace-grandchild"]);
    const all = ["trace", "trace-child", "trace-grandchild"].flatMap((label) => listRequestsOf(stage, label));
    return [...new Set(all.map(({ traceparent }) => traceparent?.split("-")[1]))];
  };

  // The host of today has one trace for all of it. This keeps watching.
  expect(await listTraces(pair.plain)).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/u)]);

  const [traceId] = await listTraces(pair.coordinated);
  const state = await waitForEnd(pair.coordinated, "trace");
  expect(state.created.trace.traceId).toBe(traceId);
});

it("P18 completed at half of the work: a result that says so itself counts like any other", async () => {
  const word = randomUUID();
  const spawn = [
    { label: "half-child", task: renderScript({ say: `Half of it: ${word}\n{"confidence": 0.4}` }) },
  ];
  const play = (stage: Stage): Promise<unknown> => begin(stage, "half", { spawn });
  const isTold = (stage: Stage) => (): boolean =>
    stage.model.requests.some(({ text }) => isAnnounce(text) && text.includes(word));

  await play(pair.plain);
  await waitFor(isTold(pair.plain), { what: "the result in the parent", timeoutMs: WAIT_MS_MAX });

  await play(pair.coordinated);
  const heldState = await pair.coordinated.until(
    ownerOf("half"),
    ({ escalations }) => escalations.size > 0,
    WAIT_MS_MAX,
  );
  expect(isTold(pair.coordinated)()).toBe(false);
  const questionId = `${heldState.coordinationId}:${heldState.escalations.first()?.escalationId}`;
  await pair.coordinated.gateway.call("coordination.answer", { questionId, answer: "deny" });
  await pair.coordinated.until(ownerOf("half"), hasEnded, WAIT_MS_MAX);
});

it("P20 no budget: nothing stops an agent that spawns again and again", async () => {
  const { plain, coordinated } = pair;
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
});
