import { CONFORMANCE_SUITE } from "../../src/plugins/openwop/conformance/conformance-suite.ts";
import { describe, expect, it } from "vitest";
import { ADVERTISED, BEARER, createFakeFace, createPost, type FakeFace } from "./http-fake-host.ts";

async function get(face: FakeFace, path: string, headers: Record<string, string> = {}): Promise<Response> {
  return await face.app.request(path, { headers: { ...BEARER, ...headers } });
}

describe("discovery", () => {
  it("needs no token, can be kept, and says when it has changed", async () => {
    const { app } = createFakeFace();
    const first = await app.request("/.well-known/openwop");
    expect([first.status, first.headers.get("cache-control")]).toEqual([200, "public, max-age=60"]);
    const etag = first.headers.get("etag")!;
    const headers = { "if-none-match": `"other", W/${etag}` };
    const second = await app.request("/.well-known/openwop", { headers });
    expect([second.status, await second.text()]).toEqual([304, ""]);
    expect((await app.request("/.well-known/openwop", { headers: { "if-none-match": '"x"' } })).status).toBe(
      200,
    );
  });

  it("says only what works", async () => {
    const document = (await (await createFakeFace().app.request("/.well-known/openwop")).json()) as Record<
      string,
      unknown
    >;
    expect(document).toMatchObject({
      protocolVersion: "1.1",
      multiAgent: { executionModel: { version: 6, crossHostCausation: { hostId: "https://host.test" } } },
    });
    expect(document).not.toHaveProperty("fixtures");
    expect(document["capabilities"]).toMatchObject({ multiAgent: document["multiAgent"] });
    for (const word of ["webhooks", "contextBudget", "heartbeat", '"edit"', "liveRuntime", "manifestRuntime"])
      expect(JSON.stringify(document)).not.toContain(word);
  });

  it("lists agents where some are installed, and has no such list elsewhere", async () => {
    expect((await get(createFakeFace(), "/v1/agents")).status).toBe(404);
    const face = createFakeFace({ advertised: { ...ADVERTISED, agentInventory: true } });
    expect(await (await get(face, "/v1/agents")).json()).toEqual({ agents: [], total: 0 });
    expect((await get(face, "/v1/agents/a")).status).toBe(404);
  });

  it("lets web pages ask only from origins that are allowed", async () => {
    const origin = "https://app.test";
    const preflight = { method: "OPTIONS", headers: { origin, "access-control-request-method": "POST" } };
    const open = createFakeFace({ allowedOrigins: [origin] }).app;
    const allowed = await open.request("/v1/runs", preflight);
    expect([allowed.status, allowed.headers.get("access-control-allow-origin")]).toEqual([204, origin]);
    const refusal = await open.request("/v1/runs/x", { headers: { origin } });
    expect([refusal.status, refusal.headers.get("access-control-allow-origin")]).toEqual([401, origin]);
    const other = await open.request("/v1/runs/x", { headers: { origin: "https://evil.test" } });
    expect(other.headers.get("access-control-allow-origin")).toBeNull();
    const readList = (response: Response, name: string): readonly string[] =>
      (response.headers.get(name) ?? "").split(",");
    expect(readList(allowed, "access-control-allow-headers")).toEqual(
      expect.arrayContaining(["a2a-version", "if-none-match", "openwop-parent", "x-dedup"]),
    );
    expect(readList(refusal, "access-control-expose-headers")).toEqual(
      expect.arrayContaining(["capabilities-etag", "www-authenticate"]),
    );
    const closed = await createFakeFace().app.request("/v1/runs", preflight);
    expect([closed.status, closed.headers.get("access-control-allow-origin")]).toEqual([405, null]);
  });
});

describe("test seams", () => {
  it("register workflows and show events by type where they were asked for", async () => {
    const face = createFakeFace({ suite: CONFORMANCE_SUITE.face });
    face.host.put("run-1");
    face.host.append("run-1", "node.started");
    const seams = "/v1/host/sample";
    const registered = await face.app.request(
      `${seams}/workflows`,
      createPost({ workflowId: "w", nodes: [] }),
    );
    expect([registered.status, await registered.json()]).toEqual([201, { workflowId: "w" }]);
    const events = await get(face, `${seams}/test/runs/run-1/events?type=node.started`);
    expect(await events.json()).toMatchObject({ events: [{ type: "node.started" }] });
    expect((await face.app.request(`${seams}/test/reset`, createPost({}))).status).toBe(200);
    expect((await face.app.request(`${seams}/test/capability-toggle`, createPost({}))).status).toBe(404);
    expect((await face.app.request(`${seams}/workflows`, { method: "POST" })).status).toBe(404);
  });

  it("let discovery list the workflows of the suite", async () => {
    const response = await createFakeFace({ suite: CONFORMANCE_SUITE.face }).app.request(
      "/.well-known/openwop",
    );
    expect(await response.json()).toMatchObject({ fixtures: ["conformance-noop"] });
  });

  it("deliver once what is claimed several times at once", async () => {
    const { app } = createFakeFace({ suite: CONFORMANCE_SUITE.face });
    const path = "/v1/host/sample/test/idempotency/concurrent-claim";
    const body = (await (await app.request(path, createPost({ executors: 5 }))).json()) as {
      mintedIds: string[];
    };
    expect(body).toMatchObject({ attempted: 5, delivered: 1 });
    expect([body.mintedIds.length, new Set(body.mintedIds).size]).toEqual([5, 1]);
  });
});
