/** Owns: the answers that are no acceptance, and what each of them is refused with: of workflows and gates. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mockAgent } from "../../src/plugins/openwop/conformance/mock-agent.ts";
import { createAgent, openAgents, type Agents } from "../openwop/levels-agents-world.ts";
import { clientOf } from "../openwop/levels-world.ts";
import {
  createEdge,
  sendNextWorker,
  createNode,
  createWorker,
  createWorkflow,
} from "../support/workflow-definitions.ts";
import { ALICE, codeOf, createWorkflowScene, type WorkflowScene } from "../support/workflow-scene.ts";
import { NEITHER, type Attack } from "./no-answers.ts";

type Fields = Readonly<Record<string, unknown>>;

const messageOf = (answered: object): string =>
  "message" in answered && typeof answered.message === "string" ? answered.message : "";

const SAYS_WHICH = /accept, reject/u;

describe("an agent's doubt", () => {
  const createDoubtingScene = (): WorkflowScene =>
    createWorkflowScene({
      definitions: [
        createWorkflow("w", {
          nodes: [
            createNode("a", "core.conformance.mock-agent", { agentId: "doubter", mockConfidence: 0.4 }),
            createNode("b"),
          ],
          edges: [createEdge("a>b")],
        }),
      ],
    });

  it.each(NEITHER)("stays open at %s, and says which answers there are", async (_, answer) => {
    const scene = createDoubtingScene();
    const runId = await scene.run("w");
    const answered = await scene.answer(runId, "a", answer);
    expect(codeOf(answered)).toBe("validation_error");
    expect(messageOf(answered)).toMatch(SAYS_WHICH);
    expect(await scene.status(runId)).toBe("waiting-approval");
    expect(scene.types(runId)).not.toContain("interrupt.resolved");
  });

  it.each([{ action: "edit-accept", editedArtifactData: { a: 1 } }, sendNextWorker("w")])(
    "that decided nothing stays open at %j, which would put a decision in its place",
    async (answer) => {
      const scene = createDoubtingScene();
      const runId = await scene.run("w");
      expect(codeOf(await scene.answer(runId, "a", answer))).toBe("validation_error");
      expect(await scene.status(runId)).toBe("waiting-approval");
    },
  );

  it.each([
    [{ action: "accept" }, "completed"],
    [{ decision: "approved" }, "completed"],
    [{ action: "accept", decision: "approved", feedback: "fine" }, "completed"],
    [{ action: "reject" }, "failed"],
    [{ decision: "rejected" }, "failed"],
  ])("is answered by %j: the run is %s", async (answer, status) => {
    const scene = createDoubtingScene();
    const runId = await scene.run("w");
    expect(codeOf(await scene.answer(runId, "a", answer))).toBe("done");
    expect(await scene.status(runId)).toBe(status);
  });

  it("says the spelling where only the letters are others", async () => {
    const scene = createDoubtingScene();
    const runId = await scene.run("w");
    expect(messageOf(await scene.answer(runId, "a", { action: "REJECT" }))).toContain('"REJECT"');
    const secret = "s".repeat(500);
    expect(messageOf(await scene.answer(runId, "a", { action: secret }))).not.toContain("sss");
  });

  it.each([{}, null, "no", { action: "deny" }, { action: "REJECT" }, { approved: false }])(
    "that is in a log with %j as its answer lets nothing go on",
    (resumeValue) => {
      const view = { nodeRun: { answers: [{ resumeValue }] } };
      expect(mockAgent.step(view as never)).toMatchObject({ kind: "fail" });
    },
  );
});

describe("a supervisor's doubt", () => {
  const PENDING = sendNextWorker("worker-a");
  const createDoubtingScene = (): WorkflowScene =>
    createWorkflowScene({
      definitions: [
        createWorkflow("w", {
          nodes: [
            createNode("s", "core.orchestrator.supervisor", {
              mockConfidence: 0.5,
              mockPendingDecision: PENDING,
            }),
            createNode("d", "core.dispatch"),
          ],
          edges: [createEdge("s>d"), createEdge("d>s")],
        }),
        createWorker("worker-a"),
        createWorker("worker-b"),
      ],
    });

  it.each<Attack>([
    ...NEITHER,
    ["an edit that is no decision", { action: "edit-accept", editedArtifactData: { kind: "next-worker" } }],
    ["what is nearly a decision", { kind: "next-worker", nextWorkerIds: "worker-b" }],
    ["a decision with more in it", { ...sendNextWorker("worker-b"), approved: false }],
  ])("executes nothing at %s", async (_, answer) => {
    const scene = createDoubtingScene();
    const runId = await scene.run("w");
    const answered = await scene.answer(runId, "s", answer);
    expect(codeOf(answered)).toBe("validation_error");
    expect(await scene.status(runId)).toBe("waiting-approval");
    expect(scene.types(runId)).not.toContain("runOrchestrator.decided");
  });

  it("takes the decision itself as the protocol does, and executes that one", async () => {
    const scene = createDoubtingScene();
    const runId = await scene.run("w");
    expect(codeOf(await scene.answer(runId, "s", sendNextWorker("worker-b")))).toBe("done");
    const [first] = scene.payloads(runId, "runOrchestrator.decided");
    expect(first?.decision).toMatchObject({ nextWorkerIds: ["worker-b"] });
    expect(await scene.status(runId)).toBe("completed");
  });
});

describe("an approval", () => {
  const createGatedScene = (config: Fields = {}, typeId = "core.approvalGate"): WorkflowScene =>
    createWorkflowScene({
      definitions: [createWorkflow("w", { nodes: [createNode("gate", typeId, config)] })],
    });

  it.each(NEITHER)("is not given by %s", async (_, answer) => {
    for (const scene of [createGatedScene(), createGatedScene({ kind: "approval" }, "core.interrupt")]) {
      const runId = await scene.run("w");
      const answered = await scene.answer(runId, "gate", answer);
      expect(codeOf(answered)).toBe("validation_error");
      expect(messageOf(answered)).toMatch(SAYS_WHICH);
      expect(await scene.status(runId)).toBe("waiting-approval");
    }
  });

  it.each(["Approval", "approve", "aproval", "low-confidence", "conversation.exchange", 7, ""])(
    "that is misspelt as the kind %j is no question at all: the run does not begin",
    async (kind) => {
      const scene = createGatedScene({ kind }, "core.interrupt");
      const created = await scene.host.create(ALICE, { workflowId: "w", inputs: {}, transport: "rest" });
      expect(codeOf(created)).toBe("validation_error");
      expect(messageOf(created)).toContain("approval, clarification, external-event, custom");
    },
  );
});

describe("a clarification", () => {
  const QUESTIONS = [
    { id: "q1", question: "Colour?", schema: { enum: ["blue", "red"] } },
    { id: "q2", question: "Why?" },
  ];
  const createAskingScene = (questions: unknown = QUESTIONS): WorkflowScene =>
    createWorkflowScene({
      definitions: [
        createWorkflow("w", { nodes: [createNode("ask", "core.clarificationGate", { questions })] }),
      ],
    });

  it.each<readonly [string, unknown, string]>([
    ["nothing", {}, "answers"],
    ["no answers", { answers: {} }, "q1"],
    ["a null", { answers: { q1: "blue", q2: null } }, "q2"],
    ["a list item without an answer", { answers: [{ id: "q1", answer: "blue" }, { id: "q2" }] }, "q2"],
    ["one that is not offered", { answers: { q1: "green", q2: "so" } }, "q1"],
    ["one in other letters", { answers: { q1: "BLUE", q2: "so" } }, '"blue"'],
    ["an answer to what was not asked", { answers: { q1: "blue", q2: "so", approved: true } }, "approved"],
    [
      "two answers to one question",
      {
        answers: [
          { id: "q1", answer: "red" },
          { id: "q1", answer: "blue" },
          { id: "q2", answer: "so" },
        ],
      },
      "q1",
    ],
    [
      "a list with more in it",
      { answers: [{ id: "q1", answer: "blue" }, "q2", { id: "q2", answer: "so" }] },
      "id",
    ],
  ])("is not answered by %s", async (_, answer, message) => {
    const scene = createAskingScene();
    const runId = await scene.run("w");
    const answered = await scene.answer(runId, "ask", answer);
    expect(codeOf(answered)).toBe("validation_error");
    expect(messageOf(answered)).toContain(message);
    expect(await scene.status(runId)).toBe("waiting-input");
  });

  it("is answered by what it offers", async () => {
    const scene = createAskingScene();
    const runId = await scene.run("w");
    expect(codeOf(await scene.answer(runId, "ask", { answers: { q1: "blue", q2: "so" } }))).toBe("done");
    expect(await scene.status(runId)).toBe("completed");
  });

  it.each([
    [[]],
    ["Colour?"],
    [[{ id: "q1" }]],
    [
      [
        { id: "q1", question: "a" },
        { id: "q1", question: "b" },
      ],
    ],
    [[7]],
  ])("whose questions are %j is refused before a run begins: anything would answer it", async (questions) => {
    const interrupt = createWorkflowScene({
      definitions: [
        createWorkflow("w", {
          nodes: [createNode("ask", "core.interrupt", { kind: "clarification", data: { questions } })],
        }),
      ],
    });
    for (const scene of [createAskingScene(questions), interrupt]) {
      const created = await scene.host.create(ALICE, { workflowId: "w", inputs: {}, transport: "rest" });
      expect(codeOf(created)).toBe("validation_error");
    }
  });
});

describe("over HTTP", () => {
  let world: Agents;
  beforeAll(async () => {
    world = await openAgents(
      [createAgent("vendor.test.doubter", { manifest: { confidence: { defaultThreshold: 0.9 } } })],
      { definitions: [createWorkflow("gated", { nodes: [createNode("gate", "core.approvalGate", {})] })] },
    );
  });
  afterAll(() => world.close());

  it("a doubt of an agent of a manifest is a 400 for whatever is no answer, and fails at a no", async () => {
    const turn = { say: JSON.stringify({ result: "maybe", confidence: 0.1 }) };
    const runId = await world.start("vendor.test.doubter", {}, [turn]);
    await world.client.until(runId, "waiting-approval");
    for (const [, answer] of NEITHER) {
      const { status, body } = await world.client.resolve(runId, "agent", answer);
      expect([status, body["error"]]).toEqual([400, "validation_error"]);
      expect(body["message"]).toMatch(SAYS_WHICH);
    }
    const nothing = await world.client.post(`/v1/runs/${runId}/interrupts/agent`, {});
    expect(nothing.status).toBe(400);
    expect((await world.client.snapshot(runId)).status).toBe("waiting-approval");
    expect((await world.client.resolve(runId, "agent", { action: "reject" })).status).toBe(200);
    expect((await world.client.until(runId, "failed")).error?.code).toBe("low_confidence_rejected");
  });

  it("an approval by a signed token is a 400 for whatever is no answer", async () => {
    const runId = await world.client.start("gated");
    const { interrupt } = await world.client.until(runId, "waiting-approval");
    const stranger = clientOf(world.baseUrl, "no-token");
    for (const [, resumeValue] of NEITHER) {
      const { status } = await stranger.post(`/v1/interrupts/${interrupt?.interruptToken ?? ""}`, {
        resumeValue,
      });
      expect(status).toBe(400);
    }
    expect((await world.client.snapshot(runId)).status).toBe("waiting-approval");
  });

  it("resuming a run that waits for people answers nothing", async () => {
    const runId = await world.client.start("gated");
    await world.client.until(runId, "waiting-approval");
    const resume = async (body: Fields): Promise<number> =>
      (await world.client.post(`/v1/runs/${runId}:resume`, body)).status;
    expect(await resume({})).toBe(409);
    expect(await resume({ resumeValue: { action: "accept" } })).toBe(400);
    expect(await resume({ action: "accept" })).toBe(400);
    expect((await world.client.snapshot(runId)).status).toBe("waiting-approval");
  });
});
