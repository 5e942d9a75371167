/**
 * Requests to every operation of the host's own OpenAPI document, made from its schemas and a seed: no answer is an error of the
 * host, none takes long, and each refusal says in words what is wrong. `FUZZ_REQUESTS` sets how many, `FUZZ_SEED` the first seed.
 */
import { Agent, request } from "node:http";
import { describeError } from "../../src/agents/coordination/std/describe-error.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createNode, createNoop, createWorkflow, WORKERS } from "../openwop/levels-workflows.ts";
import { openWorld, TOKEN, type World } from "../openwop/levels-world.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import {
  createFromSchema,
  createHostileText,
  pickOne,
  spoilText,
  type Random,
} from "../support/hostile-values.ts";
import { createSeeded } from "../support/ledger-fixtures-damage.ts";

const REQUESTS = chooseCampaignSize("FUZZ_REQUESTS", { short: 10_000, long: 300_000 });
const SEED = Number(process.env["FUZZ_SEED"] ?? 1);
const AT_ONCE = 8;
const ANSWER_MS_MAX = 1_000;
const BODY_CHARS_MAX = 5_000_000;
const FAULTS_MAX = 20;

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly operationId: string;
  readonly queries: readonly string[];
  readonly body: Readonly<Record<string, unknown>> | undefined;
}

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
}

interface Answered {
  readonly status: number;
  readonly type: string;
  readonly text: string;
  readonly ms: number;
}

const DEFINITIONS = [
  createWorkflow("plain", { nodes: [createNoop("only")], variables: { found: "gold", count: 1 } }),
  createWorkflow("asks", { nodes: [createNode("gate", "core.interrupt", { config: { kind: "approval" } })] }),
  ...WORKERS,
];

let world: World;
let operations: readonly Operation[];
const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
/** Names that are there. */
const names: string[] = ["plain", "asks", "gate", "only"];

beforeAll(async () => {
  world = await openWorld(DEFINITIONS, { quotas: { forksPerMinute: 1_000_000 } });
  operations = listOperations(await (await fetch(`${world.baseUrl}/v1/openapi.json`)).json());
  for (const workflowId of ["plain", "asks", "asks"]) names.push(await world.client.start(workflowId));
});

afterAll(async () => {
  agent.destroy();
  await world.close();
});

function listOperations(document: unknown): Operation[] {
  const { paths } = document as { paths: Record<string, Record<string, Record<string, unknown>>> };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const parameters = operation["parameters"] as readonly { in: string; name: string }[];
      const { content } = (operation["requestBody"] ?? {}) as {
        content?: Record<string, { schema: Record<string, unknown> }>;
      };
      return {
        method: method.toUpperCase(),
        path,
        operationId: String(operation["operationId"]),
        queries: parameters.filter((each) => each.in === "query").map(({ name }) => name),
        body: content?.["application/json"]?.schema,
      };
    }),
  );
}

