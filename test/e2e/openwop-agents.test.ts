/** Owns: that an agent's run outlives its host, with the agent that it began with, and that a call is made again as the same one. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { filterByType, findOnly } from "../openwop/levels-world.ts";
import { startMcpTools, type McpToolServer } from "../support/mcp-tools.ts";
import { startScriptedModel, type ScriptedModel } from "../support/scripted-model.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";
import { serveStage } from "./openwop-stage.ts";

let model: ScriptedModel;
let mcp: McpToolServer;
let folder: ReturnType<typeof createTempFolder>;

beforeEach(async () => {
  const turns = [{ call: [{ name: "mcp_slow", args: {} }] }, { say: '{"result":"dug","confidence":1}' }];
  model = await startScriptedModel({ rules: [{ when: (text) => text.includes("dig here"), turns }] });
  mcp = await startMcpTools();
  folder = createTempFolder();
});
afterEach(async () => {
  mcp.release();
  await Promise.all([model.close(), mcp.close()]);
  folder[Symbol.dispose]();
});

function pack(systemPrompt: string, agentId = "vendor.acme.digger"): void {
  const manifest = { agentId, persona: "Digger", modelClass: "reasoning", toolAllowlist: ["mcp:slow"] };
  const agents = [{ ...manifest, systemPromptRef: "prompts/digger.md" }];
  const path = join(folder.path, "agents", "acme");
  mkdirSync(join(path, "prompts"), { recursive: true });
  writeFileSync(join(path, "prompts", "digger.md"), systemPrompt);
  writeFileSync(join(path, "pack.json"), JSON.stringify({ name: "vendor.acme", version: "1.0.0", agents }));
}

function listOptions(): string[] {
  const { origin } = new URL(model.baseUrl);
  return [
    ...["--agents", join(folder.path, "agents"), "--model-url", model.baseUrl, "--model", "plain"],
    ...["--model-class", "reasoning=thinking", "--mcp-server", `tools=${mcp.url}`],
    ...["--allow-private", origin, mcp.origin],
  ];
}

it("goes on after kill -9 in the middle of a call, though its pack is another one meanwhile", async () => {
  await using stage = serveStage([]);
  pack("Dig as the first prompt says.");
  const first = await stage.serve(listOptions());
  const request = { agent: { agentId: "vendor.acme.digger" }, inputs: { task: "dig here" } };
  const { body } = await first.client.post("/v1/runs", request);
  const runId = String(body["runId"]);
  await waitFor(() => mcp.calls.length > 0, { what: "the tool to be called", everyMs: 10 });
  await first.kill9();

  pack("Dig as the other prompt says.", "vendor.acme.other");
  const second = await stage.serve(listOptions());
  expect((await second.client.get("/v1/agents/vendor.acme.digger")).status).toBe(404);
  await waitFor(() => mcp.calls.length > 1, { what: "the call to be made again", everyMs: 10 });
  mcp.release();
  const snapshot = await second.client.until(runId, "completed");
  expect(snapshot["outputs"]).toMatchObject({ result: "dug", agentId: "vendor.acme.digger" });

  const ids = mcp.calls.map(({ meta }) => (meta as Readonly<Record<string, unknown>>)["openclaw/callId"]);
  expect(new Set(ids).size).toBe(1);
  const prompts = model.requests.map(({ body: { messages } }) => JSON.stringify(messages[0]));
  expect(prompts.filter((prompt) => !prompt.includes("the first prompt"))).toEqual([]);
  expect(prompts).toHaveLength(2);
  const events = await stage.log(runId);
  expect(findOnly(events, "agent.invocation.completed").payload["outcome"]).toBe("completed");
  expect(filterByType(events, "agent.toolCalled", "agent.toolReturned")).toHaveLength(2);
  expect(await stage.verify()).toMatchObject({ ok: true, problems: [], exitCode: 0 });
});
