/** Owns: a branch that begins behind an agent's last answer: that answer is used, and nobody is asked again. */
import { describe, expect, test } from "vitest";
import { readInstalledAgent } from "../../src/agents/coordination/contracts/workflows/agent-manifest.ts";
import { countEvents, expectReplayOf, forkIn } from "../support/forks.ts";
import { createWorkflowScene } from "../support/workflow-scene.ts";

const AGENT = "vendor.test.thinker";

/** A run of an agent that answers its first question with this text, and every later one with another. */
async function runAgent(text: string) {
  const systemPrompt = "Think.";
  const manifest = { agentId: AGENT, persona: "Thinker", modelClass: "general", systemPrompt };
  const installed = readInstalledAgent({ manifest, systemPrompt, packName: "p", packVersion: "1.0.0" });
  if (!installed.ok) throw new Error(JSON.stringify(installed.problems));
  const questions: string[] = [];
  const scene = createWorkflowScene({
    agents: { installed: [installed.value] },
    chat: {
      complete: ({ messages }) => {
        questions.push(JSON.stringify(messages));
        return Promise.resolve({
          kind: "answered",
          text: questions.length === 1 ? text : "another answer",
          finishReason: "stop",
          model: "m",
          provider: "p",
          usage: {},
        });
      },
    },
  });
  const sourceRunId = await scene.run("", { agent: { agentId: AGENT, source: "run-api" } });
  const answeredAt = scene.types(sourceRunId).indexOf("coordination.agent_turned") + 1;
  return { scene, questions, sourceRunId, answeredAt };
}

describe("a branch behind the last answer of an agent", () => {
  test("ends with that answer, wherever behind it the branch begins", async () => {
    const { scene, questions, sourceRunId, answeredAt } = await runAgent(
      '{"result":"blue","confidence":0.9}',
    );
    const outputs = scene.payloads(sourceRunId, "run.completed")[0]?.outputs;
    expect(outputs).toMatchObject({ result: "blue" });
    for (let fromSeq = answeredAt; fromSeq < countEvents(scene.ledger, sourceRunId); fromSeq += 1) {
      const branch = await forkIn(scene, { sourceRunId, mode: "branch", fromSeq });
      expect(scene.payloads(branch, "run.completed")[0]?.outputs, `from ${fromSeq}`).toEqual(outputs);
      expect(scene.payloads(branch, "agent.invocation.completed")).toMatchObject([{ outcome: "completed" }]);
      expectReplayOf(scene.ledger, await forkIn(scene, { sourceRunId: branch, mode: "replay" }), branch);
    }
    expect(questions).toHaveLength(1);
  });

  test("asks people about that answer where the agent doubted it", async () => {
    const { scene, questions, sourceRunId, answeredAt } = await runAgent(
      '{"result":"blue","confidence":0.1}',
    );
    const branch = await forkIn(scene, { sourceRunId, mode: "branch", fromSeq: answeredAt });
    expect(await scene.status(branch)).toBe("waiting-approval");
    await scene.answer(branch, "agent", { action: "accept" });
    await scene.settle();
    expect(scene.payloads(branch, "run.completed")).toMatchObject([{ outputs: { result: "blue" } }]);
    expect(questions).toHaveLength(1);
  });

  test("asks again where it begins before that answer", async () => {
    const { scene, questions, sourceRunId, answeredAt } = await runAgent("blue");
    await forkIn(scene, { sourceRunId, mode: "branch", fromSeq: answeredAt - 1 });
    expect(questions).toHaveLength(2);
  });
});
