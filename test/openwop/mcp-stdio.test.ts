/** Owns: `mcp` over the standard streams of a process of its own, as an unmodified client of the official library sees it. */
import { describe, expect, it } from "vitest";
import { importsOf, listSourceFiles } from "../architecture/read-imports.ts";
import { startMcp } from "../support/mcp-process.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { callTool, DEFINITIONS } from "./mcp-world.ts";

const MCP_CODE = /^plugins\/(?:mcp\/|serve-mcp)/u;

describe("mcp over stdio", () => {
  it("runs a workflow that asks a person, over a restart, and proves the ledger", async () => {
    using folder = createTempFolder();
    const first = await startMcp(folder.path, { definitions: DEFINITIONS, args: ["--allow-answers"] });
    const { data } = await callTool(first, "gated");
    const runId = String(data["runId"]);
    expect(data).toMatchObject({ status: "waiting-approval", question: { nodeId: "gate" } });
    await first.close();
    const second = await startMcp(folder.path, { definitions: DEFINITIONS, args: ["--allow-answers"] });
    const questions = await callTool(second, "questions");
    expect(questions.data["questions"]).toEqual([expect.objectContaining({ runId, nodeId: "gate" })]);
    await callTool(second, "answer", { runId, value: { action: "accept" } });
    const ended = await callTool(second, "status", { runId, waitSeconds: 20 });
    expect(ended.data).toMatchObject({ status: "completed" });
    expect((await callTool(second, "verify")).data).toMatchObject({ ok: true, workflowRuns: 1 });
    await second.close();
  });

  it("lets no client answer for people unless the operator says so, and asks the gateway for plans", async () => {
    using folder = createTempFolder();
    const served = await startMcp(folder.path, { definitions: DEFINITIONS });
    const { tools } = await served.client.listTools();
    const names = tools.map(({ name }) => name);
    expect(names).toContain("plan_run");
    expect(names).not.toContain("answer");
    const { text } = await callTool(served, "gated");
    expect(text).toContain("A person must answer it elsewhere");
    const refused = await callTool(served, "plan_run", { plan: { steps: [] } });
    expect(refused.isError).toBe(true);
    expect(refused.text).toMatch(/GATEWAY_UNREACHABLE|INPUT_INVALID/);
    await served.close();
  });

  it("ends where a message is too large to be read, and its runs are there for the next", async () => {
    using folder = createTempFolder();
    const options = { definitions: DEFINITIONS, args: ["--allow-answers"] };
    const first = await startMcp(folder.path, options);
    const { data } = await callTool(first, "gated");
    const huge = callTool(first, "echo", { word: "x".repeat(10_000_000) });
    await expect(huge).rejects.toThrow("Connection closed");
    const second = await startMcp(folder.path, options);
    const questions = await callTool(second, "questions");
    expect(questions.data["questions"]).toEqual([expect.objectContaining({ runId: data["runId"] })]);
    await second.close();
  });

  it("is loaded by nothing that does not want it", () => {
    const importers = listSourceFiles()
      .filter((file) => file.endsWith(".ts") && !MCP_CODE.test(file))
      .flatMap((file) => importsOf(file))
      .filter(({ target, kind }) => kind === "value" && MCP_CODE.test(target));
    expect(importers.map(({ file }) => file)).toEqual([]);
  });
});
