/**
 * Messages to the A2A server in both revisions of its protocol, made from a seed: each is answered in time and in words, and none
 * ends as a fault of ours. `FUZZ_A2A` sets how many, `FUZZ_SEED` the first seed.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openMcpWorld, TOKEN, type McpWorld } from "../openwop/mcp-world.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import {
  createSender,
  describeSent,
  findAnswerFault,
  runCampaign,
  type TimedAnswer,
  type Sender,
  type HostileRequest,
} from "../support/hostile-requests.ts";
import {
  createHostileText,
  createHostileValue,
  pickOne,
  spoilText,
  type Random,
} from "../support/hostile-values.ts";
import { createRandom } from "../support/random.ts";

const MESSAGES = chooseCampaignSize("FUZZ_A2A", { short: 2_000, long: 150_000 });
const SEED = Number(process.env["FUZZ_SEED"] ?? 1);
const TASKS_KNOWN_MAX = 60;
const INTERNAL_ERROR = -32_603;

type Fields = Readonly<Record<string, unknown>>;
type Version = "1.0" | "0.3";

const METHODS = {
  "1.0": [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "GetExtendedAgentCard",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
  ],
  "0.3": [
    "message/send",
    "message/stream",
    "tasks/get",
    "tasks/cancel",
    "tasks/resubscribe",
    "agent/getAuthenticatedExtendedCard",
    "tasks/pushNotificationConfig/set",
    "tasks/pushNotificationConfig/get",
    "tasks/pushNotificationConfig/list",
    "tasks/pushNotificationConfig/delete",
  ],
} as const;

const SKILLS = ["echo", "gated", "status"] as const;

let world: McpWorld;
let sender: Sender;
const taskIds: string[] = ["no-such-task"];
let tasks = 0;

beforeAll(async () => {
  world = await openMcpWorld({ a2a: true });
  sender = createSender(world.baseUrl, { readsStreams: true });
  // The first messages load code.
  for (let seed = 1; seed <= 50; seed += 1) await tryOne(seed);
});

afterAll(async () => {
  sender.close();
  await world[Symbol.asyncDispose]();
});

/** Returns the value, or by chance a hostile one in its place. */
function spoil(random: Random, chance: number, value: unknown): unknown {
  return random() < chance ? createHostileValue(random) : value;
}

function createPart(random: Random, version: Version): Fields {
  const text = random() < 0.3 ? pickOne(random, ["accept", "reject"]) : createHostileText(random);
  const data = { word: random() < 0.5 ? text : createHostileValue(random) };
  const file = { fileWithUri: "file:///etc/passwd", fileWithBytes: "AAAA", uri: text };
  const choice = random();
  if (version === "1.0")
    return choice < 0.5 ? { text } : choice < 0.9 ? { data } : { url: text, raw: "AA==" };
  if (choice < 0.5) return { kind: "text", text };
  return choice < 0.9 ? { kind: "data", data } : { kind: "file", file };
}

function createUserMessage(random: Random, version: Version, chance: number): Fields {
  const parts = Array.from({ length: Math.floor(random() * 4) }, () =>
    spoil(random, chance, createPart(random, version)),
  );
  return {
    ...(version === "0.3" && { kind: "message" }),
    role: spoil(random, chance, version === "1.0" ? "ROLE_USER" : "user"),
    messageId: spoil(random, chance, `m-${Math.floor(random() * 1e6)}`),
    parts: spoil(random, chance, parts),
    metadata: spoil(random, chance, { skillId: spoil(random, chance, pickOne(random, SKILLS)) }),
    ...(random() < 0.3 && { taskId: spoil(random, chance, pickOne(random, taskIds)) }),
    ...(random() < 0.2 && { contextId: spoil(random, chance, "talk-1") }),
    ...(random() < chance && { extensions: createHostileValue(random), [createHostileText(random)]: 1 }),
  };
}

function createParams(random: Random, version: Version, chance: number): Fields {
  const configuration = {
    blocking: random() < 0.5,
    returnImmediately: random() < 0.5,
    historyLength: createHostileValue(random),
    ...(random() < chance && { taskPushNotificationConfig: { url: createHostileText(random) } }),
  };
  const id = spoil(random, chance, pickOne(random, taskIds));
  return {
    message: spoil(random, chance, createUserMessage(random, version, chance)),
    id,
    taskId: id,
    ...(random() < 0.3 && { configuration: spoil(random, chance, configuration) }),
    ...(random() < 0.3 && { pageSize: spoil(random, chance, 5), pageToken: createHostileText(random) }),
    ...(random() < 0.2 && { contextId: createHostileText(random), status: createHostileValue(random) }),
  };
}

function createRequest(random: Random): HostileRequest {
  const version = pickOne<Version>(random, ["1.0", "0.3"]);
  const chance = pickOne(random, [0, 0.03, 0.1, 0.3]);
  const method = pickOne(random, METHODS[version]);
  const message = {
    jsonrpc: spoil(random, chance / 2, "2.0"),
    id: spoil(random, chance, Math.floor(random() * 1e6)),
    method: spoil(random, chance / 2, method),
    params: spoil(random, chance, createParams(random, version, chance)),
  };
  const isFirst = random() < 0.5;
  const isLegacy = version === "0.3" && isFirst;
  return {
    method: "POST",
    path: "/v1/a2a",
    headers: {
      authorization: `Bearer ${TOKEN}`,
      "content-type": random() < 0.98 ? "application/json" : "text/plain",
      ...(!isLegacy && { "a2a-version": random() < 0.97 ? version : "9.9" }),
    },
    body: spoilText(random, spoil(random, chance / 4, message), chance / 4),
    // It goes on while its task waits for people.
    leavesStream: method === "SubscribeToTask" || method === "tasks/resubscribe",
  };
}

/** Describes why an answer of JSON-RPC tells nothing, or tells of a fault of ours. */
function findRpcFault(text: string): string | undefined {
  const events = text.split("\n").filter((line) => line.startsWith("data: "));
  for (const event of events.length > 0 ? events.map((line) => line.slice(6)) : [text]) {
    const { error } = JSON.parse(event) as { readonly error?: { code?: unknown; message?: unknown } };
    if (!error) continue;
    if (error.code === INTERNAL_ERROR)
      return `it is an error of ours: ${JSON.stringify(error).slice(0, 300)}`;
    if (typeof error.message !== "string" || error.message.length < 10)
      return `it does not say what is wrong: ${JSON.stringify(error).slice(0, 300)}`;
  }
  return undefined;
}

function rememberTask(text: string): void {
  const id = /"id":"([\w-]{10,})"/u.exec(text)?.[1];
  if (id === undefined) return;
  tasks += 1;
  if (taskIds.length < TASKS_KNOWN_MAX) taskIds.push(id);
}

function findFault(answered: TimedAnswer): string | undefined {
  const { text } = answered;
  const fault = findAnswerFault(answered);
  return fault !== undefined || text === "" ? fault : findRpcFault(text);
}

async function tryOne(seed: number): Promise<string | undefined> {
  const random = createRandom(seed);
  random();
  const sent = createRequest(random);
  const answered = await sender.send(sent);
  if (answered.text.includes('"result"')) rememberTask(answered.text);
  const fault = findFault(answered);
  return fault && `${fault}; ${describeSent(sent)}`;
}

describe("messages to the A2A server", () => {
  it(`are each answered, whatever is in them (${MESSAGES})`, { timeout: 3_600_000 }, async () => {
    expect(await runCampaign({ firstSeed: SEED, count: MESSAGES, tryOne })).toEqual([]);
    expect(tasks).toBeGreaterThan(MESSAGES / 20);
  });
});
