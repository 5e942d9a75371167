/** Owns: an OpenWOP host on a port of its own with a ledger of its own, and what a client of it can do. */
import { join } from "node:path";
import { expect } from "vitest";
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import type { WorkflowEvent } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { startServedOpenWop, type ServingOptions } from "../../src/plugins/serve-openwop.ts";
import { loadOpenWopSchemas } from "../core/openwop-schemas.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";
import { createServing } from "./create-serving.ts";
import { findSchemaProblems } from "./levels-schemas.ts";

export const TOKEN = "token-of-the-first-tenant";
export const OTHER_TOKEN = "token-of-the-other-tenant";

export interface Event {
  readonly eventId: string;
  readonly runId: string;
  readonly sequence: number;
  readonly type: string;
  readonly timestamp: string;
  readonly nodeId?: string;
  readonly causationId?: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

export interface Snapshot extends Readonly<Record<string, unknown>> {
  readonly runId: string;
  readonly status: string;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: string; readonly message: string };
  readonly currentNodeId?: string;
  readonly childRuns?: readonly { readonly runId: string; readonly status: string }[];
  readonly interrupt?: {
    readonly kind: string;
    readonly nodeId: string;
    readonly interruptToken?: string;
    readonly callbackUrl?: string;
  };
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Start {
  readonly inputs?: Readonly<Record<string, unknown>>;
  readonly configurable?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly scopeId?: string;
}

export interface Client {
  readonly baseUrl: string;
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<Reply>;
  post(path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Reply>;
  /** The id of the run, which was accepted. */
  start(workflowId: string, start?: Start): Promise<string>;
  snapshot(runId: string): Promise<Snapshot>;
  /** The whole log; each event of it is what the official schemas describe. */
  events(runId: string): Promise<Event[]>;
  /** The snapshot once the status is one of these. */
  until(runId: string, ...statuses: readonly string[]): Promise<Snapshot>;
  /** Starts a run and follows it to its end. */
  run(workflowId: string, start?: Start): Promise<EndedRun>;
  resolve(runId: string, nodeId: string, resumeValue: unknown): Promise<Reply>;
}

/** A run that has ended, with its snapshot and its log. */
export interface EndedRun {
  readonly runId: string;
  readonly snapshot: Snapshot;
  readonly events: readonly Event[];
}

const openWop = loadOpenWopSchemas();

function findEventProblems(event: Event): readonly string[] {
  return openWop.problemsOfWorkflow(event as unknown as WorkflowEvent);
}

const ENDS = ["completed", "failed", "cancelled"];

export function clientOf(baseUrl: string, token: string = TOKEN): Client {
  const always = { accept: "application/json", authorization: `Bearer ${token}` };
  const ask = async (path: string, init: RequestInit): Promise<Reply> => {
    const response = await fetch(`${baseUrl}${path}`, init);
    const text = await response.text();
    const body = (text === "" ? {} : JSON.parse(text)) as Reply["body"];
    if (response.status >= 400) expect(findSchemaProblems("error-envelope", body)).toEqual([]);
    return { status: response.status, headers: Object.fromEntries(response.headers), body };
  };
  const client: Client = {
    baseUrl,
    get: (path, headers = {}) => ask(path, { headers: { ...always, ...headers } }),
    post: (path, body = {}, headers = {}) =>
      ask(path, {
        method: "POST",
        headers: { ...always, "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      }),
    start: async (workflowId, { headers = {}, ...request } = {}) => {
      const reply = await client.post("/v1/runs", { workflowId, ...request }, headers);
      expect(reply.body).toMatchObject({ runId: expect.any(String) as string });
      expect(reply.status).toBe(201);
      return String(reply.body["runId"]);
    },
    snapshot: async (runId) => {
      const { status, body } = await client.get(`/v1/runs/${runId}`);
      expect(status).toBe(200);
      expect(openWop.problemsOfSnapshot(body)).toEqual([]);
      return body as Snapshot;
    },
    events: async (runId) => {
      const { status, body } = await client.get(`/v1/runs/${runId}/events`);
      expect(status).toBe(200);
      const events = body["events"] as Event[];
      expect(events.flatMap(findEventProblems)).toEqual([]);
      expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
      return events;
    },
    until: async (runId, ...statuses) => {
      let last = "unknown";
      const look = async (): Promise<Snapshot | undefined> => {
        const snapshot = await client.snapshot(runId);
        last = snapshot.status;
        if (ENDS.includes(last) && !statuses.includes(last))
          throw new Error(`the run is ${last}: ${JSON.stringify(snapshot.error)}`);
        return statuses.includes(last) ? snapshot : undefined;
      };
      return waitFor(look, { what: `${runId} to be ${statuses.join(" or ")}`, everyMs: 15 }).catch(
        (error: unknown) => {
          throw new Error(`the run was last ${last}`, { cause: error });
        },
      );
    },
    run: async (workflowId, start) => {
      const runId = await client.start(workflowId, start);
      const snapshot = await client.until(runId, ...ENDS);
      return { runId, snapshot, events: await client.events(runId) };
    },
    resolve: (runId, nodeId, resumeValue) =>
      client.post(`/v1/runs/${runId}/interrupts/${nodeId}`, { resumeValue }),
  };
  return client;
}

export interface World {
  readonly baseUrl: string;
  readonly client: Client;
  /** A client of another tenant. */
  readonly other: Client;
  readonly ledgerPath: string;
  /** Stops the host and starts it again on the same ledger, and on the same port. */
  restart(): Promise<void>;
  /** Stops it, until `restart`. */
  stop(): Promise<void>;
  close(): Promise<void>;
}

export async function openWorld(
  definitions: readonly WorkflowDefinition[],
  options: Partial<ServingOptions> = {},
): Promise<World> {
  const folder = createTempFolder();
  const ledgerPath = join(folder.path, "runs.sqlite");
  const serving = createServing(ledgerPath, {
    definitions,
    tokens: [
      { tenant: "first", token: TOKEN },
      { tenant: "other", token: OTHER_TOKEN },
    ],
    testSeams: true,
    ...options,
  });
  let served: Awaited<ReturnType<typeof startServedOpenWop>> | undefined = await startServedOpenWop(serving);
  const { baseUrl } = served;
  const port = Number(new URL(baseUrl).port);
  const stop = async (): Promise<void> => {
    await served?.stop();
    served = undefined;
  };
  return {
    baseUrl,
    ledgerPath,
    stop,
    client: clientOf(baseUrl),
    other: clientOf(baseUrl, OTHER_TOKEN),
    restart: async () => {
      await stop();
      served = await startServedOpenWop({ ...serving, port });
    },
    close: async () => {
      await stop();
      folder[Symbol.dispose]();
    },
  };
}

/** Events of a type, or of several. */
export function filterByType(events: readonly Event[], ...types: readonly string[]): Event[] {
  return events.filter(({ type }) => types.includes(type));
}

/** The handoff state machine's events, in order. */
export function chainOf(events: readonly Event[]): Event[] {
  return filterByType(events, "core.workflowChain.event");
}

export function phasesOf(events: readonly Event[]): unknown[] {
  return chainOf(events).map(({ payload }) => payload["phase"]);
}

/** The one event of a type. */
export function findOnly(events: readonly Event[], type: string): Event {
  const found = filterByType(events, type);
  expect(found.map((event) => event.type)).toEqual([type]);
  const [event = expect.fail(`there is no ${type}`)] = found;
  return event;
}

/** The only child run that was dispatched. */
export function childOf(events: readonly Event[]): string {
  return String(findOnly(events, "node.dispatched").payload["childRunId"]);
}
