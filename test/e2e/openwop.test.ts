/** OpenWOP as a route of the real gateway: workflows, a live model, and the coordinations of its agents as runs. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { WorkflowEvent } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { loadOpenWopSchemas } from "../core/openwop-schemas.ts";
import { createPageClient, signIn } from "../openwop/page-scene.ts";
import type { Json } from "../support/gateway.ts";
import { renderScript, type Rule } from "../support/scripted-model.ts";
import {
  createNode,
  createSupervised,
  createWorker,
  createWorkflow,
} from "../support/workflow-definitions.ts";
import { addressOf, APPROVAL, createOpenwopRoute } from "./openwop-route.ts";
import { hasEnded, openStage, TOKEN_OF_ENVIRONMENT, type OpenedCoordination, type Stage } from "./stage.ts";
import { turnFlagOrRestart } from "./turn-flag.ts";

const OTHER_TOKEN = "e2e-token-of-another-tenant";

const LIVE = createSupervised("e2e-live", [], {
  supervisor: { mockDispatchPlan: undefined, prompt: "Get it done.", workers: ["e2e-worker"] },
  dispatch: { outputMapping: { result: "found" } },
  variables: { found: undefined },
});

const WORKFLOWS = [
  createWorkflow("e2e-noop", { nodes: [createNode("only")] }),
  createWorkflow("e2e-gated", {
    nodes: [createNode("gate", "core.approvalGate", { title: "Go on?" }), createNode("after")],
  }),
  createWorker("e2e-worker"),
  LIVE,
];

/** The model as a supervisor: it is told the turn, and nothing else decides. */
const SUPERVISOR: readonly Rule[] = [
  {
    when: (text) => text.includes('{"turn":1,'),
    turns: [{ say: '```json\n{"kind":"next-worker","nextWorkerIds":["e2e-worker"],"confidence":0.9}\n```' }],
  },
  { when: (text) => text.includes('{"turn":2,'), turns: [{ say: '{"kind":"terminate","reason":"done"}' }] },
];

let stage: Stage;
let folder: string;
const { ask, readPath, begin, waitUntilRun, eventsOf, waitUntilServed } = createOpenwopRoute(() => stage);
const schemas = loadOpenWopSchemas();

function createOpenwopConfig(more: Json = {}): Json {
  const tokens = [{ token: "${COORDINATION_E2E_TOKEN}" }, { token: OTHER_TOKEN, tenant: "other" }];
  return { enabled: true, tokens, workflows: [folder], ...more };
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coordination-workflows-"));
  for (const definition of WORKFLOWS)
    writeFileSync(join(folder, `${definition.id}.json`), JSON.stringify(definition));
  stage = await openStage({}, SUPERVISOR);
});

afterAll(async () => {
  await stage.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Ids and types of server-sent events, as they come. */
async function* streamEvents(runId: string, lastEventId?: string): AsyncGenerator<string> {
  const response = await fetch(`${addressOf(stage)}/v1/runs/${runId}/events?streamMode=debug`, {
    headers: {
      authorization: `Bearer ${TOKEN_OF_ENVIRONMENT}`,
      accept: "text/event-stream",
      ...(lastEventId !== undefined && { "last-event-id": lastEventId }),
    },
  });
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk as Uint8Array).toString("utf8");
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const id = /^id: (\d+)$/mu.exec(block)?.[1];
      const type = /^event: (\S+)$/mu.exec(block)?.[1];
      if (id !== undefined && type !== undefined) yield `${id} ${type}`;
    }
  }
}

function scriptWaitFor(label: string, text: string, say = "result"): string {
  return renderScript({ spawn: [{ label, task: renderScript({ say: text, delayMs: 1_500 }) }] }, { say });
}

