/** Owns: children and callers that try to do more than whoever they work for (ASI03). */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { loadToolNames } from "../../../src/plugins/openclaw/privileges/tool-names.ts";
import { createNode, createWorkflow } from "../../openwop/levels-workflows.ts";
import { clientOf } from "../../openwop/levels-world.ts";
import { CHILD, GRANDCHILD, openAttackedPlugin, OWNER, type AttackedPlugin } from "./plugin-scene.ts";
import { MINER, openAttackedHost, SECOND_MINER, WORKFLOWS, type AttackedHost } from "./serve-scene.ts";

let plugin: AttackedPlugin;
let host: AttackedHost;

beforeAll(async () => {
  await loadToolNames();
  const listed = createWorkflow("listed", {
    nodes: [createNode("gate", "core.approvalGate", { config: { title: "Dig?", approversList: ["ann"] } })],
  });
  host = await openAttackedHost({
    definitions: [...WORKFLOWS, listed],
    tokens: [
      { tenant: "miners", token: MINER, principal: "ann", scopes: ["dig:deep"] },
      { tenant: "miners", token: SECOND_MINER, principal: "bob" },
    ],
  });
});
afterAll(() => host[Symbol.asyncDispose]());
beforeEach(async () => {
  plugin = await openAttackedPlugin();
});
afterEach(() => plugin[Symbol.asyncDispose]());

const READ_ONLY = { coordination: { tools: { allow: ["read", "sessions_spawn"] } } };

it("ASI03-1 a chain of children, each of which asks for all tools for the next", async () => {
  await plugin.spawn(OWNER, CHILD, READ_ONLY);
  let by = CHILD;
  for (let depth = 2; depth <= 6; depth += 1) {
    const next = `agent:main:subagent:depth-${depth}`;
    const all = { coordination: { tools: { allow: ["*"] }, write: ["/**"] } };
    expect(await plugin.spawn(by, next, all)).toBeUndefined();
    expect(await plugin.call(next, "exec", { command: "true" })).toMatch(/may not use exec/u);
    by = next;
  }
});

it.each([
  ["full width letters", "\uff45\uff58\uff45\uff43"],
  ["Cyrillic letters", "\u0435x\u0435c"],
  ["a zero width space", "ex\u200bec"],
  ["a soft hyphen", "ex\u00adec"],
  ["a namespace", "openclaw:core:exec"],
  ["the server of a bundle", "bundle__exec"],
  ["a tool that is allowed before it", "read,exec"],
  ["a line break", "read\nexec"],
  ["a path", "read/../exec"],
  ["a name of JavaScript", "__proto__"],
  ["a word of every object", "constructor"],
])("ASI03-2 a tool that is not allowed, spelled with %s", async (_, tool) => {
  await plugin.spawn(OWNER, CHILD, READ_ONLY);
  expect(await plugin.call(CHILD, tool, { command: "true", path: "x" })).toMatch(/may not use/u);
});

it.each(["EXEC", "Exec", " exec", "bash", "BASH"])(
  "ASI03-3 a tool that is denied by name, spelled %j",
  async (tool) => {
    await plugin.spawn(OWNER, CHILD, { coordination: { tools: { deny: ["exec"] } } });
    expect(await plugin.call(CHILD, tool, { command: "true" })).toMatch(/may not use/u);
  },
);

it("ASI03-4 a call that names another session as its own", async () => {
  await plugin.spawn(OWNER, CHILD, READ_ONLY);
  for (const forged of [
    { sessionKey: OWNER },
    { session: OWNER, agentId: "operator" },
    { coordination: { sessionKey: OWNER, privilege: { tools: { allow: ["*"] } } } },
    { _meta: { sessionKey: OWNER }, elevated: true, ask: "off" },
  ])
    expect(await plugin.call(CHILD, "exec", { command: "true", ...forged })).toMatch(/may not use exec/u);
});

it("ASI03-5 a child that spawns as another agent, or says who its parent is", async () => {
  await plugin.spawn(OWNER, CHILD, READ_ONLY);
  for (const [index, forged] of [
    { agentId: "operator" },
    { spawnedBy: OWNER, parent: OWNER },
    { coordination: { coordinationId: "co-1", sourceSession: OWNER } },
  ].entries()) {
    const next = `agent:operator:subagent:forged-${index}`;
    await plugin.spawn(CHILD, next, forged);
    expect(await plugin.call(next, "exec", { command: "true" })).toMatch(/may not use exec/u);
  }
});

it("ASI03-6 a child that waits for the next start of the gateway", async () => {
  await plugin.spawn(OWNER, CHILD, READ_ONLY);
  await plugin.restart();
  expect(await plugin.call(CHILD, "exec", { command: "true" })).toMatch(/may not use exec/u);
  expect(await plugin.spawn(CHILD, GRANDCHILD, {})).toBeUndefined();
  expect(await plugin.call(GRANDCHILD, "exec", { command: "true" })).toMatch(/may not use exec/u);
});

