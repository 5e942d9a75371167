import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WORKFLOW_BOUNDS } from "../../src/agents/coordination/contracts/workflows/workflow-bounds.ts";
import { openTestLedger } from "../support/temp-ledger.ts";
import { findSchemaProblems } from "./levels-schemas.ts";
import { end, createLoop, createNode, createNoop, work, createWorkflow } from "./levels-workflows.ts";
import {
  filterByType,
  findOnly,
  openWorld,
  OTHER_TOKEN,
  TOKEN,
  type Reply,
  type World,
} from "./levels-world.ts";

const CANARY = "openwop-conformance-canary-secret";
const FILES = "/v1/host/workspace/files";
const { workspaceFileBytesMax, workspaceVersionsMax } = WORKFLOW_BOUNDS;

const write = (id: string, path: string, content: string, config: object = {}) =>
  createNode(id, "openclaw.workspace.write", { config: { path, content, ...config } });
const read = (id: string, path: string, into: string) =>
  createNode(id, "openclaw.workspace.read", { config: { path, into } });
const gate = createNode("gate", "core.approvalGate", { config: { title: "Go on?" } });

const DEFINITIONS = [
  createWorkflow("conformance-noop", { nodes: [createNoop("only")] }),
  createWorkflow("writes", {
    nodes: [write("file", "run/made.md", "by a run"), read("look", "run/made.md", "seen")],
  }),
  createWorkflow("reads", { nodes: [gate, read("look", "run/slow.md", "seen")] }),
  createWorkflow("leaks", { nodes: [write("file", "run/leak.md", `the key is ${CANARY}`)] }),
  createWorkflow("changes", { nodes: [write("file", "run/guarded.md", "mine", { ifVersion: 1 })] }),
  createLoop("hands-over", {
    plan: [work(["writes"]), work(["looks"]), end()],
    dispatch: { outputMapping: { got: "seen" } },
  }),
  createWorkflow("looks", { nodes: [read("look", "run/made.md", "seen")], variables: { seen: undefined } }),
  createWorkflow("forked", {
    nodes: [
      write("file", "run/fork.md", "first"),
      gate,
      write("again", "run/fork.md", "second"),
      read("look", "run/base.md", "seen"),
    ],
  }),
];

let world: World;

beforeAll(async () => {
  world = await openWorld(DEFINITIONS);
});
afterAll(() => world.close());

interface RequestSetting {
  readonly token?: string;
  readonly ifMatch?: string;
  readonly query?: string;
  readonly isRaw?: boolean;
}

