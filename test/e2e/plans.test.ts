/** Plans in the real gateway: a diamond with a retry, a time-out and a cancellation; an agent's plan; the host's flows. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CoordinationId, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { fold } from "../../src/agents/coordination/ledger/evolve.ts";
import { HOST_ENTRY, type Json } from "../support/gateway.ts";
import {
  renderScript,
  textOf,
  type ChatRequest,
  type RecordedRequest,
  type Rule,
} from "../support/scripted-model.ts";
import { callTool } from "../openwop/mcp-world.ts";
import { startMcp } from "../support/mcp-process.ts";
import { waitFor } from "../support/wait-for.ts";
import { hasEnded, openStage, type OpenedCoordination, type Stage } from "./stage.ts";

const OWNER = "agent:main:planner";

/** The session that the host's system prompt names to a child of ours. */
function findTarget({ messages }: ChatRequest): string | undefined {
  const words = messages.map(textOf).join("\n");
  return /"targetSession":"([^"]+)"/u.exec(words)?.[1];
}

/** Refuses the first attempt of the step whose task says so. */
function createFlakyRule(): Rule {
  let first: string | undefined;
  return {
    when: (text, request) => {
      const target = findTarget(request);
      if (!text.includes("FLAKY") || !target) return false;
      first ??= target;
      return target === first;
    },
    turns: [{ httpError: 400 }],
  };
}

let stage: Stage;

beforeAll(async () => {
  stage = await openStage({}, [createFlakyRule()]);
});

afterAll(() => stage.close());

const report = (outputs: object) => ({
  call: [{ name: "coordination_report", args: { outcome: "completed", outputs } }],
});

const step = (stepId: string, task: string, fields: Json = {}): Json => ({
  stepId,
  agent: "main",
  task,
  ...fields,
});

