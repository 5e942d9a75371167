import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PageApp } from "../../src/plugins/page/server/page-app.ts";
import { PAGE_BOUNDS } from "../../src/plugins/page/server/page-bounds.ts";
import { createPageSessions, type PageSessions } from "../../src/plugins/page/server/page-sessions.ts";
import { createRefusalSentences, deriveRights } from "../../src/plugins/page/server/rights.ts";
import { recordQuestions, REPORT } from "../cli/recorded-questions.ts";
import {
  createManualClock,
  createTempFolder,
  openTestLedger,
  type TempFolder,
} from "../support/temp-ledger.ts";
import {
  createPageClient,
  sendRequest,
  servePage,
  signIn,
  type PageClient,
  type ServedPage,
} from "./page-scene.ts";
import { createBarePage } from "./bare-page.ts";

let folder: TempFolder;
let served: ServedPage;
let client: PageClient;

beforeAll(async () => {
  folder = createTempFolder();
  await recordQuestions(folder.file("ledger.sqlite"));
  served = await servePage(folder.file("ledger.sqlite"));
  client = createPageClient(served.baseUrl, await signIn(served.baseUrl, served.link));
});

afterAll(async () => {
  await served[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const readBearer = (): Record<string, string> => ({ authorization: `Bearer ${client.signedIn.token}` });

describe("before anybody signs in", () => {
  it.each([
    "runs",
    `runs/${REPORT}`,
    `runs/${REPORT}/events`,
    "questions",
    "conflicts",
    "claims",
    "health",
    "live",
  ])("%s is refused and tells nothing", async (path) => {
    const { status, body } = await sendRequest(served.baseUrl, { path: `/api/${path}` });
    expect(status).toBe(401);
    expect(Object.keys(JSON.parse(body) as object)).toEqual(["error", "message"]);
    expect(body).not.toContain(REPORT);
  });

  it("takes no cookie and no token in the address for a session", async () => {
    const { token } = client.signedIn;
    const headers = { cookie: `token=${token}; authorization=Bearer ${token}` };
    expect((await sendRequest(served.baseUrl, { path: "/api/runs", headers })).status).toBe(401);
    expect((await sendRequest(served.baseUrl, { path: `/api/runs?token=${token}` })).status).toBe(401);
    const { headers: answered } = await sendRequest(served.baseUrl, { path: "/" });
    expect(answered["set-cookie"]).toBeUndefined();
  });
});

describe("a link", () => {
  it("signs in once", async () => {
    await expect(signIn(served.baseUrl, served.link)).rejects.toThrow("401");
  });

  it("is worth nothing after five minutes, and a session after twelve hours without a request", () => {
    const clock = createManualClock();
    const sessions = createPageSessions(clock);
    const rights = deriveRights(["operator.read"]);
    const late = sessions.mintLink(rights);
    const used = sessions.signIn(sessions.mintLink(rights));
    clock.set(clock.now() + PAGE_BOUNDS.linkMs);
    expect(sessions.signIn(late).kind).toBe("spent");
    if (used.kind !== "signed_in") throw new Error(used.kind);
    clock.set(clock.now() + PAGE_BOUNDS.sessionMs - PAGE_BOUNDS.linkMs - 1);
    expect(sessions.find(used.token)).toBe(used.session);
    clock.set(clock.now() + PAGE_BOUNDS.sessionMs - 1);
    expect(sessions.find(used.token)).toBe(used.session);
    clock.set(clock.now() + PAGE_BOUNDS.sessionMs);
    expect(sessions.find(used.token)).toBeUndefined();
  });

  it("cannot be guessed for long, and guessing shuts nobody out who has one", () => {
    const sessions = createPageSessions(createManualClock());
    const link = sessions.mintLink(deriveRights(["operator.read"]));
    for (let tries = 0; tries < PAGE_BOUNDS.wrongLinksMax; tries += 1)
      expect(sessions.signIn(`guess-${tries}`).kind).toBe("spent");
    expect(sessions.signIn("guess").kind).toBe("too_many");
    expect(sessions.signIn(link).kind).toBe("signed_in");
  });

  it("and sessions are bounded in number: who follows nothing and asked last the longest ago is signed out", () => {
    const clock = createManualClock();
    const sessions = createPageSessions(clock);
    const rights = deriveRights(["operator.read"]);
    const enter = () => {
      clock.set(clock.now() + 1);
      const outcome = sessions.signIn(sessions.mintLink(rights));
      if (outcome.kind !== "signed_in") throw new Error(outcome.kind);
      return outcome;
    };
    const oldestLink = sessions.mintLink(rights);
    for (let count = 0; count < PAGE_BOUNDS.linksMax; count += 1) sessions.mintLink(rights);
    expect(sessions.signIn(oldestLink).kind).toBe("spent");
    const following = enter();
    following.session.streams += 1;
    const asking = enter();
    const idle = enter();
    for (let count = 3; count < PAGE_BOUNDS.sessionsMax; count += 1) enter();
    clock.set(clock.now() + 1);
    expect(sessions.find(asking.token)).toBe(asking.session);
    const newest = enter();
    expect(sessions.find(idle.token)).toBeUndefined();
    expect(sessions.isAlive(idle.session)).toBe(false);
    for (const { token, session } of [following, asking, newest]) expect(sessions.find(token)).toBe(session);
  });
});

describe("a request from elsewhere", () => {
  it.each([
    "evil.example",
    "evil.example:4096",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "0.0.0.0",
    "[::2]",
  ])("under the name %s is refused, with a token or without", async (host) => {
    for (const path of ["/", "/api/runs", "/assets/x.js"]) {
      const headers = { host, ...readBearer() };
      expect((await sendRequest(served.baseUrl, { path, headers })).status).toBe(403);
    }
  });

  it.each(["localhost:1", "127.0.0.1:4096", "127.1.2.3", "[::1]:4096", "LOCALHOST"])(
    "under the name %s of this machine is answered",
    async (host) => {
      const { status } = await sendRequest(served.baseUrl, {
        path: "/api/runs",
        headers: { host, ...readBearer() },
      });
      expect(status).toBe(200);
    },
  );

  it.each(["http://evil.example", "null", "http://127.0.0.1:1", "file://", "x"])(
    "of a page of origin %s is refused, and gets no CORS header",
    async (origin) => {
      const { status, headers } = await sendRequest(served.baseUrl, {
        path: "/api/runs",
        headers: { origin, ...readBearer() },
      });
      expect(status).toBe(403);
      expect(headers["access-control-allow-origin"]).toBeUndefined();
    },
  );

  it("of the page itself is answered", async () => {
    const headers = { origin: served.baseUrl, ...readBearer() };
    expect((await sendRequest(served.baseUrl, { path: "/api/runs", headers })).status).toBe(200);
  });
});

describe("a Host header that is no name of a host", () => {
  it.each(["9".repeat(400), "1.2.3.4.5.6"])("is refused in words: %s", async (host) => {
    for (const path of ["/", "/api/runs", "/v1/runs", "/readyz"]) {
      const { status, body } = await sendRequest(served.baseUrl, {
        path,
        headers: { host, ...readBearer() },
      });
      expect(status).toBe(400);
      expect(JSON.parse(body)).toMatchObject({ message: expect.stringContaining("Host") as string });
    }
  });
});

describe("every answer", () => {
  it.each(["/", "/assets/none.js", "/api/runs", "/api/nothing"])(
    "of %s says what the browser may do",
    async (path) => {
      const { headers } = await sendRequest(served.baseUrl, { path });
      const policy = String(headers["content-security-policy"]);
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("script-src 'self';");
      expect(policy).toContain("frame-ancestors 'self'");
      expect(policy).not.toMatch(/unsafe|\*/u);
      expect(headers).toMatchObject({
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
      });
    },
  );
});

describe("hostile input", () => {
  const HOSTILE = [
    "<script>alert(1)</script>",
    "\u202egnp.exe",
    "a\u0000b",
    "../../etc/passwd",
    "%2e%2e%2f",
    "x".repeat(5_000),
  ];

  it.each(HOSTILE)("is no id of anything: %j", async (id) => {
    for (const path of [
      `runs/${encodeURIComponent(id)}`,
      `runs/${encodeURIComponent(id)}/events`,
      `questions/${encodeURIComponent(id)}`,
    ])
      expect((await client.ask(path)).status).toBe(404);
  });

  it.each(["../index.html", "..%2findex.html", "%2e%2e/package.json", "x.js%00"])(
    "is no file: %s",
    async (name) => {
      expect([403, 404, 400]).toContain(
        (await sendRequest(served.baseUrl, { path: `/assets/${name}` })).status,
      );
    },
  );

  it("in the search finds nothing and breaks nothing", async () => {
    for (const text of HOSTILE.slice(0, 3))
      expect((await client.ask(`runs?text=${encodeURIComponent(text)}`)).body).toMatchObject({ runs: [] });
    expect((await client.ask(`runs?text=${"x".repeat(PAGE_BOUNDS.queryCharsMax + 1)}`)).status).toBe(422);
  });

  it("in a body is refused by its size, type, depth and form", async () => {
    const path = "plans/check";
    expect((await client.ask(path, { body: { text: "x".repeat(PAGE_BOUNDS.bodyBytesMax) } })).status).toBe(
      413,
    );
    const headers = { "content-type": "text/plain" };
    expect((await client.ask(path, { body: { text: "x" }, headers })).status).toBe(415);
    expect((await client.ask(path, { body: { text: 5 } })).status).toBe(422);
    expect((await client.ask(path, { body: { text: "x", more: 1 } })).status).toBe(422);
    const deep = JSON.parse(`${"[".repeat(200)}${"]".repeat(200)}`) as unknown;
    expect((await client.ask(path, { body: deep })).status).toBe(422);
  });
});

describe("actions where there is no gateway", () => {
  it.each([
    ["runs/plan-report/cancel", {}],
    ["runs/plan-report/steps/draft/retry", {}],
    ["claims/1/release", {}],
    ["runs/plan-report/fork", { event: 3 }],
    ["plans/run", { text: "{}" }],
  ])("%s says that it needs one", async (path, body) => {
    const { status, body: answered } = await client.ask(path, { body });
    expect([status, answered["error"]]).toEqual([409, "needs_gateway"]);
    expect(answered["message"]).toContain("openclaw coordination page");
  });

  it("a plan is checked all the same, each problem with its place", async () => {
    const text =
      "coordinationId: x\nobjective: y\nsteps:\n  - { stepId: a, agent: main, task: t, dependsOn: [b] }\n";
    const { body } = await client.ask("plans/check", { body: { text } });
    expect(body["ok"]).toBe(false);
    const problems = body["problems"] as { line?: number; path: string }[];
    expect(problems.length).toBeGreaterThan(0);
    const broken = await client.ask("plans/check", { body: { text: "a: [1" } });
    expect(broken.body).toMatchObject({ ok: false, problems: [{ code: "FILE_SYNTAX", line: 1 }] });
  });
});

describe("rights", () => {
  let app: PageApp;
  let sessions: PageSessions;

  async function askWith(scopes: readonly string[], path: string, body?: object): Promise<Response> {
    const signedIn = sessions.signIn(sessions.mintLink(deriveRights(scopes)));
    if (signedIn.kind !== "signed_in") throw new Error(signedIn.kind);
    return app.fetch(
      new Request(`http://localhost/api/${path}`, {
        ...(body && { method: "POST", body: JSON.stringify(body) }),
        headers: {
          host: "localhost",
          "content-type": "application/json",
          authorization: `Bearer ${signedIn.token}`,
        },
      }),
    );
  }

  beforeAll(async () => {
    const clock = createManualClock();
    sessions = createPageSessions(clock);
    const ledger = await openTestLedger(folder.file("ledger.sqlite"));
    app = createBarePage(ledger, {
      clock,
      sessions,
      ask: () => Promise.resolve({ ok: true, payload: { happened: "done" } }),
    });
    return async () => {
      app.close();
      await ledger.close();
    };
  });

  it("are the scopes of the host", () => {
    expect(deriveRights([])).toEqual({ read: false, approve: false, write: false, results: false });
    expect(deriveRights(["operator.read"])).toEqual({
      read: true,
      approve: false,
      write: false,
      results: true,
    });
    expect(deriveRights(["operator.write"])).toEqual({
      read: true,
      approve: false,
      write: true,
      results: true,
    });
    expect(deriveRights(["operator.approvals"])).toEqual({
      read: false,
      approve: true,
      write: false,
      results: false,
    });
    expect(deriveRights(["operator.admin"])).toEqual({
      read: true,
      approve: true,
      write: true,
      results: true,
    });
  });

  it("that are not there are refused with the scope that is missing", async () => {
    const reads = ["operator.read"];
    for (const [path, scope] of [
      ["runs/x/cancel", "operator.write"],
      ["questions/x/answer", "operator.approvals"],
    ] as const) {
      const response = await askWith(reads, path, {});
      expect(response.status).toBe(403);
      expect(await response.text()).toContain(scope);
    }
    expect((await askWith(["operator.approvals"], "runs")).status).toBe(403);
    expect(createRefusalSentences(deriveRights(reads), "gateway").write).toContain("operator.write");
  });

  it("are given to nobody who guesses links, who is told to wait or to get a link", async () => {
    for (let tries = 0; tries < PAGE_BOUNDS.wrongLinksMax; tries += 1) sessions.signIn(`guess-${tries}`);
    const request = new Request("http://localhost/api/session", {
      method: "POST",
      body: JSON.stringify({ link: "guess" }),
      headers: { host: "localhost", "content-type": "application/json" },
    });
    const response = await app.fetch(request);
    expect([response.status, ((await response.json()) as { message: string }).message]).toEqual([
      429,
      "Too many links that do not count were tried in the last minute. Get a new one with `openclaw coordination page`.",
    ]);
  });

  it("to read results are asked for before a result is read", async () => {
    const response = await askWith(["operator.approvals"], `runs/${REPORT}/steps/draft/result`);
    expect(response.status).toBe(403);
  });

  it("let the frame of the tab ask, whose origin is null, and no other page", async () => {
    const ask = (origin: string, method = "GET") =>
      app.fetch(new Request("http://localhost/api/runs", { method, headers: { host: "localhost", origin } }));
    const framed = await ask("null");
    expect([framed.status, framed.headers.get("access-control-allow-origin")]).toEqual([401, "null"]);
    expect(framed.headers.get("access-control-allow-credentials")).toBeNull();
    const preflight = await ask("null", "OPTIONS");
    expect([preflight.status, preflight.headers.get("access-control-allow-headers")]).toEqual([
      204,
      expect.stringContaining("authorization"),
    ]);
    expect((await ask("http://evil.example", "OPTIONS")).status).toBe(403);
  });
});
