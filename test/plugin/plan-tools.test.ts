import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { checkPlan } from "../../src/agents/coordination/plan/check-plan.ts";
import type {
  PlanSubmission,
  PlanSubmitted,
  ChildReport,
  ReportAnswer,
} from "../../src/agents/coordination/runtime/plans/plan-requests.ts";
import type { AgentId } from "../../src/agents/coordination/contracts/ids.ts";
import { createPlanTools, type CallingSession } from "../../src/plugins/openclaw/plans/plan-tools.ts";
import { registerCoordinationTools } from "../../src/plugins/openclaw/register-tools.ts";
import type { OpenClawPluginApi } from "../../src/plugins/openclaw/host/sdk.ts";
import {
  PLAN_EXAMPLE,
  TOOL_DECLARATIONS,
  TOOL_NAMES,
  type ToolName,
} from "../../src/plugins/openclaw/declarations/tool-declarations.ts";
import { SESSION, START, createStubPlans, viewOf, type StubPlans } from "./stub-plans.ts";

const allowAnyAgent = (): boolean => true;
const ME = { sessionKey: SESSION, agentId: "research" };

const call = (tool: ToolName, params: unknown, stub: StubPlans, caller: CallingSession = ME) =>
  createPlanTools(stub.use, allowAnyAgent)(tool, caller, params);

/** Answers as the coordinator would. */
function createChecking(): StubPlans {
  return createStubPlans({
    submitPlan: ({ plan }): Promise<PlanSubmitted> => {
      const checked = checkPlan(plan);
      if (checked.kind === "refused") return Promise.resolve(checked);
      const { coordinationId, steps } = checked.graph;
      return Promise.resolve({ kind: "accepted", coordinationId, steps: steps.length });
    },
  });
}

const findSubmission = ({
  askedCalls,
}: StubPlans): PlanSubmission & { readonly plan: Record<string, unknown> } =>
  askedCalls[0]?.args[0] as PlanSubmission & { readonly plan: Record<string, unknown> };

const PLAN = { objective: "o", steps: [{ stepId: "a", task: "t" }] };

