import { describe, expect, test } from "vitest";
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import type { ChatAnswer, ChatModel, ChatRequest } from "../../src/agents/coordination/ports/outbound.ts";
import type { Verifier } from "../../src/agents/coordination/ports/verifier.ts";
import { judgeChild } from "../../src/agents/coordination/runtime/workflow-host/effects/judge-child.ts";
import type { LoadedRun } from "../../src/agents/coordination/runtime/workflow-host/records/run-book.ts";
import {
  createNode,
  createSupervised,
  createWorker,
  createWorkflow,
  sendNextWorker,
  TERMINATE,
} from "../support/workflow-definitions.ts";
import { codeOf, createWorkflowScene } from "../support/workflow-scene.ts";
import {
  BEGINS,
  CRITIC,
  ENDS,
  MERGED,
  createLooped,
  filterByType,
  createChatAnswer,
  createScene,
  tellStory,
  verdictOf,
  type JsonFields,
} from "./verified-scene.ts";

describe("a critic that is a model", () => {
  const runCriticised = (
    answer: (request: ChatRequest) => Promise<Awaited<ReturnType<ChatModel["complete"]>>>,
    more: JsonFields = {},
  ) => createScene(createLooped({ timeoutMs: 10_000, ...more }), { chat: { complete: answer } });

  test("sees the outputs and the criteria, as data, with the model and the rubric of the workflow", async () => {
    const chatRequests: ChatRequest[] = [];
    const at = runCriticised(
      (request) => {
        chatRequests.push(request);
        return Promise.resolve(createChatAnswer(verdictOf("pass", ["grounded", "complete"], 0.8)));
      },
      { model: "critic-model", systemPrompt: "Is it gold?" },
    );
    const runId = await at.run("loop");
    expect(chatRequests).toHaveLength(1);
    expect(chatRequests[0]).toMatchObject({ model: "critic-model", agentId: "critic-one" });
    expect(chatRequests[0]?.system).toContain("Is it gold?");
    expect(chatRequests[0]?.system).toContain("grounded, complete");
    expect(chatRequests[0]?.system).not.toContain('"gold"');
    expect(chatRequests[0]?.messages[0]?.content).toContain('{"result":"gold"}');
    expect(filterByType(at, runId, "agent.verified").payload).toMatchObject({
      ...CRITIC,
      verdict: "pass",
      confidence: 0.8,
    });
    expect(tellStory(at, runId).slice(-4)).toEqual([...MERGED, ...ENDS]);
  });

  test("sees nothing that is sensitive; what is held against a schema is all that there is", async () => {
    const chatRequests: ChatRequest[] = [];
    const schema = { type: "object", required: ["result", "pin"] };
    const loop = createLooped({ systemPrompt: "Is it gold?", checks: { form: { kind: "schema", schema } } });
    const digger = createWorkflow("digger", {
      nodes: [createNode("dig")],
      variables: { result: "gold", pin: "1234" },
    });
    const variables = digger.variables.map((each) => ({ ...each, sensitive: each.name === "pin" }));
    const at = createWorkflowScene({
      definitions: [loop, { ...digger, variables }],
      chat: {
        complete: (request) => {
          chatRequests.push(request);
          return Promise.resolve(createChatAnswer(verdictOf("pass", ["grounded", "complete"])));
        },
      },
    });
    const runId = await at.run("loop");
    expect(filterByType(at, runId, "agent.verified").payload).toMatchObject({ verdict: "pass" });
    expect(chatRequests).toHaveLength(1);
    expect(JSON.stringify(chatRequests)).toContain("gold");
    expect(JSON.stringify(chatRequests)).not.toContain("1234");
  });

  test.each<[copy: string, key: string, about: (key: string) => unknown]>([
    ["names and lists", "key-of-the-vault", (key) => ({ [key]: [`dug up with ${key}`] })],
    ["JSON", 'key\nof "the" \\vault', (key) => JSON.stringify({ text: `dug up with ${key}` })],
  ])("sees nothing that is sensitive in a variable to which it was copied: as %s", async (_, key, about) => {
    const chatRequests: ChatRequest[] = [];
    const digger = createWorkflow("digger", {
      nodes: [createNode("dig")],
      variables: { result: "gold", pin: key, about: about(key) },
    });
    const variables = digger.variables.map((each) => ({ ...each, sensitive: each.name === "pin" }));
    const loop = createLooped({
      systemPrompt: "Is it gold?",
      checks: { form: { kind: "pattern", pattern: "vault" } },
    });
    const at = createWorkflowScene({
      definitions: [loop, { ...digger, variables }],
      chat: {
        complete: (request) => {
          chatRequests.push(request);
          return Promise.resolve(createChatAnswer(verdictOf("pass", ["grounded", "complete"])));
        },
      },
    });
    const runId = await at.run("loop");
    expect(filterByType(at, runId, "agent.verified").payload).toMatchObject({ verdict: "pass" });
    expect(JSON.stringify(chatRequests)).toContain("dug up with [masked]");
    expect(JSON.stringify(chatRequests)).not.toContain("vault");
  });

  test("sees no sensitive text that its child has from the run that started it", async () => {
    const chatRequests: ChatRequest[] = [];
    const key = "key-of-the-vault";
    const loop = createLooped({ systemPrompt: "Is it gold?" });
    const pin = { name: "pin", type: "string" as const, defaultValue: key, sensitive: true };
    const digger = createWorkflow("digger", {
      nodes: [createNode("dig")],
      variables: { result: `gold by ${key}` },
    });
    const at = createWorkflowScene({
      definitions: [{ ...loop, variables: [...loop.variables, pin] }, digger],
      chat: {
        complete: (request) => {
          chatRequests.push(request);
          return Promise.resolve(createChatAnswer(verdictOf("pass", ["grounded", "complete"])));
        },
      },
    });
    await at.run("loop");
    expect(JSON.stringify(chatRequests)).toContain("gold by [masked]");
    expect(JSON.stringify(chatRequests)).not.toContain(key);
  });

  test("that is in doubt is escalated, as what follows from its verdict, and what it cost is told before", async () => {
    const at = runCriticised(() =>
      Promise.resolve(createChatAnswer(verdictOf("pass", ["grounded", "complete"], 0.2))),
    );
    const runId = await at.run("loop");
    expect(at.types(runId).slice(-5)).toEqual([
      ...["provider.usage", "agent.verified", "core.workflowChain.confidence-escalated"],
      ...["node.suspended", "interrupt.requested"],
    ]);
    const escalated = filterByType(at, runId, "core.workflowChain.confidence-escalated");
    expect(escalated.causationId).toBe(filterByType(at, runId, "agent.verified").eventId);
  });

  test("names what was not met, and not what else it says", async () => {
    const at = runCriticised(() => Promise.resolve(createChatAnswer(verdictOf("fail", ["grounded"]))));
    const runId = await at.run("loop");
    expect(filterByType(at, runId, "agent.verified").payload).toMatchObject({
      verdict: "fail",
      criteria: ["grounded"],
    });
  });

  test.each<[string, () => Promise<Awaited<ReturnType<ChatModel["complete"]>>>, string]>([
    ["is malformed", () => Promise.resolve(createChatAnswer("It is fine.")), "malformed"],
    [
      "names criteria that nobody asked for",
      () => Promise.resolve(createChatAnswer(verdictOf("pass", ["x"]))),
      "malformed",
    ],
    ["is nothing", () => Promise.resolve(createChatAnswer("")), "malformed"],
    ["is 10 MB long", () => Promise.resolve(createChatAnswer("x".repeat(10_000_000))), "malformed"],
    ["is a refusal", () => Promise.resolve(createChatAnswer("", { refusal: "I will not say." })), "failed"],
    [
      "is a failure",
      () => Promise.resolve({ kind: "unknown", code: "unavailable", message: "down" }),
      "failed",
    ],
    ["throws", () => Promise.reject(new Error("broken")), "failed"],
  ])("passes nothing where its answer %s: people are asked", async (_, complete, because) => {
    const at = runCriticised(complete);
    const runId = await at.run("loop");
    expect(tellStory(at, runId)).toEqual([...BEGINS, "asks verification-missing"]);
    expect(at.payloads(runId, "interrupt.requested")[0]?.data["description"]).toContain(`(${because})`);
    await at.answer(runId, "dispatch", { action: "accept" });
    expect(tellStory(at, runId).slice(-5)).toEqual(["answered", ...MERGED, ...ENDS]);
    expect(at.types(runId)).not.toContain("agent.verified");
  });

  test("that hangs is waited for until its time is over, and its late answer means nothing", async () => {
    let answer = (_: ChatAnswer): void => undefined;
    const at = runCriticised(() => new Promise((resolve) => (answer = resolve)));
    const runId = await at.run("loop");
    expect(tellStory(at, runId)).toEqual(BEGINS);
    await at.clock.advance(10_001);
    expect(tellStory(at, runId)).toEqual([...BEGINS, "asks verification-missing"]);
    answer(createChatAnswer(verdictOf("pass", ["grounded", "complete"])));
    await at.settle();
    expect(tellStory(at, runId)).toEqual([...BEGINS, "asks verification-missing"]);
    await at.answer(runId, "dispatch", { action: "reject" });
    expect(await at.status(runId)).toBe("completed");
    expect((await at.snapshot(runId))["variables"]).not.toHaveProperty("got");
  });

  test("that does not even end when it is told to is not waited for either", async () => {
    const verifier: Verifier = { check: () => new Promise(() => undefined) };
    const at = createScene(createLooped({ timeoutMs: 10_000 }), { verifier });
    const runId = await at.run("loop");
    await at.clock.advance(11_001);
    expect(tellStory(at, runId)).toEqual([...BEGINS, "asks verification-missing"]);
  });

  test.each([
    [false, "asks verification-missing"],
    [true, "verified pass"],
  ])("that did the work itself rules on it only where the workflow allows it: %s", async (allow, message) => {
    const at = createScene(
      createLooped({ mockVerdicts: ["pass"], agentId: "digger", allowSelfVerification: allow }),
    );
    const runId = await at.run("loop");
    expect(tellStory(at, runId)[BEGINS.length]).toBe(message);
    if (allow) expect(filterByType(at, runId, "agent.verified").payload.agentId).toBe("digger");
  });

  test.each<[string, JsonFields, JsonFields]>([
    ["by its agent", {}, { agent: { agentId: "critic-one", modelClass: "fast" } }],
    ["by its configuration", { agentId: "critic-one" }, {}],
  ])("that a node of the child names %s did the work itself, too", async (_, config, members) => {
    const digger = createWorkflow("digger", { nodes: [createNode("dig", "core.noop", config, members)] });
    const at = createWorkflowScene({ definitions: [createLooped({ mockVerdicts: ["pass"] }), digger] });
    expect(tellStory(at, await at.run("loop")).at(-1)).toBe("asks verification-missing");
  });

  const runWithin = createWorkflow("digger", {
    nodes: [createNode("dig", "core.subWorkflow", { workflowId: "write" })],
  });
  test.each<[string, WorkflowDefinition]>([
    ["alone", runWithin],
    ["before another worker", createSupervised("digger", [sendNextWorker("write", "format"), TERMINATE])],
    [
      "in a decision before the last",
      createSupervised("digger", [sendNextWorker("write"), sendNextWorker("format"), TERMINATE]),
    ],
  ])("that a run within the child names did the work itself, too: %s", async (_, digger) => {
    const write = createWorkflow("write", {
      nodes: [createNode("dig", "core.noop", { agentId: "critic-one" })],
    });
    const definitions = [createLooped({ mockVerdicts: ["pass"] }), digger, write, createWorker("format")];
    const at = createWorkflowScene({ definitions });
    expect(tellStory(at, await at.run("loop")).at(-1)).toBe("asks verification-missing");
  });
});

