/** Owns: the servers of other protocols over a host that fails, waits and holds sessions, on a clock that a test moves. */
import { describe, expect, it } from "vitest";
import { createA2aFace } from "../../src/plugins/a2a/a2a-routes.ts";
import { MCP_BOUNDS } from "../../src/plugins/mcp/mcp-bounds.ts";
import { createMcpFace } from "../../src/plugins/mcp/mcp-routes.ts";
import { createOpenWopApp, type OpenWopApp } from "../../src/plugins/openwop/app.ts";
import { createFakeClock, waitUntilSettled, type FakeClock } from "../support/fake-clock.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import {
  ADVERTISED,
  createFakeHost,
  createPost,
  createRecordingLogger,
  TOKENS,
  type FakeHost,
  type LoggedLine,
} from "./http-fake-host.ts";

interface Faces {
  readonly app: OpenWopApp;
  readonly host: FakeHost;
  readonly clock: FakeClock;
  readonly logged: LoggedLine[];
}

function openFaces(): Faces {
  const host = createFakeHost();
  const clock = createFakeClock();
  const { logger, logged } = createRecordingLogger();
  const loadContract = () => Promise.resolve({ check: () => [] });
  const access = {
    host,
    clock,
    logger,
    contract: loadContract,
    version: "0.0.0",
    runs: createMemoryWorkflowLedger().open(),
  };
  const mcp = createMcpFace({ ...access, toolScopes: {}, mayAnswer: true, allowedOrigins: [] });
  const a2a = createA2aFace({ ...access, baseUrl: () => "http://host.test" });
  const app = createOpenWopApp({
    host,
    clock,
    logger,
    advertised: ADVERTISED,
    tokens: TOKENS,
    faces: [mcp, a2a],
  });
  return { app, host, clock, logged };
}

const ACCEPT = { accept: "application/json, text/event-stream" };
const INITIALIZE = {
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
};

async function beginSession({ app }: Faces): Promise<string> {
  const answer = await app.request("/v1/mcp", createPost(INITIALIZE, ACCEPT));
  await answer.text();
  return answer.headers.get("mcp-session-id") ?? "";
}

async function callMcp(
  { app }: Faces,
  session: string,
  method: string,
  params: object = {},
): Promise<Response> {
  const headers = { ...ACCEPT, "mcp-session-id": session };
  return await app.request("/v1/mcp", createPost({ jsonrpc: "2.0", id: 1, method, params }, headers));
}

/** The data of the last event of a stream. */
async function readLast(answer: Response): Promise<unknown> {
  const data = (await answer.text()).split("\n").filter((line) => line.startsWith("data: "));
  return JSON.parse(data.at(-1)?.slice("data: ".length) ?? "null");
}

const callA2a = async ({ app }: Faces, method: string, params: object): Promise<Response> =>
  await app.request(
    "/v1/a2a",
    createPost({ jsonrpc: "2.0", id: 1, method, params }, { "a2a-version": "1.0" }),
  );

const MESSAGE = { message: { messageId: "m-1", role: "ROLE_USER", parts: [{ text: "go" }] } };