describe("coordination_plan", () => {
  it("runs the example that its description shows, and says what happens next", async () => {
    const answer = await call("coordination_plan", PLAN_EXAMPLE, createChecking());
    expect(answer).toMatchObject({ status: "accepted", steps: 3 });
    expect(answer["coordinationId"]).toMatch(/^plan-[0-9a-f-]{36}$/u);
    expect(answer["note"]).toContain("You will be told the result once, in this session");
    expect(TOOL_DECLARATIONS[0]?.description).toContain(JSON.stringify(PLAN_EXAMPLE));
  });

  it("fills in what a model may leave out, the caller's own agent too", async () => {
    const stub = createChecking();
    await call("coordination_plan", { plan: PLAN }, stub);
    expect(findSubmission(stub)).toMatchObject({
      submittedBy: SESSION,
      ownerAgent: "research",
      plan: {
        ownerSession: SESSION,
        conflictPolicy: {},
        failurePolicy: { retryBudget: 2, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
        steps: [{ stepId: "a", task: "t", agent: "research" }],
      },
    });
  });

  it("keeps what the model says, and completes a policy that says a part", async () => {
    const stub = createChecking();
    const steps = [{ stepId: "a", task: "t", agent: "writer" }];
    await call(
      "coordination_plan",
      { plan: { ...PLAN, coordinationId: "co-7", steps, failurePolicy: { retryBudget: 0 } } },
      stub,
    );
    expect(findSubmission(stub).plan).toMatchObject({
      coordinationId: "co-7",
      failurePolicy: { retryBudget: 0, timeoutPolicy: "continue_with_partial" },
      steps,
    });
  });

  it("the owner is the session that calls, whatever the model wrote (H3)", async () => {
    const stub = createChecking();
    await call("coordination_plan", { plan: { ...PLAN, ownerSession: "agent:main:main" } }, stub);
    expect(findSubmission(stub)).toMatchObject({ submittedBy: SESSION, plan: { ownerSession: SESSION } });
  });

  it("a plan with problems comes back with all of them, path and sentence", async () => {
    const plan = { objective: "o", speed: 5, steps: [{ stepId: "a", task: "t", dependsOn: ["b"] }, 7] };
    const answer = await call("coordination_plan", { plan }, createChecking());
    expect(answer).toMatchObject({
      status: "refused",
      problems: [
        { path: "(root)" },
        { path: "steps[1]" },
        { path: "steps[0].dependsOn[0]", code: "DEPENDENCY_UNKNOWN" },
      ],
    });
  });

  it("of very many problems it tells the first ones and how many are left out", async () => {
    const steps = Array.from({ length: 30 }, (_, index) => ({
      stepId: `s${index}`,
      task: "t",
      dependsOn: ["?"],
    }));
    const answer = await call("coordination_plan", { plan: { objective: "o", steps } }, createChecking());
    expect(answer["problems"]).toHaveLength(20);
    expect(answer["problemsLeftOut"]).toBeGreaterThan(0);
  });

  it("says that a plan that was submitted before is not run twice", async () => {
    const replay = createStubPlans({
      submitPlan: () =>
        Promise.resolve({ kind: "replay", coordinationId: "co-1", steps: 1 } as PlanSubmitted),
    });
    const { note } = await call("coordination_plan", { plan: PLAN }, replay);
    expect(note).toContain("not run twice");
    expect(note).toContain("The plan runs now");
  });

  it("says how a plan has ended that was submitted before", async () => {
    const replay = createStubPlans({
      submitPlan: () =>
        Promise.resolve({ kind: "replay", coordinationId: "co-1", steps: 1 } as PlanSubmitted),
      reads: { view: () => Promise.resolve(viewOf([], { status: "failed", endedAtMs: START })) },
    });
    const { note } = await call("coordination_plan", { plan: PLAN }, replay);
    expect(note).toContain("not run twice. It has ended as failed");
    expect(note).not.toContain("runs now");
  });

  it("names a plan by its call within its conversation, as call ids come again in the next one", async () => {
    const toolCallId = "functions.coordination_plan:0";
    const nameIn = async (sessionId: string | undefined): Promise<unknown> => {
      const caller = { ...ME, sessionId, toolCallId };
      return (await call("coordination_plan", { plan: PLAN }, createChecking(), caller))["coordinationId"];
    };
    const first = await nameIn("8f0c-1");
    expect(await nameIn("8f0c-1")).toBe(first);
    expect(await nameIn("8f0c-2")).not.toBe(first);
    expect(await nameIn(undefined)).toBe(await nameIn(undefined));
  });

  it.each([[undefined], [null], [5], [{}], [{ plan: "text" }], [{ plan: [] }], [{ plan: {}, extra: 1 }]])(
    "refuses %j with a sentence, before the coordinator is asked",
    async (params) => {
      const stub = createChecking();
      const answer = await call("coordination_plan", params, stub);
      expect(answer.status).toBe("error");
      expect(stub.askedCalls).toEqual([]);
    },
  );
});

describe("coordination_report", () => {
  const createAnswering = (...answers: readonly ReportAnswer[]): StubPlans => {
    const left = [...answers];
    return createStubPlans({
      report: () => Promise.resolve(left.shift() ?? { kind: "refused", reason: "asked too often" }),
    });
  };
  const recorded = { kind: "recorded", coordinationId: "co-1", stepId: "a" } as ReportAnswer;
  const listReports = ({ askedCalls }: StubPlans): ChildReport[] =>
    askedCalls.map(({ args }) => args[1] as ChildReport);

  it("records for the session that calls", async () => {
    const stub = createAnswering(recorded);
    const params = { outcome: "completed", outputs: { rows: [1] }, confidence: 0.9 };
    expect(await call("coordination_report", params, stub)).toMatchObject({
      status: "recorded",
      stepId: "a",
    });
    expect(stub.askedCalls).toEqual([{ subject: "report", args: [SESSION, params] }]);
  });

  it("keeps the evidence among the outputs", async () => {
    const stub = createAnswering(recorded);
    await call(
      "coordination_report",
      { outcome: "completed", outputs: { a: 1 }, evidence: ["file.txt"] },
      stub,
    );
    expect(listReports(stub)).toEqual([{ outcome: "completed", outputs: { a: 1, evidence: ["file.txt"] } }]);
  });

  it("does not write over outputs of that name", async () => {
    const stub = createAnswering(recorded);
    await call(
      "coordination_report",
      { outcome: "completed", outputs: { evidence: 1 }, evidence: ["x"] },
      stub,
    );
    expect(listReports(stub)[0]?.outputs).toEqual({ evidence: 1 });
  });

  it("leaves the evidence out where the step's contract has no place for it", async () => {
    const stub = createAnswering(
      { kind: "invalid", problems: [{ path: "evidence", message: "not allowed" }] },
      recorded,
    );
    const answer = await call(
      "coordination_report",
      { outcome: "completed", outputs: { a: 1 }, evidence: ["x"] },
      stub,
    );
    expect(answer.status).toBe("recorded");
    expect(listReports(stub).map(({ outputs }) => outputs)).toEqual([{ a: 1, evidence: ["x"] }, { a: 1 }]);
  });

  it("outputs that break the contract come back with paths, to report again", async () => {
    const problems = [{ path: "rows[0]", message: "must be a number" }];
    const answer = await call(
      "coordination_report",
      { outcome: "completed", outputs: {} },
      createAnswering({ kind: "invalid", problems }),
    );
    expect(answer).toMatchObject({ status: "invalid", problems });
  });

  it("is refused with a sentence where the session works on no step", async () => {
    const answer = await call(
      "coordination_report",
      { outcome: "failed", outputs: {} },
      createAnswering({ kind: "refused", reason: "no step here" }),
    );
    expect(answer).toEqual({ status: "refused", message: "no step here" });
  });

  it.each([
    ["outcome", { outcome: "done", outputs: {} }],
    ["outputs", { outcome: "completed" }],
    ["outputs", { outcome: "completed", outputs: "text" }],
    ["confidence", { outcome: "completed", outputs: {}, confidence: 1.5 }],
    ["evidence", { outcome: "completed", outputs: {}, evidence: "text" }],
    ["outputs.text", { outcome: "completed", outputs: { text: "x".repeat(200_001) } }],
    ["(root)", 5],
  ])("a bad %s is named by its path, and nothing is recorded", async (path, params) => {
    const stub = createAnswering(recorded);
    expect(await call("coordination_report", params, stub)).toMatchObject({
      status: "invalid",
      problems: [{ path }],
    });
    expect(stub.askedCalls).toEqual([]);
  });
});

describe("the agents of an agent's plan", () => {
  it("are those that the host lets it spawn", async () => {
    const stub = createChecking();
    const tools = createPlanTools(
      stub.use,
      (requester, { agent, isProgram }) => requester.agent === "research" && agent === "writer" && !isProgram,
    );
    await tools("coordination_plan", ME, { plan: PLAN });
    const { mayRun } = findSubmission(stub);
    expect(mayRun?.("writer" as AgentId)).toBe(true);
    expect(mayRun?.("admin" as AgentId)).toBe(false);
  });

  it("are checked where the operator has turned coordination on for the one that asks, in another spelling", async () => {
    const stub = createStubPlans({}, { agents: ["Research " as AgentId] });
    await call("coordination_plan", { plan: PLAN }, stub);
    expect(stub.askedCalls).toHaveLength(1);
  });

  it("are none where the operator has not turned coordination on for the one that asks", async () => {
    const stub = createStubPlans({}, { agents: ["main" as AgentId] });
    const answer = await call("coordination_plan", { plan: PLAN }, stub);
    expect(answer).toMatchObject({
      status: "error",
      message: expect.stringContaining("not enabled") as string,
    });
    expect(stub.askedCalls).toEqual([]);
  });
});

describe("every tool", () => {
  const PARAMS: Readonly<Record<ToolName, unknown>> = {
    coordination_plan: { plan: PLAN },
    coordination_report: { outcome: "completed", outputs: {} },
    coordination_status: {},
    coordination_result: {},
    coordination_escalate: { question: "may I?" },
    coordination_progress: { line: "reading" },
    coordination_answer: { questionId: "co-1:escalation-1", answer: "yes" },
  };

  it.each(TOOL_NAMES)("%s turns a failing ledger into a sentence", async (tool) => {
    const use = () => Promise.reject(new CoordinationError("LEDGER_FULL", "the disk is full"));
    const answer = await createPlanTools(use, allowAnyAgent)(tool, ME, PARAMS[tool]);
    expect(answer).toEqual({
      status: "error",
      message: expect.stringMatching(/^the disk is full\. Free space/u) as string,
    });
  });

  it.each(TOOL_NAMES)("%s turns a bug into a sentence", async (tool) => {
    const answer = await createPlanTools(
      () => Promise.reject(new TypeError("x is not a function")),
      allowAnyAgent,
    )(tool, ME, PARAMS[tool]);
    expect(answer).toEqual({ status: "error", message: "x is not a function" });
  });

  it.each(TOOL_NAMES)("%s does nothing for a call that belongs to no session", async (tool) => {
    const stub = createStubPlans();
    expect((await call(tool, PARAMS[tool], stub, {})).status).toBe("error");
    expect(stub.askedCalls).toEqual([]);
  });

  it("is registered under its name, for the session that the host names, and answers as text and as data", async () => {
    const tools = new Map<
      string,
      (ctx: object) => { execute(id: string, params: unknown): Promise<unknown> }
    >();
    const api = { registerTool: (make: never, { name }: { name: string }) => tools.set(name, make) };
    registerCoordinationTools(api as unknown as OpenClawPluginApi);
    expect([...tools.keys()]).toEqual([...TOOL_NAMES]);
    const answer = { status: "error", message: expect.stringContaining("no session") as string };
    expect(await tools.get("coordination_status")?.({}).execute("call-1", {})).toEqual({
      content: [{ type: "text", text: expect.stringContaining("no session") as string }],
      details: answer,
    });
  });
});
