/** One token of a peer that cannot be used, as where its variable is not set, stops calls to that peer and nothing else. */
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import type { LogFields } from "../../src/agents/coordination/ports/logger.ts";
import { serveOpenWop, type ServedOpenWop } from "../../src/plugins/compose-openwop.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { clientOf } from "./levels-world.ts";

const TOKEN = "a-token-that-is-long-enough";
const REASON =
  "names a variable that is not set, or is not a word of visible ASCII characters (openwop.peerTokens, --peer-token).";

const WORKFLOWS = [
  createWorkflow("alone", { nodes: [createNode("only")] }),
  createWorkflow("by-mcp", {
    nodes: [createNode("call", "core.ai.callPrompt", { mcp: { tool: "digs", arguments: {} } })],
  }),
  createWorkflow("by-a2a", {
    nodes: [createNode("call", "core.a2a.invoke", { skill: "digs", message: "gold" })],
  }),
  createWorkflow("by-child", {
    nodes: [createNode("call", "core.subWorkflow", { workflowId: "alone" })],
  }),
];

const folder = createTempFolder();
const warnings: (readonly [LogFields, string])[] = [];
let requestsToPeer = 0;
let peer: Server;
let host: Server;
let served: ServedOpenWop;
let ledger: Awaited<ReturnType<typeof openTestLedger>>;

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

let peerUrl: string;
let baseUrl: string;

beforeAll(async () => {
  peer = createServer((_, response) => {
    requestsToPeer += 1;
    response.writeHead(500).end();
  });
  peerUrl = await listen(peer);
  mkdirSync(folder.file("workflows"));
  for (const workflow of WORKFLOWS)
    writeFileSync(folder.file(`workflows/${workflow.id}.json`), JSON.stringify(workflow));
  ledger = await openTestLedger(folder.file("ledger.sqlite"));
  const openwop = {
    enabled: true,
    tokens: [{ token: TOKEN }],
    workflows: [folder.file("workflows")],
    peerTokens: { [peerUrl]: "${NOT_SET_HERE}", "https://other.example": "a-token" },
    allowPrivate: [peerUrl],
  };
  served = await serveOpenWop({
    config: parsePluginConfig({ coordination: { phase1: { openwop } } }),
    hostConfig: {},
    environment: {},
    readVariable: () => undefined,
    ledgerPath: folder.file("ledger.sqlite"),
    stateDir: folder.path,
    store: ledger.workflows,
    coordinations: {} as never,
    chat: {} as never,
    logger: {
      debug: () => undefined,
      info: () => undefined,
      warn: (fields, message) => warnings.push([fields, message]),
      error: () => undefined,
    },
    version: "0.0.0",
    baseUrl: "http://127.0.0.1:1",
  });
  host = createServer((request, response) => void served.handle(request, response));
  baseUrl = await listen(host);
});

afterAll(async () => {
  host.close();
  host.closeAllConnections();
  await served.close();
  await ledger.close();
  peer.close();
  folder[Symbol.dispose]();
});

describe("a gateway with a peer's token whose variable is not set", () => {
  it("warns when it begins to serve, with the peer and without the other ones", () => {
    expect(warnings).toEqual([[{ peer: peerUrl }, `calls to a peer fail: its token ${REASON}`]]);
  });

  it("runs workflows that do not call that peer", async () => {
    const { snapshot } = await clientOf(baseUrl, TOKEN).run("alone");
    expect(snapshot.status).toBe("completed");
  });

  it.each(["by-mcp", "by-a2a", "by-child"])(
    "fails a call to that peer at once, and says why: %s",
    async (workflowId) => {
      const { snapshot } = await clientOf(baseUrl, TOKEN).run(workflowId, { inputs: { peerUrl } });
      expect(snapshot.status).toBe("failed");
      expect(JSON.stringify(snapshot)).toContain(`The token for the other side ${REASON}`);
      expect(requestsToPeer).toBe(0);
    },
  );
});
