/** Owns: work that makes more work, without an end or for everybody (ASI08). */
import { writeFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { startModelServer, type ModelServer } from "../../openwop/levels-model-server.ts";
import { createLoop, createNode, createNoop, createWorkflow } from "../../openwop/levels-workflows.ts";
import { runCli } from "../../cli/run-cli.ts";
import { createTempFolder } from "../../support/temp-ledger.ts";
import { CHILD, openAttackedPlugin, OWNER, type AttackedPlugin } from "./plugin-scene.ts";
import { openAttackedHost, WORKFLOWS, type AttackedHost } from "./serve-scene.ts";

const createCall = (workflowId: string) => createNode("sub", "core.subWorkflow", { config: { workflowId } });

let host: AttackedHost;
let model: ModelServer;
let plugin: AttackedPlugin | undefined;
const folder = createTempFolder();

beforeAll(async () => {
  const content = JSON.stringify({ kind: "next-worker", nextWorkerIds: ["echo"], confidence: 0.9 });
  model = await startModelServer(() => ({ content }));
  host = await openAttackedHost({
    definitions: [
      ...WORKFLOWS,
      createWorkflow("self", { nodes: [createCall("self")] }),
      createWorkflow("ping", { nodes: [createCall("pong")] }),
      createWorkflow("pong", { nodes: [createCall("ping")] }),
      createLoop("endless", {
        plan: [],
        supervisor: { mockDispatchPlan: undefined, prompt: "Go on.", workers: ["echo"] },
      }),
      createWorkflow("circle", {
        nodes: [createNoop("a"), createNoop("b")],
        edges: [
          ["a", "b"],
          ["b", "a"],
        ],
      }),
    ],
    model: { baseUrl: model.baseUrl, model: "m" },
    privateOrigins: [model.origin],
    quotas: { runsPerRequest: 5, liveRuns: 6, forksPerMinute: 4 },
  });
});
afterEach(async () => {
  await plugin?.[Symbol.asyncDispose]();
  plugin = undefined;
});
afterAll(async () => {
  await host[Symbol.asyncDispose]();
  await model.close();
  folder[Symbol.dispose]();
});

it.each(["self", "ping"])(
  "ASI08-1 a workflow that begins itself, or one that begins it: %s",
  async (workflowId) => {
    const { snapshot, runId } = await host.miner.run(workflowId);
    expect(snapshot.status).toBe("failed");
    const log = JSON.stringify(await host.miner.events(runId));
    expect(log).toMatch(/runsPerRequest|rate_limited/u);
  },
);

it("ASI08-2 a supervisor whose model never ends, and a caller who asks for no bound", async () => {
  for (const maxLoopIterations of [3, 1_000_000_000, -1, "all", null]) {
    const { status, body } = await host.miner.post("/v1/runs", {
      workflowId: "endless",
      configurable: { maxLoopIterations },
    });
    if (status === 400) continue;
    model.askedBodies.length = 0;
    const { status: end } = await host.miner.until(String(body["runId"]), "failed", "completed");
    expect([maxLoopIterations, end]).toEqual([maxLoopIterations, "failed"]);
    expect(model.askedBodies.length).toBeLessThanOrEqual(100);
  }
});

it("ASI08-3 nodes that lead to each other in a circle", async () => {
  const { status, body } = await host.miner.post("/v1/runs", { workflowId: "circle" });
  if (status === 201) {
    const { status: end } = await host.miner.until(String(body["runId"]), "failed", "completed");
    expect(end).toBe("failed");
  } else expect([400, 404, 422]).toContain(status);
});

it("ASI08-4 a tenant that takes all it can get, so that nothing is left for another", async () => {
  const runIds: string[] = [];
  let refused = 0;
  for (let count = 0; count < 12; count += 1) {
    const { status, body } = await host.miner.post("/v1/runs", { workflowId: "slow" });
    if (status === 201) runIds.push(String(body["runId"]));
    else {
      expect([status, body["error"]]).toEqual([429, "rate_limited"]);
      refused += 1;
    }
  }
  expect(runIds).toHaveLength(6);
  expect(refused).toBe(6);
  await host.stranger.run("echo");
  for (const runId of runIds) await host.miner.post(`/v1/runs/${runId}/cancel`, {});
  await host.miner.run("echo");
});

it("ASI08-5 forks of forks of forks", async () => {
  let runId = await host.miner.start("slow");
  const statuses: number[] = [];
  for (let count = 0; count < 8; count += 1) {
    const { status, body } = await host.miner.post(`/v1/runs/${runId}:fork`, { mode: "branch", fromSeq: 1 });
    statuses.push(status);
    if (status === 201) runId = String(body["runId"]);
  }
  expect(statuses.filter((status) => status === 201).length).toBeLessThanOrEqual(4);
  expect(statuses.at(-1)).toBe(429);
});

async function validatePlan(plan: object): Promise<string> {
  const file = folder.file("plan.json");
  writeFileSync(file, JSON.stringify({ coordinationId: "co", objective: "o", ownerSession: OWNER, ...plan }));
  const { exitCode, stdout, stderr } = await runCli(["plan", "validate", file]);
  expect(exitCode).toBe(1);
  return stdout + stderr;
}

const createStep = (stepId: string, more: object = {}): object => ({
  stepId,
  agent: "main",
  task: "t",
  ...more,
});

it("ASI08-6 a plan that is huge, that waits for itself, or that is tried for ever", async () => {
  const many = Array.from({ length: 10_001 }, (_, index) => createStep(`s${index}`));
  expect(await validatePlan({ steps: many })).toMatch(/10,?000/u);
  const circle = [createStep("a", { dependsOn: ["b"] }), createStep("b", { dependsOn: ["a"] })];
  expect(await validatePlan({ steps: circle })).toMatch(/cycle|circle|wait/iu);
  expect(await validatePlan({ steps: [createStep("a", { dependsOn: ["a"] })] })).toMatch(
    /cycle|itself|wait/iu,
  );
  const failurePolicy = { retryBudget: 1_000_000, timeoutPolicy: "retry", escalationPolicy: "none" };
  expect(await validatePlan({ steps: [createStep("a")], failurePolicy })).toMatch(/retryBudget/u);
});

it("ASI08-7 a child that spawns again and again after its tree has used what it may", async () => {
  plugin = await openAttackedPlugin({ budget: { spawns: 3 } });
  await plugin.spawn(OWNER, CHILD, {});
  let by = CHILD;
  let refusal: string | undefined;
  for (let depth = 0; depth < 6; depth += 1) {
    const next = `agent:main:subagent:storm-${depth}`;
    refusal = await plugin.spawn(by, next, { budget: { spawns: 1_000 }, spawns: 1_000 });
    if (refusal === undefined) by = next;
  }
  expect(refusal).toMatch(/3 subagents|budget/u);
  expect(await plugin.readEvents("step.admitted")).toHaveLength(3);
});

it("ASI08-8 a chain of children, each a level deeper than the one before", async () => {
  plugin = await openAttackedPlugin({ budget: { depth: 2 } });
  const keys = [OWNER, CHILD, "agent:main:subagent:deep-2", "agent:main:subagent:deep-3"] as const;
  const refusals: (string | undefined)[] = [];
  for (const [index, by] of keys.slice(0, -1).entries())
    refusals.push(await plugin.spawn(by, keys[index + 1] ?? "", {}));
  expect(refusals).toEqual([undefined, undefined, expect.stringMatching(/level|deep/u)]);
});

it("ASI08-9 a burst of children that are begun at once", async () => {
  plugin = await openAttackedPlugin({ lanes: { spawnsMax: 4 } });
  const scene = plugin;
  const keys = Array.from({ length: 12 }, (_, index) => `agent:main:subagent:burst-${index}`);
  const refusals = await Promise.all(keys.map((key) => scene.spawn(OWNER, key, {})));
  const refused = refusals.filter((refusal) => refusal !== undefined);
  expect(refused).toHaveLength(8);
  for (const refusal of refused) expect(refusal).toMatch(/at most 4/u);
});
