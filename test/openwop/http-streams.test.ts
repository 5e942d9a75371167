import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { BEARER, createFakeFace, type ErrorBody, type FakeFace } from "./http-fake-host.ts";

interface Frame {
  readonly id: number;
  readonly event: string;
  readonly data: unknown;
}

interface Client {
  readonly status: number;
  readonly frames: Frame[];
  comments: number;
  closed: boolean;
  /** Goes away, with whatever has not been read. */
  leave(): Promise<void>;
}

/** Reads what comes, as fast as it comes. */
async function connect(face: FakeFace, query = "", lastEventId?: number): Promise<Client> {
  const resume = lastEventId === undefined ? {} : { "last-event-id": String(lastEventId) };
  const headers = { ...BEARER, accept: "text/event-stream", ...resume };
  const response = await face.app.request(`/v1/runs/run-1/events${query}`, { headers });
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const client: Client = {
    status: response.status,
    frames: [],
    comments: 0,
    closed: false,
    leave: async () => {
      await reader.cancel();
    },
  };
  const decoder = new TextDecoder();
  let text = "";
  const read = async (): Promise<void> => {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      text += decoder.decode(chunk.value, { stream: true });
      const blocks = text.split("\n\n");
      text = blocks.pop()!;
      for (const block of blocks) take(client, block);
    }
    client.closed = true;
  };
  void read();
  await waitUntilSettled();
  return client;
}

function take(client: Client, block: string): void {
  if (block.startsWith(":")) client.comments += 1;
  else {
    const [id, event, data, ...rest] = block.split("\n");
    expect([id?.slice(0, 4), event?.slice(0, 7), data?.slice(0, 6), rest]).toEqual([
      ...["id: ", "event: ", "data: "],
      [],
    ]);
    client.frames.push({
      id: Number(id!.slice(4)),
      event: event!.slice(7),
      data: JSON.parse(data!.slice(6)),
    });
  }
}

const listSequences = ({ frames }: Client): number[] =>
  frames.flatMap(({ event, data }) =>
    event === "batch"
      ? (data as { sequence: number }[]).map(({ sequence }) => sequence)
      : [(data as { sequence: number }).sequence],
  );

function end(face: FakeFace): void {
  face.host.runs.get("run-1")!.status = "completed";
  face.host.append("run-1", "run.completed");
}

/** After so many turns of what is ready to run on. */
async function callLater(turns: number, run: () => void): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
  run();
}

function expectNothingLeft(face: FakeFace): void {
  expect([face.app.openStreams(), face.host.watching(), face.clock.pending]).toEqual([0, 0, 0]);
}

