/** Values of a node, a tool or a person may not make a log that nobody can read again. */
import { describe, expect, test } from "vitest";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { ALICE, codeOf, createWorkflowScene } from "../support/workflow-scene.ts";

const HUGE = "x".repeat(1_300_000);

function nestLevels(levels: number): unknown {
  let value: unknown = "end";
  for (let level = 0; level < levels; level += 1) value = { value };
  return value;
}

describe("what cannot be read again", () => {
  test.each([
    ["a text that is too long", HUGE],
    ["a value that is too deep", nestLevels(60)],
  ])("of a tool, %s, fails its node", async (_what, content) => {
    const scene = createWorkflowScene({
      settings: { mcpUrl: "https://tools.example/mcp" },
      definitions: [
        createWorkflow("w", { nodes: [createNode("call", "core.ai.callPrompt", { mcp: { tool: "t" } })] }),
      ],
      tools: {
        callMcp: () =>
          Promise.resolve({ kind: "answered", ok: true, content: [{ content }], text: "short" } as never),
      },
    });
    const runId = await scene.run("w");
    expect(await scene.snapshot(runId)).toMatchObject({
      status: "failed",
      error: { code: "value_not_recordable" },
    });
  });

  test("of several nodes together fails the run where its outputs are made", async () => {
    const half = "x".repeat(700_000);
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("w", {
          nodes: ["a", "b"].map((id) =>
            createNode(
              id,
              "core.identity",
              {},
              { inputs: { port: { type: "variable", variableName: "half" } } },
            ),
          ),
          variables: { half: undefined },
        }),
      ],
    });
    const runId = await scene.run("w", { inputs: { half } });
    expect(await scene.snapshot(runId)).toMatchObject({
      status: "failed",
      error: { code: "value_not_recordable" },
    });
  });

  test("of a caller is refused before there is a run", async () => {
    const scene = createWorkflowScene({
      definitions: [createWorkflow("w", { nodes: [createNode("a", "core.noop")] })],
    });
    const answer = await scene.host.create(ALICE, {
      workflowId: "w",
      inputs: { a: nestLevels(60) },
      transport: "rest",
    });
    expect(codeOf(answer)).toBe("validation_error");
  });

  test("of a person is refused, and the interrupt stays open", async () => {
    const scene = createWorkflowScene({
      definitions: [createWorkflow("w", { nodes: [createNode("gate", "core.approvalGate", {})] })],
    });
    const runId = await scene.run("w");
    const answer = (more: unknown) =>
      scene.host.resolve(ALICE, runId, { nodeId: "gate" }, { action: "accept", more });
    expect(codeOf(await answer(nestLevels(60)))).toBe("validation_error");
    expect(await scene.snapshot(runId)).toMatchObject({ status: "waiting-approval" });
    expect(codeOf(await answer("short"))).toBe("done");
  });
});
