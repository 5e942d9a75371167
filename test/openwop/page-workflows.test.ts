/** Owns: what the page of `serve` does with runs of workflows. */
import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { WorkflowDetail } from "../../src/plugins/page/contract/runs.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";
import { createNode, createWorkflow } from "./levels-workflows.ts";
import { createPageClient, readLive, servePage, signIn } from "./page-scene.ts";

const TOKEN = "token-of-a-tenant";
const ASKS = createWorkflow("asks", {
  nodes: [createNode("gate", "core.approvalGate", { config: { title: "Dig?" } })],
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

it("a run of a tenant is followed live, and cancelled once", async () => {
  using folder = createTempFolder();
  await using served = await servePage(folder.file("ledger.sqlite"), {
    tokens: [{ token: TOKEN, tenant: "acme" }],
    definitions: [ASKS],
  });
  const client = createPageClient(served.baseUrl, await signIn(served.baseUrl, served.link));
  const runId = await startRun(served.baseUrl);
  const readRun = () => client.get<WorkflowDetail>(`runs/${runId}`);
  const waitUntilStatus = (status: string) =>
    waitFor(async () => (await readRun()).view.status === status, { what: `the run to be ${status}` });
  await waitUntilStatus("waiting-approval");
  expect((await readRun()).hasEnded).toBe(false);

  const stop = new AbortController();
  const changes = readLive(served.baseUrl, client, { signal: stop.signal });
  expect((await changes.next()).value).toMatchObject({ event: "hello" });
  const cancelled = await client.ask(`runs/${runId}/cancel`, { body: {} });
  expect(cancelled).toMatchObject({
    status: 200,
    body: { happened: `${runId} is being cancelled, with every run that it started.` },
  });
  expect((await changes.next()).value).toMatchObject({ event: "change", data: { id: runId } });
  stop.abort();
  await waitUntilStatus("cancelled");
  expect((await readRun()).hasEnded).toBe(true);

  const again = await client.ask(`runs/${runId}/cancel`, { body: {} });
  expect(again.status).toBe(409);
  expect(again.body["message"]).toBe(`Run ${runId} has already ended.`);
});
