/** Owns: which spans a recorded workflow run comes to: the tokens of its nodes, and what a fork adds to its source. */
import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunOrigin } from "../../src/agents/coordination/contracts/workflows/run-origin.ts";
import type {
  WorkflowDraft,
  WorkflowEvent,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { createWorkflowSpans } from "../../src/agents/coordination/telemetry/project-workflow.ts";
import type { FindRoot } from "../../src/agents/coordination/telemetry/projection.ts";
import type { Span } from "../../src/agents/coordination/telemetry/span.ts";
import {
  branchOf,
  COMPLETED,
  createNodeStarted,
  createRunStarted,
  createWorkflowAuthor,
  nameWorkflowRun,
} from "../contract/workflow-store-tested.ts";
import { forkIn } from "../support/forks.ts";
import { chain, createEdge, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { ALICE, createWorkflowScene, SAID, valueOf, type WorkflowScene } from "../support/workflow-scene.ts";

const hashText = (text: string): string => hash("sha256", text);
const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const HOUR_MS = 3_600_000;

function projectLog(events: readonly WorkflowEvent[], origin?: RunOrigin, findRoot?: FindRoot): Span[] {
  const projection = createWorkflowSpans(hashText, findRoot, origin);
  return events.flatMap((event) => projection.take(event));
}

function createUsage(model: string, inputTokens: number, outputTokens: number): WorkflowDraft {
  return {
    type: "provider.usage",
    nodeId: "agent",
    payload: { provider: `of-${model}`, model, inputTokens, outputTokens, nodeId: "agent" },
  };
}

const NODE_COMPLETED: WorkflowDraft = {
  type: "node.completed",
  nodeId: "agent",
  payload: { nodeId: "agent", outputs: {} },
};

describe("the span of a node", () => {
  it("has the tokens of all calls of models that the node made, and the newest model", () => {
    const usage = [createUsage("small", 100, 10), createUsage("large", 1_000, 200)];
    const drafts = [createRunStarted(), createNodeStarted("agent"), ...usage, NODE_COMPLETED, COMPLETED];
    const [node] = projectLog(createWorkflowAuthor("calls").append(drafts).events);
    expect(node?.attributes).toMatchObject({
      "gen_ai.usage.input_tokens": 1_100,
      "gen_ai.usage.output_tokens": 210,
      "gen_ai.response.model": "large",
      "gen_ai.provider.name": "of-large",
    });
  });
});

describe("a call of a run", () => {
  const calling = createWorkflow("calling", {
    nodes: [
      createNode("model", "core.ai.callPrompt", { prompt: "?" }),
      createNode("tool", "core.conformance.mcp-invoke", { mcp: { tool: "echo", url: "http://tool" } }),
      createNode("child", "core.subWorkflow", { workflowId: "called" }),
    ],
    edges: chain("model>tool>child"),
  });
  const called = createWorkflow("called", { nodes: [createNode("only")] });

  it.each([`00-${TRACE_ID}-00f067aa0ba902b7-01`, undefined])(
    "is below the exported span of its node, or of its tool, where the run came with the traceparent %s",
    async (traceparent) => {
      const sentTraces: (string | undefined)[] = [];
      const scene = createWorkflowScene({
        definitions: [calling, called],
        chat: {
          complete: (request) => {
            sentTraces.push(request.traceparent);
            return Promise.resolve(SAID);
          },
        },
        tools: {
          callMcp: (request) => {
            sentTraces.push(request.traceparent);
            return Promise.resolve({ kind: "answered", ok: true, content: [], text: "echo" });
          },
        },
      });
      const runId = await scene.run("calling", traceparent === undefined ? {} : { traceparent });
      expect(await scene.status(runId)).toBe("completed");
      const [, childRunId = ""] = scene.ledger.runs.keys();
      const [begun] = scene.events(childRunId);
      sentTraces.push(begun?.type === "run.started" ? begun.payload.traceparent : undefined);
      const spans = projectLog(scene.events(runId));
      const traces = ["model", "echo", "child"].map((name) => {
        const span = spans.find(({ attributes }) =>
          [attributes["coordination.node_id"], attributes["gen_ai.tool.name"]].includes(name),
        );
        return span && `00-${span.traceId}-${span.spanId}-01`;
      });
      expect(sentTraces).toEqual(traces);
      expect(traces[0]).toContain(traceparent === undefined ? hashText(runId).slice(0, 32) : TRACE_ID);
    },
  );
});

/** A run that asked a model, and waits for an answer to its question. */
async function recordSource(): Promise<{ readonly scene: WorkflowScene; readonly sourceRunId: string }> {
  const asks = createWorkflow("asks", {
    nodes: [
      createNode("model", "core.ai.callPrompt", { prompt: "?" }),
      createNode("gate", "core.clarificationGate"),
      createNode("after"),
    ],
    edges: chain("model>gate>after"),
  });
  const usage = { inputTokens: 70, outputTokens: 7 };
  const scene = createWorkflowScene({
    definitions: [asks],
    chat: { complete: () => Promise.resolve({ ...SAID, usage }) },
  });
  const traceparent = `00-${TRACE_ID}-00f067aa0ba902b7-01`;
  const sourceRunId = await scene.run("asks", { traceparent });
  expect(await scene.status(sourceRunId)).toBe("waiting-input");
  return { scene, sourceRunId };
}

/** A run with more events than a fork takes at once, one of whose nodes is at work all the time. */
async function recordLongSource(): Promise<{ readonly scene: WorkflowScene; readonly sourceRunId: string }> {
  const long = createWorkflow("long", {
    nodes: [createNode("wait", "core.delay", { delayMs: 10 * HOUR_MS }), createNode("a"), createNode("b")],
    edges: [createEdge("a>b"), createEdge("b>a")],
    settings: { maxLoopbackIterations: 600 },
  });
  const scene = createWorkflowScene({ definitions: [long], settings: { nodeExecutionsMax: 5_000 } });
  const sourceRunId = await scene.run("long");
  await scene.clock.advance(1);
  return { scene, sourceRunId };
}

function readOrigin({ ledger }: WorkflowScene, runId: string): RunOrigin {
  return JSON.parse(ledger.runs.get(runId as CoordinationId)?.origin ?? "") as RunOrigin;
}

describe("the spans of a fork", () => {
  it("are those of its own work, from its own first event on, and its root links the source's", async () => {
    const { scene, sourceRunId } = await recordSource();
    const source = createWorkflowSpans(hashText);
    for (const event of scene.events(sourceRunId)) source.take(event);
    await scene.clock.advance(HOUR_MS);
    const fromSeq = scene.events(sourceRunId).length;
    const runId = await forkIn(scene, { sourceRunId, mode: "branch", fromSeq });
    await scene.answer(runId, "gate", { answers: { q1: "x" } });
    const events = scene.events(runId);
    const spans = projectLog(events, readOrigin(scene, runId), (id) =>
      id === sourceRunId ? source.root() : undefined,
    );
    expect(spans.map(({ attributes }) => attributes["coordination.node_id"])).not.toContain("model");
    expect(spans.some(({ attributes }) => "gen_ai.usage.input_tokens" in attributes)).toBe(false);
    const beganMs = Date.parse(events[fromSeq]?.timestamp ?? "");
    expect(new Set(spans.map(({ startMs }) => startMs >= beganMs))).toEqual(new Set([true]));
    const root = spans.at(-1);
    expect(root).toMatchObject({
      traceId: TRACE_ID,
      startMs: beganMs,
      links: [{ traceId: TRACE_ID, spanId: source.root()?.spanId }],
      attributes: { "coordination.outcome": "completed", "coordination.forked_from": sourceRunId },
    });
    expect(root).not.toHaveProperty("parentSpanId");
    expect(spans.length).toBeGreaterThanOrEqual(4);
  });

  it("do not count the tokens that a node used before the source was forked", () => {
    const author = createWorkflowAuthor("fork", branchOf(nameWorkflowRun("source"), "fork", 3));
    const copies = [createRunStarted(), createNodeStarted("agent"), createUsage("small", 100, 10)];
    const drafts = [...copies, createUsage("small", 5, 1), NODE_COMPLETED, COMPLETED];
    const { events, origin } = author.append(drafts);
    const [node, root] = projectLog(events, origin);
    expect(node?.attributes["gen_ai.usage.input_tokens"]).toBe(5);
    expect(node?.startMs).toBe(root?.startMs);
  });

  it("are none where a replay only repeats an ended run", async () => {
    const { scene, sourceRunId } = await recordSource();
    await scene.answer(sourceRunId, "gate", { answers: { q1: "x" } });
    const runId = await forkIn(scene, { sourceRunId, mode: "replay" });
    expect(await scene.status(runId)).toBe("completed");
    expect(projectLog(scene.events(runId), readOrigin(scene, runId))).toEqual([]);
  });

  it.each(["branch", "replay"] as const)(
    "tell that a %s failed while it took the events of its source, and what was at work then",
    async (mode) => {
      const { scene, sourceRunId } = await recordLongSource();
      await scene.clock.advance(HOUR_MS);
      const fromSeq = mode === "branch" ? scene.events(sourceRunId).length : 0;
      const forked = valueOf(await scene.host.fork(ALICE, { sourceRunId, mode, fromSeq }));
      const removed = scene.ledger.runs.get(sourceRunId as CoordinationId)?.events.splice(1_500);
      expect(removed?.length).toBeGreaterThan(100);
      await scene.settle();
      const events = scene.events(forked.runId);
      const spans = projectLog(events, readOrigin(scene, forked.runId));
      const endMs = Date.parse(events.at(-1)?.timestamp ?? "");
      const wait = { "coordination.node_id": "wait", "coordination.outcome": "cancelled" };
      expect(spans[0]).toMatchObject({ startMs: endMs, endMs, attributes: wait });
      expect(spans.at(-1)).toMatchObject({ startMs: endMs, endMs, error: "replay_source_missing" });
      expect(spans.length).toBeLessThanOrEqual(3);
    },
  );

  it("tell that a replay differed from its source, and not that its source had differed from another run", () => {
    const sourceRunId = nameWorkflowRun("source");
    const origin: RunOrigin = { ...branchOf(sourceRunId, "fork", 5), mode: "replay" };
    const projectDiverged = (divergedFrom: string) =>
      projectLog(
        createWorkflowAuthor("fork", origin).append([
          createRunStarted(),
          createNodeStarted("agent"),
          NODE_COMPLETED,
          { type: "replay.diverged", payload: { sourceRunId: divergedFrom, atSequence: 3 } },
          { type: "run.failed", payload: { error: { code: "replay_diverged", message: "differs" } } },
        ]).events,
        origin,
      );
    expect(projectDiverged(sourceRunId)).toMatchObject([{ error: "replay_diverged" }]);
    expect(projectDiverged(nameWorkflowRun("another"))).toEqual([]);
  });
});
