/** Owns: agents, runs and processes that go on after their end, and owners that were given up (ASI10). */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { createPlanAccess } from "../../../src/plugins/openclaw/runtime-access/plan-access.ts";
import { createPlanMethods } from "../../../src/plugins/openclaw/plans/plan-methods.ts";
import { createPlanTools } from "../../../src/plugins/openclaw/plans/plan-tools.ts";
import { createCoordinationAuthor } from "../../contract/run-store-written.ts";
import { createNode, createWorkflow } from "../../openwop/levels-workflows.ts";
import { createTempFolder, openTestLedger } from "../../support/temp-ledger.ts";
import { waitFor } from "../../support/wait-for.ts";
import { CHILD, GRANDCHILD, openAttackedPlugin, OWNER, type AttackedPlugin } from "./plugin-scene.ts";
import { openAttackedHost, WORKFLOWS, type AttackedHost } from "./serve-scene.ts";

let host: AttackedHost;
let plugin: AttackedPlugin | undefined;

beforeAll(async () => {
  host = await openAttackedHost({
    definitions: [
      ...WORKFLOWS,
      createWorkflow("family", {
        nodes: [createNode("sub", "core.subWorkflow", { config: { workflowId: "gated" } })],
      }),
    ],
  });
});
afterAll(() => host[Symbol.asyncDispose]());
afterEach(async () => {
  await plugin?.[Symbol.asyncDispose]();
  plugin = undefined;
});

const ACCEPT = { resumeValue: { action: "accept" } };

async function cancelRun(runId: string): Promise<void> {
  expect((await host.miner.post(`/v1/runs/${runId}/cancel`, {})).status).toBe(200);
  await host.miner.until(runId, "cancelled");
}

async function startGated(): Promise<{ readonly runId: string; readonly token: string }> {
  const runId = await host.miner.start("gated");
  const { interrupt } = await host.miner.until(runId, "waiting-approval");
  return { runId, token: interrupt?.interruptToken ?? expect.fail("the question has no token") };
}

it("ASI10-1 a signed yes that comes after its run was cancelled", async () => {
  const { runId, token } = await startGated();
  await cancelRun(runId);
  const events = (await host.miner.events(runId)).length;
  const answer = await host.send(`/v1/interrupts/${token}`, { method: "POST", token: "", body: ACCEPT });
  expect([404, 409, 410]).toContain(answer.status);
  expect(await host.miner.events(runId)).toHaveLength(events);
});

it("ASI10-2 orders to a run that has ended: answer, resume, pause, cancel once more", async () => {
  const { runId } = await startGated();
  await cancelRun(runId);
  const events = (await host.miner.events(runId)).length;
  expect((await host.miner.resolve(runId, "gate", { action: "accept" })).status).toBeGreaterThanOrEqual(400);
  for (const order of [":resume", ":pause", "/cancel"])
    await host.miner.post(`/v1/runs/${runId}${order}`, {});
  expect((await host.miner.snapshot(runId)).status).toBe("cancelled");
  expect(await host.miner.events(runId)).toHaveLength(events);
});

it("ASI10-3 a child that goes on after the run that began it was cancelled", async () => {
  const runId = await host.miner.start("family");
  const { childRuns } = await host.miner
    .until(runId, "waiting-approval", "waiting-child", "running")
    .then(() => host.miner.snapshot(runId));
  const child = childRuns?.[0]?.runId ?? expect.fail("there is no child");
  const { interrupt } = await host.miner.until(child, "waiting-approval");
  await cancelRun(runId);
  await host.miner.until(child, "cancelled");
  const token = interrupt?.interruptToken ?? expect.fail("the question has no token");
  const answer = await host.send(`/v1/interrupts/${token}`, { method: "POST", token: "", body: ACCEPT });
  expect([404, 409, 410]).toContain(answer.status);
  expect((await host.miner.snapshot(child)).status).toBe("cancelled");
});

it("ASI10-4 a cancelled run that is begun again by the same request", async () => {
  const headers = { "idempotency-key": "order-cancelled" };
  const first = await host.miner.post("/v1/runs", { workflowId: "slow" }, headers);
  await cancelRun(String(first.body["runId"]));
  const second = await host.miner.post("/v1/runs", { workflowId: "slow" }, headers);
  expect(second.body["runId"]).toBe(first.body["runId"]);
  expect((await host.miner.snapshot(String(first.body["runId"]))).status).toBe("cancelled");
});

async function openCancelled(): Promise<{ readonly coordinationId: string; readonly scene: AttackedPlugin }> {
  const scene = await openAttackedPlugin({ settleMs: 0 });
  plugin = scene;
  await scene.spawn(OWNER, CHILD, {});
  const [created] = await scene.readEvents("coordination.created");
  const coordinationId = created?.runId ?? expect.fail("nothing was coordinated");
  const methods = createPlanMethods(createPlanAccess(scene.host.api));
  expect(await methods("coordination.cancel", { coordinationId })).toMatchObject({ ok: true });
  return { coordinationId, scene };
}

