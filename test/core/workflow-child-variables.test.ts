/**
 * Owns: which host a child runs on, and with which inputs, where variables that say so change after the child was begun: it
 * stays the same child on the same host, also for the next process.
 */
import { describe, expect, test } from "vitest";
import type { PeerHosts, PeerRunRequest, ToolCaller } from "../../src/agents/coordination/ports/outbound.ts";
import { expectReplayOf, forkIn } from "../support/forks.ts";
import {
  createNode,
  createSupervised,
  createWorkflow,
  sendNextWorker,
} from "../support/workflow-definitions.ts";
import { createWorkflowScene, type SceneOptions, type WorkflowScene } from "../support/workflow-scene.ts";

const A = "https://a.test";
const B = "https://b.test";
const APPROVED = { outputAttestation: { requireApproval: true }, outputMapping: { got: "result" } };
/** The host of a node is the one in the variable `host`. */
const HOST_PORT = { inputs: { peerUrl: { type: "variable", variableName: "host" } } };

/** A child that people end, after which the variable `host` names B, and `topic` another topic. */
const PICK = createNode("pick", "core.subWorkflow", {
  workflowId: "picker",
  outputMapping: { host: "host", topic: "topic" },
});
const PICKER = createWorkflow("picker", {
  nodes: [createNode("gate", "core.approvalGate")],
  variables: { host: B, topic: "second" },
});

function createCalling(typeId: string, config: Readonly<Record<string, unknown>>) {
  return createWorkflow("far", {
    nodes: [createNode("work", typeId, config, HOST_PORT), PICK],
    variables: { host: A, topic: "first" },
  });
}

const CALL = { workflowId: "there", inputMapping: { topic: "topic" } };

/** Two hosts that note what they are asked. Only A knows the child, which ends when `end` is called. */
function createHosts(createRun?: PeerHosts["createRun"]) {
  const requests: string[] = [];
  const { promise: ended, resolve: end } = Promise.withResolvers<undefined>();
  const peers: Partial<PeerHosts> = {
    createRun: (peerUrl, request) => {
      requests.push(`create at ${peerUrl}`);
      const created = { kind: "created", runId: "theirs", status: "running" } as const;
      return createRun?.(peerUrl, request) ?? Promise.resolve(created);
    },
    awaitEnd: async (peerUrl, runId, signal) => {
      if (signal.aborted) return { kind: "refused", code: "aborted", message: "aborted" };
      requests.push(`await ${runId} at ${peerUrl}`);
      if (peerUrl !== A) return { kind: "refused", code: "rejected", message: "there is no such run" };
      await ended;
      return { kind: "ended", status: "completed", outputs: {}, variables: { result: "gold" } };
    },
    cancel: (peerUrl, runId) => {
      requests.push(`cancel ${runId} at ${peerUrl}`);
      return Promise.resolve({ kind: "cancelling", status: "cancelling" });
    },
  };
  return {
    requests,
    end: () => {
      end(undefined);
    },
    peers,
  };
}

/** Lets the variables change while the node `work` waits for its child or its call. */
async function changeVariables(scene: WorkflowScene, runId: string): Promise<void> {
  const picker = scene.payloads(runId, "node.dispatched").find((each) => each.childWorkflowId === "picker");
  await scene.answer(picker?.childRunId ?? "", "gate", { action: "accept" });
  expect(scene.payloads(runId, "variable.changed").map(({ name }) => name)).toEqual(["host", "topic"]);
}

async function restart(scene: WorkflowScene, options: SceneOptions): Promise<WorkflowScene> {
  scene.die();
  const next = createWorkflowScene({ ...options, ledger: scene.ledger, clock: scene.clock, pid: 2 });
  await next.host.start();
  await next.settle();
  return next;
}

