/** Owns: what needs a socket: listening, slow and broken clients, stopping. */
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import {
  startOpenWopServer,
  type OpenWopServer,
  type ServeOptions,
} from "../../src/plugins/openwop/serve.ts";
import {
  ADVERTISED,
  BEARER,
  createFakeHost,
  createRecordingLogger,
  TOKENS,
  type FakeHost,
} from "./http-fake-host.ts";

const servers: OpenWopServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

async function start(
  options: Partial<ServeOptions> = {},
): Promise<{ readonly server: OpenWopServer; readonly host: FakeHost; readonly logged: unknown[] }> {
  const host = createFakeHost();
  const { logger, logged } = createRecordingLogger();
  const parts = { host, clock: systemClock, logger, advertised: ADVERTISED, tokens: TOKENS, port: 0 };
  const server = await startOpenWopServer({ ...parts, ...options });
  servers.push(server);
  return { server, host, logged };
}

/** Sends bytes as they are, and resolves with all that comes back when the other side hangs up. */
function sendRaw(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(port, "127.0.0.1", () => socket.write(text));
    let got = "";
    socket.setEncoding("utf8");
    socket.on("data", (part: string) => (got += part));
    socket.on("error", reject);
    socket.on("close", () => {
      resolve(got);
    });
  });
}

