/** Owns: level 3 over loopback: a run of host A has children on host B, each host with a ledger of its own. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serve } from "../contract/outbound-scene.ts";
import { waitFor } from "../support/wait-for.ts";
import { findSchemaProblems } from "./levels-schemas.ts";
import { end, createLoop, createNode, work, createWorkflow, WORKERS } from "./levels-workflows.ts";
import {
  childOf,
  clientOf,
  filterByType,
  findOnly,
  openWorld,
  phasesOf,
  type Event,
  type World,
} from "./levels-world.ts";

const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACEPARENT = `00-${TRACE_ID}-00f067aa0ba902b7-01`;
const B_TOKEN = "the-token-that-only-b-knows";
const MAPPED = { outputMapping: { treasure: "found" } };

const ON_A = [
  createLoop("far", { plan: [work(["worker-good"]), end()], dispatch: MAPPED }),
  createLoop("far-bad", { plan: [work(["worker-bad"]), end()], dispatch: MAPPED }),
  createLoop("far-slow", { plan: [work(["worker-slow"]), end()] }),
  createLoop("far-gated", { plan: [work(["worker-gated"]), end()], dispatch: MAPPED }),
  createLoop("far-unknown", { plan: [work(["worker-nobody"]), end()] }),
  createWorkflow("far-call", {
    nodes: [
      createNode("call", "core.subWorkflow", {
        config: { workflowId: "worker-good", outputMapping: { treasure: "found" } },
      }),
    ],
  }),
];
const ON_B = [...WORKERS, createLoop("worker-chief", { plan: [work(["worker-good"]), end()] })];

let a: World;
let b: World;
beforeAll(async () => {
  b = await openWorld(ON_B, { tokens: [{ tenant: "miners", token: B_TOKEN }] });
  a = await openWorld(
    [...WORKERS, ...ON_A, createLoop("far-chief", { plan: [work(["worker-chief"]), end()] })],
    {
      privateOrigins: [b.baseUrl],
      peerTokens: { [b.baseUrl]: B_TOKEN },
    },
  );
});
afterAll(async () => {
  await a.close();
  await b.close();
});

const onB = () => clientOf(b.baseUrl, B_TOKEN);
const createPeerInputs = () => ({ inputs: { peerUrl: b.baseUrl } });

interface RunPair {
  readonly runId: string;
  readonly events: readonly Event[];
  readonly childRunId: string;
  readonly childEvents: readonly Event[];
}

async function runBoth(workflowId: string, headers: Record<string, string> = {}): Promise<RunPair> {
  const { runId, events } = await a.client.run(workflowId, { ...createPeerInputs(), headers });
  const childRunId = childOf(events);
  return { runId, events, childRunId, childEvents: await onB().events(childRunId) };
}

/** A run of A whose child on B is under way. */
async function startUnderWay(
  workflowId: string,
): Promise<{ readonly runId: string; readonly childRunId: string }> {
  const runId = await a.client.start(workflowId, createPeerInputs());
  const childRunId = await waitFor(async () => childOf(await a.client.events(runId)), {
    what: "the child on B",
    everyMs: 20,
  });
  return { runId, childRunId };
}

async function hostIdOf({ client }: World): Promise<unknown> {
  const { body } = await client.get("/.well-known/openwop");
  const { executionModel } = body["multiAgent"] as { executionModel: Record<string, unknown> };
  return (executionModel["crossHostCausation"] as { hostId: unknown }).hostId;
}

