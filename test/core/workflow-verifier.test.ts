import { describe, expect, test } from "vitest";
import type { ChatModel } from "../../src/agents/coordination/ports/outbound.ts";
import {
  createEdge,
  sendNextWorker,
  createNode,
  createSupervised,
  TERMINATE,
  createWorkflow,
} from "../support/workflow-definitions.ts";
import { checkLog } from "../support/workflow-plays.ts";
import { createWorkflowScene } from "../support/workflow-scene.ts";
import {
  AGAIN,
  BEGINS,
  CRITIC,
  ENDS,
  MERGED,
  createLooped,
  filterByType,
  createChatAnswer,
  createScene,
  tellStory,
} from "./verified-scene.ts";

describe("a verdict on what a worker produced", () => {
  test("that passes is on record before the outputs are merged, and caused by the end of the child", async () => {
    const at = createScene(createLooped({ mockVerdicts: ["pass"] }));
    const runId = await at.run("loop");
    expect(tellStory(at, runId)).toEqual([...BEGINS, "verified pass", ...MERGED, ...ENDS]);
    const verified = filterByType(at, runId, "agent.verified");
    const completed = at
      .events(runId)
      .find(
        (event) => event.type === "core.workflowChain.event" && event.payload.phase === "child.completed",
      );
    expect(verified.causationId).toBe(completed?.eventId);
    expect(verified.payload).toEqual({
      ...CRITIC,
      target: filterByType(at, runId, "node.dispatched").payload.childRunId,
      verdict: "pass",
    });
    expect((await at.snapshot(runId))["convergence"]).toBeUndefined();
    checkLog(at.events(runId));
  });

  test("that fails keeps the outputs out, and the run from ending as a success until people have ruled", async () => {
    const at = createScene(createLooped({ mockVerdicts: ["fail"] }));
    const runId = await at.run("loop");
    expect(tellStory(at, runId)).toEqual([...BEGINS, "verified fail", "asks verification-failed"]);
    expect(await at.status(runId)).toBe("waiting-approval");
    expect((await at.snapshot(runId))["variables"]).not.toHaveProperty("got");
    expect(at.payloads(runId, "interrupt.requested")[0]?.data["artifactData"]).toEqual(TERMINATE);
  });

  test("that fails lets the run end where people say so, once, and as one that did not reach its goal", async () => {
    const at = createScene(createLooped({ mockVerdicts: ["fail"] }));
    const runId = await at.run("loop");
    await at.answer(runId, "supervisor", { action: "accept" });
    expect(tellStory(at, runId).slice(-3)).toEqual(["answered", ...ENDS]);
    const snapshot = await at.snapshot(runId);
    expect(snapshot["convergence"]).toEqual({ goalSatisfied: false, unmet: [], notAccepted: ["digger"] });
    expect(snapshot["variables"]).not.toHaveProperty("got");
  });

  test.each([{ action: "reject" }, { action: "edit-accept", editedArtifactData: sendNextWorker("other") }])(
    "that fails ends the run or sends it on as people answer with $action",
    async (answer) => {
      const at = createScene(createLooped({ mockVerdicts: ["fail", "pass"] }));
      const runId = await at.run("loop");
      await at.answer(runId, "supervisor", answer);
      const messages = tellStory(at, runId).slice(BEGINS.length + 3);
      const { status, error } = await at.snapshot(runId);
      if (answer.action === "reject") {
        expect(messages).toEqual(["run.failed"]);
        expect(error).toMatchObject({ code: "verification_failed" });
      } else {
        expect(status).toBe("waiting-approval");
        expect(messages).toEqual([
          ...["decided 2 next-worker", ...AGAIN, "verified pass", "got=silver", "output.harvested"],
          "asks verification-failed",
        ]);
      }
    },
  );

  test("that fails is settled where the same worker does better in another turn", async () => {
    const plan = [sendNextWorker("digger"), sendNextWorker("digger"), TERMINATE];
    const at = createScene(createLooped({ mockVerdicts: ["fail", "pass"] }, { plan }));
    const runId = await at.run("loop");
    expect(await at.status(runId)).toBe("completed");
    expect(tellStory(at, runId).filter((line) => line.startsWith("verified"))).toEqual([
      "verified fail",
      "verified pass",
    ]);
    expect((await at.snapshot(runId))["variables"]).toMatchObject({ got: "gold" });
  });

  test("that fails makes the run fail at once where the workflow says so", async () => {
    const at = createScene(createLooped({ mockVerdicts: ["fail"], onUnresolved: "fail" }));
    const runId = await at.run("loop");
    expect(await at.snapshot(runId)).toMatchObject({
      status: "failed",
      error: { code: "verification_failed" },
    });
    expect(at.types(runId)).not.toContain("interrupt.requested");
  });

  test("that fails is not let through by nobody's answer: when the time is over, the run fails", async () => {
    const at = createScene(createLooped({ mockVerdicts: ["fail"], approvalTimeoutMs: 5_000 }));
    const runId = await at.run("loop");
    await at.clock.advance(5_001);
    expect(await at.snapshot(runId)).toMatchObject({
      status: "failed",
      error: { code: "verification_failed" },
    });
  });

  test("is told to a live supervisor, with the keys and nothing of the work", async () => {
    const requests: string[] = [];
    const answers = [
      JSON.stringify(sendNextWorker("digger")),
      JSON.stringify({ kind: "terminate", reason: "enough" }),
    ];
    const chat: Partial<ChatModel> = {
      complete: ({ messages }) => {
        requests.push(messages[0]?.content ?? "");
        return Promise.resolve(createChatAnswer(answers[requests.length - 1] ?? ""));
      },
    };
    const definition = createSupervised("loop", [], {
      supervisor: { prompt: "Decide.", mockDispatchPlan: undefined },
      dispatch: { outputMapping: { got: "result" }, verifier: { ...CRITIC, mockVerdicts: ["fail"] } },
    });
    const at = createScene(definition, { chat });
    const runId = await at.run("loop");
    expect(requests).toHaveLength(2);
    expect(requests[1]).toContain('"verdict":"fail"');
    expect(requests[1]).toContain('"criteria":["grounded","complete"]');
    expect(requests[1]).not.toContain("gold");
    expect(tellStory(at, runId).at(-1)).toBe("asks verification-failed");
    await at.answer(runId, "supervisor", { action: "accept" });
    expect(tellStory(at, runId).slice(-2)).toEqual(ENDS);
    expect(requests, "the decision is not asked for again").toHaveLength(2);
  });
});

