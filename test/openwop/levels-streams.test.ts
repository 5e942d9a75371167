/** Owns: what the protocol's suite asserts of streams and polls of events, on workflows of this project. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { waitFor } from "../support/wait-for.ts";
import { createDelayed, createNoop, createWorkflow } from "./levels-workflows.ts";
import { openWorld, TOKEN, type Event, type Reply, type World } from "./levels-world.ts";

const DEFINITIONS = [
  createWorkflow("plain", { nodes: [createNoop("only")] }),
  createWorkflow("in-line", { nodes: [createNoop("a"), createNoop("b"), createNoop("c")] }),
  createDelayed("waits", 30_000),
];

let world: World;
beforeAll(async () => {
  world = await openWorld(DEFINITIONS);
});
afterAll(() => world.close());

async function startRunning(delayMs: number): Promise<string> {
  const runId = await world.client.start("waits", { inputs: { delayMs } });
  await world.client.until(runId, "running");
  return runId;
}

interface Frames {
  readonly text: string;
  readonly events: readonly { readonly id: string; readonly event: string; readonly data: string }[];
}

function fieldsOf(frame: string): Readonly<Record<string, string | undefined>> {
  const lines = frame.split("\n").map((line) => line.split(/: (.*)/su));
  return Object.fromEntries(lines.map(([name = "", value = ""]) => [name, value]));
}

/** A stream as it is when the host has closed it. */
async function stream(runId: string, query = "", headers: Record<string, string> = {}): Promise<Frames> {
  const response = await fetch(`${world.baseUrl}/v1/runs/${runId}/events${query}`, {
    headers: { accept: "text/event-stream", authorization: `Bearer ${TOKEN}`, ...headers },
    signal: AbortSignal.timeout(8_000),
  });
  expect(response.status).toBe(200);
  const text = await response.text();
  const events = text
    .split("\n\n")
    .map(fieldsOf)
    .flatMap(({ id = "", event = "", data }) => (data === undefined ? [] : [{ id, event, data }]));
  return { text, events };
}

describe("streams", () => {
  const listTypes = ({ events }: Frames): string[] => events.map(({ event }) => event);

  it("B-50 follow a run to its end and are closed by the host", async () => {
    const runId = await world.client.start("waits", { inputs: { delayMs: 200 } });
    const [live, late] = [await stream(runId), await stream(runId)];
    expect(listTypes(live)).toEqual(["run.started", "node.completed", "run.completed"]);
    expect(listTypes(late)).toEqual(listTypes(live));
    expect(live.events.map(({ id }) => id)).toEqual(["0", "2", "3"]);
  });

  it("B-51 in debug show every event, as the log has it", async () => {
    const { runId, events } = await world.client.run("in-line");
    const debug = await stream(runId, "?streamMode=debug");
    expect(debug.events.map(({ data }) => JSON.parse(data) as unknown)).toEqual(events);
  });

  it("B-52 in values show the state, and in messages nothing where no model spoke", async () => {
    const { runId } = await world.client.run("in-line");
    const values = await stream(runId, "?streamMode=values");
    expect(new Set(listTypes(values))).toEqual(new Set(["state.snapshot"]));
    expect((await stream(runId, "?streamMode=messages")).events).toEqual([]);
  });

  it("B-53 mixed are the union, by the events' own names", async () => {
    const { runId } = await world.client.run("plain");
    expect(listTypes(await stream(runId, "?streamMode=updates,messages"))).toContain("run.completed");
    expect(listTypes(await stream(runId, "?streamMode=updates,debug"))).toContain("node.started");
  });

  it("B-54 of a mode that is not there, or cannot be mixed, are refused with those that are", async () => {
    const { runId } = await world.client.run("plain");
    for (const mode of ["does-not-exist", "values,updates", "updates,bogus"]) {
      const { status, body } = await world.client.get(`/v1/runs/${runId}/events?streamMode=${mode}`);
      expect([status, body["error"]]).toEqual([400, "unsupported_stream_mode"]);
      expect(body["details"]).toMatchObject({ supported: ["updates", "values", "messages", "debug"] });
    }
    expect((await world.client.get(`/v1/runs/${runId}/events?bufferMs=99999`)).status).toBe(400);
  });

  it("B-55 with a buffer come in batches, the last one at once", async () => {
    const runId = await world.client.start("waits", { inputs: { delayMs: 200 } });
    const startedAt = performance.now();
    const { events } = await stream(runId, "?bufferMs=4000");
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    expect(new Set(events.map(({ event }) => event))).toEqual(new Set(["batch"]));
    const all = events.flatMap(({ data }) => JSON.parse(data) as Event[]);
    expect(all.at(-1)?.type).toBe("run.completed");
  });

  it("B-56 resume behind the last event that came, without missing or repeating one", async () => {
    const { runId, events } = await world.client.run("in-line");
    for (const { sequence } of events) {
      const { events: rest } = await stream(runId, "?streamMode=debug", {
        "last-event-id": String(sequence),
      });
      expect(rest.map(({ id }) => Number(id))).toEqual(
        events.slice(sequence + 1).map((event) => event.sequence),
      );
    }
  });

  it("B-57 have a poll beside them, whose pages are the log", async () => {
    const { runId, events } = await world.client.run("in-line");
    const poll = (query: string): Promise<Reply> => world.client.get(`/v1/runs/${runId}/events/poll${query}`);
    expect((await poll("")).body).toEqual({ events, isComplete: true });
    expect((await poll("?lastSequence=0&timeout=1")).body).toEqual({ events, isComplete: true });
    expect((await poll("?lastSequence=3&timeout=1")).body["events"]).toEqual(events.slice(4));
    expect((await poll("?lastSequence=99999&timeout=1")).body).toEqual({ events: [], isComplete: true });
  });

  it("B-58 poll as long as nothing happens, and no longer", async () => {
    const runId = await startRunning(400);
    const before = await world.client.events(runId);
    const pendingAnswer = world.client.get(
      `/v1/runs/${runId}/events/poll?lastSequence=${before.length - 1}&timeout=10`,
    );
    const { body } = await pendingAnswer;
    expect((body["events"] as Event[])[0]?.type).toBe("node.completed");
    await waitFor(async () => (await world.client.snapshot(runId)).status === "completed", {
      what: "the end",
    });
  });
});
