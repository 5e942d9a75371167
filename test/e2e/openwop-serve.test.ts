/** Owns: that runs which a served host accepted outlive it, however it ends, and are shared by all that serve one ledger. */
import { setTimeout as passed } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import {
  end,
  createLoop,
  createNode,
  createNoop,
  pause,
  work,
  createWorkflow,
} from "../openwop/levels-workflows.ts";
import { filterByType, findOnly, type Client, type Event } from "../openwop/levels-world.ts";
import { createRandom } from "../support/random.ts";
import { waitFor } from "../support/wait-for.ts";
import { SERVE_KILLS, serveStage, TOKEN, type Serve, type ServeStage } from "./openwop-stage.ts";

const gate = createNode("gate", "core.approvalGate", { config: { title: "Go on?" } });

const DEFINITIONS = [
  createWorkflow("quick", { nodes: [createNoop("only")], variables: { found: "gold" } }),
  createWorkflow("slow", { nodes: [pause("wait", 80)], variables: { found: "silver" } }),
  createWorkflow("delays", { nodes: [pause("first", 60), createNoop("between"), pause("second", 60)] }),
  createWorkflow("waits-long", { nodes: [pause("wait", 60_000)] }),
  createWorkflow("approves", { nodes: [createNoop("before"), gate, createNoop("after")] }),
  createWorkflow("calls", {
    nodes: [
      createNoop("before"),
      createNode("call", "core.subWorkflow", {
        config: { workflowId: "slow", outputMapping: { got: "found" } },
      }),
    ],
  }),
  createLoop("hands-over", {
    plan: [work(["quick", "slow"]), work(["quick"]), end()],
    dispatch: { outputMapping: { got: "found" } },
  }),
  createLoop("doubts", { plan: [work(["quick"]), work(["slow"], 0.2), end()] }),
];

/** How many children a run of each workflow has in the end. */
const CHILDREN: Readonly<Record<string, number>> = {
  quick: 0,
  slow: 0,
  delays: 0,
  approves: 0,
  "waits-long": 0,
  calls: 1,
  "hands-over": 3,
  doubts: 2,
};
const GATES: Readonly<Record<string, string>> = { approves: "gate", doubts: "boss" };
const ACCEPT = { action: "accept" };

interface AcceptedRun {
  readonly runId: string;
  readonly workflowId: string;
}

/** Starts one run of each of these workflows; those that were accepted are added to the list. */
function startAll(client: Client, workflowIds: readonly string[], accepted: AcceptedRun[]): Promise<unknown> {
  return Promise.allSettled(
    workflowIds.map(async (workflowId) => {
      accepted.push({ runId: await client.start(workflowId), workflowId });
    }),
  );
}

/** Says yes to whatever waits for people; a host that is gone meanwhile is nobody's fault. */
async function acceptAll(client: Client, runs: readonly AcceptedRun[]): Promise<void> {
  await Promise.allSettled(
    runs.map(async ({ runId, workflowId }) => {
      const gateId = GATES[workflowId];
      if (gateId !== undefined) await client.resolve(runId, gateId, ACCEPT);
    }),
  );
}

async function waitUntilAllEnded(
  client: Client,
  runs: readonly AcceptedRun[],
  timeoutMs = 60_000,
): Promise<void> {
  await waitFor(
    async () => {
      await acceptAll(client, runs);
      const snapshots = await Promise.all(runs.map(({ runId }) => client.snapshot(runId)));
      const open = snapshots.filter(({ status }) => status !== "completed");
      if (open.length > 0)
        throw new Error(JSON.stringify(open.map(({ runId, status, error }) => [runId, status, error])));
      return true;
    },
    { what: "every accepted run to complete", timeoutMs, everyMs: 100 },
  );
}

/** Every run of the ledger has ended, and has as many children as its workflow starts: none is missing, none is double. */
async function checkLedger(stage: ServeStage): Promise<void> {
  const runs = await stage.runs();
  const childrenOf = (runId: string) => runs.filter(({ summary }) => summary.parent?.runId === runId);
  for (const { runId, summary } of runs) {
    expect([runId, summary.status]).toEqual([runId, "completed"]);
    expect([summary.workflowId, childrenOf(runId).length]).toEqual([
      summary.workflowId,
      CHILDREN[summary.workflowId],
    ]);
    const log = await stage.log(runId);
    expect(log.map(({ sequence }) => sequence)).toEqual(log.map((_, index) => index));
    expect(filterByType(log, "node.dispatched")).toHaveLength(CHILDREN[summary.workflowId] ?? 0);
    const resolved = filterByType(log, "interrupt.resolved");
    expect(resolved).toHaveLength(summary.workflowId in GATES ? 1 : 0);
  }
  expect(await stage.verify()).toMatchObject({ ok: true, problems: [], exitCode: 0 });
}

const decisionsOf = (events: readonly Event[]): unknown[] =>
  filterByType(events, "runOrchestrator.decided").map(({ payload }) => payload["iteration"]);