describe("OpenWOP in the gateway, off", () => {
  it("answers nothing of the protocol, and opens nothing", async () => {
    const response = await ask("/.well-known/openwop");
    expect(response.headers.get("content-type") ?? "").not.toContain("json");
    await stage.gateway.agent({ message: renderScript({ say: "ok" }) });
    expect(existsSync(join(dirname(stage.ledgerPath), "interrupt-key"))).toBe(false);
  });
});

describe("OpenWOP in the gateway, on", () => {
  beforeAll(async () => {
    await turnFlagOrRestart(stage, { enabled: true, phase1: { openwop: createOpenwopConfig() } });
    await waitUntilServed();
  });

  it("tells what it can do to everybody, and nothing else to those without a token", async () => {
    const discovery = await readPath("/.well-known/openwop", { token: "" });
    expect(discovery).toMatchObject({
      implementation: { name: "openclaw-coordination" },
      multiAgent: { executionModel: { version: 6, confidenceEscalationFloor: 0.5 } },
    });
    expect((await ask("/v1/workflows/e2e-noop", { token: "" })).status).toBe(401);
    expect((await ask("/v1/workflows/e2e-noop", { token: "not-the-token-of-anybody" })).status).toBe(401);
    expect((await ask("/v1/workflows/e2e-noop")).status).toBe(200);
    expect((await ask("/nothing/here")).status).toBe(404);
  });

  it("runs a workflow to its end, with events of the official schemas", async () => {
    const runId = await begin("e2e-noop");
    expect(schemas.problemsOfSnapshot(await waitUntilRun(runId, "completed"))).toEqual([]);
    const events = await eventsOf<WorkflowEvent>(runId);
    expect(events.at(-1)?.type).toBe("run.completed");
    expect(events.flatMap((event) => schemas.problemsOfWorkflow(event))).toEqual([]);
    expect((await ask(`/v1/runs/${runId}`, { token: OTHER_TOKEN })).status).toBe(404);
  });

  it("streams events as they happen, and goes on from the last one", async () => {
    const runId = await begin("e2e-gated");
    await waitUntilRun(runId, "waiting-approval");
    const seen: string[] = [];
    for await (const event of streamEvents(runId)) {
      seen.push(event);
      if (event.endsWith(" node.suspended")) await readPath(`/v1/runs/${runId}/interrupts/gate`, APPROVAL);
    }
    expect(seen.at(-1)).toMatch(/ run\.completed$/u);
    expect(seen.map((event) => Number.parseInt(event, 10))).toEqual(seen.map((_, index) => index));
    const resumed: string[] = [];
    for await (const event of streamEvents(runId, "1")) resumed.push(event);
    expect(resumed).toEqual(seen.slice(2));
  });

  it("lets the host's own model decide as a supervisor", async () => {
    const runId = await begin("e2e-live");
    await waitUntilRun(runId, "completed");
    const events = await eventsOf<WorkflowEvent>(runId);
    const decided = events.filter(({ type }) => type === "runOrchestrator.decided");
    expect(decided.map(({ payload }) => payload)).toMatchObject([
      { iteration: 1, decision: { kind: "next-worker", nextWorkerIds: ["e2e-worker"] } },
      { iteration: 2, decision: { kind: "terminate" } },
    ]);
    const phases = events.flatMap((event) =>
      event.type === "core.workflowChain.event" ? [event.payload.phase] : [],
    );
    expect(phases).toContain("child.completed");
    expect(events.flatMap((event) => schemas.problemsOfWorkflow(event))).toEqual([]);
    const requests = stage.model.requests.filter(({ text }) => text.includes('{"turn":'));
    expect(requests).toHaveLength(2);
  });
});