const endChild = (scene: AttackedPlugin, outcome: string): Promise<void> =>
  scene.handlers.subagentEnded({
    targetSessionKey: CHILD,
    targetKind: "subagent",
    reason: "done",
    runId: `run of ${CHILD}`,
    outcome,
  } as never);

it("ASI10-5 a cancelled coordination whose child ends well after all, and then reports a result", async () => {
  const { scene } = await openCancelled();
  await endChild(scene, "ok");
  const terminal = await waitFor(async () => (await scene.readEvents("coordination.terminal"))[0], {
    what: "the end of the coordination",
  });
  expect(terminal.payload).toMatchObject({ status: "cancelled" });
  const callTool = createPlanTools(createPlanAccess(scene.host.api), () => true);
  const report = { outcome: "completed", outputs: { found: "gold" } };
  expect(await callTool("coordination_report", { sessionKey: CHILD }, report)).not.toMatchObject({
    status: "recorded",
  });
  expect(await scene.readEvents("step.reported")).toEqual([]);
  expect(await scene.readEvents("coordination.terminal")).toHaveLength(1);
});

it("ASI10-6 a child of cancelled work that begins children of its own", async () => {
  const { scene } = await openCancelled();
  expect(await scene.spawn(CHILD, GRANDCHILD, {})).toMatch(/was cancelled/u);
  expect(await scene.readEvents("coordination.created")).toHaveLength(1);
  expect(await scene.readEvents("step.admitted")).toHaveLength(1);
});

it("ASI10-7 a child that ends twice, the second time otherwise", async () => {
  const scene = await openAttackedPlugin();
  plugin = scene;
  await scene.spawn(OWNER, CHILD, {});
  await endChild(scene, "error");
  await endChild(scene, "ok");
  expect(await scene.readEvents("step.failed")).toHaveLength(1);
  expect(await scene.readEvents("step.completed")).toEqual([]);
});

it("ASI10-8 a process that was given up and writes on with the token that it had", async () => {
  using folder = createTempFolder();
  const [old, next] = [
    await openTestLedger(folder.file("l.sqlite")),
    await openTestLedger(folder.file("l.sqlite")),
  ];
  const author = createCoordinationAuthor("zombie");
  const runId = author.runId;
  await old.owners.beat({ id: "old" });
  await old.append({ ...author.begin, owner: { id: "old", token: 1 } });
  await next.owners.beat({ id: "next" });
  expect(await next.owners.take({ owner: "next", from: ["old"], limit: 9 })).toMatchObject([
    { runId, token: 2 },
  ]);
  for (const owner of [
    { id: "old", token: 1 },
    { id: "old", token: 2 },
    { id: "next", token: 1 },
    { id: "next", token: 3 },
  ])
    await expect(old.append({ ...author.propose(), owner })).rejects.toMatchObject({ code: "NOT_OWNER" });
  expect(await next.read(runId, { from: 0, limit: 9 })).toHaveLength(author.begin.events.length);
  await old.close();
  await next.close();
});

it("ASI10-9 the heartbeat of a process that was given up", async () => {
  using folder = createTempFolder();
  const ledger = await openTestLedger(folder.file("l.sqlite"));
  const { begin, runId } = createCoordinationAuthor("zombie");
  await ledger.owners.beat({ id: "old" });
  await ledger.append({ ...begin, owner: { id: "old", token: 1 } });
  await ledger.owners.remove("old");
  await ledger.owners.beat({ id: "next" });
  await ledger.owners.take({ owner: "next", from: [], limit: 9 });
  await ledger.owners.beat({ id: "old" });
  expect(await ledger.owners.take({ owner: "old", from: [], limit: 9 })).toEqual([]);
  expect((await ledger.owners.ownersOf([runId])).get(runId)).toEqual({ id: "next", token: 2 });
  await ledger.close();
});

it("ASI10-10 a claim of a child that has ended, against the next one that writes", async () => {
  const scene = await openAttackedPlugin();
  plugin = scene;
  await scene.spawn(OWNER, CHILD, {});
  expect(await scene.call(CHILD, "write", { path: "a.txt", content: "x" })).toBeUndefined();
  await endChild(scene, "ok");
  expect(await scene.spawn(OWNER, GRANDCHILD, {})).toBeUndefined();
  expect(await scene.call(GRANDCHILD, "write", { path: "a.txt", content: "x" })).toBeUndefined();
  expect(await scene.call(CHILD, "write", { path: "a.txt", content: "late" })).toMatch(/ended|holds|held/u);
});
