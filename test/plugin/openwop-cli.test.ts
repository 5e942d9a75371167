import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { applyConfigChanges, listEnableChanges } from "../../src/plugins/openclaw/host/operator-config.ts";
import { createMemoryConfig, runCli } from "../cli/run-cli.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";

const ON = { enabled: true, tokens: [{ token: "a-token-that-is-long-enough" }] };

function createConfigured(openwop: object) {
  const phase1 = { openwop };
  const config: object = {
    gateway: { port: 4_100 },
    plugins: { entries: { coordination: { config: { coordination: { phase1 } } } } },
  };
  applyConfigChanges(config, listEnableChanges(config, {}));
  return createMemoryConfig(config);
}

interface CommandReport {
  readonly openwop?: object;
  readonly checks?: readonly { readonly name: string; readonly status: string; readonly message: string }[];
}

async function runToldCommand(command: string, openwop: object, stateDir: string): Promise<CommandReport> {
  const { stdout } = await runCli([command, "--json"], { stateDir, config: createConfigured(openwop) });
  return JSON.parse(stdout) as CommandReport;
}

async function checksOf(openwop: object, stateDir: string) {
  const { checks = [] } = await runToldCommand("doctor", openwop, stateDir);
  return checks.filter(({ name }) => name.startsWith("openwop") || name === "config");
}

describe("status", () => {
  it("says whether OpenWOP is served, and where", async () => {
    using state = createTempFolder();
    expect((await runToldCommand("status", {}, state.path)).openwop).toEqual({ served: false });
    const url = "http://127.0.0.1:4100/coordination/openwop";
    expect((await runToldCommand("status", ON, state.path)).openwop).toEqual({
      served: true,
      url,
      tenants: 1,
    });
    const { stdout } = await runCli(["status"], { stateDir: state.path, config: createConfigured(ON) });
    expect(stdout).toContain(`OpenWOP       ${url} for 1 tenant`);
  });
});

describe("doctor", () => {
  it("says nothing of OpenWOP where nobody wants it", async () => {
    using state = createTempFolder();
    expect(await checksOf({}, state.path)).toEqual([]);
  });

  it("says that a token is missing", async () => {
    using state = createTempFolder();
    expect(await checksOf({ enabled: true }, state.path)).toMatchObject([
      { name: "config", status: "fail", message: expect.stringContaining("at least one token") as unknown },
    ]);
  });

  it("warns of a variable that is not set here, and is content with one that is", async () => {
    using state = createTempFolder();
    const openwop = { enabled: true, tokens: [{ token: "${OPENWOP_TEST_VARIABLE}" }] };
    expect(await checksOf(openwop, state.path)).toMatchObject([
      { name: "openwop-tokens", status: "warn" },
      { name: "openwop-workflows", status: "ok", message: "0 workflows in 0 folders" },
      { name: "openwop-agents", status: "ok", message: "0 agents in 0 folders" },
    ]);
    vi.stubEnv("OPENWOP_TEST_VARIABLE", "a-token-that-is-long-enough");
    const [tokens] = await checksOf(openwop, state.path);
    vi.unstubAllEnvs();
    expect(tokens).toMatchObject({ status: "ok", message: "1 token of 1 tenant" });
  });

  it("warns of a peer whose token cannot be used here, by name, and is content with the others", async () => {
    using state = createTempFolder();
    const peerTokens = { "https://peer.example": "${OPENWOP_TEST_VARIABLE}", "https://other.example": "a" };
    const findPeerCheck = async () =>
      (await checksOf({ ...ON, peerTokens }, state.path)).find(({ name }) => name === "openwop-peer-tokens");
    expect(await findPeerCheck()).toMatchObject({
      status: "warn",
      message: expect.stringMatching(
        /^The token for https:\/\/peer\.example names a variable that is not set[^.]*\.[^.]*\.$/u,
      ) as unknown,
    });
    vi.stubEnv("OPENWOP_TEST_VARIABLE", "short");
    const check = await findPeerCheck();
    vi.unstubAllEnvs();
    expect(check).toMatchObject({ status: "ok", message: "2 tokens" });
  });

  it("names the folder that cannot be read and the file that is no workflow", async () => {
    using state = createTempFolder();
    const openwop = { ...ON, workflows: ["flows"] };
    const findWorkflowCheck = async () =>
      (await checksOf(openwop, state.path)).find(({ name }) => name === "openwop-workflows");
    expect(await findWorkflowCheck()).toMatchObject({
      status: "fail",
      message: expect.stringContaining("flows: there is no such folder") as unknown,
    });
    const folder = join(state.path, "flows");
    mkdirSync(folder);
    writeFileSync(
      join(folder, "good.json"),
      JSON.stringify(createWorkflow("good", { nodes: [createNode("only")] })),
    );
    expect(await findWorkflowCheck()).toMatchObject({ status: "ok", message: "1 workflow in 1 folder" });
    writeFileSync(join(folder, "bad.json"), '{"id": "bad"}');
    expect(await findWorkflowCheck()).toMatchObject({
      status: "fail",
      message: expect.stringContaining("bad.json") as unknown,
    });
  });

  it("names the folder of agents that cannot be read, the manifest that is none, and the agent that is there twice", async () => {
    using state = createTempFolder();
    const openwop = { ...ON, agents: ["one", "two"] };
    const findAgentCheck = async () =>
      (await checksOf(openwop, state.path)).find(({ name }) => name === "openwop-agents");
    const write = (path: string, manifest: object) => {
      mkdirSync(dirname(join(state.path, path)), { recursive: true });
      writeFileSync(join(state.path, path), JSON.stringify(manifest));
    };
    const createFailure = (message: string) => ({
      status: "fail",
      message: expect.stringContaining(message) as unknown,
    });
    const writer = {
      agentId: "local.acme.writer",
      persona: "W",
      modelClass: "writing",
      systemPrompt: "Write.",
    };
    write("one/writer.json", writer);
    expect(await findAgentCheck()).toMatchObject(createFailure("two: there is no such folder"));
    write("two/editor.json", { agentId: "local.acme.editor" });
    expect(await findAgentCheck()).toMatchObject(createFailure("editor.json"));
    write("two/editor.json", writer);
    expect(await findAgentCheck()).toMatchObject(createFailure("there is another agent local.acme.writer"));
    write("two/editor.json", { ...writer, agentId: "local.acme.editor" });
    expect(await findAgentCheck()).toMatchObject({ status: "ok", message: "2 agents in 2 folders" });
    symlinkSync("nowhere", join(state.path, "two", "dead.json"));
    expect(await findAgentCheck()).toMatchObject(createFailure("dead.json: it cannot be read (ENOENT)"));
  });
});
