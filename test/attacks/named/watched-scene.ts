/** Owns: a gateway whose plugin tells people by webhook and exports spans and metrics, and an operator's MCP client of it. */
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { expect } from "vitest";
import { createPlanAccess, type UsePlans } from "../../../src/plugins/openclaw/runtime-access/plan-access.ts";
import { createPlanMethods, type PlanMethods } from "../../../src/plugins/openclaw/plans/plan-methods.ts";
import { createPlanTools } from "../../../src/plugins/openclaw/plans/plan-tools.ts";
import { throwGatewayRefusal } from "../../../src/plugins/cli/ledger/ask-gateway.ts";
import type { OperatorAccess } from "../../../src/plugins/mcp/mcp-tool.ts";
import { startMcp } from "../../../src/plugins/serve-mcp.ts";
import { startOtlpCollector, type OtlpCollector } from "../../support/otlp-collector.ts";
import { waitFor } from "../../support/wait-for.ts";
import { CHILD, openAttackedPlugin, OWNER, type AttackedPlugin } from "./plugin-scene.ts";
import { startTrap, type Trap } from "./trap.ts";

/** The host's configuration has it, so that it is known. */
export const WEBHOOK_SECRET = "secret-of-the-webhook-0001";

export interface WatchedGateway extends AsyncDisposable {
  readonly plugin: AttackedPlugin;
  readonly collector: OtlpCollector;
  readonly receiver: Trap;
  readonly methods: PlanMethods;
  /** Plays a tool of the child. */
  callTool(tool: "coordination_report" | "coordination_escalate", params: object): Promise<unknown>;
  endChild(): Promise<void>;
  coordinationId(): Promise<string>;
  scrapeMetrics(): Promise<string>;
  /**
   * Returns the answers to these requests of one session over the standard streams, in their order. `runAfterMethod` is called
   * whenever the gateway has answered a method.
   */
  askMcp(
    requests: readonly McpRequest[],
    runAfterMethod?: () => Promise<unknown>,
  ): Promise<readonly string[]>;
}

export interface McpRequest {
  readonly method: string;
  readonly params: object;
}

/** A child of the owner works; it was spawned under this name and task. */
export async function openWatchedGateway(spawned: Record<string, unknown> = {}): Promise<WatchedGateway> {
  const collector = await startOtlpCollector();
  const receiver = await startTrap();
  const ops = { url: receiver.url, secret: WEBHOOK_SECRET, allowPrivate: true };
  const plugin = await openAttackedPlugin({
    settleMs: 0,
    escalations: { notify: [{ channel: "webhook:ops" }], webhooks: { ops } },
    telemetry: { enabled: true, endpoint: collector.url },
    metrics: { enabled: true },
  });
  const use = createPlanAccess(plugin.host.api);
  const methods = createPlanMethods(use);
  await waitUntilExporting(use);
  await plugin.spawn(OWNER, CHILD, spawned);
  return {
    plugin,
    collector,
    receiver,
    methods,
    callTool: (tool, params) => createPlanTools(use, () => true)(tool, { sessionKey: CHILD }, params),
    endChild: () => endChild(plugin),
    coordinationId: async () => {
      const [created] = await plugin.readEvents("coordination.created");
      return created?.runId ?? expect.fail("nothing was coordinated");
    },
    scrapeMetrics: () =>
      use(async (_, { metrics }) => (await metrics?.scrape())?.text ?? expect.fail("there are no metrics")),
    askMcp: (requests, runAfterMethod = () => Promise.resolve()) =>
      askMcp(plugin.ledgerPath, requests, async (method, params) => {
        const answer = await methods(method, params);
        await runAfterMethod();
        return answer.ok ? { ...answer.payload } : throwGatewayRefusal({ ok: false, ...answer.error });
      }),
    [Symbol.asyncDispose]: async () => {
      await plugin[Symbol.asyncDispose]();
      await receiver[Symbol.asyncDispose]();
      await collector[Symbol.asyncDispose]();
    },
  };
}

/** Spans are exported of what is appended after the export began. */
async function waitUntilExporting(use: UsePlans): Promise<void> {
  const isExporting = (): Promise<unknown> =>
    use(async (_, runtime) => (await runtime.coordinator()).exports.holder("otlp"));
  await waitFor(isExporting, { what: "the export of spans to begin" });
}

function endChild({ handlers }: AttackedPlugin): Promise<void> {
  const ended = { targetSessionKey: CHILD, targetKind: "subagent", reason: "done", outcome: "ok" };
  return handlers.subagentEnded({ ...ended, runId: `run of ${CHILD}` } as never);
}

const INITIALIZE: McpRequest = {
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "x", version: "1" } },
};

/** Returns the answers of a server over the standard streams whose gateway `askGateway` plays, in the order of the requests. */
export async function askMcp(
  ledgerPath: string,
  requests: readonly McpRequest[],
  askGateway: OperatorAccess["askGateway"],
): Promise<readonly string[]> {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const served = await startMcp({
    ledgerPath,
    input,
    output,
    definitions: [],
    confidenceFloor: 0.5,
    escalationThreshold: 0.7,
    privateOrigins: [],
    peerTokens: {},
    version: "0.0.0",
    verbose: false,
    tenant: "default",
    mayAnswer: true,
    log: () => undefined,
    operator: { askGateway, verifyLedger: () => Promise.resolve({}) },
  });
  try {
    const lines = createInterface({ input: output })[Symbol.asyncIterator]();
    const answers: string[] = [];
    for (const [id, request] of [INITIALIZE, ...requests].entries()) {
      input.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...request })}\n`);
      answers.push(String((await lines.next()).value));
    }
    return answers.slice(1);
  } finally {
    await served.stop();
  }
}
