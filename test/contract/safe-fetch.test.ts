import { describe, expect, it, onTestFinished, vi } from "vitest";
import { withTokens } from "../../src/infra/http/tokens.ts";
import {
  replyEndlessly,
  replyJson,
  startRawServer,
  serve,
  createSteppingClock,
  testFetch,
} from "./outbound-scene.ts";

const matchCode = (value: string): object => ({ name: "OutboundError", code: value });

describe("the fetch of the clients", () => {
  it("sends what it is given, and answers as fetch does", async () => {
    const server = await serve(replyJson(201, { made: "ü" }, { "set-cookie": "a=1" }));
    const clock = createSteppingClock();
    const fetch = testFetch(clock);
    const response = await fetch(`${server.url}/x?y=1#z`, {
      method: "POST",
      headers: { "x-own": "1", host: "elsewhere.example" },
      body: '{"a":"ü"}',
    });
    expect(response.status).toBe(201);
    expect(await response.json()).toEqual({ made: "ü" });
    expect(server.received).toMatchObject([
      {
        method: "POST",
        path: "/x?y=1",
        body: '{"a":"ü"}',
        headers: { "x-own": "1", "accept-encoding": "identity" },
      },
    ]);
    expect(server.received[0]!.headers.host).toBe(new URL(server.url).host);
    await vi.waitFor(() => expect(clock.underWay).toBe(0));
  });

  it("takes a Request, and an answer without a body", async () => {
    const server = await serve((response) => void response.writeHead(204).end());
    const response = await testFetch(createSteppingClock())(new Request(server.url, { method: "DELETE" }));
    expect([response.status, await response.text()]).toEqual([204, ""]);
    expect(server.received[0]!.method).toBe("DELETE");
  });

  it.each([
    ["ftp://a.example/"],
    ["file:///etc/hosts"],
    ["http://a.example/"],
    ["https://user:word@a.example/"],
    ["https://127.0.0.1/"],
    ["https://[::1]/"],
    ["https://[::ffff:127.0.0.1]/"],
    ["https://169.254.169.254/latest"],
    ["https://0x7f000001/"],
    ["https://2130706433/"],
    ["not a url"],
  ])("calls nothing at %s", async (url) => {
    const requests: string[] = [];
    const resolve = (name: string): Promise<string[]> => {
      requests.push(name);
      return Promise.resolve([]);
    };
    const fetch = testFetch(createSteppingClock(), { allowPrivate: false, resolve });
    await expect(fetch(url)).rejects.toMatchObject(matchCode("address_not_allowed"));
    expect(requests).toEqual([]);
  });

  it.each([[["127.0.0.1"]], [["93.184.216.34", "10.0.0.1"]], [["::1"]], [["fd00::1"]]])(
    "does not connect where the name leads to %s",
    async (addresses) => {
      const fetch = testFetch(createSteppingClock(), {
        allowPrivate: false,
        resolve: () => Promise.resolve(addresses),
      });
      await expect(fetch("https://innocent.example/")).rejects.toMatchObject(
        matchCode("address_not_allowed"),
      );
    },
  );

  it("resolves a name once: what was checked is what is connected to", async () => {
    const server = await serve(replyJson(200, {}));
    const { port } = new URL(server.url);
    const answers = [["127.0.0.1"], ["192.0.2.1"]];
    let requestCount = 0;
    const resolve = (): Promise<readonly string[]> => Promise.resolve(answers[requestCount++]!);
    const response = await testFetch(createSteppingClock(), { resolve })(`http://rebinding.example:${port}/`);
    expect(response.status).toBe(200);
    expect([requestCount, server.received.length]).toEqual([1, 1]);
    expect(server.received[0]!.headers.host).toBe(`rebinding.example:${port}`);
  });

  it("lets only the named origins be private", async () => {
    const [allowed, other] = [await serve(replyJson(200, {})), await serve(replyJson(200, {}))];
    const fetch = testFetch(createSteppingClock(), { allowPrivate: [allowed.url] });
    expect((await fetch(`${allowed.url}/any`)).status).toBe(200);
    await expect(fetch(other.url)).rejects.toMatchObject(matchCode("address_not_allowed"));
    expect(other.received).toEqual([]);
  });

  it.each([301, 302, 303, 307, 308])("does not follow a redirect with %d", async (status) => {
    const inside = await serve(replyJson(200, {}));
    const server = await serve((response) => void response.writeHead(status, { location: inside.url }).end());
    await expect(testFetch(createSteppingClock())(server.url)).rejects.toMatchObject(matchCode("redirected"));
    expect(inside.received).toEqual([]);
  });

  it("ends a body without end at its bound", async () => {
    const server = await serve(replyEndlessly);
    const response = await testFetch(createSteppingClock(), { bytesMax: 300_000 })(server.url);
    await expect(response.text()).rejects.toMatchObject(matchCode("too_large"));
  });

  it("refuses a body that is announced as too large", async () => {
    const server = await serve(
      (response) => void response.writeHead(200, { "content-length": "2000000" }).write("x"),
    );
    await expect(testFetch(createSteppingClock())(server.url)).rejects.toMatchObject(matchCode("too_large"));
  });

  it("ends a head that comes too slowly", async () => {
    const clock = createSteppingClock();
    const url = await startRawServer((socket) => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-");
      setImmediate(() => clock.expire());
    });
    await expect(testFetch(clock)(url)).rejects.toMatchObject(matchCode("timed_out"));
    expect(clock.underWay).toBe(0);
  });

  it("ends a body that comes too slowly", async () => {
    const clock = createSteppingClock();
    const url = await startRawServer(
      (socket) => void socket.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nx"),
    );
    const response = await testFetch(clock)(url);
    const body = response.text();
    clock.expire();
    await expect(body).rejects.toMatchObject(matchCode("timed_out"));
  });

  it("ends a name that is not resolved", async () => {
    const clock = createSteppingClock();
    const fetch = testFetch(clock, { resolve: () => new Promise(() => undefined) });
    const answer = fetch("https://slow.example/");
    await new Promise((resolve) => setImmediate(resolve));
    clock.expire();
    await expect(answer).rejects.toMatchObject(matchCode("timed_out"));
  });

  it("ends with the caller's signal, before, during and after the head", async () => {
    const clock = createSteppingClock();
    const stopped = AbortSignal.abort();
    await expect(testFetch(clock)("https://a.example/", { signal: stopped })).rejects.toMatchObject(
      matchCode("aborted"),
    );
    const controller = new AbortController();
    const silent = await startRawServer(() => controller.abort());
    await expect(testFetch(clock)(silent, { signal: controller.signal })).rejects.toMatchObject(
      matchCode("aborted"),
    );
    const url = await startRawServer((socket) => void socket.write("HTTP/1.1 200 OK\r\n\r\nx"));
    const later = new AbortController();
    const body = (await testFetch(clock)(url, { signal: later.signal })).text();
    later.abort();
    await expect(body).rejects.toMatchObject(matchCode("aborted"));
    await vi.waitFor(() => expect(clock.underWay).toBe(0));
  });

  it.each([
    ["no HTTP", "SSH-2.0-OpenSSH_9.9\r\n"],
    [
      "a switch of protocols",
      "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    ],
    ["nothing", ""],
    ["a head without end", `HTTP/1.1 200 OK\r\n${"x: y\r\n".repeat(10_000)}`],
    ["a status that is none", "HTTP/1.1 999 Odd\r\ncontent-length: 0\r\n\r\n"],
  ])("survives %s", async (_what, reply) => {
    const url = await startRawServer((socket) => void socket.end(reply));
    await expect(testFetch(createSteppingClock())(url)).rejects.toMatchObject({ name: "OutboundError" });
  });

  it("takes the first of two answers", async () => {
    const createOkResponse = (body: string): string =>
      `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    const url = await startRawServer(
      (socket) => void socket.end(createOkResponse("first") + createOkResponse("second")),
    );
    expect(await (await testFetch(createSteppingClock())(url)).text()).toBe("first");
  });

  it("decompresses nothing", async () => {
    const server = await serve((response) => {
      response.writeHead(200, { "content-encoding": "gzip" }).end(Buffer.from([0x1f, 0x8b, 8, 0]));
    });
    const body = await (await testFetch(createSteppingClock())(server.url)).arrayBuffer();
    expect(body.byteLength).toBe(4);
  });

  it("names neither address nor token in what it throws", async () => {
    const fetch = testFetch(createSteppingClock());
    const error: unknown = await fetch("http://127.0.0.1:1/secret-path", {
      headers: { authorization: "Bearer secret-token" },
    }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject(matchCode("unreachable"));
    expect(JSON.stringify([error, (error as Error).message, (error as Error).stack])).not.toMatch(
      /secret|127\.0/,
    );
  });

  it("goes through no proxy that the environment names", async () => {
    const proxy = await serve(replyJson(200, {}));
    const before = process.env["HTTP_PROXY"];
    process.env["HTTP_PROXY"] = proxy.url;
    onTestFinished(() => {
      if (before === undefined) delete process.env["HTTP_PROXY"];
      else process.env["HTTP_PROXY"] = before;
    });
    const server = await serve(replyJson(200, {}));
    await testFetch(createSteppingClock())(server.url);
    expect([proxy.received.length, server.received.length]).toEqual([0, 1]);
  });
});

describe("a token", () => {
  it("goes to its origin and to no other", async () => {
    const [ownServer, other] = [await serve(replyJson(200, {})), await serve(replyJson(200, {}))];
    const fetch = withTokens(testFetch(createSteppingClock()), { [ownServer.url]: "a-token" });
    await fetch(`${ownServer.url}/x`);
    await fetch(new Request(`${ownServer.url}/y`, { headers: { "x-own": "1" } }));
    await fetch(other.url);
    expect(ownServer.received.map(({ headers }) => headers.authorization)).toEqual([
      "Bearer a-token",
      "Bearer a-token",
    ]);
    expect(ownServer.received[1]!.headers["x-own"]).toBe("1");
    expect(other.received[0]!.headers.authorization).toBeUndefined();
  });
});
