/** Owns: the workflows that tests of forks run, how they fork them over HTTP, and what logs are compared by. */
import { expect } from "vitest";
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import {
  end,
  createLoop,
  createNode,
  createNoop,
  pause,
  work,
  createWorkflow,
  WORKERS,
} from "./levels-workflows.ts";
import type { Client, EndedRun, Event, Reply } from "./levels-world.ts";

const write = (id: string, content: string, config: object = {}) =>
  createNode(id, "openclaw.memory.write", { config: { content, ...config } });
const read = (id: string) => createNode(id, "openclaw.memory.read", { config: { into: id } });
const gate = createNode("gate", "core.approvalGate", { config: { title: "Go on?" } });

/** Workflows to be forked. */
export const FORKED: readonly WorkflowDefinition[] = [
  ...WORKERS,
  createWorkflow("line", { nodes: [createNoop("a"), createNoop("b"), createNoop("c")] }),
  createWorkflow("varies", {
    nodes: [createNode("tool", "core.noop", { config: { nondeterministic: true } }), createNoop("after")],
  }),
  createWorkflow("keeps", {
    nodes: [write("one", "first"), pause("dig", 20), write("two", "second"), read("seen")],
  }),
  createWorkflow("keeps-and-asks", {
    nodes: [write("one", "first"), gate, write("two", "second"), read("seen")],
  }),
  createWorkflow("approves", { nodes: [createNoop("before"), gate, createNoop("after")] }),
  createWorkflow("fails", { nodes: [createNoop("a"), createNode("boom", "core.fail")] }),
  createWorkflow("waits", { nodes: [createNoop("a"), pause("wait", 60_000)] }),
  createWorkflow("quick-wait", { nodes: [pause("wait", 200), createNoop("after")] }),
  createWorkflow("calls", {
    nodes: [
      createNode("call", "core.subWorkflow", {
        config: { workflowId: "worker-good", outputMapping: { got: "found" } },
      }),
    ],
  }),
  createWorkflow("counts", { nodes: [createNoop("a"), createNoop("b"), createNoop("c")] }),
  createLoop("works", {
    plan: [work(["worker-good", "worker-bad"]), work(["keeps"], 0.2), work(["worker-other"]), end()],
    dispatch: { outputMapping: { got: "found" } },
  }),
  createLoop("endless", { plan: Array.from({ length: 9 }, () => work(["worker-good"])) }),
];

const ENDS = ["completed", "failed", "cancelled"];

export function fork(client: Client, runId: string, body: object): Promise<Reply> {
  return client.post(`/v1/runs/${runId}:fork`, body);
}

/** The id of the fork, which was accepted. */
export async function forkOf(
  client: Client,
  runId: string,
  body: object = { mode: "replay" },
): Promise<string> {
  const reply = await fork(client, runId, body);
  expect([reply.status, reply.body]).toMatchObject([201, { sourceRunId: runId, status: "pending" }]);
  return String(reply.body["runId"]);
}

/** Forks a run and follows the fork to its end. */
export async function forkToEnd(client: Client, sourceRunId: string, body?: object): Promise<EndedRun> {
  const runId = await forkOf(client, sourceRunId, body);
  const snapshot = await client.until(runId, ...ENDS);
  return { runId, snapshot, events: await client.events(runId) };
}

const VOLATILE = ["eventId", "runId", "observedAt", "timestamp", "occurredAt", "emittedAt", "id"];

/** Without what may be another one in every run (RFC 0041, section C). */
export function stripVolatile(value: unknown, volatile: readonly string[] = VOLATILE): unknown {
  if (Array.isArray(value)) return value.map((each) => stripVolatile(each, volatile));
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([name]) => !volatile.includes(name));
  return Object.fromEntries(kept.map(([name, member]) => [name, stripVolatile(member, volatile)]));
}

/** The bytes of events, but for the run that they are of. */
export const printEvents = (events: readonly Event[]): string =>
  events.map(({ runId: _, ...event }) => JSON.stringify(event)).join("\n");
