/** Owns: names with half of a surrogate pair, which a database stores as other text: they are refused, so that a ledger verifies. */
import { expect, it } from "vitest";
import { createWorld } from "../support/fake-clock-host.ts";
import { createScriptedRunner } from "../support/scripted-runner.ts";
import { chain, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { ALICE, codeOf, createWorkflowScene } from "../support/workflow-scene.ts";
import { AGENT, plan, scriptOf, step } from "./planned-world.ts";

const ODD = "a\ud800";
const WHY = "this is no Unicode text: it has half of a surrogate pair";

it.each([
  ["coordinationId", plan([step("a")], { coordinationId: ODD })],
  ["steps[1].stepId", plan([step("a"), step(ODD)])],
])("a plan is refused for its %s", async (path, odd) => {
  const world = createWorld({}, createScriptedRunner(scriptOf({})));
  const coordinator = world.start();
  await coordinator.start();
  const submitted = await coordinator.submitPlan({ plan: odd, ownerAgent: AGENT });
  await coordinator.stop();
  expect(submitted).toMatchObject({
    kind: "refused",
    problems: [{ path, code: "SCHEMA_MISMATCH", message: WHY }],
  });
});

it("a workflow is refused for the id of a node", async () => {
  const scene = createWorkflowScene();
  const definition = createWorkflow("odd", { nodes: [createNode(ODD, "core.noop")] });
  expect(codeOf(await scene.host.register(ALICE, definition))).toBe("validation_error");
});

it("memory keeps text and tags as the store reads them back", async () => {
  const keep = createNode("keep", "openclaw.memory.write", { content: "x\ud800", tags: ["t\ud800"] });
  const read = createNode("read", "openclaw.memory.read", { into: "entries" });
  const definition = createWorkflow("odd", { nodes: [keep, read], edges: chain("keep>read") });
  const scene = createWorkflowScene({ definitions: [definition] });
  const runId = await scene.run("odd");
  await scene.settle();
  expect(scene.payloads(runId, "memory.written")).toMatchObject([{ tags: ["t\ufffd"] }]);
  const [changed] = scene.payloads(runId, "variable.changed");
  expect(changed?.next).toMatchObject([{ content: "x\ufffd", tags: ["t\ufffd"] }]);
});