async function ask(
  method: string,
  path: string,
  body?: unknown,
  request: RequestSetting = {},
): Promise<Reply> {
  const { query = "", isRaw = false } = request;
  const name = path === "" ? "" : `/${isRaw ? path : encodeURIComponent(path)}`;
  const response = await fetch(`${world.baseUrl}${FILES}${name}${query}`, {
    method,
    headers: headersOf(body, request),
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const answer = (text === "" ? {} : JSON.parse(text)) as Reply["body"];
  if (response.status >= 400) expect(findSchemaProblems("error-envelope", answer)).toEqual([]);
  return { status: response.status, headers: Object.fromEntries(response.headers), body: answer };
}

function headersOf(body: unknown, { token = TOKEN, ifMatch }: RequestSetting): Record<string, string> {
  return {
    authorization: `Bearer ${token}`,
    ...(body !== undefined && { "content-type": "application/json" }),
    ...(ifMatch !== undefined && { "if-match": ifMatch }),
  };
}

const put = (path: string, content: string, request?: RequestSetting) =>
  ask("PUT", path, { content }, request);
const get = (path: string, request?: RequestSetting) => ask("GET", path, undefined, request);
const remove = (path: string, request?: RequestSetting) => ask("DELETE", path, undefined, request);

async function listFiles(request?: RequestSetting): Promise<readonly unknown[]> {
  const { body } = await ask("GET", "", undefined, request);
  return (body["files"] as readonly { readonly path: string }[]).map(({ path }) => path);
}

describe("files of a workspace", () => {
  it("L5-50 are written, read, listed without their contents, and removed", async () => {
    const created = await put("docs/A.md", "first body");
    expect(created.status).toBe(200);
    expect(findSchemaProblems("workspace-file", created.body)).toEqual([]);
    expect(created.body).toMatchObject({ path: "docs/A.md", version: 1, contentType: "text/markdown" });
    expect(created.headers["etag"]).toBe(created.body["etag"]);
    expect((await get("docs/A.md")).body).toEqual(created.body);
    expect((await get("docs/A.md", { isRaw: true })).body).toEqual(created.body);
    const { body } = await ask("GET", "", undefined, { query: "?prefix=docs/" });
    const { content: _, ...info } = created.body;
    expect(body["files"]).toEqual([info]);
    expect((await remove("docs/A.md")).status).toBe(204);
    expect((await get("docs/A.md")).status).toBe(404);
    expect((await remove("docs/A.md")).status).toBe(404);
    expect(await listFiles()).not.toContain("docs/A.md");
  });

  it("L5-51 are written only over the version that is matched, where one is named", async () => {
    const first = await put("b.md", "1");
    const etag = String(first.body["etag"]);
    const stale = await put("b.md", "no", { ifMatch: '"definitely-stale"' });
    expect(stale.status).toBe(409);
    expect(stale.body).toMatchObject({ error: "workspace_conflict", details: { currentVersion: 1 } });
    expect((await put("b.md", "2", { ifMatch: etag })).body).toMatchObject({ version: 2 });
    expect((await put("b.md", "3", { ifMatch: etag })).body).toMatchObject({
      details: { currentVersion: 2 },
    });
    expect((await remove("b.md", { ifMatch: etag })).status).toBe(409);
    expect((await put("b.md", "3", { ifMatch: "*" })).body).toMatchObject({ version: 3 });
    expect((await put("never.md", "1", { ifMatch: "*" })).body).toMatchObject({
      details: { currentVersion: 0 },
    });
    expect((await get("b.md")).body).toMatchObject({ content: "3" });
  });

  it("L5-52 have a bound, and what is larger is refused", async () => {
    const whole = "x".repeat(workspaceFileBytesMax);
    expect((await put("big.md", whole)).status).toBe(200);
    const { status, body } = await put("big.md", `${whole}x`);
    expect([status, body["error"]]).toEqual([413, "workspace_too_large"]);
    expect(body["details"]).toEqual({ maxFileBytes: workspaceFileBytesMax });
    // Bytes count, not characters; and whatever fits can be sent.
    expect((await put("big.md", "\u0001".repeat(workspaceFileBytesMax))).status).toBe(200);
    expect((await put("big.md", "é".repeat(workspaceFileBytesMax / 2 + 1))).status).toBe(413);
    expect((await get("big.md")).body).toMatchObject({ version: 2 });
  });

  it("L5-53 are there as they were, for as many versions as are advertised", async () => {
    for (let version = 1; version <= workspaceVersionsMax + 1; version += 1)
      await put("c.md", `text ${version}`);
    expect((await get("c.md", { query: "?version=2" })).body).toMatchObject({
      content: "text 2",
      version: 2,
    });
    expect((await get("c.md", { query: "?version=1" })).status).toBe(404);
    expect((await get("c.md", { query: "?version=999" })).status).toBe(404);
    expect((await get("c.md", { query: "?version=0" })).status).toBe(400);
    await remove("c.md");
    const again = await put("c.md", "again");
    expect(again.body).toMatchObject({ version: workspaceVersionsMax + 3 });
  });

  it("L5-54 are those of the tenant that the token names, whoever asks for them", async () => {
    const theirs = { token: OTHER_TOKEN };
    await put("d.md", "only of the first");
    const foreign = await get("d.md", theirs);
    expect(foreign.status).toBe(404);
    expect(JSON.stringify(foreign.body)).not.toContain("only of");
    expect(await listFiles(theirs)).toEqual([]);
    expect((await remove("d.md", theirs)).status).toBe(404);
    expect((await put("d.md", "of the other", theirs)).body).toMatchObject({ version: 1 });
    expect((await get("d.md")).body).toMatchObject({ content: "only of the first" });
    expect((await get("d.md", { token: "somebody-without-a-token" })).status).toBe(401);
  });

  it("L5-55 hold no secret that the host knows, whoever wrote it", async () => {
    const written = await put("e.md", `keep ${CANARY} safe`);
    expect(written.body["content"]).toBe("keep [REDACTED:conformance-test-secret] safe");
    await world.client.run("leaks");
    expect((await get("run/leak.md")).body["content"]).toBe("the key is [REDACTED:conformance-test-secret]");
    const ledger = await openTestLedger(world.ledgerPath, { mode: "read" });
    expect(await ledger.inspect()).toEqual([]);
    await ledger.close();
  });

  it("L5-56 have names that lead nowhere else", async () => {
    const wrong = [
      "../a",
      "a/../b",
      "/a",
      ".hidden",
      "a b",
      "ä",
      "a".repeat(257),
      "a\u0000",
      "a\\b",
      "a..b",
      "-a",
    ];
    for (const path of wrong) {
      const { status, body } = await put(path, "x");
      expect([path, status, body["error"]]).toEqual([path, 400, "validation_error"]);
      expect((await get(path)).status).toBe(400);
    }
    for (const path of ["a".repeat(256), "a/b/c.d-e_f", "0", "A//b/"])
      expect((await put(path, "x")).status).toBe(200);
  });

  it("B-83 refuse bodies that are none, as every route does", async () => {
    for (const body of [
      {},
      { content: 5 },
      { content: "a", path: "b" },
      { content: "a", contentType: "no type" },
      { content: "half a pair: \ud800" },
    ])
      expect((await ask("PUT", "f.md", body)).status).toBe(400);
    for (const contentType of ["text/plain; charset=utf-8", 'text/plain; charset="utf-8"'])
      expect((await ask("PUT", "f.md", { content: "a", contentType })).status).toBe(200);
    expect((await ask("POST", "f.md", { content: "a" })).status).toBe(405);
  });

  it("B-84 of owners that a test names are kept apart, and from those of the tenant", async () => {
    const postOp = async (workspace: string, tenant: string, more: object) => {
      const path = "WCT1.md";
      return world.client.post("/v1/host/sample/workspace/op", { tenant, workspace, path, ...more });
    };
    expect((await postOp("ws-a", "t-a", { op: "put", content: "A-only" })).status).toBe(200);
    for (const [workspace, tenant] of [
      ["ws-b", "t-a"],
      ["ws-a", "t-b"],
      ["", ""],
    ] as const) {
      const found = await postOp(workspace, tenant, { op: "get" });
      expect(found.status).toBe(404);
      expect((await postOp(workspace, tenant, { op: "list" })).body).toEqual({ files: [] });
    }
    expect((await postOp("ws-a", "t-a", { op: "get" })).body).toMatchObject({ content: "A-only" });
    expect((await get("WCT1.md")).status).toBe(404);
    expect((await postOp("ws-a", "t-a", { op: "delete" })).status).toBe(204);
  });
});

describe("a run and the workspace", () => {
  it("L5-60 shows what was there when it began, and reads it as it was then", async () => {
    const { client } = world;
    await put("run/slow.md", "before");
    const runId = await client.start("reads");
    await client.until(runId, "waiting-approval");
    await put("run/slow.md", "after");
    await put("run/late.md", "after");
    const shown = (await client.snapshot(runId))["workspace"] as readonly { path: string; version: number }[];
    expect(shown).toContainEqual({ path: "run/slow.md", version: 1 });
    expect(shown.map(({ path }) => path)).not.toContain("run/late.md");
    await client.resolve(runId, "gate", { action: "accept" });
    const { variables } = await client.until(runId, "completed");
    expect(variables["seen"]).toEqual({ path: "run/slow.md", version: 1, content: "before" });
    expect((await get("run/slow.md")).body).toMatchObject({ version: 2 });
  });

  it("L5-61 tells of each write of its own by path and version, and of no content", async () => {
    const version = Number((await get("run/made.md")).body["version"] ?? 0);
    const { snapshot, events } = await world.client.run("writes");
    const event = findOnly(events, "workspace.updated");
    expect(event).toMatchObject({ nodeId: "file", payload: { path: "run/made.md", version: version + 1 } });
    expect(Object.keys(event.payload).toSorted()).toEqual(["path", "version"]);
    // Its files are for nodes that come later.
    expect(snapshot.variables["seen"]).toBeNull();
    expect((await get("run/made.md")).body).toMatchObject({ content: "by a run", version: version + 1 });
  });

  it("L5-62 shares it with the runs that it starts", async () => {
    await remove("run/made.md");
    const { snapshot, events } = await world.client.run("hands-over");
    expect(snapshot.variables["got"]).toMatchObject({ path: "run/made.md", content: "by a run" });
    expect(filterByType(events, "workspace.updated")).toEqual([]);
  });

  it("L5-63 fails a write over a version that is not there any more, and writes nothing", async () => {
    await put("run/guarded.md", "theirs");
    const [first, second] = [await world.client.run("changes"), await world.client.run("changes")];
    expect(first.snapshot.status).toBe("completed");
    expect(second.snapshot).toMatchObject({ status: "failed", error: { code: "workspace_conflict" } });
    expect(filterByType(second.events, "workspace.updated")).toEqual([]);
    expect((await get("run/guarded.md")).body).toMatchObject({ version: 2, content: "mine" });
  });

  it("L5-64 that is a branch reads it as it was at its place, and writes into one of its own", async () => {
    const { client } = world;
    await put("run/base.md", "at the fork");
    const source = await client.start("forked");
    await client.until(source, "waiting-approval");
    const fromSeq = (await client.events(source)).length;
    await put("run/base.md", "later");
    const forked = await client.post(`/v1/runs/${source}:fork`, { mode: "branch", fromSeq });
    const branch = String(forked.body["runId"]);
    await client.until(branch, "waiting-approval");
    await client.resolve(branch, "gate", { action: "accept" });
    const { variables } = await client.until(branch, "completed");
    expect(variables["seen"]).toMatchObject({ content: "at the fork" });
    const made = filterByType(await client.events(branch), "workspace.updated");
    expect(made.map(({ payload }) => payload["version"])).toEqual([1, 2]);
    // The source's own file is as the source left it.
    expect((await get("run/fork.md")).body).toMatchObject({ content: "first", version: 1 });
    await client.resolve(source, "gate", { action: "accept" });
    await client.until(source, "completed");
    expect((await get("run/fork.md")).body).toMatchObject({ content: "second", version: 2 });
  });

  it("L5-65 that is a replay tells of the source's writes again, and makes none", async () => {
    const { client } = world;
    const source = await client.run("writes");
    const before = (await get("run/made.md")).body;
    const forked = await client.post(`/v1/runs/${source.runId}:fork`, { mode: "replay", fromSeq: 0 });
    const replay = String(forked.body["runId"]);
    await client.until(replay, "completed");
    const [event] = filterByType(await client.events(replay), "workspace.updated");
    expect(event?.payload).toEqual(findOnly(source.events, "workspace.updated").payload);
    expect((await get("run/made.md")).body).toEqual(before);
  });
});