describe("a child on another host", () => {
  it("L3-01 is dispatched, runs there with the mapped inputs, and brings its outputs back", async () => {
    const { events, childRunId, runId } = await runBoth("far");
    expect(phasesOf(events)).toEqual([
      "dispatch.began",
      "dispatch.succeeded",
      "child.completed",
      "output.harvested",
    ]);
    expect((await a.client.snapshot(runId)).variables["treasure"]).toBe("gold");
    expect((await onB().snapshot(childRunId)).status).toBe("completed");
    expect((await a.client.get(`/v1/runs/${childRunId}`)).status).toBe(404);
  });

  it("L3-02 says in run.started which event of which host caused it", async () => {
    for (const workflowId of ["far", "far-call"]) {
      const { events, childEvents } = await runBoth(workflowId);
      const started = findOnly(childEvents, "run.started");
      expect(started.payload["causationHostId"]).toBe(await hostIdOf(a));
      const cause = events.find(({ eventId }) => eventId === started.causationId);
      expect(cause?.type).toBe(workflowId === "far" ? "core.workflowChain.event" : "node.started");
    }
  });

  it("L3-03 names that host in no event whose cause is on the same one", async () => {
    for (const workflowId of ["far", "far-call", "far-bad", "far-chief"]) {
      const { events, childEvents } = await runBoth(workflowId);
      const foreign = [...events, ...childEvents].filter(({ payload }) => "causationHostId" in payload);
      expect(foreign).toEqual([findOnly(childEvents, "run.started")]);
      for (const log of [events, childEvents]) {
        const knownIds = new Set(log.map(({ eventId }) => eventId));
        const caused = log.filter(({ causationId, type }) => causationId && type !== "run.started");
        for (const { causationId = "" } of caused) expect(knownIds).toContain(causationId);
      }
    }
  });

  it("L3-04 has ancestry on both ends: A's run at the top, B's run below it", async () => {
    const { runId, childRunId } = await runBoth("far");
    const top = await a.client.get(`/v1/runs/${runId}/ancestry`);
    expect(top.body).toEqual({ runId, hostId: await hostIdOf(a), parent: null });
    const below = await onB().get(`/v1/runs/${childRunId}/ancestry`);
    expect(below.body).toEqual({
      runId: childRunId,
      hostId: await hostIdOf(b),
      parent: {
        runId,
        hostId: await hostIdOf(a),
        cause: "core.dispatch",
        wellKnownUrl: `${a.baseUrl}/.well-known/openwop`,
      },
    });
    for (const { status, body } of [top, below]) {
      expect(status).toBe(200);
      expect(findSchemaProblems("run-ancestry-response", body)).toEqual([]);
    }
  });

  it("L3-05 leads a client that follows the ancestry from B back to A", async () => {
    const { childRunId, runId } = await runBoth("far-call");
    const { body } = await onB().get(`/v1/runs/${childRunId}/ancestry`);
    const parent = body["parent"] as { wellKnownUrl: string; hostId: string; runId: string; cause: string };
    expect(parent.cause).toBe("core.subWorkflow");
    const wellKnown = (await (await fetch(parent.wellKnownUrl)).json()) as Record<string, unknown>;
    expect(wellKnown["multiAgent"]).toMatchObject({
      executionModel: { crossHostCausation: { hostId: parent.hostId } },
    });
    expect(parent.runId).toBe(runId);
    expect((await a.client.snapshot(parent.runId)).status).toBe("completed");
  });

  it("L3-06 tells only the immediate parent, one hop at a time", async () => {
    const { childRunId, childEvents } = await runBoth("far-chief");
    const grandchild = childOf(childEvents);
    const { body } = await onB().get(`/v1/runs/${grandchild}/ancestry`);
    expect(body["parent"]).toEqual({ runId: childRunId, hostId: await hostIdOf(b), cause: "core.dispatch" });
  });

  it("L3-07 is in the trace of the request that started A's run, below a span of A's", async () => {
    const { events, childEvents } = await runBoth("far", {
      traceparent: TRACEPARENT,
      tracestate: "vendor=1",
    });
    expect(findOnly(events, "run.started").payload["traceparent"]).toBe(TRACEPARENT);
    const { traceparent, tracestate } = findOnly(childEvents, "run.started").payload;
    expect(traceparent).toMatch(new RegExp(`^00-${TRACE_ID}-[0-9a-f]{16}-01$`, "u"));
    expect(traceparent).not.toBe(TRACEPARENT);
    expect(tracestate).toBe("vendor=1");
  });

  it("L3-08 fails where B's run fails, with B's error", async () => {
    const { events, runId } = await runBoth("far-bad");
    const [, , failed] = filterByType(events, "core.workflowChain.event");
    expect(failed?.payload).toMatchObject({ phase: "child.failed", error: { code: "mine_flooded" } });
    expect((await a.client.snapshot(runId)).status).toBe("completed");
  });

  it("L3-09 is not there where B refuses: dispatch.failed, and the supervisor decides again", async () => {
    const { snapshot, events } = await a.client.run("far-unknown", createPeerInputs());
    expect(snapshot.status).toBe("completed");
    expect(phasesOf(events)).toEqual(["dispatch.began", "dispatch.failed"]);
    const [, failed] = filterByType(events, "core.workflowChain.event");
    expect(failed?.payload["error"]).toMatchObject({ code: "validation_error" });
  });

  it("L3-10 is not there either where A has no token for B, or may not reach it", async () => {
    const lonely = await openWorld(ON_A, { privateOrigins: [b.baseUrl], peers: [b.baseUrl] });
    const shut = await openWorld(ON_A);
    for (const [world, code] of [
      [lonely, "unauthenticated"],
      [shut, "address_not_allowed"],
    ] as const) {
      const { events } = await world.client.run("far", createPeerInputs());
      expect(phasesOf(events)).toEqual(["dispatch.began", "dispatch.failed"]);
      const [, failed] = filterByType(events, "core.workflowChain.event");
      expect(failed?.payload["error"]).toMatchObject({ code });
      await world.close();
    }
  });

  it("L3-11 is waited for while people on B are", async () => {
    const { runId, childRunId } = await startUnderWay("far-gated");
    await onB().until(childRunId, "waiting-approval");
    expect((await a.client.snapshot(runId)).status).toBe("running");
    await onB().resolve(childRunId, "gate", { action: "accept" });
    expect((await a.client.until(runId, "completed")).variables["treasure"]).toBe("buried");
  });

  it("L3-12 is cancelled with A's run", async () => {
    const { runId, childRunId } = await startUnderWay("far-slow");
    expect((await a.client.post(`/v1/runs/${runId}/cancel`)).status).toBe(200);
    await onB().until(childRunId, "cancelled");
    const cancelled = findOnly(await onB().events(childRunId), "run.cancelled");
    expect(cancelled.payload["reason"]).toBe("parent-cancelled");
  });

  it("L3-13 tells A that it was cancelled on B", async () => {
    const { runId, childRunId } = await startUnderWay("far-slow");
    await onB().post(`/v1/runs/${childRunId}/cancel`);
    await a.client.until(runId, "completed");
    expect(phasesOf(await a.client.events(runId))).toEqual([
      "dispatch.began",
      "dispatch.succeeded",
      "child.cancelled",
    ]);
  });

  it("L3-14 outlives a stop of A, which finds it again", async () => {
    const { runId, childRunId } = await startUnderWay("far-gated");
    await onB().until(childRunId, "waiting-approval");
    await a.stop();
    for (let looks = 0; looks < 10; looks += 1)
      expect((await onB().snapshot(childRunId)).status).toBe("waiting-approval");
    expect((await onB().resolve(childRunId, "gate", { action: "accept" })).status).toBe(200);
    await onB().until(childRunId, "completed");
    await a.restart();
    expect((await a.client.until(runId, "completed")).variables["treasure"]).toBe("buried");
    expect(filterByType(await a.client.events(runId), "node.dispatched")).toHaveLength(1);
  });

  it("L3-15 outlives a stop of B, while A waits", async () => {
    const { runId, childRunId } = await startUnderWay("far-gated");
    await onB().until(childRunId, "waiting-approval");
    await b.stop();
    expect((await a.client.snapshot(runId)).status).toBe("running");
    await b.restart();
    await onB().resolve(childRunId, "gate", { action: "accept" });
    await a.client.until(runId, "completed");
    expect(phasesOf(await a.client.events(runId)).at(-1)).toBe("output.harvested");
  });

  it("L3-16 is cancelled also where A's run was cancelled while B was still creating it", async () => {
    const holders: (() => void)[] = [];
    const { url, received } = await serve((response, { method, path, headers, body }) => {
      const forward = async (): Promise<void> => {
        const sent = Object.entries(headers).filter(([name]) => !["host", "connection"].includes(name));
        const reply = await fetch(`${b.baseUrl}${path}`, {
          method,
          headers: Object.fromEntries(sent.map(([name, value]) => [name, String(value)])),
          ...(method === "POST" && { body }),
        });
        response.writeHead(reply.status, { "content-type": "application/json" }).end(await reply.text());
      };
      if (method === "POST" && path === "/v1/runs") holders.push(() => void forward());
      else void forward();
    });
    const impatient = await openWorld(ON_A, { privateOrigins: [url], peerTokens: { [url]: B_TOKEN } });
    const runId = await impatient.client.start("far-slow", { inputs: { peerUrl: url } });
    const create = await waitFor(() => holders[0], { what: "the creation on B", everyMs: 10 });
    await impatient.client.post(`/v1/runs/${runId}/cancel`);
    await impatient.client.until(runId, "cancelled");
    create();
    const cancelled = await waitFor(() => received.find(({ path }) => path.endsWith("/cancel")), {
      what: "the cancellation on B",
    });
    const childRunId = cancelled.path.split("/")[3] ?? "";
    await onB().until(childRunId, "cancelled");
    await impatient.close();
  });
});