describe("the MCP server", () => {
  it("answers after 50 s that the run goes on, and watches it no more", async () => {
    const faces = openFaces();
    const session = await beginSession(faces);
    const answer = await callMcp(faces, session, "tools/call", { name: "conformance-noop", arguments: {} });
    const last = readLast(answer);
    await waitUntilSettled();
    expect(faces.host.watching()).toBe(1);
    await faces.clock.advance(50_000);
    expect(await last).toMatchObject({ result: { structuredContent: { status: "running" } } });
    expect(faces.host.watching()).toBe(0);
  });

  it("tells a fault of its own by an id, and nothing of the inside", async () => {
    const faces = openFaces();
    const session = await beginSession(faces);
    faces.host.fail(new Error("a secret of the inside"));
    const answer = await callMcp(faces, session, "tools/call", { name: "conformance-noop", arguments: {} });
    const failure = await readLast(answer);
    expect(failure).toMatchObject({
      error: { code: -32_603, data: { correlationId: expect.any(String) as string } },
    });
    expect(JSON.stringify(failure)).not.toContain("inside");
    const { correlationId } = (
      failure as { readonly error: { readonly data: { readonly correlationId: string } } }
    ).error.data;
    expect(faces.logged).toContainEqual(
      expect.objectContaining({
        level: "error",
        fields: expect.objectContaining({ correlationId }) as unknown,
      }),
    );
  });

  it("cancels a run once, however often its client cancels, and answers nothing then", async () => {
    const faces = openFaces();
    const session = await beginSession(faces);
    const answer = await callMcp(faces, session, "tools/call", { name: "conformance-noop", arguments: {} });
    await waitUntilSettled();
    const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } };
    for (let times = 0; times < 2; times += 1) {
      const headers = { ...ACCEPT, "mcp-session-id": session };
      expect((await faces.app.request("/v1/mcp", createPost(cancel, headers))).status).toBe(202);
    }
    await waitUntilSettled();
    const [run] = faces.host.runs.values();
    expect(run?.events.map(({ type }) => type)).toEqual(["run.started", "run.cancelled"]);
    await answer.body?.cancel();
  });

  it("ends the session of a caller that was idle longest for a new one, and all after an hour", async () => {
    const faces = openFaces();
    const first = await beginSession(faces);
    const second = await beginSession(faces);
    for (let more = 2; more < MCP_BOUNDS.sessionsOfCallerMax; more += 1) await beginSession(faces);
    expect((await callMcp(faces, first, "ping")).status).toBe(200);
    await beginSession(faces);
    expect((await callMcp(faces, second, "ping")).status).toBe(404);
    expect((await callMcp(faces, first, "ping")).status).toBe(200);
    await faces.clock.advance(MCP_BOUNDS.sessionIdleMs);
    await beginSession(faces);
    expect((await callMcp(faces, first, "ping")).status).toBe(404);
  });

  it("keeps no session that did not begin", async () => {
    const faces = openFaces();
    const session = await beginSession(faces);
    for (let times = 0; times < MCP_BOUNDS.sessionsOfCallerMax; times += 1) {
      const refused = await faces.app.request(
        "/v1/mcp",
        createPost(INITIALIZE, { accept: "application/json" }),
      );
      expect([refused.status, refused.headers.get("mcp-session-id")]).toEqual([406, null]);
    }
    expect((await callMcp(faces, session, "ping")).status).toBe(200);
  });
});

describe("the A2A server", () => {
  it("answers after 50 s that the task is at work, at once where that is wanted", async () => {
    const faces = openFaces();
    const waiting = callA2a(faces, "SendMessage", MESSAGE);
    await waitUntilSettled();
    await faces.clock.advance(50_000);
    const working = { result: { task: { status: { state: "TASK_STATE_WORKING" } } } };
    expect(await (await waiting).json()).toMatchObject(working);
    const atOnce = {
      message: { ...MESSAGE.message, messageId: "m-2" },
      configuration: { returnImmediately: true },
    };
    const answering = callA2a(faces, "SendMessage", atOnce);
    await faces.clock.advance(0);
    expect(await (await answering).json()).toMatchObject(working);
    expect(faces.host.watching()).toBe(0);
  });

  it("keeps a stream alive that has no news, and watches no more when its client leaves", async () => {
    const faces = openFaces();
    const answer = await callA2a(faces, "SendStreamingMessage", MESSAGE);
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    const read = async (): Promise<string> => new TextDecoder().decode((await reader.read()).value);
    expect(await read()).toContain("TASK_STATE_WORKING");
    const next = read();
    await faces.clock.advance(15_000);
    expect(await next).toBe(": keep-alive\n\n");
    await reader.cancel();
    await waitUntilSettled();
    expect([faces.host.watching(), faces.clock.pending]).toEqual([0, 0]);
  });

  it("ends its streams when the server stops", async () => {
    const faces = openFaces();
    const answer = await callA2a(faces, "SendStreamingMessage", MESSAGE);
    const text = answer.text();
    await waitUntilSettled();
    faces.app.closeStreams();
    expect(await text).toContain("TASK_STATE_WORKING");
    expect([faces.host.watching(), faces.clock.pending]).toEqual([0, 0]);
  });

  it("tells a fault of its own by an id, and nothing of the inside", async () => {
    const faces = openFaces();
    faces.host.fail(new Error("a secret of the inside"));
    for (const method of ["SendMessage", "SendStreamingMessage"]) {
      const text = await (await callA2a(faces, method, MESSAGE)).text();
      expect(text).toContain("An unexpected error occurred.");
      expect(text).not.toContain("inside");
    }
    expect(faces.logged.filter(({ level }) => level === "error")).toHaveLength(2);
  });
});
