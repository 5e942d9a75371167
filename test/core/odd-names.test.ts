/**
 * Owns: names that are refused: those with half of a surrogate pair, which a database stores as other text, so that a ledger verifies,
 * and ids of plans and steps that would not name one thing only, or would not stand in one line.
 */
import { describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { checkNewPlan } from "../../src/agents/coordination/plan/check-new-plan.ts";
import type { PlanSubmitted } from "../../src/agents/coordination/runtime/plans/plan-requests.ts";
import { createWorld } from "../support/fake-clock-host.ts";
import { createScriptedRunner, endFailing } from "../support/scripted-runner.ts";
import { chain, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { ALICE, codeOf, createWorkflowScene } from "../support/workflow-scene.ts";
import { AGENT, plan, PLAN_ID, runPlan, scriptOf, step } from "./planned-world.ts";

const ODD = "a\ud800";
const WHY = "this is no Unicode text: it has half of a surrogate pair";

async function submit(odd: object): Promise<PlanSubmitted> {
  const world = createWorld({}, createScriptedRunner(scriptOf({})));
  const coordinator = world.start();
  await coordinator.start();
  const submitted = await coordinator.submitPlan({ plan: odd, ownerAgent: AGENT });
  await coordinator.stop();
  return submitted;
}

it("a plan is refused for the id of a step that is no Unicode text", async () => {
  expect(await submit(plan([step("a"), step(ODD)]))).toMatchObject({
    kind: "refused",
    problems: [{ path: "steps[1].stepId", code: "SCHEMA_MISMATCH", message: WHY }],
  });
});

describe("a new plan is refused", () => {
  it.each(["a b", "a\nb", "a\u200bb", "a\u202eb", "release:eu", "-a", "@a", "a[[b", "é", ODD])(
    "for its coordinationId %j",
    async (coordinationId) => {
      expect(await submit(plan([step("a")], { coordinationId }))).toMatchObject({
        kind: "refused",
        problems: [{ path: "coordinationId", code: "ID_INVALID" }],
      });
    },
  );

  it.each([
    "eu:build",
    "a\nb",
    "a\u0007b",
    "a\u200bb",
    "a\u2028b",
    "build\u3164",
    "build\ufe0f",
    "a\u200cb",
    "a\u200db",
  ])("for its stepId %j", async (stepId) => {
    expect(await submit(plan([step("a"), step(stepId)]))).toMatchObject({
      kind: "refused",
      problems: [{ path: "steps[1].stepId", code: "ID_INVALID" }],
    });
  });

  it("with all that is wrong with it at once", () => {
    const checked = checkNewPlan(
      plan([step("a:b", { dependsOn: ["z"] })], { coordinationId: "a b", extra: 1 }),
    );
    const codes = checked.kind === "refused" ? checked.problems.map(({ code }) => code) : [];
    expect(codes.toSorted()).toEqual(["DEPENDENCY_UNKNOWN", "ID_INVALID", "ID_INVALID", "SCHEMA_MISMATCH"]);
  });
});

it.each(["release-notes_2.0", "team/release@2026", "A", "plan-0f9c"])(
  "a plan may have the id %s",
  async (id) => {
    expect(await submit(plan([step("audit of a name"), step("é")], { coordinationId: id }))).toMatchObject({
      kind: "accepted",
    });
  },
);

it.each(["audit of a name", "é", "❤️", "👩🏽‍🚀", "می‌خواهم", "ශ්‍රී"])(
  "a step may have the id %s",
  async (stepId) => {
    expect(await submit(plan([step(stepId)]))).toMatchObject({ kind: "accepted" });
  },
);

it("a fork is refused under an id that no new plan may have", async () => {
  const planRun = await runPlan({ b: [endFailing()] }, plan([step("a"), step("b")]));
  for (const isPreview of [true, false])
    expect(
      await planRun.coordinator.forkPlan({
        source: PLAN_ID,
        coordinationId: "My plan" as CoordinationId,
        isPreview,
      }),
    ).toMatchObject({ kind: "refused", problems: [{ path: "coordinationId", code: "ID_INVALID" }] });
  await planRun.close();
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