describe("a verdict that wants a revision", () => {
  test("gives the worker another turn, as a run of its own, with what it did not meet", async () => {
    const at = createScene(
      createLooped({ mockVerdicts: [{ verdict: "revise", criteria: ["grounded"] }, "pass"] }),
    );
    const runId = await at.run("loop");
    expect(tellStory(at, runId)).toEqual([
      ...BEGINS,
      "verified revise",
      ...AGAIN,
      "verified pass",
      ...MERGED,
      ...ENDS,
    ]);
    const [first, second] = at.payloads(runId, "node.dispatched");
    expect(second?.childRunId).not.toBe(first?.childRunId);
    expect((await at.snapshot(first?.childRunId ?? "")).inputs).toEqual({});
    expect((await at.snapshot(second?.childRunId ?? "")).inputs).toEqual({ revisionCriteria: ["grounded"] });
    checkLog(at.events(runId));
  });

  test("tells the worker by the input that the workflow names", async () => {
    const at = createScene(createLooped({ mockVerdicts: ["revise", "pass"], revisionInput: "mend" }));
    const runId = await at.run("loop");
    const second = at.payloads(runId, "node.dispatched")[1]?.childRunId ?? "";
    expect((await at.snapshot(second)).inputs).toEqual({ mend: ["grounded", "complete"] });
  });

  test("is bounded by the loop's limit: the turn that is too many is refused, and the run with it", async () => {
    const at = createScene(createLooped({ mockVerdicts: ["revise"] }));
    const runId = await at.run("loop", { configurable: { maxLoopIterations: 3 } });
    expect(tellStory(at, runId)).toEqual([
      ...[...BEGINS, "verified revise", ...AGAIN, "verified revise", ...AGAIN, "verified revise"],
      ...["loop-iterations 4 over 3", "run.failed"],
    ]);
    expect(await at.snapshot(runId)).toMatchObject({ error: { code: "loop_limit_exceeded" } });
  });

  test("counts against the turns that the supervisor has left", async () => {
    const at = createScene(createLooped({ mockVerdicts: ["revise", "pass"] }));
    const runId = await at.run("loop", { configurable: { maxLoopIterations: 2 } });
    expect(tellStory(at, runId).slice(-3)).toEqual([
      "output.harvested",
      "loop-iterations 3 over 2",
      "run.failed",
    ]);
  });

  test.each([
    ["accept", [...MERGED, ...ENDS]],
    ["reject", ENDS],
  ])("asks people when the worker was sent back often enough; they %s", async (action, messages) => {
    const at = createScene(createLooped({ mockVerdicts: ["revise"], revisionsMax: 1 }));
    const runId = await at.run("loop");
    expect(tellStory(at, runId).slice(-2)).toEqual(["verified revise", "asks revisions-exhausted"]);
    await at.answer(runId, "dispatch", { action });
    expect(tellStory(at, runId).slice(-messages.length)).toEqual(messages);
    expect(at.payloads(runId, "agent.verified")).toHaveLength(2);
  });

  test("whose next turn fails is no success either", async () => {
    const breaks = { condition: { type: "expression", expression: "revisionCriteria" } };
    const digger = createWorkflow("digger", {
      nodes: [
        createNode(
          "dig",
          "core.identity",
          {},
          {
            inputs: { revisionCriteria: { type: "variable", variableName: "revisionCriteria" } },
          },
        ),
        createNode("boom", "core.fail", { code: "no", message: "no" }),
      ],
      edges: [createEdge("dig>boom", breaks)],
      variables: { result: "gold", revisionCriteria: undefined },
    });
    const at = createWorkflowScene({ definitions: [createLooped({ mockVerdicts: ["revise"] }), digger] });
    const runId = await at.run("loop");
    expect(tellStory(at, runId)).toEqual([
      ...[...BEGINS, "verified revise", "dispatch.began", "dispatch.succeeded", "child.failed"],
      "asks verification-failed",
    ]);
  });
});