function createRequest(random: Random, { method, path, queries, body }: Operation): Sent {
  const pickName = (): string => (random() < 0.6 ? pickOne(random, names) : createHostileText(random));
  const filled = path.replaceAll(/\{\w+\}/gu, () => encode(pickName().slice(0, 2_000)));
  const query = queries
    .filter(() => random() < 0.4)
    .map(
      (name) =>
        `${name}=${encode(random() < 0.5 ? String(Math.floor(random() * 50)) : createHostileText(random).slice(0, 2_000))}`,
    );
  const headers: Record<string, string> = {
    accept: random() < 0.9 ? "application/json" : "text/event-stream",
    ...(random() < 0.95 && { authorization: `Bearer ${TOKEN}` }),
    ...(random() < 0.1 && { "idempotency-key": `key-${Math.floor(random() * 20)}` }),
    ...(random() < 0.05 && { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-zz" }),
    ...(method !== "GET" && { "content-type": random() < 0.97 ? "application/json" : "text/plain" }),
  };
  const chance = pickOne(random, [0, 0.02, 0.1, 0.5]);
  const text =
    method === "GET"
      ? undefined
      : spoilText(random, createFromSchema({ random, chance, words: names }, body ?? {}), chance / 2);
  return { method, path: query.length > 0 ? `${filled}?${query.join("&")}` : filled, headers, body: text };
}

/** A lone surrogate has no encoding. */
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

function send({ method, path, headers, body }: Sent): Promise<Answered> {
  const { promise, resolve, reject } = Promise.withResolvers<Answered>();
  const start = performance.now();
  const outgoing = request(`${world.baseUrl}${path}`, { agent, method, headers }, (response) => {
    const { statusCode: status = 0 } = response;
    const type = response.headers["content-type"] ?? "";
    const ms = performance.now() - start;
    if (type.startsWith("text/event-stream")) {
      response.destroy();
      resolve({ status, type, text: "", ms });
      return;
    }
    let text = "";
    response.setEncoding("utf8");
    response.on("data", (part: string) => (text += part));
    response.on("end", () => {
      resolve({ status, type, text, ms: performance.now() - start });
    });
    response.on("error", reject);
  });
  outgoing.on("error", reject);
  outgoing.end(body);
  return promise;
}

/** Describes why an answer is not what a caller may expect. */
function findFault({ status, type, text, ms }: Answered, { path }: Operation): string | undefined {
  if (status === 500) return "it is an error of the host";
  // A poll waits for what is not there yet.
  if (ms > ANSWER_MS_MAX && !path.endsWith("/poll")) return `it took ${Math.round(ms)} ms`;
  if (text.length > BODY_CHARS_MAX) return `it has ${text.length} characters`;
  return status < 400 || text === "" ? undefined : findRefusalFault(type, text);
}

function findRefusalFault(type: string, text: string): string | undefined {
  if (!type.startsWith("application/json")) return `its refusal is ${type}`;
  const { error, message } = JSON.parse(text) as { error?: unknown; message?: unknown };
  return typeof error === "string" && typeof message === "string" && message.length > 10
    ? undefined
    : `its refusal does not say what is wrong: ${text.slice(0, 200)}`;
}

interface Tried {
  readonly faults: string[];
  /** Operations that did what they were asked at least once. */
  readonly fulfilled: Set<string>;
}

async function tryOne(seed: number, { faults, fulfilled }: Tried): Promise<void> {
  const random = createSeeded(seed);
  // The first numbers of neighbouring seeds are alike.
  random();
  const operation = pickOne(random, operations);
  const sent = createRequest(random, operation);
  const fault = await send(sent).then(
    (answered) => {
      if (answered.status < 300) fulfilled.add(operation.operationId);
      if (answered.status === 201) rememberRun(answered.text);
      return findFault(answered, operation);
    },
    (error: unknown) => describeError(error),
  );
  if (fault === undefined) return;
  const request = `${sent.method} ${sent.path.slice(0, 200)}`;
  faults.push(`seed ${seed}: ${request}: ${fault}; ${String(sent.body ?? "").slice(0, 400)}`);
}

const RUNS_KNOWN_MAX = 60;

function rememberRun(text: string): void {
  const { runId } = JSON.parse(text) as { runId?: string };
  if (runId !== undefined && names.length < RUNS_KNOWN_MAX) names.push(runId);
}

describe("requests made from the host's own document", () => {
  it(`are each answered, whatever is in them (${REQUESTS})`, { timeout: 3_600_000 }, async () => {
    const tried: Tried = { faults: [], fulfilled: new Set() };
    let left = REQUESTS;
    const sendSome = async (): Promise<void> => {
      while (left > 0 && tried.faults.length < FAULTS_MAX) await tryOne(SEED + (left -= 1), tried);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, sendSome));
    expect(tried.faults).toEqual([]);
    // Not all of them were turned away at the door.
    expect(tried.fulfilled.size).toBeGreaterThan(operations.length / 3);
  });
});
