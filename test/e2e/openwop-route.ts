/** Owns: requests to OpenWOP as a route of the real gateway. */
import { expect } from "vitest";
import type { Json } from "../support/gateway.ts";
import { waitFor } from "../support/wait-for.ts";
import { TOKEN_OF_ENVIRONMENT, type Stage } from "./stage.ts";

const OPENWOP_PATH = "/coordination/openwop";

interface Request {
  readonly method?: string;
  readonly token?: string | undefined;
  readonly body?: unknown;
  readonly accept?: string;
}

export interface OpenwopRoute {
  readonly ask: (path: string, request?: Request) => Promise<Response>;
  /** Returns the answer, and throws where it is an error. */
  readonly readPath: (path: string, request?: Request) => Promise<Json>;
  /** Returns the id of a new run. */
  readonly begin: (workflowId: string, inputs?: Json) => Promise<string>;
  readonly waitUntilRun: (runId: string, status: string) => Promise<Json>;
  readonly eventsOf: <E>(runId: string) => Promise<E[]>;
  readonly waitUntilServed: () => Promise<void>;
}

/** The body of an answer to people's questions. */
export const APPROVAL = { body: { resumeValue: { action: "accept" } } };

const ENDS: ReadonlySet<string> = new Set(["completed", "failed", "cancelled"]);

/** Asks the gateway that the stage has at the time of the request. */
export function createOpenwopRoute(findStage: () => Stage): OpenwopRoute {
  const route: OpenwopRoute = {
    ask: (path, request) => sendRequest(`${addressOf(findStage())}${path}`, request),
    readPath: async (path, request) => {
      const response = await route.ask(path, request);
      const text = await response.text();
      if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text.slice(0, 500)}`);
      return JSON.parse(text) as Json;
    },
    begin: async (workflowId, inputs = {}) =>
      String((await route.readPath("/v1/runs", { body: { workflowId, inputs } }))["runId"]),
    waitUntilRun: (runId, status) => waitUntilRun(route, runId, status),
    eventsOf: async <E>(runId: string) => {
      const page = await route.readPath(`/v1/runs/${runId}/events`, { accept: "application/json" });
      expect(page["isComplete"]).toBe(true);
      return page["events"] as E[];
    },
    waitUntilServed: async () => {
      const isServed = async (): Promise<boolean> => {
        const response = await route.ask("/.well-known/openwop");
        return response.status === 200 && (response.headers.get("content-type") ?? "").includes("json");
      };
      await waitFor(isServed, { what: "the discovery document", timeoutMs: 30_000, everyMs: 250 });
    },
  };
  return route;
}

export const addressOf = ({ gateway }: Stage): string => `http://127.0.0.1:${gateway.port}${OPENWOP_PATH}`;

function sendRequest(
  url: string,
  { method, token = TOKEN_OF_ENVIRONMENT, body, accept }: Request = {},
): Promise<Response> {
  return fetch(url, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(accept && { accept }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

async function waitUntilRun({ readPath }: OpenwopRoute, runId: string, status: string): Promise<Json> {
  const snapshot = await waitFor(
    async () => {
      const latest = await readPath(`/v1/runs/${runId}`);
      const isOver = ENDS.has(String(latest["status"]));
      return latest["status"] === status || isOver ? latest : undefined;
    },
    { what: `${runId} to be ${status}`, timeoutMs: 30_000, everyMs: 50 },
  );
  // Why it ended otherwise.
  if (snapshot["status"] !== status) expect(snapshot["error"]).toEqual({ status });
  return snapshot;
}
