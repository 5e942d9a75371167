/** Owns: the real host of `serve` on a loopback port with two tenants, as somebody who attacks it over HTTP meets it. */
import { request as httpRequest } from "node:http";
import { startServedOpenWop, type ServingOptions } from "../../../src/plugins/serve-openwop.ts";
import { createServing } from "../../openwop/create-serving.ts";
import { createNode, createNoop, createWorkflow } from "../../openwop/levels-workflows.ts";
import { clientOf, type Client } from "../../openwop/levels-world.ts";
import { createTempFolder } from "../../support/temp-ledger.ts";

export const MINER = "token-of-the-miners-0001";
export const SECOND_MINER = "token-of-the-miners-0002";
export const STRANGER = "token-of-the-strangers-1";

export const WORKFLOWS = [
  createWorkflow("echo", { nodes: [createNoop("only")], variables: { said: "" } }),
  createWorkflow("gated", {
    nodes: [createNode("gate", "core.approvalGate", { config: { title: "Dig?" } }), createNoop("after")],
  }),
  createWorkflow("slow", { nodes: [createNode("wait", "core.delay", { config: { delayMs: 600_000 } })] }),
];

/** A request to `serve`, apart from its path. */
export interface SentRequest {
  readonly method?: string;
  /** Absent: the miners' token; empty: none. */
  readonly token?: string;
  readonly body?: unknown;
  /** Sent as it is, where a body is no JSON. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Answer {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly text: string;
}

export interface AttackedHost extends AsyncDisposable {
  readonly baseUrl: string;
  readonly ledgerPath: string;
  readonly folder: string;
  readonly miner: Client;
  readonly stranger: Client;
  /** All that the host logged. */
  readonly logged: readonly string[];
  /** Sends a request with any header and any path, as `fetch` would not. */
  send(path: string, sent?: SentRequest): Promise<Answer>;
}

export async function openAttackedHost(options: Partial<ServingOptions> = {}): Promise<AttackedHost> {
  const folder = createTempFolder();
  const ledgerPath = folder.file("ledger.sqlite");
  const logged: string[] = [];
  const served = await startServedOpenWop(
    createServing(ledgerPath, {
      tokens: [
        { tenant: "miners", token: MINER, principal: "ann" },
        { tenant: "miners", token: SECOND_MINER, principal: "bob" },
        { tenant: "strangers", token: STRANGER, principal: "mallory" },
      ],
      definitions: WORKFLOWS,
      verbose: true,
      log: (line) => void logged.push(line),
      ...options,
    }),
  );
  const { baseUrl } = served;
  return {
    baseUrl,
    ledgerPath,
    folder: folder.path,
    logged,
    miner: clientOf(baseUrl, MINER),
    stranger: clientOf(baseUrl, STRANGER),
    send: (path, sent) => sendRequest(baseUrl, path, sent),
    [Symbol.asyncDispose]: async () => {
      await served.stop();
      folder[Symbol.dispose]();
    },
  };
}

export function sendRequest(baseUrl: string, path: string, sent: SentRequest = {}): Promise<Answer> {
  const { method = "GET", token = MINER, body, headers = {} } = sent;
  const text = sent.text ?? (body === undefined ? undefined : JSON.stringify(body));
  const { hostname, port } = new URL(baseUrl);
  const all = {
    ...(token !== "" && { authorization: `Bearer ${token}` }),
    ...(text !== undefined && { "content-type": "application/json" }),
    ...headers,
  };
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest({ hostname, port, path, method, headers: all }, (response) => {
      let received = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (received += chunk));
      response.on("error", reject);
      response.on("end", () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text: received });
      });
    });
    outgoing.on("error", reject);
    outgoing.end(text);
  });
}

/** Returns the body of an answer that is JSON. */
export function readJson({ text }: Answer): Readonly<Record<string, unknown>> {
  return JSON.parse(text) as Readonly<Record<string, unknown>>;
}
