/** OpenWOP in the gateway without the gateway: a runtime over the fake host, and a socket. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { makeRuntime } from "../../src/plugins/openclaw/runtime-access/make-runtime.ts";
import { takeOpenWopRequest } from "../../src/plugins/openclaw/runtime-access/http-requests.ts";
import { replaceRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { createFakeHost } from "./fake-host.ts";

const TOKEN = "a-token-that-is-long-enough";
const GATED = createWorkflow("gated", {
  nodes: [createNode("gate", "core.approvalGate", { title: "Go on?" })],
});

const closing: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

interface Gateway {
  readonly stateDir: string;
  readonly lines: readonly { readonly level: string; readonly text: string }[];
  readonly runtime: ReturnType<typeof makeRuntime>;
  readonly ask: (path: string, body?: unknown) => Promise<Response>;
  readonly fetchJson: (path: string, body?: unknown) => Promise<Record<string, unknown>>;
}

async function startGatewayWith(openwop: object, stateDir = createFreshFolder()): Promise<Gateway> {
  const { api, lines } = createFakeHost({ stateDir, phase1: { openwop } });
  const runtime = makeRuntime(api);
  await replaceRuntime(runtime);
  closing.push(() => runtime.close());
  const server = createServer((request, response) => void takeOpenWopRequest(api, request, response));
  closing.push(() => closeServer(server));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const ask = (path: string, body?: unknown): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}/coordination/openwop${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  return {
    stateDir,
    lines,
    runtime,
    ask,
    fetchJson: async (path, body) => (await (await ask(path, body)).json()) as Record<string, unknown>,
  };
}

function createFreshFolder(): string {
  const folder = createTempFolder();
  closing.push(async () => {
    await Promise.resolve();
    folder[Symbol.dispose]();
  });
  return folder.path;
}

function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}

function withWorkflow(stateDir: string, text = JSON.stringify(GATED)): string {
  const folder = join(stateDir, "workflows");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "gated.json"), text);
  return stateDir;
}

const ON = { enabled: true, tokens: [{ token: TOKEN }], workflows: ["workflows"] };

async function waitUntilWaiting({ fetchJson }: Gateway, runId: string): Promise<void> {
  const isWaiting = async (): Promise<boolean> =>
    (await fetchJson(`/v1/runs/${runId}`))["status"] === "waiting-approval";
  await waitFor(isWaiting, { what: "the run to wait for approval", timeoutMs: 10_000, everyMs: 10 });
}

describe("OpenWOP in the gateway", () => {
  it("is not there where it is off, and leaves nothing behind", async () => {
    const { runtime, ask, stateDir } = await startGatewayWith({});
    expect(runtime.openwop).toBeUndefined();
    expect((await ask("/.well-known/openwop")).status).toBe(503);
    await runtime.coordinator();
    expect(existsSync(join(stateDir, "coordination", "interrupt-key"))).toBe(false);
  });

  it("serves runs of the workflows in its folders, from the ledger of the coordinator", async () => {
    const ownGateway = await startGatewayWith(ON, withWorkflow(createFreshFolder()));
    const { ask, fetchJson, runtime } = ownGateway;
    expect(await fetchJson("/.well-known/openwop")).toMatchObject({
      multiAgent: { executionModel: { version: 6, crossHostCausation: { supported: true } } },
    });
    const created = await fetchJson("/v1/runs", { workflowId: "gated", inputs: {} });
    const { runId } = created as { runId: string };
    expect(created).toMatchObject({ statusUrl: `/coordination/openwop/v1/runs/${runId}` });
    await waitUntilWaiting(ownGateway, runId);
    expect(await (await runtime.coordinator()).workflows.entry(runId as never)).toMatchObject({ runId });
    await fetchJson(`/v1/runs/${runId}/interrupts/gate`, { resumeValue: { action: "accept" } });
    expect(await fetchJson(`/v1/runs/${runId}`)).toMatchObject({ status: "completed" });
    expect((await ask("/v1/runs/co-nothing")).status).toBe(404);
  });

  it("says why it does not offer a workflow that it would refuse to run, and does not count it", async () => {
    const stateDir = withWorkflow(createFreshFolder());
    const gate = createNode("gate", "core.interrupt", { resumeSchema: { type: "strng" } });
    const typo = createWorkflow("typo", { nodes: [gate] });
    writeFileSync(join(stateDir, "workflows", "typo.json"), JSON.stringify(typo));
    const { ask, lines, runtime } = await startGatewayWith(ON, stateDir);
    await runtime.coordinator();
    await ask("/.well-known/openwop");
    const listTexts = (level: string) => lines.filter((line) => line.level === level).map(({ text }) => text);
    expect(listTexts("warn")).toEqual([
      expect.stringMatching(
        /the workflow typo is not offered: resumeSchema of node gate is not a usable JSON Schema: type: type must be/,
      ),
    ]);
    expect(listTexts("info").find((text) => text.includes("serves OpenWOP"))).toMatch(
      /"?workflows"?[=: ]+1\b/,
    );
  });

  it("wakes who waits for events of a coordination, when this gateway appends them", async () => {
    const { fetchJson, runtime } = await startGatewayWith(ON, withWorkflow(createFreshFolder()));
    const coordinator = await runtime.coordinator();
    const question = await coordinator.ask({
      askedBy: "agent:main:main" as SessionKey,
      agentId: "main",
      kind: "clarification",
      traceId: "trace",
      question: "Which one?",
    });
    if (question.kind === "refused") throw new Error(question.reason);
    const [entry] = await coordinator.reads.list({ limit: 1 });
    const { runId, length } = entry!;
    const polled = fetchJson(`/v1/runs/${runId}/events/poll?lastSequence=${length - 1}&timeout=25`);
    await fetchJson(`/v1/runs/${runId}`);
    await coordinator.cancel({ coordinationId: runId, by: "operator" });
    const { events } = (await polled) as { events: readonly { readonly type: string }[] };
    expect(events.map(({ type }) => type)).toContain("coordination.cancel_requested");
    // Without being woken it would be answered at the end of its 25 seconds.
  }, 15_000);

  it("goes on with its runs in the runtime that replaces it, and refuses in the one that is stopped", async () => {
    const stateDir = withWorkflow(createFreshFolder());
    const first = await startGatewayWith(ON, stateDir);
    const { runId } = (await first.fetchJson("/v1/runs", { workflowId: "gated", inputs: {} })) as {
      runId: string;
    };
    await waitUntilWaiting(first, runId);
    const second = await startGatewayWith(ON, stateDir);
    expect(first.runtime.closed).toBe(true);
    await waitUntilWaiting(second, runId);
    await second.runtime.close();
    await expect(second.runtime.coordinator()).rejects.toThrow();
    expect((await second.ask("/.well-known/openwop")).status).toBe(503);
  });

  it("says what is wrong with a workflow, is not served meanwhile, and is when it is mended", async () => {
    const stateDir = withWorkflow(createFreshFolder(), '{"id": "gated"}');
    const { ask, lines, runtime } = await startGatewayWith(ON, stateDir);
    await runtime.openwop?.start();
    expect((await ask("/.well-known/openwop")).status).toBe(503);
    expect(lines.filter(({ level }) => level === "error")[0]?.text).toMatch(/not served.*gated\.json/s);
    expect(await (await runtime.coordinator()).reads.list({ limit: 1 })).toEqual([]);
    withWorkflow(stateDir);
    expect((await ask("/.well-known/openwop")).status).toBe(200);
  });
});
