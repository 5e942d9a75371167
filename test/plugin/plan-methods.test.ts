import { afterEach, describe, expect, it, vi } from "vitest";
import { CoordinationError, isCoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type {
  PlanSubmission,
  RequestAnswer,
} from "../../src/agents/coordination/runtime/plans/plan-requests.ts";
import { coordinationStatusSchema } from "../../src/plugins/openclaw/plans/coordination-status.ts";
import { createGatewayCaller, type GatewayClient } from "../../src/plugins/openclaw/host/gateway-call.ts";
import plugin from "../../src/plugins/openclaw/index.ts";
import { METHODS, type MethodName } from "../../src/plugins/openclaw/declarations/method-declarations.ts";
import { createPlanMethods } from "../../src/plugins/openclaw/plans/plan-methods.ts";
import { registerCoordinationMethods } from "../../src/plugins/openclaw/register-gateway-methods.ts";
import type { OpenClawPluginApi } from "../../src/plugins/openclaw/host/sdk.ts";
import { TOOL_NAMES } from "../../src/plugins/openclaw/declarations/tool-declarations.ts";
import { plan, step } from "../core/plan-scene.ts";
import {
  createCompletedView,
  keepOutputs,
  SESSION,
  START,
  createStubPlans,
  viewOf,
  type StubPlans,
} from "./stub-plans.ts";

const NAMES = Object.keys(METHODS) as MethodName[];
const call = (method: MethodName, params: unknown, stub: StubPlans) =>
  createPlanMethods(stub.use)(method, params);

describe("coordination.plan.validate", () => {
  it("tells everything that is wrong with a plan, and runs nothing", async () => {
    const stub = createStubPlans();
    const bad = plan([step("a", ["a"]), step("b", [], { lane: "fast" })]);
    expect(await call("coordination.plan.validate", { plan: bad }, stub)).toMatchObject({
      ok: true,
      payload: { ok: false, problems: [{ code: "SCHEMA_MISMATCH" }, { code: "DEPENDENCY_SELF" }] },
    });
    expect(stub.askedCalls).toEqual([]);
  });

  it("of a sound plan tells its size, with the timeout of the configuration", async () => {
    const answer = await call("coordination.plan.validate", { plan: plan([step("a")]) }, createStubPlans());
    expect(answer).toMatchObject({
      ok: true,
      payload: { ok: true, summary: { steps: 1, criticalPathMs: 600_000 } },
    });
  });
});

describe("coordination.plan.run", () => {
  const createAccepting = () =>
    createStubPlans({
      submitPlan: () => Promise.resolve({ kind: "accepted", coordinationId: "co-1", steps: 1 } as never),
    });
  const findSubmission = ({ askedCalls }: StubPlans): PlanSubmission =>
    askedCalls[0]?.args[0] as PlanSubmission;

  it("submits the plan as the operator wrote it, owner included", async () => {
    const stub = createAccepting();
    const input = plan([step("a")], { ownerSession: SESSION });
    expect(await call("coordination.plan.run", { plan: input }, stub)).toEqual({
      ok: true,
      payload: { coordinationId: "co-1", steps: 1, replay: false },
    });
    expect(findSubmission(stub)).toEqual({ plan: input, ownerAgent: "research" });
  });

  it("takes the owner's agent from the params where they name one", async () => {
    const stub = createAccepting();
    await call("coordination.plan.run", { plan: plan([step("a")]), ownerAgent: "writer" }, stub);
    expect(findSubmission(stub).ownerAgent).toBe("writer");
  });

  it("of a refused plan has a sentence, and all problems as details", async () => {
    const problems = [
      { path: "steps[0]", code: "STEP_DUPLICATE", message: "it is there twice" },
      { path: "steps[1]", code: "STEP_DUPLICATE", message: "it is there twice" },
    ];
    const stub = createStubPlans({
      submitPlan: () => Promise.resolve({ kind: "refused", problems } as never),
    });
    expect(await call("coordination.plan.run", { plan: {} }, stub)).toEqual({
      ok: false,
      error: {
        code: "PLAN_REFUSED",
        message: "steps[0]: it is there twice, and 1 more",
        details: { problems },
      },
    });
  });
});

describe.each([
  ["coordination.cancel", "cancel"],
  ["coordination.plan.cancel", "cancel"],
  ["coordination.retry", "retry"],
] as const)("%s", (method, subject) => {
  const createAnswering = (answer: unknown) =>
    createStubPlans({ [subject]: () => Promise.resolve(answer as RequestAnswer) });

  it("asks in an operator's name, for the whole or for one step", async () => {
    const stub = createAnswering({ kind: "accepted", coordinationId: "co-1" });
    await call(method, { coordinationId: "co-1" }, stub);
    await call(method, { coordinationId: "co-1", stepId: "a" }, stub);
    expect(stub.askedCalls).toEqual([
      { subject, args: [{ coordinationId: "co-1", by: "operator" }] },
      { subject, args: [{ coordinationId: "co-1", stepId: "a", by: "operator" }] },
    ]);
  });

  it("says whether it had been asked before", async () => {
    const answer = await call(
      method,
      { coordinationId: "co-1" },
      createAnswering({ kind: "replay", coordinationId: "co-1" }),
    );
    expect(answer).toEqual({ ok: true, payload: { coordinationId: "co-1", replay: true } });
  });

  it.each([
    ["UNKNOWN_STEP", "REQUEST_REFUSED"],
    ["NOTHING_TO_RETRY", "REQUEST_REFUSED"],
    ["NOT_FOUND", "COORDINATION_NOT_FOUND"],
  ])("tells the refusal %s as %s with its sentence", async (refusal, code) => {
    const stub = createAnswering({ kind: "refused", code: refusal, reason: "it is not so" });
    expect(await call(method, { coordinationId: "co-1" }, stub)).toEqual({
      ok: false,
      error: { code, message: "it is not so", details: { refusal } },
    });
  });
});

describe("coordination.status", () => {
  const kept = keepOutputs({ rows: 2 });
  const view = viewOf([createCompletedView("a", kept.ref)]);
  const stub = createStubPlans({
    reads: {
      view: (id) => Promise.resolve(id === "co-1" ? view : undefined),
      get: kept.get,
      list: ({ limit }) =>
        Promise.resolve(
          Array.from({ length: limit }, (_, index) => ({
            runId: `co-${index}`,
            summary: {
              status: "running",
              ownerSession: SESSION,
              createdAtMs: START,
              steps: { total: 1, open: 1, failed: 0 },
            },
          })) as never,
        ),
    },
  });

  it("is in the form that the command line reads", async () => {
    const answer = await call("coordination.status", { coordinationId: "co-1", outputsOf: "a" }, stub);
    const { payload } = answer as { payload: { coordination: object; outputs: object } };
    expect(coordinationStatusSchema.parse(payload.coordination)).toMatchObject({
      coordinationId: "co-1",
      status: "running",
    });
    expect(payload).toMatchObject({
      coordination: { ownerSession: SESSION },
      outputs: { outputs: { rows: 2 } },
    });
  });

  it("without an id lists the newest ones, of whatever session", async () => {
    const { payload } = (await call("coordination.status", undefined, stub)) as {
      payload: { coordinations: object[] };
    };
    expect(payload.coordinations).toHaveLength(10);
    expect(payload).toMatchObject({ lanes: { data: { running: 3 } } });
  });

  it("of an unknown id says so", async () => {
    expect(await call("coordination.status", { coordinationId: "co-9" }, stub)).toMatchObject({
      ok: false,
      error: { code: "COORDINATION_NOT_FOUND", message: 'no coordination has the id "co-9"' },
    });
  });
});

describe("every method", () => {
  const PARAMS: Readonly<Record<MethodName, object>> = {
    "coordination.plan.validate": { plan: {} },
    "coordination.plan.run": { plan: {} },
    "coordination.plan.fork": { coordinationId: "co-1" },
    "coordination.plan.cancel": { coordinationId: "co-1" },
    "coordination.cancel": { coordinationId: "co-1" },
    "coordination.retry": { coordinationId: "co-1" },
    "coordination.claims.release": { token: 1 },
    "coordination.status": { coordinationId: "co-1" },
    "coordination.questions": {},
    "coordination.page.link": {},
    "coordination.answer": { questionId: "co-1:escalation-1", answer: "approve" },
  };

  it.each(NAMES)("%s tells a failing ledger by its code and a bug as a bug", async (method) => {
    const callFailing = (error: Error) =>
      createPlanMethods(() => Promise.reject(error))(method, PARAMS[method]);
    expect(await callFailing(new CoordinationError("LEDGER_BUSY", "locked"))).toEqual({
      ok: false,
      error: { code: "LEDGER_BUSY", message: "locked" },
    });
    expect(await callFailing(new TypeError("x"))).toEqual({
      ok: false,
      error: { code: "INVARIANT_VIOLATED", message: "x" },
    });
  });

  it.each(NAMES)("%s refuses what is not its params by path", async (method) => {
    const stub = createStubPlans();
    for (const params of [5, [], { ...PARAMS[method], surplus: 1 }])
      expect(await call(method, params, stub)).toMatchObject({ ok: false, error: { code: "INPUT_INVALID" } });
    expect(stub.askedCalls).toEqual([]);
  });

  it("mints no link to a page that is switched off", async () => {
    const error = { code: "REQUEST_REFUSED", details: { refusal: "PAGE_OFF" } };
    expect(await call("coordination.page.link", {}, createStubPlans())).toMatchObject({ ok: false, error });
  });

  it("is registered with the scope that it needs, and answers through the host", async () => {
    const registered = new Map<string, { scope: string; handle: (request: object) => Promise<void> }>();
    const api = {
      registerGatewayMethod: (name: string, handle: never, { scope }: { scope: string }) =>
        registered.set(name, { scope, handle }),
    };
    registerCoordinationMethods(api as unknown as OpenClawPluginApi);
    expect(Object.fromEntries([...registered].map(([name, { scope }]) => [name, scope]))).toEqual({
      "coordination.plan.validate": "operator.read",
      "coordination.plan.run": "operator.write",
      "coordination.plan.fork": "operator.write",
      "coordination.plan.cancel": "operator.write",
      "coordination.cancel": "operator.write",
      "coordination.retry": "operator.write",
      "coordination.claims.release": "operator.write",
      "coordination.status": "operator.read",
      "coordination.questions": "operator.read",
      "coordination.answer": "operator.approvals",
      "coordination.page.link": "operator.read",
    });
    const answers: unknown[][] = [];
    const respond = (...answer: unknown[]) => void answers.push(answer);
    await registered.get("coordination.cancel")?.handle({ params: { coordinationId: 5 }, respond });
    expect(answers).toEqual([
      [false, undefined, { code: "INPUT_INVALID", message: "coordinationId: expected string, got number 5" }],
    ]);
  });
});

describe("with the flag", () => {
  afterEach(() => void vi.useRealTimers());

  function listRegistrations(enabled: boolean): string[] {
    const found: string[] = [];
    const note = (subject: string) => (name: unknown, options?: { name?: string }) =>
      void found.push(`${subject} ${typeof name === "string" ? name : (options?.name ?? "")}`.trim());
    const api = {
      pluginConfig: { coordination: { phase1: { enabled } } },
      registerCli: note("cli"),
      on: note("hook"),
      registerService: note("service"),
      registerTool: note("tool"),
      registerGatewayMethod: note("method"),
      registerTextTransforms: note("transforms"),
      registerHttpRoute: note("route"),
      registerCommand: note("command"),
      session: { controls: { registerControlUiDescriptor: note("tab") } },
    };
    plugin.register(api as unknown as OpenClawPluginApi);
    return found;
  }

  it("off nothing but the command line is there, and no timer (H1)", async () => {
    vi.useFakeTimers();
    expect(listRegistrations(false)).toEqual(["cli"]);
    await vi.dynamicImportSettled();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("on every tool and method is there", () => {
    const found = listRegistrations(true);
    for (const name of TOOL_NAMES) expect(found).toContain(`tool ${name}`);
    for (const name of NAMES) expect(found).toContain(`method ${name}`);
    expect(found).toContain("tab");
  });
});

describe("calling the gateway", () => {
  const createCaller = (callGatewayFromCli: unknown) =>
    createGatewayCaller(() => Promise.resolve({ callGatewayFromCli } as GatewayClient));
  const callFailing = (error: Error) => createCaller(() => Promise.reject(error))("coordination.cancel", {});
  const createNamedError = (message: string, fields: object) => Object.assign(new Error(message), fields);

  it("hands method and params over, quietly and with a limit", async () => {
    const calls: unknown[][] = [];
    const call = createCaller((...args: unknown[]) => {
      calls.push(args);
      return Promise.resolve({ coordinationId: "co-1" });
    });
    expect(await call("coordination.cancel", { a: 1 })).toEqual({
      ok: true,
      payload: { coordinationId: "co-1" },
    });
    expect(calls).toEqual([
      ["coordination.cancel", { json: true, timeout: "45000" }, { a: 1 }, { progress: false }],
    ]);
  });

  it("a refusal of the method is an answer, with its details", async () => {
    const details = { problems: [] };
    expect(
      await callFailing(createNamedError("no\nstack", { gatewayCode: "PLAN_REFUSED", details })),
    ).toEqual({
      ok: false,
      code: "PLAN_REFUSED",
      message: "no",
      details,
    });
  });

  it.each([
    [
      "no gateway",
      createNamedError("Gateway not reachable at ws://127.0.0.1:1 (ECONNREFUSED).\nStart it", {
        kind: "closed",
      }),
      "GATEWAY_UNREACHABLE",
      "Gateway not reachable at ws://127.0.0.1:1 (ECONNREFUSED).",
    ],
    [
      "no answer",
      createNamedError("gateway timeout after 45000ms\nws", { kind: "timeout" }),
      "GATEWAY_UNREACHABLE",
      "may have been carried out",
    ],
    [
      "a connection that ends behind the request",
      createNamedError(
        "gateway closed (1006): no close reason\nws\n\nThe request was already sent to the gateway, so the operation may have been applied",
        { kind: "closed" },
      ),
      "GATEWAY_UNREACHABLE",
      "gateway closed (1006): no close reason; the request may have been carried out all the same",
    ],
    [
      "no token",
      createNamedError("gateway token required", {}),
      "GATEWAY_UNREACHABLE",
      "gateway token required",
    ],
    [
      "the plugin off",
      createNamedError("unknown method: coordination.cancel", { gatewayCode: "INVALID_REQUEST" }),
      "COORDINATION_OFF",
      "coordination is off in the gateway",
    ],
    ["no error at all", "odd" as unknown as Error, "GATEWAY_UNREACHABLE", "odd"],
  ])("%s is an error", async (_, error, code, message) => {
    await expect(callFailing(error)).rejects.toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(message) as string }),
    );
  });

  it.each(["GatewayCredentialsRequiredError", "GatewayStoredDeviceAuthUnavailableError"])(
    "without credentials says what to set, and not to start a gateway that may run (%s)",
    async (name) => {
      const error = await callFailing(
        createNamedError("gateway coordination.answer requires credentials\nFix: x\nConfig: /etc/c.json", {
          name,
        }),
      ).catch((reason: unknown) => reason);
      expect(isCoordinationError(error) && [error.code, error.message]).toEqual([
        ...["GATEWAY_UNREACHABLE", "gateway coordination.answer requires credentials"],
      ]);
      const { advice } = error as CoordinationError;
      expect(advice).toContain("`gateway.auth.token`");
      expect(advice).toContain("`OPENCLAW_GATEWAY_TOKEN`");
      expect(advice).not.toContain("Start it");
    },
  );

  it("without the host's package names the command that has it, and how both are installed from their archives", async () => {
    const call = createGatewayCaller(() =>
      Promise.reject(createNamedError("not found", { code: "ERR_MODULE_NOT_FOUND" })),
    );
    const error = await call("coordination.cancel", {}).catch((reason: unknown) => reason);
    expect(isCoordinationError(error) && [error.code, error.message]).toEqual([
      "GATEWAY_UNREACHABLE",
      expect.stringMatching(
        /use `openclaw coordination`, or .*`npm install -g openclaw \.\/openclaw-coordination-\*\.tgz`/u,
      ),
    ]);
  });
});