describe("a stream", () => {
  it("shows what was, then what comes, and closes when the run has ended", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    const client = await connect(face);
    expect(client.frames).toEqual([
      { id: 0, event: "run.started", data: face.host.runs.get("run-1")!.events[0] },
    ]);
    face.host.append("run-1", "node.started", { nodeId: "n" });
    face.host.append("run-1", "node.completed", { nodeId: "n", outputs: { text: "a\nb\r\n\ndata: x" } });
    await waitUntilSettled();
    expect(client.frames.map(({ id, event }) => [id, event])).toEqual([
      [0, "run.started"],
      [2, "node.completed"],
    ]);
    expect(client.closed).toBe(false);
    end(face);
    await waitUntilSettled();
    expect([client.frames.at(-1)?.event, client.closed]).toEqual(["run.completed", true]);
    expectNothingLeft(face);
  });

  it("shows all of a run that has ended before, and nothing after its last event", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    for (let turn = 0; turn < 300; turn += 1) face.host.append("run-1", "node.completed");
    end(face);
    const client = await connect(face);
    await waitUntilSettled();
    expect([listSequences(client), client.closed]).toEqual([
      Array.from({ length: 302 }, (_, index) => index),
      true,
    ]);
    const late = await connect(face, "", 301);
    expect([late.status, late.frames, late.closed]).toEqual([200, [], true]);
    expectNothingLeft(face);
  });

  it("shows what each mode admits", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    for (const type of [
      "node.started",
      "variable.changed",
      "node.dispatched",
      "ai.message.chunk",
      "vendor.event",
    ])
      face.host.append("run-1", type);
    end(face);
    const listTypes = async (query: string): Promise<string[]> =>
      (await connect(face, query)).frames.map(({ event }) => event);
    const updates = ["run.started", "node.dispatched", "run.completed"];
    expect(await listTypes("?streamMode=updates")).toEqual(updates);
    expect(await listTypes("?streamMode=messages")).toEqual(["ai.message.chunk"]);
    expect(await listTypes("?streamMode=messages,updates")).toEqual(
      updates.toSpliced(2, 0, "ai.message.chunk"),
    );
    expect(await listTypes("?streamMode=updates,debug")).toHaveLength(7);
    expect(await listTypes("?streamMode=values")).toEqual(["state.snapshot"]);
  });

  it("shows with values how the run is, after each change and first of all to who resumes", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    const client = await connect(face, "?streamMode=values");
    face.host.append("run-1", "variable.changed");
    await waitUntilSettled();
    end(face);
    await waitUntilSettled();
    const listShown = ({ frames }: Client): unknown[] =>
      frames.map(({ id, data }) => [id, (data as { payload: { status: string } }).payload.status]);
    expect(listShown(client)).toEqual([
      [0, "running"],
      [2, "completed"],
    ]);
    expect(listShown(await connect(face, "?streamMode=values", 1))).toEqual([
      [1, "completed"],
      [2, "completed"],
    ]);
    expectNothingLeft(face);
  });

  it.each([
    ["?streamMode=nope", "unsupported_stream_mode"],
    ["?streamMode=", "unsupported_stream_mode"],
    ["?streamMode=values,updates", "unsupported_stream_mode"],
    ["?streamMode=updates,bogus", "unsupported_stream_mode"],
    ["?bufferMs=5001", "validation_error"],
    ["?bufferMs=-1", "validation_error"],
    ["?bufferMs=NaN", "validation_error"],
    ["?bufferMs=99999", "validation_error"],
  ])("is refused with %s, whatever format is wanted", async (query, code) => {
    const face = createFakeFace();
    face.host.put("run-1");
    for (const accept of ["application/json", "text/event-stream"]) {
      const response = await face.app.request(`/v1/runs/run-1/events${query}`, {
        headers: { ...BEARER, accept },
      });
      const body = (await response.json()) as ErrorBody;
      expect([response.status, body.error]).toEqual([400, code]);
      if (code === "unsupported_stream_mode")
        expect(body.details).toEqual({ supported: ["updates", "values", "messages", "debug"] });
    }
  });

  it.each(["-1", "1.5", "abc", "9".repeat(30)])("is not resumed after the id %s", async (id) => {
    const face = createFakeFace();
    face.host.put("run-1");
    const headers = { ...BEARER, "last-event-id": id };
    expect((await face.app.request("/v1/runs/run-1/events", { headers })).status).toBe(400);
  });

  it("costs nothing when only its headers are asked for", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    const response = await face.app.request("/v1/runs/run-1/events", { method: "HEAD", headers: BEARER });
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
    expectNothingLeft(face);
  });

  it("misses nothing that comes at any moment of a reading", async () => {
    for (let turns = 0; turns < 40; turns += 1) {
      const face = createFakeFace();
      face.host.put("run-1");
      const client = await connect(face);
      const events = face.host.events.bind(face.host);
      let appended = false;
      face.host.events = async (...request) => {
        const page = await events(...request);
        if (!appended) void callLater(turns, () => face.host.append("run-1", "node.completed"));
        appended = true;
        return page;
      };
      face.host.append("run-1", "node.completed");
      await waitUntilSettled();
      expect([turns, listSequences(client)]).toEqual([turns, [0, 1, 2]]);
      await client.leave();
    }
  });

  it("reads the log again only when something came", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    const client = await connect(face);
    const before = face.host.reads();
    await face.clock.advance(60_000);
    expect(face.host.reads()).toBe(before);
    for (let turn = 0; turn < 5; turn += 1) {
      face.host.append("run-1", "node.completed");
      await waitUntilSettled();
    }
    expect([face.host.reads() - before, client.frames.length]).toEqual([5, 6]);
  });
});

