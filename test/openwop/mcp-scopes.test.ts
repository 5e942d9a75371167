/** Owns: which tools of the MCP server of `serve` a token may use, and whose a session is. */
import { describe, expect, it } from "vitest";
import { parseToolScopeOptions } from "../../src/plugins/cli/workflows/host-options.ts";
import { startServedOpenWop } from "../../src/plugins/serve-openwop.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { createServing } from "./create-serving.ts";
import { openMcpWorld, TOKEN, type McpClient, type McpWorld } from "./mcp-world.ts";

const APPROVER = "t-approver";
const RELEASER = "t-releaser";
const TOKENS = [
  { tenant: "miners", token: TOKEN, principal: "ann" },
  { tenant: "miners", token: APPROVER, principal: "ann", scopes: ["approver"] },
  { tenant: "miners", token: RELEASER, principal: "ann", scopes: ["release", "approver"] },
];
const createOne = (id: string) => createWorkflow(id, { nodes: [createNode("only")] });

function openScopedWorld(toolScopes: Record<string, string[]>, ids = ["vendor.release"]): Promise<McpWorld> {
  return openMcpWorld({ definitions: ids.map(createOne), tokens: TOKENS, mcp: { toolScopes } });
}

async function listNames({ client }: McpClient): Promise<string[]> {
  return (await client.listTools()).tools.map(({ name }) => name);
}

describe("scopes of a tool", () => {
  it("hold for a workflow whose id is no name of a tool, by its id and by its tool's name", async () => {
    await using world = await openScopedWorld({ answer: ["approver"], "vendor.release": ["release"] });
    expect((await listNames(await world.connect())).filter((name) => name.startsWith("vendor"))).toEqual([]);
    const names = await listNames(await world.connect(RELEASER));
    const name = names.find((each) => each.startsWith("vendor_release_")) ?? "";
    expect(name).toMatch(/^vendor_release_[0-9a-f]{8}$/u);
    await using again = await openScopedWorld({ [name]: ["release"] });
    expect(await listNames(await again.connect())).not.toContain(name);
    expect(await listNames(await again.connect(RELEASER))).toContain(name);
  });

  it("are asked for by a tool and a workflow of the same name together", async () => {
    await using world = await openScopedWorld({ status: ["approver"] }, ["status"]);
    expect((await listNames(await world.connect())).filter((name) => name.startsWith("status"))).toEqual([]);
    expect(await listNames(await world.connect(APPROVER))).toContain("status");
  });

  it("are none where a workflow is called like what every object has", async () => {
    await using world = await openScopedWorld({}, ["constructor"]);
    expect(await listNames(await world.connect())).toContain("constructor");
  });

  it.each([["anwser"], ["toString"], ["plan_run"], ["vendor_release"]])(
    "are refused for %s, which is no tool: with the names that are there",
    async (name) => {
      using folder = createTempFolder();
      const serving = createServing(folder.file("ledger.sqlite"), {
        tokens: TOKENS,
        definitions: [createOne("vendor.release")],
        mcp: { toolScopes: { answer: ["approver"], [name]: ["approver"] } },
      });
      const starting = startServedOpenWop(serving).then((served) => served.stop());
      await expect(starting).rejects.toMatchObject({
        code: "INPUT_INVALID",
        message: `--mcp-scope: there is no tool or workflow "${name}"; there are: status, questions, answer, verify, vendor.release`,
      });
    },
  );

  it("may be given for a workflow that is known and has nodes that this host does not run", async () => {
    await using world = await openMcpWorld({
      definitions: [createWorkflow("later", { nodes: [createNode("only", "vendor.unknown")] })],
      tokens: TOKENS,
      mcp: { toolScopes: { later: ["release"] } },
    });
    expect(await listNames(await world.connect())).not.toContain("later");
  });

  it("add up where a tool is named twice, and must be some", () => {
    const texts = ["answer=approver", "gated=a, b,", "answer=lead,approver"];
    expect(parseToolScopeOptions(texts, "--mcp-scope")).toEqual({
      answer: ["approver", "lead"],
      gated: ["a", "b"],
    });
    expect(() => parseToolScopeOptions(["answer=,"], "--mcp-scope")).toThrow(
      "--mcp-scope: expected <tool>=<scope>,..., got answer=,",
    );
  });
});

describe("a session of the MCP server", () => {
  it("is not there for another token of the same principal with other scopes", async () => {
    await using world = await openScopedWorld({ answer: ["approver"] });
    const { transport } = await world.connect(APPROVER);
    const list = (token: string): Promise<Response> =>
      fetch(world.mcpUrl, {
        method: "POST",
        headers: {
          authorization: `Bearer ${token}`,
          accept: "application/json, text/event-stream",
          "content-type": "application/json",
          "mcp-session-id": transport.sessionId ?? "",
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
      });
    const statuses = [];
    for (const token of [TOKEN, RELEASER, APPROVER]) statuses.push((await list(token)).status);
    expect(statuses).toEqual([404, 404, 200]);
  });
});
