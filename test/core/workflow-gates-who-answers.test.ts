/** Owns: that only an approval asks who answers, and that words of an answer are no end of its time. */
import { describe, expect, it } from "vitest";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { ALICE, createWorkflowScene, type WorkflowScene } from "../support/workflow-scene.ts";

type Config = Readonly<Record<string, unknown>>;

const PROFILE = "openwop-interrupt-auth-required";
const QUESTIONS = [{ id: "limit", question: "Which credit limit?" }];

function openGate(typeId: string, config: Config): WorkflowScene {
  return createWorkflowScene({
    definitions: [createWorkflow("w", { nodes: [createNode("gate", typeId, config)] })],
  });
}

describe("a question that is no approval", () => {
  it.each<[typeId: string, config: Config]>([
    ["core.clarificationGate", { profile: PROFILE, questions: QUESTIONS }],
    ["core.clarificationGate", { approversList: ["bob"], questions: QUESTIONS }],
    ["core.clarificationGate", { approversList: "bob", questions: QUESTIONS }],
    ["core.interrupt", { kind: "clarification", questions: QUESTIONS, data: { approversList: ["bob"] } }],
    ["core.interrupt", { profile: PROFILE }],
    ["core.interrupt", { kind: "custom", profile: PROFILE }],
    ["core.interrupt", { kind: "custom", data: { profile: PROFILE } }],
    ["core.interrupt", { kind: "custom", requiredApprovals: 2 }],
    ["core.interrupt", { kind: "external-event", profile: PROFILE, data: { profile: PROFILE } }],
    ["core.interrupt", { kind: "external-event", approversList: ["bob"], data: { approversList: [] } }],
  ])("is refused with its workflow where it asks who answers: %s %j", async (typeId, config) => {
    const created = openGate(typeId, config).host.create(ALICE, {
      workflowId: "w",
      inputs: {},
      transport: "rest",
    });
    expect(await created).toMatchObject({
      kind: "refused",
      code: "validation_error",
      message: expect.stringContaining("only an approval can ask who answers") as string,
    });
  });

  it("may say that anybody may answer", async () => {
    const scene = openGate("core.interrupt", {
      profile: "slow",
      approversList: null,
      data: { approversList: [], requiredApprovals: 1 },
    });
    expect(await scene.status(await scene.run("w"))).toBe("waiting-input");
  });
});

describe("an answer that speaks of a timeout", () => {
  it.each<[config: Config, value: Config]>([
    [
      { kind: "external-event", data: { eventType: "payment", correlation: { order: 7 } } },
      { order: 7, action: "timeout" },
    ],
    [{ kind: "custom" }, { action: "timeout", seconds: 3 }],
  ])("is an answer: %j", async (config, value) => {
    const scene = openGate("core.interrupt", { ...config, timeoutMs: 1_000 });
    const runId = await scene.run("w");
    await scene.answer(runId, "gate", value);
    expect(await scene.status(runId)).toBe("completed");
    expect(scene.payloads(runId, "node.completed")[0]?.outputs).toEqual(value);
  });

  it("is none where the time was over before anybody answered", async () => {
    const scene = openGate("core.interrupt", { kind: "custom", timeoutMs: 1_000 });
    const runId = await scene.run("w");
    await scene.clock.advance(1_000);
    await scene.settle();
    expect(await scene.status(runId)).toBe("failed");
    expect(scene.payloads(runId, "node.failed")[0]?.error).toMatchObject({ code: "interrupt_timeout" });
  });
});
