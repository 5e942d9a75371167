/** Owns: the answers of models as the stream mode `messages` shows them (stream-modes.md). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFakeFace, BEARER } from "./http-fake-host.ts";
import { openModelWorld, type ModelWorld } from "./levels-model-world.ts";
import { TOKEN } from "./levels-world.ts";

interface Frame {
  readonly id: number;
  readonly event: string;
  readonly data: { readonly payload: unknown; readonly sequence: number };
}

/** Reads a stream that the host closes. */
async function readFrames(response: Response): Promise<Frame[]> {
  expect(response.status).toBe(200);
  const blocks = (await response.text()).split("\n\n").filter((block) => block.startsWith("id: "));
  return blocks.map((block) => {
    const [id = "", event = "", data = ""] = block.split("\n").map((line) => line.replace(/^\w+: /u, ""));
    return { id: Number(id), event, data: JSON.parse(data) as Frame["data"] };
  });
}

describe("the answers of a run's models", () => {
  let world: ModelWorld;
  beforeAll(async () => {
    world = await openModelWorld();
  });
  afterAll(() => world.close());

  async function streamRun(workflowId: string, streamMode: string): Promise<Frame[]> {
    const { runId } = await world.client.run(workflowId);
    const headers = { accept: "text/event-stream", authorization: `Bearer ${TOKEN}` };
    const query = `streamMode=${streamMode}`;
    return readFrames(await fetch(`${world.baseUrl}/v1/runs/${runId}/events?${query}`, { headers }));
  }

  it("are one chunk each, which is the last of its node", async () => {
    const frames = await streamRun("prompted-word", "messages");
    expect(frames).toMatchObject([
      {
        event: "ai.message.chunk",
        data: {
          type: "ai.message.chunk",
          payload: {
            nodeId: "ask",
            runId: expect.any(String) as string,
            chunk: '{"word":"gold"}',
            isLast: true,
            meta: {
              model: "model-of-the-day",
              usage: { promptTokens: 11, completionTokens: 7, totalTokens: 18 },
            },
          },
        },
      },
    ]);
  });

  it("come before the end of their node where both are shown", async () => {
    const frames = await streamRun("prompted-word", "updates,messages");
    expect(frames.map(({ event }) => event)).toEqual([
      ...["run.started", "ai.message.chunk", "node.completed", "run.completed"],
    ]);
    const ids = frames.map(({ id }) => id);
    expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b));
    expect(frames.map(({ data }) => data.sequence)).toEqual(ids);
  });

  it.each(["prompted-nothing", "prompted-refusal", "supervised-plan"])(
    "are none in %s",
    async (workflowId) => {
      expect(await streamRun(workflowId, "messages")).toEqual([]);
    },
  );
});

describe("a stream of messages", () => {
  function createFilledFace() {
    const face = createFakeFace();
    face.host.put("run-1");
    for (const nodeId of ["a", "b"]) {
      face.host.append("run-1", "provider.usage", { nodeId, model: "m", inputTokens: 1, outputTokens: 2 });
      face.host.append("run-1", "node.completed", { nodeId, outputs: { text: `said by ${nodeId}` } });
    }
    face.host.runs.get("run-1")!.status = "completed";
    face.host.append("run-1", "run.completed");
    return async (query: string, lastEventId?: number): Promise<Frame[]> => {
      const resume = lastEventId === undefined ? {} : { "last-event-id": String(lastEventId) };
      const headers = { ...BEARER, accept: "text/event-stream", ...resume };
      return readFrames(await face.app.request(`/v1/runs/run-1/events?streamMode=${query}`, { headers }));
    };
  }

  const listShown = (frames: readonly Frame[]): unknown[] => frames.map(({ id, event }) => [id, event]);

  it("goes on behind the last chunk that came, without missing or repeating one", async () => {
    const connect = createFilledFace();
    const all = await connect("messages");
    expect(listShown(all)).toEqual([
      [1, "ai.message.chunk"],
      [3, "ai.message.chunk"],
    ]);
    for (const lastEventId of [1, 2]) expect(await connect("messages", lastEventId)).toEqual(all.slice(1));
    for (const lastEventId of [3, 4]) expect(await connect("messages", lastEventId)).toEqual([]);
  });

  it("leaves the log as it is in the mode debug", async () => {
    const connect = createFilledFace();
    expect((await connect("debug")).map(({ event }) => event)).not.toContain("ai.message.chunk");
    expect(await connect("debug,messages")).toHaveLength(8);
  });

  it("shows no text of a node that asked no model", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    face.host.append("run-1", "node.completed", { nodeId: "a", outputs: { text: "read from a file" } });
    face.host.append("run-1", "provider.usage", { nodeId: "b", model: "m", inputTokens: 1, outputTokens: 2 });
    face.host.append("run-1", "node.completed", { nodeId: "a", outputs: { text: "read from a file" } });
    face.host.append("run-1", "provider.usage", { nodeId: "b", model: "m", inputTokens: 1, outputTokens: 2 });
    face.host.append("run-1", "node.completed", { nodeId: "b", outputs: { result: {} } });
    face.host.runs.get("run-1")!.status = "completed";
    face.host.append("run-1", "run.completed");
    const headers = { ...BEARER, accept: "text/event-stream" };
    const response = await face.app.request("/v1/runs/run-1/events?streamMode=messages", { headers });
    expect(await readFrames(response)).toEqual([]);
  });
});
