/** Owns: that `questions` of the MCP server lists all questions, also where they are too long together for one answer. */
import { expect, it } from "vitest";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { callTool, openMcpWorld } from "./mcp-world.ts";

const LONG = "x".repeat(15_000);

interface ListedQuestion {
  readonly runId: string;
  readonly resource: string;
  readonly asked?: { readonly title: string };
}

it("questions that are too long together are listed, those without room without what they ask", async () => {
  await using world = await openMcpWorld({
    definitions: [
      createWorkflow("long", { nodes: [createNode("gate", "core.approvalGate", { title: LONG })] }),
      createWorkflow("short", { nodes: [createNode("gate", "core.approvalGate", { title: "Dig?" })] }),
    ],
  });
  const client = await world.connect();
  await callTool(client, "short");
  for (let begun = 0; begun < 20; begun += 1) await callTool(client, "long");
  const { text, data } = await callTool(client, "questions", { limit: 100 });
  expect(JSON.stringify(data).length).toBeLessThan(200_000);
  const questions = data["questions"] as readonly ListedQuestion[];
  expect(questions).toHaveLength(21);
  for (const { runId, resource } of questions) expect(resource).toBe(`openwop://runs/${runId}`);
  const isLeftOut = questions.map((question) => question.asked === undefined);
  const leftOut = isLeftOut.filter(Boolean).length;
  expect(leftOut).toBeGreaterThan(0);
  expect(leftOut).toBeLessThan(10);
  expect([isLeftOut.at(0), isLeftOut.at(-2)]).toEqual([false, true]);
  expect(questions.at(-1)).toMatchObject({ nodeId: "gate", kind: "approval", asked: { title: "Dig?" } });
  expect(text).toContain(
    `21 questions for people. ${leftOut} questions are listed without texts that are too long here: the \`resource\``,
  );
});
