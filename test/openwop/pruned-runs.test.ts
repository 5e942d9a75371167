/** Owns: that a host shows nothing of a run that was removed from its ledger while the host has the run in memory. */
import { expect, it } from "vitest";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import { pruneLedger } from "../../src/agents/coordination/runtime/prune-ledger.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";
import { createNode, createNoop, createWorkflow } from "./levels-workflows.ts";
import { servePage, type ServedPage } from "./page-scene.ts";

const TOKEN = "token-of-a-tenant";
const GATED = createWorkflow("gated", { nodes: [createNode("gate", "core.approvalGate")] });
const SURVEY = createWorkflow("survey", { nodes: [createNoop("look")] });

it("a run that was pruned is not found by any request, whoever still has it in memory", async () => {
  using folder = createTempFolder();
  const ledger = folder.file("ledger.sqlite");
  await using served = await servePage(ledger, {
    tokens: [{ token: TOKEN, tenant: "acme" }],
    definitions: [SURVEY],
  });
  const ask = (path: string, body?: object): Promise<Response> =>
    fetch(`${served.baseUrl}/v1/runs${path}`, {
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
      ...(body && { method: "POST", body: JSON.stringify(body) }),
    });
  const runToEnd = async (): Promise<string> => {
    const { runId } = (await (await ask("", { workflowId: SURVEY.id })).json()) as { runId: string };
    const hasEnded = async (): Promise<boolean> =>
      ((await (await ask(`/${runId}`)).json()) as { status: string }).status === "completed";
    await waitFor(hasEnded, { what: "the run to end" });
    return runId;
  };
  const pruned = await runToEnd();
  const newest = await runToEnd();
  const store = await openTestLedger(ledger);
  await pruneLedger(store, { beforeMs: (Date.now() + 60_000) as EpochMs, isDryRun: false });
  await store.close();

  const statusOf = async (path: string, body?: object): Promise<number> => (await ask(path, body)).status;
  expect(await statusOf(`/${newest}`)).toBe(200);
  expect(await statusOf(`/${pruned}/events`)).toBe(404);
  expect(await statusOf(`/${pruned}`)).toBe(404);
  expect(await statusOf(`/${pruned}/cancel`, {})).toBe(404);
});

it("a run that a process answered, and another one ended, is not found after it was pruned", async () => {
  using folder = createTempFolder();
  const ledger = folder.file("ledger.sqlite");
  const serve = (): ReturnType<typeof servePage> =>
    servePage(ledger, { tokens: [{ token: TOKEN, tenant: "acme" }], definitions: [GATED] });
  await using driver = await serve();
  await using other = await serve();
  const ask = ({ baseUrl }: ServedPage, path: string, body?: object): Promise<Response> =>
    fetch(`${baseUrl}/v1/runs${path}`, {
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
      ...(body && { method: "POST", body: JSON.stringify(body) }),
    });
  const begin = async (): Promise<string> =>
    ((await (await ask(driver, "", { workflowId: GATED.id })).json()) as { runId: string }).runId;
  const isWaiting = async (runId: string): Promise<boolean> =>
    ((await (await ask(driver, `/${runId}`)).json()) as { status: string }).status === "waiting-approval";

  const pruned = await begin();
  await waitFor(() => isWaiting(pruned), { what: "the run to wait" });
  const answer = { resumeValue: { action: "accept" } };
  expect((await ask(other, `/${pruned}/interrupts/gate`, answer)).status).toBe(200);
  await waitFor(async () => !(await isWaiting(pruned)), { what: "the run to end" });
  // The newest run is kept.
  await begin();
  const store = await openTestLedger(ledger);
  const prune = async (): Promise<boolean> =>
    (await pruneLedger(store, { beforeMs: (Date.now() + 60_000) as EpochMs, isDryRun: false })).runs === 1;
  await waitFor(prune, { what: "the run to be pruned" });
  await store.close();
  expect((await ask(other, `/${pruned}`)).status).toBe(404);
  expect((await ask(driver, `/${pruned}`)).status).toBe(404);
});