function planOf(coordinationId: string, steps: Json[], fields: Json = {}): Json {
  return {
    coordinationId,
    objective: `objective of ${coordinationId}`,
    ownerSession: OWNER,
    conflictPolicy: {},
    failurePolicy: { retryBudget: 5, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
    defaults: { retry: { budget: 0, backoffMs: 200 }, timeoutMs: 60_000 },
    steps,
    ...fields,
  };
}

async function stateOf(coordinationId: string): Promise<OpenedCoordination | undefined> {
  const states = await stage.of(OWNER);
  return states.find((state) => state.coordinationId === coordinationId);
}

function waitUntil(
  coordinationId: string,
  condition: (state: OpenedCoordination) => boolean,
  timeoutMs = 90_000,
): Promise<OpenedCoordination> {
  return waitFor(
    async () => {
      const state = await stateOf(coordinationId);
      return state && condition(state) ? state : undefined;
    },
    { what: `the plan ${coordinationId}`, timeoutMs, everyMs: 100 },
  );
}

const phaseOf = (state: OpenedCoordination, stepId: string) => state.steps.get(stepId as StepId)?.phase;
const statusOf = (state: OpenedCoordination, stepId: string) => phaseOf(state, stepId)?.status;

/** The requests of the owner's session in which it was told of a plan for the first time. */
function listTellings(coordinationId: string): RecordedRequest[] {
  return stage.model.requests.filter(({ text }) => text.includes(`The plan ${coordinationId} has ended`));
}

describe("a plan of five steps in the gateway", () => {
  const diamond = planOf("diamond", [
    step("facts", renderScript(report({ n: 7 }), { say: "reported" })),
    step("short", `FLAKY ${renderScript({ say: '{"title":"short"}' })}`, {
      dependsOn: ["facts"],
      input: { n: "{{steps.facts.outputs.n}}" },
      retry: { budget: 1, backoffMs: 200 },
    }),
    step("long", renderScript({ say: "never", delayMs: 120_000 }), {
      dependsOn: ["facts"],
      timeoutMs: 6_000,
    }),
    step("check", renderScript({ say: '{"verdict":"fine"}' }), {
      dependsOn: ["short", "long"],
      fanIn: "any",
      input: { title: "{{steps.short.outputs.title}}", long: "{{steps.long.outputs.title}}" },
    }),
    step("aside", renderScript({ say: "never", delayMs: 120_000 }), { dependsOn: ["facts"] }),
  ]);
  let state: OpenedCoordination;

  beforeAll(async () => {
    await stage.gateway.call("coordination.plan.run", {
      plan: diamond,
    });
    await waitUntil("diamond", (running) => statusOf(running, "aside") === "running");
    await stage.gateway.call("coordination.cancel", { coordinationId: "diamond", stepId: "aside" });
    state = await waitUntil("diamond", hasEnded, 120_000);
  });

  it("ends with a step retried, one timed out, one cancelled, and says so", () => {
    expect(state).toMatchObject({ kind: "ended", status: "partial" });
    expect(phaseOf(state, "facts")).toMatchObject({ status: "completed", attempt: 1 });
    expect(phaseOf(state, "short")).toMatchObject({ status: "completed", attempt: 2 });
    expect(phaseOf(state, "long")).toMatchObject({ status: "timed_out", attempt: 1 });
    expect(phaseOf(state, "check")).toMatchObject({ status: "completed", attempt: 1 });
    expect(phaseOf(state, "aside")).toMatchObject({ status: "cancelled", attempt: 1 });
  });

  it("hands outputs on, reported or said", () => {
    const listAsked = (needle: string) =>
      stage.model.requests.filter(({ text }) => text.includes(needle)).map(({ text }) => text);
    expect(listAsked("FLAKY").every((text) => text.includes('"n": 7'))).toBe(true);
    expect(listAsked('"title": "short"')).not.toHaveLength(0);
    expect(listAsked('"long": null')).not.toHaveLength(0);
  });

  it("leaves no agent at work", async () => {
    const rows = await stage.gateway.openclaw(["tasks", "list", "--json"]);
    const { tasks } = JSON.parse(rows.stdout) as { tasks: { status: string; childSessionKey?: string }[] };
    const ours = tasks.filter(({ childSessionKey }) => childSessionKey?.includes(":subagent:coord-"));
    expect(ours.length).toBeGreaterThanOrEqual(6);
    expect(ours.filter(({ status }) => status === "running" || status === "queued")).toEqual([]);
  });

  it("tells its owner once, and the ledger holds", async () => {
    expect(statusOf(state, "@delivery")).toBe("completed");
    expect(new Set(listTellings("diamond").map(({ turnIndex }) => turnIndex)).size).toBe(1);
    const request = listTellings("diamond").at(-1);
    const history = request?.body.messages.filter((message) =>
      textOf(message).includes("The plan diamond has ended"),
    );
    expect(history).toHaveLength(1);
    expect(request?.text).toContain('"check":{"verdict":"fine"}');
    expect((await stage.verify()).problems).toEqual([]);
  });

  it("is the same plan when it is submitted again", async () => {
    const again = await stage.gateway.call("coordination.plan.run", { plan: diamond });
    expect(again).toMatchObject({ coordinationId: "diamond", replay: true });
    expect(new Set(listTellings("diamond").map(({ turnIndex }) => turnIndex)).size).toBe(1);
  });

  it("gives its id to no other plan", async () => {
    const other = await stage.gateway
      .call("coordination.plan.run", { plan: planOf("diamond", [step("other", "x")]) })
      .catch((error: unknown) => String(error));
    expect(JSON.stringify(other)).toContain("choose another id");
  });
});

describe("the host's flows", () => {
  it("show a running plan, and cancelling there cancels it", async () => {
    await stage.gateway.call("coordination.plan.run", {
      plan: planOf("shown", [
        step("long", renderScript({ say: "never", delayMs: 120_000 })),
        step("after", "x", { dependsOn: ["long"] }),
      ]),
    });
    await waitUntil("shown", (running) => statusOf(running, "long") === "running");
    const flow = await waitFor(
      async () => {
        const { stdout } = await stage.gateway.openclaw(["tasks", "flow", "list", "--json"]);
        const { flows } = JSON.parse(stdout) as { flows: { flowId: string; goal: string }[] };
        return flows.find(({ goal }) => goal.includes("objective of shown"));
      },
      { what: "the flow of the plan", timeoutMs: 30_000, everyMs: 500 },
    );
    await stage.gateway.openclaw(["tasks", "flow", "cancel", flow.flowId]);
    const state = await waitUntil("shown", hasEnded);
    expect(state).toMatchObject({ status: "cancelled" });
    expect(statusOf(state, "long")).toBe("cancelled");
    expect(statusOf(state, "after")).toBe("skipped");
  });
});

describe("a plan that an MCP client submits", () => {
  it("runs in the gateway, and the client sees how it ended", async () => {
    const { home: HOME, stateDir, configPath, token } = stage.gateway;
    const env = { HOME, OPENCLAW_STATE_DIR: stateDir, OPENCLAW_CONFIG_PATH: configPath };
    const served = await startMcp(HOME, {
      program: [HOST_ENTRY, "coordination"],
      env: { ...env, OPENCLAW_GATEWAY_TOKEN: token },
    });
    const plan = planOf("by-mcp", [step("only", renderScript({ say: '{"v":1}' }))]);
    const submitted = await callTool(served, "plan_run", { plan });
    expect(submitted.data).toMatchObject({ coordinationId: "by-mcp", steps: 1 });
    await waitUntil("by-mcp", hasEnded);
    const { data } = await callTool(served, "status", { runId: "by-mcp" });
    expect(data).toMatchObject({ coordination: { coordinationId: "by-mcp", status: "success" } });
    const questions = await callTool(served, "questions");
    expect(questions.data).toEqual({ questions: [], ofCoordinations: [] });
    const broken = await callTool(served, "plan_run", { plan: { coordinationId: "by-mcp" } });
    expect(broken).toMatchObject({ isError: true, text: expect.stringContaining("PLAN_REFUSED") as string });
    await served.close();
  });
});

describe("a plan that an agent submits", () => {
  it("is owned by its session, whatever it says, and is told to it", async () => {
    const plan = planOf("by-agent", [step("only", renderScript({ say: '{"v":1}' }))], {
      ownerSession: "agent:main:somebody-else",
    });
    await stage.gateway.agent({
      sessionKey: OWNER,
      message: renderScript(
        { call: [{ name: "tool_call", args: { id: "coordination_plan", args: { plan } } }] },
        { say: "submitted" },
      ),
    });
    const state = await waitUntil("by-agent", hasEnded);
    expect(state).toMatchObject({ status: "success" });
    expect(state.created.ownerSession).toBe(OWNER);
    await waitFor(() => Promise.resolve(listTellings("by-agent").length > 0 || undefined), {
      what: "the owner's turn",
      timeoutMs: 20_000,
    });
  });

  it("folds from its log alone", async () => {
    const state = await stateOf("by-agent");
    if (!state) throw new Error("the plan is not in the ledger");
    expect(fold("by-agent" as CoordinationId, await stage.events(state)).kind).toBe("ended");
  });
});