async function waitUntil(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

/** Counts the refusals among more requests than a tenant may make at once. */
async function countLimited({ app }: OpenWopServer): Promise<number> {
  const request = async (): Promise<Response> => app.request("/v1/runs/none", { headers: BEARER });
  const requests = Array.from({ length: 600 }, request);
  return (await Promise.all(requests)).filter(({ status }) => status === 429).length;
}

describe("a server", () => {
  it("listens where it says, on this machine only", async () => {
    const { server } = await start();
    expect(server.baseUrl).toBe(`http://127.0.0.1:${server.port}`);
    const document: unknown = await (await fetch(`${server.baseUrl}/.well-known/openwop`)).json();
    expect(document).toMatchObject({ protocolVersion: "1.1" });
  });

  it("runs what is posted", async () => {
    const { server, host } = await start();
    const response = await fetch(`${server.baseUrl}/v1/runs`, {
      method: "POST",
      headers: { ...BEARER, "content-type": "application/json" },
      body: '{"workflowId":"conformance-noop"}',
    });
    expect([response.status, host.created.length]).toEqual([201, 1]);
  });

  it.each(["0.0.0.0", "::", "10.0.0.1", "example.com", ""])(
    "does not listen on %j unless told",
    async (hostname) => {
      await expect(start({ hostname })).rejects.toThrow("must be allowed");
    },
  );

  it("does not let others try short tokens", async () => {
    const options = { hostname: "0.0.0.0", allowRemote: true };
    await expect(start({ ...options, tokens: [{ token: "short", tenant: "a" }] })).rejects.toThrow(
      "16 characters",
    );
    expect((await start(options)).server.port).toBeGreaterThan(0);
  });

  it.each<[string, Partial<ServeOptions>]>([
    ["others may reach it through a proxy", { allowRemote: true }],
    ["its clients reach it at another machine's address", { baseUrl: "https://wop.example/runs" }],
    ["its clients reach it at the address of a network", { baseUrl: "http://10.0.0.1:4096" }],
  ])("has long tokens and a limit of requests on a loopback address where %s", async (_case, options) => {
    const short = [{ token: "short", tenant: "a" }];
    await expect(start({ ...options, tokens: short })).rejects.toThrow("16 characters");
    const { server } = await start(options);
    expect(await countLimited(server)).toBeGreaterThan(0);
  });

  it.each<[string, Partial<ServeOptions>]>([
    ["it has no other address", {}],
    ["its base URL is this machine's", { baseUrl: "http://localhost:4096/runs" }],
    ["its base URL is this machine's in IPv6", { baseUrl: "http://[::1]:4096" }],
  ])("may have short tokens and has no limit of requests where %s", async (_case, options) => {
    const { server } = await start(options);
    expect(await countLimited(server)).toBe(0);
    await start({ ...options, tokens: [{ token: "short", tenant: "a" }] });
  });

  it("says that a port is taken", async () => {
    const { server } = await start();
    await expect(start({ port: server.port })).rejects.toThrow("EADDRINUSE");
  });

  it("answers what is no request in the shape of an error, and hangs up", async () => {
    const { server } = await start();
    const answers = await Promise.all([
      sendRaw(server.port, "nonsense\r\n\r\n"),
      sendRaw(server.port, `GET / HTTP/1.1\r\nhost: a\r\nx: ${"a".repeat(20_000)}\r\n\r\n`),
      sendRaw(server.port, "GET /v1/runs/x HTTP/1.1\r\nhost: a\r\nauthorization: a\nb\r\n\r\n"),
      sendRaw(
        server.port,
        "POST /v1/runs HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
      ),
    ]);
    expect(answers.map((answer) => answer.split("\r\n", 1)[0])).toEqual([
      "HTTP/1.1 400 Bad Request",
      "HTTP/1.1 431 Request Header Fields Too Large",
      "HTTP/1.1 400 Bad Request",
      "HTTP/1.1 400 Bad Request",
    ]);
    for (const answer of answers)
      expect(JSON.parse(answer.slice(answer.indexOf("\r\n\r\n")))).toMatchObject({
        error: "validation_error",
      });
  });

  it("does not wait for a body that is announced as too large", async () => {
    const { server } = await start();
    const answer = await sendRaw(
      server.port,
      `POST /v1/runs HTTP/1.1\r\nhost: a\r\n${createAuthorization()}content-type: application/json\r\n` +
        "content-length: 900000000\r\n\r\n{",
    );
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
  });

  it.each([
    ["headers", "POST /v1/runs HTTP/1.1\r\nhost: a\r\nx:"],
    [
      "a body",
      `POST /v1/runs HTTP/1.1\r\nhost: a\r\n${createAuthorization()}content-type: application/json\r\ncontent-length: 9\r\n\r\n{`,
    ],
    [
      "a body of unknown length",
      `POST /v1/runs HTTP/1.1\r\nhost: a\r\n${createAuthorization()}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n`,
    ],
  ])("cuts off a client that never finishes to send %s", async (_what, text) => {
    const timeouts = { headersMs: 60, requestMs: 80, checkMs: 20 };
    const { server, logged } = await start({ timeouts });
    const answer = await sendRaw(server.port, text);
    expect(answer).toMatch(/^HTTP\/1.1 408 Request Timeout\r\n/);
    expect(JSON.parse(answer.slice(answer.indexOf("\r\n\r\n")))).toMatchObject({ error: "validation_error" });
    expect(logged).toEqual([]);
  });

  it("forgets a client that hangs up in the middle of a stream", async () => {
    const { server, host } = await start();
    host.put("run-1");
    const controller = new AbortController();
    const init = { headers: { ...BEARER, accept: "text/event-stream" }, signal: controller.signal };
    const response = await fetch(`${server.baseUrl}/v1/runs/run-1/events`, init);
    const reader = response.body!.getReader();
    await reader.read();
    expect([server.app.openStreams(), host.watching()]).toEqual([1, 1]);
    controller.abort();
    await waitUntil(() => server.app.openStreams() === 0);
    expect(host.watching()).toBe(0);
  });

  it("forgets a client that hangs up while it waits for an event", async () => {
    const { server, host } = await start();
    host.put("run-1");
    const controller = new AbortController();
    const init = { headers: BEARER, signal: controller.signal };
    const polled = fetch(`${server.baseUrl}/v1/runs/run-1/events/poll?lastSequence=9`, init).catch(
      () => "gone",
    );
    await waitUntil(() => host.watching() === 1);
    controller.abort();
    expect(await polled).toBe("gone");
    await waitUntil(() => host.watching() === 0);
  });

  it("stops with streams open, and ends them", async () => {
    const { server, host } = await start();
    host.put("run-1");
    const stream = await fetch(`${server.baseUrl}/v1/runs/run-1/events`, { headers: BEARER });
    const text = stream.text();
    await waitUntil(() => server.app.openStreams() === 1);
    await server.stop();
    expect(await text).toContain("event: run.started");
    expect([server.app.openStreams(), host.watching()]).toEqual([0, 0]);
    await expect(fetch(server.baseUrl)).rejects.toThrow("fetch failed");
    servers.length = 0;
  });

  it("cuts a stream that it cannot go on with, so that its client resumes", async () => {
    const { server, host } = await start();
    host.put("run-1");
    const stream = await fetch(`${server.baseUrl}/v1/runs/run-1/events`, { headers: BEARER });
    const text = stream.text();
    await waitUntil(() => server.app.openStreams() === 1);
    host.fail(new Error("gone"));
    host.append("run-1", "node.completed");
    await expect(text).rejects.toThrow("terminated");
    expect(host.watching()).toBe(0);
  });
});

function createAuthorization(): string {
  return `authorization: ${BEARER.authorization}\r\n`;
}