describe("kill -9 of a host", () => {
  it(`at ${SERVE_KILLS} moments: every run that was accepted reaches its end, and no child is there twice`, async () => {
    await using stage = serveStage(DEFINITIONS);
    const next = createRandom(20_261_122);
    const accepted: AcceptedRun[] = [];
    const kinds = ["hands-over", "approves", "delays", "calls", "doubts", "quick"];
    for (let round = 0; round < SERVE_KILLS; round += 1) {
      const serve = await stage.serve();
      const moment = passed(Math.floor(next() ** 2 * 400));
      const pendingAnswer = startAll(serve.client, kinds, accepted);
      const answered = acceptAll(serve.client, [...accepted]);
      await moment;
      await serve.kill9();
      await Promise.all([pendingAnswer, answered]);
    }
    expect(accepted.length).toBeGreaterThan(SERVE_KILLS);
    const last = await stage.serve();
    const all = (await stage.runs()).map(({ runId, summary: { workflowId } }) => ({ runId, workflowId }));
    expect(all.map(({ runId }) => runId)).toEqual(expect.arrayContaining(accepted.map(({ runId }) => runId)));
    await waitUntilAllEnded(last.client, all);
    const logs = await Promise.all(accepted.map(({ runId }) => last.client.events(runId)));
    // Else the moments were none at which a kill could have harmed.
    expect(logs.filter((log) => filterByType(log, "run.resuming").length > 0).length).toBeGreaterThan(
      (SERVE_KILLS * 5) / 12,
    );
    await last.stop();
    await checkLedger(stage);
  });

  it("while a decision is held, and while it is agreed to: it is executed once, in the same iteration", async () => {
    await using stage = serveStage(DEFINITIONS);
    const next = createRandom(7);
    let serve = await stage.serve();
    const heldRuns = await Promise.all(Array.from({ length: 6 }, () => serve.client.start("doubts")));
    for (const runId of heldRuns) await serve.client.until(runId, "waiting-approval");
    await serve.kill9();
    for (const runId of heldRuns) {
      serve = await stage.serve();
      const log = await serve.client.events(runId);
      expect(decisionsOf(log)).toEqual([1]);
      const answered = serve.client.resolve(runId, "boss", ACCEPT).catch(() => undefined);
      await passed(Math.floor(next() * 30));
      await serve.kill9();
      await answered;
    }
    serve = await stage.serve();
    await waitUntilAllEnded(
      serve.client,
      heldRuns.map((runId) => ({ runId, workflowId: "doubts" })),
    );
    for (const runId of heldRuns) {
      const log = await serve.client.events(runId);
      expect(decisionsOf(log)).toEqual([1, 2, 3]);
      expect(filterByType(log, "core.workflowChain.confidence-escalated")).toHaveLength(1);
      const began = filterByType(log, "core.workflowChain.event").filter(
        ({ payload }) => payload["phase"] === "dispatch.began" && payload["workerId"] === "slow",
      );
      expect(began).toHaveLength(1);
      expect(began[0]?.sequence).toBeGreaterThan(findOnly(log, "interrupt.resolved").sequence);
    }
    await serve.stop();
    await checkLedger(stage);
  });

  it("whose children are on another one: each is created there once, and its end comes back", async () => {
    await using there = serveStage(DEFINITIONS);
    await using here = serveStage([createLoop("hands-far", { plan: [work(["slow"]), end()] })]);
    const { baseUrl: peerUrl } = await there.serve();
    const options = ["--allow-private", peerUrl, "--peer-token", `${peerUrl}=${TOKEN}`];
    const next = createRandom(40);
    const accepted: AcceptedRun[] = [];
    for (let round = 0; round < 8; round += 1) {
      const serve = await here.serve(options);
      const pendingAnswer = Promise.allSettled(
        Array.from({ length: 3 }, async () => {
          const runId = await serve.client.start("hands-far", { inputs: { peerUrl } });
          accepted.push({ runId, workflowId: "hands-far" });
        }),
      );
      await passed(Math.floor(next() * 250));
      await serve.kill9();
      await pendingAnswer;
    }
    const last = await here.serve(options);
    const all = await here.runs();
    await waitUntilAllEnded(
      last.client,
      all.map(({ runId }) => ({ runId, workflowId: "hands-far" })),
    );
    const children = await there.runs();
    for (const { runId } of all) {
      const ownChildren = children.filter(({ summary }) => summary.parent?.runId === runId);
      expect(ownChildren.map(({ summary }) => summary.status)).toEqual(["completed"]);
      const log = await last.client.events(runId);
      expect(findOnly(log, "node.dispatched").payload["childRunId"]).toBe(ownChildren[0]?.runId);
      expect(filterByType(log, "core.workflowChain.event").map(({ payload }) => payload["phase"])).toEqual([
        "dispatch.began",
        "dispatch.succeeded",
        "child.completed",
      ]);
    }
    expect(await here.verify()).toMatchObject({ ok: true, problems: [] });
    expect(await there.verify()).toMatchObject({ ok: true, problems: [] });
  });

  it("leaves a delay its time: what was over meanwhile is over at once", async () => {
    await using stage = serveStage(DEFINITIONS);
    const first = await stage.serve();
    const runId = await first.client.start("delays");
    await first.kill9();
    const second = await stage.serve();
    await second.client.until(runId, "completed");
    const log = await second.client.events(runId);
    expect(filterByType(log, "node.started").map(({ nodeId }) => nodeId)).toEqual([
      "first",
      "between",
      "second",
    ]);
    await second.stop();
    await checkLedger(stage);
  });
});