it("ASI03-7 a child that outlives the configuration under which it began", async () => {
  await plugin.restart({ privileges: { default: { tools: { allow: ["read"] } } } });
  await plugin.spawn(OWNER, CHILD, {});
  await plugin.restart({});
  expect(await plugin.call(CHILD, "exec", { command: "true" })).toMatch(/may not use exec/u);
});

it("ASI03-8 a child that makes its own record unreadable", async () => {
  await plugin.spawn(OWNER, CHILD, READ_ONLY);
  await plugin.stop();
  writeFileSync(plugin.ledgerPath, "no ledger at all ".repeat(1_000));
  await plugin.restart();
  expect(await plugin.call(CHILD, "exec", { command: "true" })).toMatch(
    /cannot be told|cannot be read|refused/u,
  );
});

it("ASI03-9 files beside the folder that a child may change, by names that look alike", async () => {
  mkdirSync(join(plugin.folder, "out"));
  await plugin.spawn(OWNER, CHILD, { coordination: { write: ["out/**"] } });
  for (const path of [
    "out2/a",
    "OUT/../x",
    "o\u0075\u0308t/a",
    "\uff4fut/a",
    "./out/../../x",
    "out\\..\\x",
    "out/./../x",
  ])
    expect([path, await plugin.call(CHILD, "write", { path, content: "x" })]).toEqual([
      path,
      expect.stringMatching(/lies outside|cannot be told/u),
    ]);
});

it("ASI03-10 a link that is made after the first write into its folder", async () => {
  mkdirSync(join(plugin.folder, "out"));
  await plugin.spawn(OWNER, CHILD, { coordination: { write: ["out/**"] } });
  expect(await plugin.call(CHILD, "write", { path: "out/sub/a", content: "x" })).toBeUndefined();
  symlinkSync("/etc", join(plugin.folder, "out", "sub"));
  expect(await plugin.call(CHILD, "write", { path: "out/sub/a", content: "x" })).toMatch(/lies outside/u);
});

it("ASI03-11 a plan of a child that may only read: as work that others do", async () => {
  await plugin.spawn(OWNER, CHILD, READ_ONLY);
  const steps = [{ stepId: "a", task: "t", tools: { allow: ["*"] } }];
  for (const params of [{ plan: { objective: "o", steps } }, { objective: "o", steps }])
    expect(await plugin.call(CHILD, "coordination_plan", params)).toMatch(/may not use coordination_plan/u);
});

it("ASI03-12 a fork that does with one's rights what a stronger caller's run did", async () => {
  const runId = await host.miner.start("gated");
  await host.miner.until(runId, "waiting-approval");
  const weak = clientOf(host.baseUrl, SECOND_MINER);
  const branch = await weak.post(`/v1/runs/${runId}:fork`, { mode: "branch", fromSeq: 1 });
  expect([branch.status, branch.body["error"]]).toEqual([403, "forbidden"]);
  const allowed = await host.miner.post(`/v1/runs/${runId}:fork`, { mode: "branch", fromSeq: 1 });
  expect(allowed.status).toBe(201);
});

it("ASI03-13 an approval by somebody who is not on the list, under the name of one who is", async () => {
  const runId = await host.miner.start("listed");
  await host.miner.until(runId, "waiting-approval");
  const weak = clientOf(host.baseUrl, SECOND_MINER);
  for (const extra of [
    {},
    { voter: "ann" },
    { decidedBy: "ann" },
    { principal: "ann" },
    { approver: "ann" },
  ]) {
    const answer = await weak.resolve(runId, "gate", { action: "accept", ...extra });
    expect([400, 403]).toContain(answer.status);
  }
  expect((await host.miner.snapshot(runId)).status).toBe("waiting-approval");
});

it("ASI03-14 a run that names its own tenant, principal or scopes", async () => {
  const weak = clientOf(host.baseUrl, SECOND_MINER);
  for (const claim of [
    { tenant: "strangers" },
    { tenantId: "strangers", principal: "ann" },
    { createdBy: "ann", scopes: ["dig:deep"] },
    { configurable: { principal: "ann", tenant: "strangers", scopes: ["dig:deep"] } },
  ]) {
    const { status, body } = await weak.post("/v1/runs", { workflowId: "gated", ...claim });
    if (status !== 201) {
      expect(status).toBe(400);
      continue;
    }
    const [started] = await weak.events(String(body["runId"]));
    expect(started?.payload["owner"]).toEqual({ tenant: "miners", principal: "bob" });
    expect((await host.miner.get(`/v1/runs/${String(body["runId"])}`)).status).toBe(200);
  }
});
