/** Owns: that a branch cut off before its question was asked is answered only once its own log asks it. */
import { expect, test } from "vitest";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { ALICE, codeOf, createWorkflowScene, valueOf } from "../support/workflow-scene.ts";

/** The event of a run that asks at once, before which nothing was asked, though its node waits. */
const BEFORE_QUESTION = 3;

const EXTERNAL = { kind: "external-event", data: { eventType: "paid", correlation: { order: 7 } } };
const CLARIFICATION = {
  kind: "clarification",
  questions: [{ id: "q1", question: "Which?", schema: { type: "string", enum: ["a", "b"] } }],
};
const CUSTOM = { kind: "custom", resumeSchema: { type: "object", required: ["count"] } };

test.each([
  ["its own host", "an event of another order", EXTERNAL, { unfit: { order: 8 }, fit: { order: 7 } }],
  [
    "its own host",
    "a choice that it does not have",
    CLARIFICATION,
    { unfit: { answers: { q1: "z" } }, fit: { answers: { q1: "a" } } },
  ],
  ["its own host", "an answer against the schema", CUSTOM, { unfit: { x: 1 }, fit: { count: 1 } }],
  ["another host", "an event of another order", EXTERNAL, { unfit: { order: 8 }, fit: { order: 7 } }],
  [
    "another host",
    "a choice that it does not have",
    CLARIFICATION,
    { unfit: { answers: { q1: "z" } }, fit: { answers: { q1: "a" } } },
  ],
  ["another host", "an answer against the schema", CUSTOM, { unfit: { x: 1 }, fit: { count: 1 } }],
])("%s takes nothing that its question would not take: %s", async (hostName, _, config, { unfit, fit }) => {
  let release = (): void => undefined;
  const goesLive = new Promise<undefined>((resolve) => (release = () => resolve(undefined)));
  const shared = {
    ledger: createMemoryWorkflowLedger(),
    clock: createFakeClock(),
    alive: new Set([1, 2]),
    definitions: [createWorkflow("w", { nodes: [createNode("gate", "core.interrupt", config)] })],
  };
  const driving = createWorkflowScene({
    ...shared,
    pid: 1,
    faults: {
      hold: ({ events }, place) =>
        place === "append" && events.some(({ type }) => type === "run.resuming") ? goesLive : undefined,
    },
  });
  const { host } = hostName === "its own host" ? driving : createWorkflowScene({ ...shared, pid: 2 });
  const sourceRunId = await driving.run("w");
  const forking = driving.host.fork(ALICE, { sourceRunId, mode: "branch", fromSeq: BEFORE_QUESTION });
  await driving.settle();
  const runId = [...driving.ledger.runs.keys()].at(-1)!;
  const answering = host.resolve(ALICE, runId, { nodeId: "gate" }, unfit);
  await driving.settle();
  release();
  expect(codeOf(await answering)).not.toBe("done");
  expect(valueOf(await forking).runId).toBe(runId);
  await driving.settle();
  expect(driving.payloads(runId, "interrupt.resolved")).toEqual([]);
  expect(codeOf(await host.resolve(ALICE, runId, { nodeId: "gate" }, fit))).toBe("done");
});