/** The ids and events of a stream, when the host has closed it. */
async function followRun({ baseUrl }: Serve, runId: string): Promise<Event[]> {
  const response = await fetch(`${baseUrl}/v1/runs/${runId}/events?streamMode=debug`, {
    headers: { accept: "text/event-stream", authorization: `Bearer ${TOKEN}` },
    signal: AbortSignal.timeout(30_000),
  });
  expect(response.status).toBe(200);
  const frames = (await response.text()).split("\n\n");
  return frames.flatMap((frame) => {
    const data = /^data: (.*)$/mu.exec(frame)?.[1];
    return data === undefined ? [] : [JSON.parse(data) as Event];
  });
}

describe("two hosts on one ledger", () => {
  const KINDS = ["hands-over", "approves", "delays", "calls", "doubts", "quick"];

  it("share every run: each is followed, and answered, at the other one, without a gap in its log", async () => {
    await using stage = serveStage(DEFINITIONS);
    const hosts = await Promise.all([stage.serve(), stage.serve()]);
    const following: Promise<readonly [runId: string, events: Event[]]>[] = [];
    const runs: AcceptedRun[] = [];
    for (const [index, { client }] of hosts.entries()) {
      const other = hosts[1 - index] ?? expect.fail("there are two");
      for (const workflowId of [...KINDS, ...KINDS]) {
        const runId = await client.start(workflowId);
        runs.push({ runId, workflowId });
        following.push(followRun(other, runId).then((events) => [runId, events] as const));
        const gateId = GATES[workflowId];
        if (gateId === undefined) continue;
        await other.client.until(runId, "waiting-approval");
        expect((await other.client.resolve(runId, gateId, ACCEPT)).status).toBe(200);
      }
    }
    for (const [runId, events] of await Promise.all(following)) {
      expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
      expect(events.at(-1)?.type).toBe("run.completed");
      for (const { client } of hosts) expect(await client.events(runId)).toEqual(events);
    }
    for (const { client } of hosts) await waitUntilAllEnded(client, runs, 5_000);
    for (const host of hosts) await host.stop();
    await checkLedger(stage);
  });

  it("tell at each what was done at the other: a cancel, a pause, a resumption", async () => {
    await using stage = serveStage(DEFINITIONS);
    const [one, two] = await Promise.all([stage.serve(), stage.serve()]);
    const cancelled = await one.client.start("waits-long");
    const stream = followRun(one, cancelled);
    await two.client.until(cancelled, "running");
    expect((await two.client.post(`/v1/runs/${cancelled}/cancel`)).status).toBe(200);
    await one.client.until(cancelled, "cancelled");
    expect((await stream).at(-1)?.type).toBe("run.cancelled");
    const paused = await one.client.start("waits-long");
    const pausing = await two.client.post(`/v1/runs/${paused}:pause`, { drainPolicy: "immediate" });
    expect(pausing.status).toBe(202);
    await one.client.until(paused, "paused");
    expect((await one.client.post(`/v1/runs/${paused}:resume`)).status).toBe(202);
    await two.client.until(paused, "running");
    await one.client.post(`/v1/runs/${paused}/cancel`);
    await two.client.until(paused, "cancelled");
  });

  it("cancel the children of a run that the other one drives", async () => {
    await using stage = serveStage([
      ...DEFINITIONS,
      createWorkflow("calls-long", {
        nodes: [createNode("call", "core.subWorkflow", { config: { workflowId: "waits-long" } })],
      }),
    ]);
    const [one, two] = await Promise.all([stage.serve(), stage.serve()]);
    const runId = await one.client.start("calls-long");
    const child = await waitFor(
      async () => findOnly(await two.client.events(runId), "node.dispatched").payload["childRunId"],
      { what: "the child" },
    );
    await two.client.post(`/v1/runs/${runId}/cancel`);
    for (const { client } of [one, two])
      for (const id of [runId, String(child)]) await client.until(id, "cancelled");
  });

  it("outlive one another: when one is killed, the other goes on with its runs within 20 seconds", async () => {
    await using stage = serveStage(DEFINITIONS);
    const [one, two] = await Promise.all([stage.serve(), stage.serve()]);
    const accepted: AcceptedRun[] = [];
    await startAll(one.client, KINDS, accepted);
    await startAll(two.client, KINDS, accepted);
    expect(accepted).toHaveLength(2 * KINDS.length);
    await one.kill9();
    await waitUntilAllEnded(two.client, accepted, 20_000);
    await two.stop();
    await checkLedger(stage);
  });
});