describe("checks that no model makes", () => {
  const SCHEMA = { type: "object", properties: { result: { const: "gold" } }, required: ["result"] };

  test.each([
    ["meet a schema", { shape: { kind: "schema", schema: SCHEMA } }, "pass"],
    ["do not meet one", { shape: { kind: "schema", schema: { required: ["more"] } } }, "fail"],
    ["match a pattern", { word: { kind: "pattern", pattern: "go+ld" } }, "pass"],
    ["hold what must not be there", { word: { kind: "pattern", pattern: "gold", absent: true } }, "fail"],
  ])("rule on outputs that %s", async (_, checks, verdict) => {
    const at = createScene(createLooped({ criteria: [], checks }));
    const runId = await at.run("loop");
    expect(filterByType(at, runId, "agent.verified").payload).toMatchObject({
      agentId: "critic-one",
      verdict,
      criteria: Object.keys(checks),
    });
  });

  test("and a critic are all asked: one that fails outweighs the rest, and one that is missing holds", async () => {
    const createBothScene = (text: string, pattern: string) =>
      createScene(createLooped({ systemPrompt: "?", checks: { word: { kind: "pattern", pattern } } }), {
        chat: { complete: () => Promise.resolve(createChatAnswer(text)) },
      });
    const failed = createBothScene("no verdict", "silver");
    expect(tellStory(failed, await failed.run("loop"))).toContain("verified fail");
    const missing = createBothScene("no verdict", "gold");
    expect(tellStory(missing, await missing.run("loop")).at(-1)).toBe("asks verification-missing");
    const passed = createBothScene(verdictOf("pass", ["grounded", "complete"], 0.7), "gold");
    expect(await passed.status(await passed.run("loop"))).toBe("completed");
  });

  test("leave the criteria that none of them looks at to a critic, and those only", async () => {
    const chatRequests: ChatRequest[] = [];
    const checks = {
      shape: { kind: "schema", schema: SCHEMA },
      tone: { kind: "model", rubric: "Is it kind?", criteria: ["kind"] },
    };
    const at = createScene(createLooped({ criteria: ["grounded", "shape", "kind"], checks }), {
      chat: {
        complete: (request) => {
          chatRequests.push(request);
          const criterion = request.system?.includes("Is it kind?") ? "kind" : "grounded";
          return Promise.resolve(createChatAnswer(verdictOf("pass", [criterion], 0.8)));
        },
      },
    });
    const runId = await at.run("loop");
    expect(chatRequests).toHaveLength(2);
    expect(chatRequests.some(({ system }) => system?.includes("grounded"))).toBe(true);
    expect(filterByType(at, runId, "agent.verified").payload).toMatchObject({
      verdict: "pass",
      criteria: ["grounded", "shape", "kind"],
    });
  });

  test("pass nothing whose criteria nobody looked at", async () => {
    const checks = { shape: { kind: "schema", schema: SCHEMA } };
    const at = createScene(createLooped({ criteria: ["grounded"], checks }), {
      chat: { complete: () => Promise.resolve(createChatAnswer("no verdict")) },
    });
    expect(tellStory(at, await at.run("loop")).at(-1)).toBe("asks verification-missing");
  });

  test("count beside a critic also under the name `critic`", async () => {
    const checks = { critic: { kind: "pattern", pattern: "silver" } };
    const at = createScene(createLooped({ systemPrompt: "?", checks }), {
      chat: {
        complete: () => Promise.resolve(createChatAnswer(verdictOf("pass", ["grounded", "complete"], 0.7))),
      },
    });
    expect(tellStory(at, await at.run("loop"))).toContain("verified fail");
  });

  test.each([
    ["a program", { kind: "command", command: "/bin/true" }],
    ["a file", { kind: "file", path: "secret" }],
    ["nothing that is known", { kind: "pattern", pattren: "x" }],
  ])("of a workflow may not name %s", async (_, check) => {
    const definition = createLooped({ checks: { it: check } });
    const at = createScene(definition);
    const refused = await at.host.create(
      { tenant: "acme", principal: "alice" },
      { workflowId: "loop", inputs: {}, transport: "rest" },
    );
    expect(codeOf(refused)).toBe("validation_error");
  });
});

test("a run of another tenant is not read, whatever run the log names as a child", async () => {
  const runOf = (tenant: string): LoadedRun =>
    ({
      run: {
        runId: "r",
        nodes: new Map(),
        variables: new Map(),
        started: { owner: { tenant }, inputs: {} },
        orchestrator: {},
      },
      graph: { nodes: new Map(), variables: [{ name: "pin", type: "string", defaultValue: "1234" }] },
    }) as unknown as LoadedRun;
  const judge = (tenant: string): ReturnType<typeof judgeChild> => {
    const dependencies = { driver: { newest: () => Promise.resolve(runOf(tenant)) } };
    const effect = { kind: "judge_child", childRunId: "run-theirs", workerId: "w" };
    const judging = { effect, signal: new AbortController().signal, traceparent: undefined };
    return judgeChild(dependencies as never, runOf("acme"), judging as never);
  };
  expect(await judge("acme")).toMatchObject({ kind: "child_judged", sensitive: [] });
  expect(await judge("other")).toEqual({ kind: "child_judged", isSelf: false, judgements: [] });
});