describe("a stream with a buffer", () => {
  it("sends together what came within the time", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    const client = await connect(face, "?streamMode=debug&bufferMs=200");
    face.host.append("run-1", "node.started");
    await face.clock.advance(199);
    expect(client.frames).toEqual([]);
    await face.clock.advance(1);
    await waitUntilSettled();
    expect(client.frames.map(({ id, event, data }) => [id, event, (data as unknown[]).length])).toEqual([
      [1, "batch", 2],
    ]);
  });

  it.each(["node.suspended", "run.completed"])("does not wait with %s", async (type) => {
    const face = createFakeFace();
    face.host.put("run-1");
    const client = await connect(face, "?bufferMs=5000");
    face.host.append("run-1", "node.completed");
    await waitUntilSettled();
    if (type === "run.completed") end(face);
    else face.host.append("run-1", type);
    await waitUntilSettled();
    expect(client.frames.map(({ event }) => event)).toEqual(["batch"]);
    expect(listSequences(client)).toEqual([0, 1, 2]);
    await client.leave();
    expectNothingLeft(face);
  });

  it("does not hold more than its bound", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    for (let turn = 0; turn < 1_200; turn += 1) face.host.append("run-1", "node.completed");
    const client = await connect(face, "?bufferMs=5000");
    for (let turn = 0; turn < 20; turn += 1) await waitUntilSettled();
    expect(client.frames).toHaveLength(2);
    await face.clock.advance(5_000);
    await waitUntilSettled();
    expect(listSequences(client)).toEqual(Array.from({ length: 1_201 }, (_, index) => index));
  });
});

describe("an open stream", () => {
  it("is kept alive by one timer for all, and there is none without streams", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    const clients = await Promise.all(Array.from({ length: 50 }, () => connect(face)));
    expect([face.app.openStreams(), face.clock.pending]).toEqual([50, 1]);
    await face.clock.advance(30_000);
    expect(clients.every(({ comments }) => comments >= 1)).toBe(true);
    for (const client of clients) await client.leave();
    expectNothingLeft(face);
  });

  it("is dropped when its client reads nothing for long, and nothing is read for it meanwhile", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    const response = await face.app.request("/v1/runs/run-1/events", { headers: BEARER });
    for (let turn = 0; turn < 500; turn += 1) face.host.append("run-1", "node.completed");
    await waitUntilSettled();
    expect(face.host.reads()).toBeLessThan(3);
    await face.clock.advance(10 * 60_000);
    expectNothingLeft(face);
    await expect(response.text()).rejects.toThrow("cut");
  });

  it("is dropped when its log cannot be read, so that the client does not take it for the end", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    const response = await face.app.request("/v1/runs/run-1/events", { headers: BEARER });
    const text = response.text().catch((error: unknown) => error);
    await waitUntilSettled();
    face.host.append("run-1", "node.completed");
    face.host.fail(new Error("gone"));
    await waitUntilSettled();
    expect(await text).toBeInstanceOf(Error);
    expect(face.logged).toHaveLength(1);
    expectNothingLeft(face);
  });

  it("ends with the process, and what it held goes out before", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    const client = await connect(face, "?bufferMs=5000");
    face.app.closeStreams();
    await waitUntilSettled();
    expect([listSequences(client), client.closed]).toEqual([[0], true]);
    expectNothingLeft(face);
  });

  it("is one of a bounded number", async () => {
    const face = createFakeFace({ streamsMax: 1 });
    face.host.put("run-1");
    const first = await connect(face);
    const second = await face.app.request("/v1/runs/run-1/events", { headers: BEARER });
    expect([second.status, second.headers.get("retry-after")]).toEqual([429, "5"]);
    await first.leave();
    expect((await connect(face)).status).toBe(200);
  });
});

describe("a client that reconnects", () => {
  const step = fc.record({
    append: fc.nat(90),
    leave: fc.boolean(),
    /** How many of the frames that came it had handled before it lost the connection. */
    handled: fc.nat(200),
    bufferMs: fc.constantFrom(0, 0, 100),
    wait: fc.nat(120),
  });

  it("has read every event of the log once, wherever the connection broke", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
        const face = createFakeFace();
        const run = face.host.put("run-1");
        const got: number[] = [];
        let client = await connect(face, "?streamMode=debug");
        for (const { append, leave, handled, bufferMs, wait } of steps) {
          for (let turn = 0; turn < append; turn += 1) face.host.append("run-1", "node.completed");
          if (wait > 60) await face.clock.advance(wait);
          if (!leave) continue;
          await client.leave();
          got.push(...listSequences({ ...client, frames: client.frames.slice(0, handled) }));
          client = await connect(face, `?streamMode=debug&bufferMs=${bufferMs}`, got.at(-1));
        }
        end(face);
        while (!client.closed) await waitUntilSettled();
        got.push(...listSequences(client));
        expect(got).toEqual(run.events.map(({ sequence }) => sequence));
        expectNothingLeft(face);
      }),
      { numRuns: 150 },
    );
  });
});
