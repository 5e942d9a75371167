/** Owns: who may answer the questions of a plan inside of a plan where another approver is demanded. */
import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { Answerer } from "../../src/agents/coordination/contracts/escalation.ts";
import type { CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { replayCoordination } from "../../src/agents/coordination/runtime/replay-coordination.ts";
import { createWorld, OWNER } from "../support/fake-clock-host.ts";
import { createScriptedRunner, endFailing } from "../support/scripted-runner.ts";
import { createEscalationsWith } from "./gates-world.ts";
import {
  AGENT,
  plan,
  PLAN_ID,
  scriptOf,
  step,
  submitTo,
  type Fields,
  type PlanRun,
} from "./planned-world.ts";

const INNER_ID = "plan-3" as CoordinationId;
const ASKING = {
  failurePolicy: { retryBudget: 5, timeoutPolicy: "continue_with_partial", escalationPolicy: "hitl" },
};

/** Submits a plan as the agent of a step at work. */
async function submitAs(run: PlanRun, stepId: string, fields: Fields): Promise<SessionKey> {
  const session = run.ordersOf(stepId).at(-1)!.childSessionKey;
  const planFields = { ...plan([]), ...fields, ownerSession: session };
  expect(
    await run.coordinator.submitPlan({ plan: planFields, submittedBy: session, ownerAgent: AGENT }),
  ).toMatchObject({ kind: "accepted" });
  await run.advance(100);
  return session;
}

describe("a question of a plan inside of plans", () => {
  it("is answered in no session whose plan it is, or is around it", async () => {
    const runner = createScriptedRunner(scriptOf({ a: ["work"], m: ["work"], n: [endFailing()] }));
    const escalations = createEscalationsWith({ requireDifferentApprover: true });
    const run = await submitTo(createWorld({}, runner, { escalations }), plan([step("a")]));
    const middle = await submitAs(run, "a", { coordinationId: "plan-2", steps: [step("m")] });
    const inner = await submitAs(run, "m", { coordinationId: INNER_ID, steps: [step("n")], ...ASKING });
    const answerIn = (session: SessionKey) =>
      run.coordinator.answer({
        questionId: `${INNER_ID}:escalation-1`,
        answer: "approve",
        by: { kind: "person", id: "ada", session },
        through: "chat",
      });
    for (const session of [OWNER, middle, inner])
      expect(await answerIn(session), session).toMatchObject({ kind: "refused", code: "ANSWER_REFUSED" });
    expect(run.events("escalation.answered").map(({ payload }) => payload.refused)).toEqual([
      "same_session",
      "same_session",
      "same_session",
    ]);
    expect(await answerIn("agent:main:other" as SessionKey)).toMatchObject({ kind: "accepted" });
    const store = run.world.ledger.open(run.world.clock);
    expect((await replayCoordination(store, INNER_ID)).difference).toBeUndefined();
    await run.close();
  });

  it.each<[string, Parameters<typeof createEscalationsWith>[0], Answerer]>([
    ["anybody may answer", {}, { kind: "person", id: "ada", session: OWNER }],
    ["the answer comes from no session", { requireDifferentApprover: true }, { kind: "operator" }],
  ])("is answered where %s, though the log around it cannot be read", async (_, settings, by) => {
    const runner = createScriptedRunner(scriptOf({ a: ["work"], n: [endFailing()] }));
    const world = createWorld({}, runner, { escalations: createEscalationsWith(settings) });
    const run = await submitTo(world, plan([step("a")]));
    await submitAs(run, "a", { coordinationId: INNER_ID, steps: [step("n")], ...ASKING });
    await run.coordinator.stop();
    const coordinator = world.start((store) => ({
      ...store,
      read: (runId, range) =>
        runId === PLAN_ID
          ? Promise.reject(new CoordinationError("LEDGER_CORRUPT", "plan-1 is damaged"))
          : store.read(runId, range),
    }));
    await coordinator.start();
    const request = {
      questionId: `${INNER_ID}:escalation-1`,
      answer: "approve",
      by,
      through: "chat",
    } as const;
    expect(await coordinator.answer(request)).toMatchObject({ kind: "accepted" });
    await coordinator.stop();
  });
});
