/** Owns: what the page of `serve` does with runs of workflows. */
import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { ForkPreview } from "../../src/plugins/page/contract/actions.ts";
import type { EventsPage, WorkflowDetail } from "../../src/plugins/page/contract/runs.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";
import { createNode, createNoop, createWorkflow } from "./levels-workflows.ts";
import { createPageClient, readLive, servePage, signIn, type PageClient } from "./page-scene.ts";

const TOKEN = "token-of-a-tenant";
const ASKS = createWorkflow("asks", {
  nodes: [createNoop("survey"), createNode("gate", "core.approvalGate", { config: { title: "Dig?" } })],
});

async function startRun(baseUrl: string): Promise<string> {
  const response = await fetch(`${baseUrl}/v1/runs`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${TOKEN}`,
      "content-type": "application/json",
      "idempotency-key": randomUUID(),
    },
    body: JSON.stringify({ workflowId: ASKS.id }),
  });
  const { runId } = (await response.json()) as { readonly runId: string };
  return runId;
}

async function waitUntilStatus(client: PageClient, runId: string, status: string): Promise<void> {
  const isThere = async (): Promise<boolean> =>
    (await client.get<WorkflowDetail>(`runs/${runId}`)).view.status === status;
  await waitFor(isThere, { what: `the run to be ${status}` });
}

/** Serves the page, and starts a run that waits for an approval, for a caller who may have scopes. */
async function serveWaitingRun(ledger: string, scopes?: string[]) {
  const served = await servePage(ledger, {
    tokens: [{ token: TOKEN, tenant: "acme", ...(scopes && { scopes }) }],
    definitions: [ASKS],
  });
  const client = createPageClient(served.baseUrl, await signIn(served.baseUrl, served.link));
  const runId = await startRun(served.baseUrl);
  await waitUntilStatus(client, runId, "waiting-approval");
  return { ...served, client, runId };
}

it("a run is forked from an event, and what the fork keeps is told before", async () => {
  using folder = createTempFolder();
  await using waiting = await serveWaitingRun(folder.file("ledger.sqlite"));
  const { client, runId } = waiting;
  const { events } = await client.get<EventsPage>(`runs/${runId}/events`);
  const gateStart = events.findIndex((event) => "type" in event && event.nodeId === "gate");

  const preview = await client.get<ForkPreview>(`runs/${runId}/fork-preview?event=${gateStart}`);
  expect(preview).toEqual({ source: runId, event: gateStart, kept: ["survey"], anew: ["gate"] });
  const { status, body } = await client.ask(`runs/${runId}/fork`, { body: { event: gateStart } });
  expect(status).toBe(200);
  expect(body["happened"]).toBe(
    `${String(body["id"])} runs: it keeps what ${runId} did before event ${gateStart}.`,
  );
  const fork = (await client.get<WorkflowDetail>(`runs/${String(body["id"])}`)).view;
  expect(fork).toMatchObject({ workflowId: ASKS.id, fork: { sourceRunId: runId, mode: "branch" } });

  const beyond = await client.ask(`runs/${runId}/fork`, { body: { event: 1_000 } });
  expect([beyond.status, beyond.body["message"]]).toEqual([
    409,
    expect.stringContaining("fromSeq is at most") as string,
  ]);
  expect((await client.ask(`runs/${runId}/fork-preview?event=1000`)).status).toBe(422);
});

it("a run of a caller with scopes is forked by the operator, and the fork has them too", async () => {
  using folder = createTempFolder();
  await using waiting = await serveWaitingRun(folder.file("ledger.sqlite"), ["money", "mail"]);
  const { client, runId } = waiting;
  const { status, body } = await client.ask(`runs/${runId}/fork`, { body: { event: 1 } });
  expect([status, body["message"]]).toEqual([200, undefined]);
  const { events } = await client.get<EventsPage>(`runs/${String(body["id"])}/events?limit=1`);
  expect(events[0]).toMatchObject({ type: "run.started", payload: { scopes: ["money", "mail"] } });
});

it("a run of a tenant is followed live, and cancelled once", async () => {
  using folder = createTempFolder();
  await using waiting = await serveWaitingRun(folder.file("ledger.sqlite"));
  const { client, runId, baseUrl } = waiting;
  const readRun = () => client.get<WorkflowDetail>(`runs/${runId}`);
  expect((await readRun()).hasEnded).toBe(false);

  const stop = new AbortController();
  const changes = readLive(baseUrl, client, { signal: stop.signal });
  expect((await changes.next()).value).toMatchObject({ event: "hello" });
  const cancelled = await client.ask(`runs/${runId}/cancel`, { body: {} });
  expect(cancelled).toMatchObject({
    status: 200,
    body: { happened: `${runId} is being cancelled, with every run that it started.` },
  });
  expect((await changes.next()).value).toMatchObject({ event: "change", data: { id: runId } });
  stop.abort();
  await waitUntilStatus(client, runId, "cancelled");
  expect((await readRun()).hasEnded).toBe(true);

  const again = await client.ask(`runs/${runId}/cancel`, { body: {} });
  expect(again.status).toBe(409);
  expect(again.body["message"]).toBe(`Run ${runId} has already ended.`);
});