describe("a child on a host that a variable names", () => {
  test("is read for its gate on that host, whatever the variable names by then", async () => {
    const { requests, end, peers } = createHosts();
    const definitions = [createCalling("core.subWorkflow", { ...CALL, ...APPROVED }), PICKER];
    const scene = createWorkflowScene({ definitions, peers });
    const runId = await scene.run("far");
    await changeVariables(scene, runId);
    end();
    await scene.settle();
    expect(requests).toEqual([`create at ${A}`, `await theirs at ${A}`, `await theirs at ${A}`]);
    expect(scene.payloads(runId, "interrupt.requested")).toMatchObject([
      { data: { artifactData: { result: "gold" } } },
    ]);
    await scene.answer(runId, "work", { action: "accept" });
    expect(await scene.snapshot(runId)).toMatchObject({ status: "completed", variables: { got: "gold" } });
    expectReplayOf(scene.ledger, await forkIn(scene, { sourceRunId: runId, mode: "replay" }), runId);
  });

  test.each<[title: string, config: Readonly<Record<string, unknown>>]>([
    ["without a gate", CALL],
    ["behind a gate", { ...CALL, ...APPROVED }],
  ])("is waited for on that host by the next process, %s", async (_title, config) => {
    const { requests, end, peers } = createHosts();
    const options = { definitions: [createCalling("core.subWorkflow", config), PICKER], peers };
    const scene = createWorkflowScene(options);
    const runId = await scene.run("far");
    await changeVariables(scene, runId);
    const next = await restart(scene, options);
    expect(requests).toEqual([`create at ${A}`, `await theirs at ${A}`, `await theirs at ${A}`]);
    end();
    await next.settle();
    expect(await next.status(runId)).toBe(config === CALL ? "completed" : "waiting-approval");
  });

  test("is created there with the same inputs by the next process, where the creation was not answered", async () => {
    const created: (PeerRunRequest & { readonly peerUrl: string })[] = [];
    const { peers } = createHosts((peerUrl, request) => {
      created.push({ ...request, peerUrl });
      return new Promise(() => undefined);
    });
    const options = { definitions: [createCalling("core.subWorkflow", CALL), PICKER], peers };
    const scene = createWorkflowScene(options);
    const runId = await scene.run("far");
    await changeVariables(scene, runId);
    await restart(scene, options);
    const [first, second] = created;
    expect(created).toHaveLength(2);
    expect(first).toMatchObject({ peerUrl: A, inputs: { topic: "first" } });
    expect(second).toMatchObject({
      peerUrl: A,
      inputs: { topic: "first" },
      idempotencyKey: first?.idempotencyKey,
    });
  });

  test("is begun with the variables as they are then, also as a later worker of one decision", async () => {
    const created: [peerUrl: string, inputs: unknown][] = [];
    const { peers } = createHosts();
    const createRun: PeerHosts["createRun"] = (peerUrl, { inputs }) => {
      created.push([peerUrl, inputs]);
      return Promise.resolve({ kind: "created", runId: `theirs-${created.length}`, status: "running" });
    };
    const awaitEnd: PeerHosts["awaitEnd"] = () =>
      Promise.resolve({
        kind: "ended",
        status: "completed",
        outputs: {},
        variables: { host: B, topic: "second" },
      });
    const supervised = createSupervised("far", [sendNextWorker("one", "two")], {
      dispatch: { inputMapping: { topic: "topic" }, outputMapping: { host: "host", topic: "topic" } },
      variables: { host: A, topic: "first" },
    });
    const nodes = supervised.nodes.map((node) => (node.id === "dispatch" ? { ...node, ...HOST_PORT } : node));
    const definitions = [{ ...supervised, nodes } as typeof supervised];
    const scene = createWorkflowScene({ definitions, peers: { ...peers, createRun, awaitEnd } });
    const runId = await scene.run("far");
    expect(await scene.status(runId)).toBe("completed");
    expect(created).toEqual([
      [A, { topic: "first" }],
      [B, { topic: "second" }],
    ]);
  });
});

describe("a call on a host that a variable names", () => {
  test.each<[title: string, typeId: string, config: Readonly<Record<string, unknown>>, url: string]>([
    ["of a tool", "core.ai.callPrompt", { mcp: { tool: "find" } }, `${A}/v1/mcp`],
    ["of an agent", "core.a2a.invoke", { message: "Find it." }, A],
  ])("%s is made again there by the next process", async (_title, typeId, config, url) => {
    const called: string[] = [];
    const hang = ({ url: address }: { readonly url: string }) => {
      called.push(address);
      return new Promise<never>(() => undefined);
    };
    const tools: Partial<ToolCaller> = { callMcp: hang, sendA2a: hang };
    const options = { definitions: [createCalling(typeId, config), PICKER], tools };
    const scene = createWorkflowScene(options);
    const runId = await scene.run("far");
    await changeVariables(scene, runId);
    await restart(scene, options);
    expect(called).toEqual([url, url]);
  });
});