describe("a workflow run on the page of the gateway", () => {
  it("is forked from an event and cancelled, in the name of its tenant", async () => {
    const { address } = await stage.gateway.call("coordination.page.link");
    const [baseUrl = "", link = ""] = String(address).split("/#link=");
    const page = createPageClient(baseUrl, await signIn(baseUrl, link));
    const runId = await begin("e2e-gated");
    await waitUntilRun(runId, "waiting-approval");

    const forked = await page.ask(`runs/${runId}/fork`, { body: { event: 1 } });
    const forkId = String(forked.body["id"]);
    await waitUntilRun(forkId, "waiting-approval");
    for (const id of [runId, forkId]) {
      expect(await page.ask(`runs/${id}/cancel`, { body: {} })).toMatchObject({ status: 200 });
      await waitUntilRun(id, "cancelled");
    }
    expect((await page.ask(`runs/${runId}/cancel`, { body: {} })).body["message"]).toContain("already ended");
  });
});

describe("a coordination of OpenClaw's agents as a run", () => {
  async function startRunning(session: string, message: string): Promise<OpenedCoordination> {
    await stage.gateway.agent({ sessionKey: session, message });
    return stage.until(session, () => true);
  }

  it("is read while it runs and after its end, with events of the official schemas", async () => {
    const session = "agent:main:as-a-run";
    const { coordinationId: runId } = await startRunning(
      session,
      scriptWaitFor("child", "the child's own words"),
    );
    const seen: string[] = [];
    for await (const event of streamEvents(runId)) seen.push(event);
    expect(seen.at(-1)).toMatch(/ run\.completed$/u);
    await stage.until(session, hasEnded);
    const snapshot = await readPath(`/v1/runs/${runId}`);
    expect(schemas.problemsOfSnapshot(snapshot)).toEqual([]);
    expect(snapshot).toMatchObject({
      runId,
      workflowId: "openclaw.observed-coordination",
      status: "completed",
      variables: {},
      owner: { tenant: "default" },
      nodeStates: { "step-1": { status: "completed" } },
    });
    expect(JSON.stringify(snapshot)).not.toContain("own words");
    const events = await eventsOf<RunEvent>(runId);
    expect(events).toHaveLength(seen.length);
    expect(events.flatMap((event) => schemas.problemsOf(event))).toEqual([]);
    expect(await readPath(`/v1/runs/${runId}/ancestry`)).toMatchObject({ runId, parent: null });
  });

  it("is there for callers of the one tenant only", async () => {
    const { coordinationId: runId } = await stage.until("agent:main:as-a-run", hasEnded);
    for (const path of ["", "/events", "/ancestry"])
      expect((await ask(`/v1/runs/${runId}${path}`, { token: OTHER_TOKEN })).status).toBe(404);
    const cancelling = { token: OTHER_TOKEN, body: {} };
    expect((await ask(`/v1/runs/${runId}/cancel`, cancelling)).status).toBe(404);
  });

  it("waits for people where a result is held, and goes on with their answer", async () => {
    const session = "agent:main:held";
    const doubted = 'It may be so.\n{"confidence": 0.4}';
    const { coordinationId: runId } = await startRunning(session, scriptWaitFor("doubter", doubted));
    const snapshot = await waitUntilRun(runId, "waiting-approval");
    expect(snapshot).toMatchObject({ currentNodeId: "step-1", interrupt: { kind: "approval" } });
    expect(schemas.problemsOfSnapshot(snapshot)).toEqual([]);
    const path = `/v1/runs/${runId}/interrupts/step-1`;
    expect((await ask(path, { body: { resumeValue: { action: "perhaps" } } })).status).toBe(400);
    await readPath(path, APPROVAL);
    expect((await ask(path, APPROVAL)).status).toBe(409);
    await waitUntilRun(runId, "completed");
  });

  it("is cancelled as a run is", async () => {
    const session = "agent:main:cancelled-run";
    const spawn = [{ label: "slow", task: renderScript({ say: "never", delayMs: 60_000 }) }];
    const { coordinationId: runId } = await startRunning(session, renderScript({ spawn }, { say: "ok" }));
    expect(await readPath(`/v1/runs/${runId}/cancel`, { body: {} })).toMatchObject({ runId });
    await waitUntilRun(runId, "cancelled");
    expect((await ask(`/v1/runs/${runId}:pause`, { body: {} })).status).toBe(409);
  });
});
