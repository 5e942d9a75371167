/**
 * Requests to every operation of the host's own OpenAPI document, made from its schemas and a seed: no answer is an error of the
 * host, none takes long, and each refusal says in words what is wrong. `FUZZ_REQUESTS` sets how many, `FUZZ_SEED` the first seed.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createNode, createNoop, createWorkflow, WORKERS } from "../openwop/levels-workflows.ts";
import { openWorld, TOKEN, type World } from "../openwop/levels-world.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import {
  createSender,
  describeSent,
  findAnswerFault,
  findRefusalFault,
  runCampaign,
  type TimedAnswer,
  type Sender,
  type HostileRequest,
} from "../support/hostile-requests.ts";
import {
  createFromSchema,
  createHostileText,
  pickOne,
  spoilText,
  type Random,
} from "../support/hostile-values.ts";
import { createRandom } from "../support/random.ts";

const REQUESTS = chooseCampaignSize("FUZZ_REQUESTS", { short: 10_000, long: 300_000 });
const SEED = Number(process.env["FUZZ_SEED"] ?? 1);

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly operationId: string;
  readonly queries: readonly string[];
  readonly body: Readonly<Record<string, unknown>> | undefined;
  /** The statuses of the answers that the document names. */
  readonly statuses: ReadonlySet<number>;
}

const DEFINITIONS = [
  createWorkflow("plain", { nodes: [createNoop("only")], variables: { found: "gold", count: 1 } }),
  createWorkflow("asks", { nodes: [createNode("gate", "core.interrupt", { config: { kind: "approval" } })] }),
  ...WORKERS,
];

let world: World;
let operations: readonly Operation[];
let sender: Sender;
/** Names that are there. */
const names: string[] = ["plain", "asks", "gate", "only"];

beforeAll(async () => {
  world = await openWorld(DEFINITIONS, { quotas: { forksPerMinute: 1_000_000 } });
  sender = createSender(world.baseUrl);
  operations = listOperations(await (await fetch(`${world.baseUrl}/v1/openapi.json`)).json());
  for (const workflowId of ["plain", "asks", "asks"]) names.push(await world.client.start(workflowId));
});

afterAll(async () => {
  sender.close();
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
        statuses: new Set(Object.keys(operation["responses"] as object).map(Number)),
      };
    }),
  );
}

function createRequest(random: Random, { method, path, queries, body }: Operation): HostileRequest {
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

/** Describes why an answer is not what a caller may expect. */
function findFault(answered: TimedAnswer, { path, statuses }: Operation): string | undefined {
  // A poll waits for what is not there yet.
  const fault = findAnswerFault(answered, { mayWait: path.endsWith("/poll") });
  if (fault !== undefined) return fault;
  if (!statuses.has(answered.status))
    return `it has a status that the document does not name: ${answered.status}`;
  return answered.status < 400 || answered.text === "" ? undefined : findRefusalFault(answered);
}

/** Operations that did what they were asked at least once. */
const fulfilled = new Set<string>();

async function tryOne(seed: number): Promise<string | undefined> {
  const random = createRandom(seed);
  // The first numbers of neighbouring seeds are alike.
  random();
  const operation = pickOne(random, operations);
  const sent = createRequest(random, operation);
  const answered = await sender.send(sent);
  if (answered.status < 300) fulfilled.add(operation.operationId);
  if (answered.status === 201) rememberRun(answered.text);
  const fault = findFault(answered, operation);
  return fault && `${fault}; ${describeSent(sent)}`;
}

const RUNS_KNOWN_MAX = 60;

function rememberRun(text: string): void {
  const { runId } = JSON.parse(text) as { runId?: string };
  if (runId !== undefined && names.length < RUNS_KNOWN_MAX) names.push(runId);
}

describe("requests made from the host's own document", () => {
  it(`are each answered, whatever is in them (${REQUESTS})`, { timeout: 3_600_000 }, async () => {
    expect(await runCampaign({ firstSeed: SEED, count: REQUESTS, tryOne })).toEqual([]);
    // Not all of them were turned away at the door.
    expect(fulfilled.size).toBeGreaterThan(operations.length / 3);
  });
});