describe("a confidence below the floor", () => {
  const createDoubtful = (confidence: number) =>
    createLooped({ mockVerdicts: [{ verdict: "pass", confidence }] });

  test("of the critic is escalated before people are asked, and nothing is merged before they agree", async () => {
    const at = createScene(createDoubtful(0.4));
    const runId = await at.run("loop");
    expect(tellStory(at, runId)).toEqual([
      ...[...BEGINS, "verified pass", "confidence-escalated", "asks confidence-below-floor"],
    ]);
    expect(filterByType(at, runId, "core.workflowChain.confidence-escalated").payload).toEqual({
      confidence: 0.4,
      floor: 0.5,
      escalationKind: "escalate",
      parentRunId: runId,
      workerId: "digger",
    });
    expect(filterByType(at, runId, "node.suspended").payload).toMatchObject({
      kind: "approval",
      agentId: "critic-one",
      threshold: 0.5,
      observed: 0.4,
    });
    await at.answer(runId, "dispatch", { action: "accept" });
    expect(tellStory(at, runId).slice(-5)).toEqual(["answered", ...MERGED, ...ENDS]);
  });

  test.each(["reject", "timeout"])("keeps the outputs out for ever after: %s", async (how) => {
    const at = createScene(
      createLooped({ mockVerdicts: [{ verdict: "pass", confidence: 0.1 }], approvalTimeoutMs: 1_000 }),
    );
    const runId = await at.run("loop");
    if (how === "reject") await at.answer(runId, "dispatch", { action: "reject" });
    else await at.clock.advance(1_001);
    expect(tellStory(at, runId).slice(-3)).toEqual(["answered", ...ENDS]);
    const { variables, convergence } = await at.snapshot(runId);
    expect(variables).not.toHaveProperty("got");
    expect(convergence).toMatchObject({ goalSatisfied: false, notAccepted: ["digger"] });
  });

  test.each([0.5, undefined])("is none at the floor, or where none is stated: %s", async (confidence) => {
    const at = createScene(
      createLooped({ mockVerdicts: [{ verdict: "pass", ...(confidence && { confidence }) }] }),
    );
    const runId = await at.run("loop");
    expect(await at.status(runId)).toBe("completed");
    expect(at.types(runId)).not.toContain("core.workflowChain.confidence-escalated");
  });

  test("of the actor is enough, unless people have agreed to what it decided", async () => {
    const createActor = (id: string, escalationThreshold?: number) => ({
      id,
      definition: createWorkflow(id, {
        nodes: [
          createNode("agent", "core.conformance.mock-agent", {
            agentId: "actor-one",
            mockDecision: { decision: "dig", confidence: 0.3 },
          }),
        ],
        variables: { result: "gold" },
      }),
      escalationThreshold,
    });
    const sureWorkflow = createSupervised("sure", [sendNextWorker("actor"), TERMINATE], {
      dispatch: { outputMapping: { got: "result" }, verifier: { ...CRITIC, mockVerdicts: ["pass"] } },
    });
    const lenient = createWorkflowScene({
      definitions: [sureWorkflow, createActor("actor").definition],
      settings: { escalationThreshold: 0.1 },
    });
    const doubted = await lenient.run("sure");
    expect(tellStory(lenient, doubted).slice(-3)).toEqual([
      ...["verified pass", "confidence-escalated", "asks confidence-below-floor"],
    ]);
    expect(lenient.payloads(doubted, "core.workflowChain.confidence-escalated")[0]?.confidence).toBe(0.3);

    const strict = createWorkflowScene({ definitions: [sureWorkflow, createActor("actor").definition] });
    const question = await strict.run("sure");
    const child = strict.payloads(question, "node.dispatched")[0]?.childRunId ?? "";
    await strict.answer(child, "agent", { action: "accept" });
    expect(tellStory(strict, question).slice(-5)).toEqual(["verified pass", ...MERGED, ...ENDS]);
  });
});
