/** The questions that `coordination_status` lists, with an id and without one: of a real coordinator, over a ledger that may be damaged. */
import { describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import type { PlanAccess } from "../../src/plugins/openclaw/runtime-access/plan-access.ts";
import type { SharedRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import { createPlanTools } from "../../src/plugins/openclaw/plans/plan-tools.ts";
import type { ToolAnswer } from "../../src/plugins/openclaw/runtime-access/tool-call.ts";
import { createWorld, OWNER, spawnOf, type World } from "../support/fake-clock-host.ts";

/** Starts a coordination whose only child asks its parent `questions` questions; those with an even number may be answered longer. */
async function askParent(
  world: World,
  coordinator: Coordinator,
  { name, questions }: { readonly name: string; readonly questions: number },
): Promise<void> {
  const request = spawnOf({ task: name, trace: name });
  const admission = await coordinator.admitSpawn(request);
  if (admission.kind === "refused") throw new Error(admission.reason);
  const { coordinationId, stepId } = admission.envelope;
  const child = world.host.spawn(request);
  await coordinator.confirmSpawn(
    { coordinationId, stepId, sourceSession: OWNER, toolCallId: name },
    { childSessionKey: child.childSessionKey, childRunId: child.childRunId },
  );
  for (let number = 1; number <= questions; number += 1)
    await coordinator.ask({
      askedBy: child.childSessionKey,
      to: "parent",
      agentId: "main",
      kind: "clarification",
      question: `Question ${number} of ${name}?`,
      answerMs: (number % 2 === 0 ? 20 + number : number) * 60_000,
    });
}

/** Starts a coordination for each number, whose child asks so many questions. */
async function openWithQuestions(
  numbers: readonly number[],
): Promise<{ readonly world: World; readonly coordinator: Coordinator }> {
  const world = createWorld();
  const coordinator = world.start();
  await coordinator.start();
  for (const [index, questions] of numbers.entries())
    await askParent(world, coordinator, { name: `plan ${index + 1}`, questions });
  return { world, coordinator };
}

function readStatus(world: World, coordinator: Coordinator, params: object = {}): Promise<ToolAnswer> {
  const plans = {
    ...coordinator,
    reads: { ...world.ledger.open(world.clock), view: (id: CoordinationId) => coordinator.view(id) },
  } as unknown as PlanAccess;
  const runtime = { config: { acpAgents: {} } } as unknown as SharedRuntime;
  const tools = createPlanTools(
    (work) => work(plans, runtime),
    () => true,
  );
  return tools("coordination_status", { sessionKey: OWNER }, params);
}

const listQuestionIds = ({ questions = [] }: ToolAnswer): unknown[] =>
  (questions as { readonly questionId: string }[]).map(({ questionId }) => questionId);

function damage(world: World, coordinationId: string): void {
  const log = world.ledger.runs.get(coordinationId as CoordinationId) ?? expect.fail("there is no such log");
  log.events[1] = (log.events[1] ?? "").replace(/"type":"[a-z.]+"/iu, '"type":"step.forgotten"');
}

describe("coordination_status without an id", () => {
  it("says of how many coordinations the log is damaged, and lists the questions of the others", async () => {
    const world = createWorld();
    const before = world.start();
    await before.start();
    for (const name of ["first", "second"]) await askParent(world, before, { name, questions: 1 });
    await before.stop();
    damage(world, "co-2");
    const coordinator = world.start();
    await coordinator.start();
    const status = await readStatus(world, coordinator);
    expect(status).toMatchObject({ status: "ok", unreadable: 1 });
    expect(status["coordinations"]).toMatchObject([{ coordinationId: "co-2" }, { coordinationId: "co-1" }]);
    expect(listQuestionIds(status)).toEqual(["co-1:escalation-1"]);
    await coordinator.stop();
  });

  it("lists the ten questions that expire first in all, and says how many it leaves out", async () => {
    const { world, coordinator } = await openWithQuestions([4, 4, 4]);
    const status = await readStatus(world, coordinator);
    const numbers = listQuestionIds(status).map((id) => Number(/\d+$/u.exec(String(id))?.[0]));
    expect(numbers).toEqual([1, 1, 1, 3, 3, 3, 2, 2, 2, 4]);
    expect(status).toMatchObject({ questionsLeftOut: 2 });
    expect(status).not.toHaveProperty("unreadable");
    await coordinator.stop();
  });

  it("counts also the questions of a coordination that has more than ten", async () => {
    const { world, coordinator } = await openWithQuestions([12]);
    const status = await readStatus(world, coordinator);
    expect(listQuestionIds(status)).toHaveLength(10);
    expect(status).toMatchObject({ questionsLeftOut: 2 });
    await coordinator.stop();
  });

  it("counts what it leaves out of several coordinations that have more than ten", async () => {
    const { world, coordinator } = await openWithQuestions([12, 11]);
    const status = await readStatus(world, coordinator);
    expect(listQuestionIds(status)).toHaveLength(10);
    expect(status).toMatchObject({ questionsLeftOut: 13 });
    await coordinator.stop();
  });
});

describe("coordination_status with an id", () => {
  it("lists the ten questions of that coordination that expire first, and says how many it leaves out", async () => {
    const { world, coordinator } = await openWithQuestions([12]);
    const status = await readStatus(world, coordinator, { coordinationId: "co-1" });
    const expiring = [1, 3, 5, 7, 9, 11, 2, 4, 6, 8].map((number) => `co-1:escalation-${number}`);
    expect(listQuestionIds(status)).toEqual(expiring);
    expect(status).toMatchObject({ status: "ok", questionsLeftOut: 2 });
    await coordinator.stop();
  });

  it("leaves out none of ten", async () => {
    const { world, coordinator } = await openWithQuestions([10]);
    const status = await readStatus(world, coordinator, { coordinationId: "co-1" });
    expect(listQuestionIds(status)).toHaveLength(10);
    expect(status).not.toHaveProperty("questionsLeftOut");
    await coordinator.stop();
  });
});
