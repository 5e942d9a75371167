import { describe, expect, it } from "vitest";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { BEARER, createFakeFace, type FakeFace } from "./http-fake-host.ts";

function end(face: FakeFace): void {
  face.host.runs.get("run-1")!.status = "completed";
  face.host.append("run-1", "run.completed");
}

function expectNothingLeft(face: FakeFace): void {
  expect([face.app.openStreams(), face.host.watching(), face.clock.pending]).toEqual([0, 0, 0]);
}

describe("the log as JSON", () => {
  it("is whole, also where the stream would show a part", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    for (let turn = 0; turn < 2_500; turn += 1) face.host.append("run-1", "node.started");
    const read = async (
      headers: Record<string, string> = {},
    ): Promise<{ events: unknown[]; isComplete: boolean }> => {
      const all = { ...BEARER, accept: "application/json", ...headers };
      return (await (await face.app.request("/v1/runs/run-1/events", { headers: all })).json()) as never;
    };
    expect(await read()).toEqual({ events: face.host.runs.get("run-1")!.events, isComplete: false });
    end(face);
    expect((await read()).isComplete).toBe(true);
    expect((await read({ "last-event-id": "2499" })).events).toHaveLength(2);
  });
});

describe("polling", () => {
  interface Page {
    readonly events: { readonly sequence: number }[];
    readonly isComplete: boolean;
  }
  const poll = async (face: FakeFace, query: string, signal?: AbortSignal): Promise<Page> => {
    const init = { headers: BEARER, ...(signal && { signal }) };
    return (await (await face.app.request(`/v1/runs/run-1/events/poll${query}`, init)).json()) as Page;
  };

  it.each(["", "?lastSequence=0", "?lastSequence=0&timeout=1"])(
    "starts at the first event with %j",
    async (query) => {
      const face = createFakeFace();
      face.host.put("run-1");
      expect(await poll(face, query)).toEqual({
        events: face.host.runs.get("run-1")!.events,
        isComplete: false,
      });
    },
  );

  it("answers at once where the run has ended, also with nothing", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    end(face);
    expect(await poll(face, "?lastSequence=99999&timeout=1")).toEqual({ events: [], isComplete: true });
    expect((await poll(face, "?lastSequence=1")).isComplete).toBe(true);
  });

  it("answers as soon as there is an event", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    face.host.append("run-1", "node.started");
    const page = poll(face, "?lastSequence=1&timeout=60");
    await waitUntilSettled();
    expect(face.host.watching()).toBe(1);
    face.host.append("run-1", "node.completed");
    expect((await page).events.map(({ sequence }) => sequence)).toEqual([2]);
    expectNothingLeft(face);
  });

  it("answers with nothing when the time is over", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    const page = poll(face, "?lastSequence=5&timeout=2");
    await face.clock.advance(2_000);
    expect(await page).toEqual({ events: [], isComplete: false });
    expectNothingLeft(face);
  });

  it("waits at most a minute", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    const page = poll(face, "?lastSequence=5&timeout=999999");
    await face.clock.advance(60_000);
    expect((await page).events).toEqual([]);
  });

  it("stops when the client is gone", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    const controller = new AbortController();
    const page = poll(face, "?lastSequence=5&timeout=60", controller.signal);
    await waitUntilSettled();
    controller.abort();
    await page;
    expectNothingLeft(face);
  });

  it.each(["?lastSequence=-1", "?lastSequence=a", "?timeout=1.5", "?timeout=-1"])(
    "is refused with %s",
    async (query) => {
      const face = createFakeFace();
      face.host.put("run-1");
      expect((await face.app.request(`/v1/runs/run-1/events/poll${query}`, { headers: BEARER })).status).toBe(
        400,
      );
    },
  );

  it("reaches the end of a log that one answer does not hold", async () => {
    const face = createFakeFace();
    const { events } = face.host.put("run-1");
    for (let turn = 0; turn < 1_500; turn += 1) face.host.append("run-1", "node.completed");
    end(face);
    const got: number[] = [];
    for (let page: Page | undefined; !page?.isComplete;) {
      page = await poll(face, `?lastSequence=${got.at(-1) ?? 0}`);
      got.push(...page.events.map(({ sequence }) => sequence));
    }
    expect(got).toEqual(events.map(({ sequence }) => sequence));
  });
});
