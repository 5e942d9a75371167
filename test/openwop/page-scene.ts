/** Owns: the operator's page over a recorded ledger, served on a loopback address, and a client that signs in. */
import { request as httpRequest } from "node:http";
import type { SignedIn } from "../../src/plugins/page/contract/session.ts";
import {
  startServedOpenWop,
  type RunningServer,
  type ServingOptions,
} from "../../src/plugins/serve-openwop.ts";
import { createServing } from "./create-serving.ts";

export interface ServedPage extends AsyncDisposable {
  readonly baseUrl: string;
  readonly link: string;
}

export async function servePage(
  ledgerPath: string,
  options: Partial<ServingOptions> = {},
): Promise<ServedPage> {
  const served: RunningServer = await startServedOpenWop(createServing(ledgerPath, options));
  const [, link = ""] = served.createPageUrl().split("#link=");
  return { baseUrl: served.baseUrl, link, [Symbol.asyncDispose]: () => served.stop() };
}

export async function signIn(baseUrl: string, link: string): Promise<SignedIn> {
  const response = await fetch(`${baseUrl}/api/session`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ link }),
  });
  if (!response.ok) throw new Error(`signing in was answered ${response.status}`);
  return (await response.json()) as SignedIn;
}

export interface PageClient {
  get<T>(path: string): Promise<T>;
  /** Returns the status with the body. */
  ask(
    path: string,
    options?: { readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> },
  ): Promise<{ readonly status: number; readonly body: Readonly<Record<string, unknown>> }>;
  readonly signedIn: SignedIn;
}

export function createPageClient(baseUrl: string, signedIn: SignedIn): PageClient {
  const authorization = `Bearer ${signedIn.token}`;
  const ask: PageClient["ask"] = async (path, { body, headers = {} } = {}) => {
    const response = await fetch(`${baseUrl}/api/${path}`, {
      ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
      headers: {
        authorization,
        ...(body !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  return {
    signedIn,
    ask,
    get: async <T>(path: string) => {
      const { status, body } = await ask(path);
      if (status !== 200) throw new Error(`${path} was answered ${status}: ${JSON.stringify(body)}`);
      return body as T;
    },
  };
}

interface RawRequest {
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface RawAnswer {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: string;
}

/** Sends a request with headers that `fetch` does not let one choose, such as `Host`. */
export function sendRequest(
  baseUrl: string,
  { path, method = "GET", headers = {} }: RawRequest,
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(new URL(path, baseUrl), { method, headers }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (part: string) => (body += part));
      response.on("end", () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
      });
    });
    request.on("error", reject);
    request.end();
  });
}

export interface LiveEvent {
  readonly event: string;
  readonly id?: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Yields the events of the live stream until it is aborted. */
export async function* readLive(
  baseUrl: string,
  { signedIn }: PageClient,
  { signal, lastEventId }: { readonly signal: AbortSignal; readonly lastEventId?: string },
): AsyncGenerator<LiveEvent, void> {
  const response = await fetch(`${baseUrl}/api/live`, {
    signal,
    headers: {
      authorization: `Bearer ${signedIn.token}`,
      ...(lastEventId !== undefined && { "last-event-id": lastEventId }),
    },
  });
  if (!response.ok || !response.body) throw new Error(`the stream was answered ${response.status}`);
  let text = "";
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) yield parseBlock(block);
  }
}

function parseBlock(block: string): LiveEvent {
  const fields = new Map(
    block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
  );
  const id = fields.get("id");
  return {
    event: fields.get("event") ?? "",
    ...(id !== undefined && { id }),
    data: JSON.parse(fields.get("data") ?? "{}") as Record<string, unknown>,
  };
}
