/** One tenant, or one address, that opens more than it may. */
import { describe, expect, it } from "vitest";
import { BEARER, createFakeFace } from "../openwop/http-fake-host.ts";

const from = (remoteAddress: string): object => ({ incoming: { socket: { remoteAddress } } });
const STRANGER = { authorization: "Bearer of-nobody" };
const EVENTS = "/v1/runs/run-1/events";

describe("streams", () => {
  it.each([
    ["a tenant", "streams", "192.0.2.2", "tenant"],
    ["an address", "addressStreams", "192.0.2.1", "global"],
  ])("of %s are bounded, and one that is closed makes room", async (_whose, quota, second, scope) => {
    const { app, host } = createFakeFace({ quotas: { [quota]: 1 } });
    host.put("run-1");
    const open = async (address: string): Promise<Response> =>
      app.request(EVENTS, { headers: BEARER }, from(address));
    const first = await open("192.0.2.1");
    expect(first.status).toBe(200);
    const refused = await open(second);
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({
      error: "rate_limited",
      message: expect.stringContaining(`The quota ${quota} is reached: at most 1`) as string,
      details: { quota, limit: 1, scope },
    });
    await first.body?.cancel();
    expect((await open(second)).status).toBe(200);
  });
});

describe("requests that are not answered", () => {
  it("are bounded for each address, and others are answered", async () => {
    const { app, host } = createFakeFace({ quotas: { addressRequests: 1 } });
    host.put("run-1");
    const ask = (path: string, address: string): Promise<Response> =>
      Promise.resolve(app.request(path, { headers: BEARER }, from(address)));
    const path = "/v1/runs/run-1";
    const [first, second, other] = await Promise.all([
      ask(path, "192.0.2.1"),
      ask(path, "192.0.2.1"),
      ask(path, "192.0.2.2"),
    ]);
    expect([first.status, second.status, other.status]).toEqual([200, 429, 200]);
    expect(await second.json()).toMatchObject({ details: { quota: "addressRequests", limit: 1 } });
    expect((await ask(path, "192.0.2.1")).status).toBe(200);
  });
});

describe("requests for what is public", () => {
  it.each(["/.well-known/openwop", "/v1/openapi.json"])(
    "of %s are bounded for each address, unless they have a token that is known",
    async (path) => {
      const { app, clock } = createFakeFace();
      const ask = async (address: string, headers: Record<string, string> = {}): Promise<number> =>
        (await app.request(path, { headers }, from(address))).status;
      const statuses = await Promise.all(Array.from({ length: 201 }, () => ask("192.0.2.1")));
      expect(statuses.filter((status) => status === 200)).toHaveLength(200);
      const refused = await app.request(path, { headers: STRANGER }, from("192.0.2.1"));
      expect(refused.status).toBe(429);
      expect(await refused.json()).toMatchObject({ error: "rate_limited", details: { scope: "global" } });
      expect(await ask("192.0.2.1", BEARER)).toBe(200);
      expect(await ask("192.0.2.2")).toBe(200);
      await clock.advance(1_000);
      expect(await ask("192.0.2.1")).toBe(200);
    },
  );
});
