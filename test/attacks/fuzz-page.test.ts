/**
 * Requests to every address of the operator's page, with hostile parts: no answer is an error of the host, none takes long, and
 * each refusal says in words what is wrong. `FUZZ_PAGE` sets how many, `FUZZ_SEED` the first seed.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ACTION_ROUTES } from "../../src/plugins/page/server/page-actions.ts";
import { OTHERS, recordQuestions, REPORT, SPAWNS } from "../cli/recorded-questions.ts";
import { servePage, signIn, type ServedPage } from "../openwop/page-scene.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import {
  createSender,
  describeSent,
  findAnswerFault,
  findRefusalFault,
  runCampaign,
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
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { spoilFile } from "./hostile-files.ts";

const REQUESTS = chooseCampaignSize("FUZZ_PAGE", { short: 1_500, long: 150_000 });
const SEED = Number(process.env["FUZZ_SEED"] ?? 1);

const READS = [
  "runs",
  "runs/:id",
  "runs/:id/events",
  "runs/:id/steps/:stepId/result",
  "questions",
  "questions/:id",
  "conflicts",
  "claims",
  "health",
  "measures",
  "live",
  "nothing",
];
const QUERIES = ["text", "status", "limit", "after", "before", "from", "event", "since", "kind", "owner"];
const NAMES = [SPAWNS, OTHERS, REPORT, `${REPORT}:escalation-1`, "step-1", "draft", "write", "1"];
const PLAN =
  "coordinationId: x\nobjective: y\nsteps:\n  - { stepId: a, agent: main, task: t, dependsOn: [] }\n";

let folder: TempFolder;
let page: ServedPage;
let sender: Sender;
let token: string;
/** The newest line of the host's log, for whoever looks for the cause of a fault. */
let newestLine = "";
let fulfilled = 0;

beforeAll(async () => {
  folder = createTempFolder();
  await recordQuestions(folder.file("ledger.sqlite"));
  page = await servePage(folder.file("ledger.sqlite"), { log: (line) => (newestLine = line) });
  ({ token } = await signIn(page.baseUrl, page.link));
  sender = createSender(page.baseUrl);
});

afterAll(async () => {
  sender.close();
  await page[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

function encode(text: string): string {
  return encodeURIComponent(text.slice(0, 2_000).toWellFormed());
}

function createPath(random: Random, path: string): string {
  const pickName = (): string => (random() < 0.6 ? pickOne(random, NAMES) : createHostileText(random));
  const filled = path.replaceAll(/:\w+/gu, () => encode(pickName()));
  const queries = Array.from({ length: Math.floor(random() * 3) }, () => {
    const value = random() < 0.4 ? String(Math.floor(random() * 60)) : createHostileText(random);
    return `${pickOne(random, QUERIES)}=${encode(value)}`;
  });
  return queries.length > 0 ? `/api/${filled}?${queries.join("&")}` : `/api/${filled}`;
}

function createBody(random: Random): string | Uint8Array {
  const chance = pickOne(random, [0, 0.1, 0.5]);
  const spoil = (value: unknown): unknown => (random() < chance ? createHostileValue(random) : value);
  const body = {
    ...(random() < 0.6 && {
      text: spoil(random() < 0.5 ? spoilFile(random, PLAN) : createHostileText(random)),
    }),
    ...(random() < 0.3 && { answer: spoil(pickOne(random, ["approve", "deny", "answer"])) }),
    ...(random() < 0.3 && { event: spoil(3), shown: spoil("x") }),
    ...(random() < 0.3 && { policy: spoil({ gates: spoil({}) }) }),
    ...(random() < chance && { [createHostileText(random)]: createHostileValue(random) }),
  };
  return spoilText(random, spoil(body), chance / 3);
}

function createRequest(random: Random): HostileRequest {
  const isRead = random() < 0.5;
  const action = pickOne(random, ACTION_ROUTES);
  const method = isRead ? "GET" : action.method;
  const header = random() < 0.05 ? createHostileText(random).replaceAll(/[^\u{20}-\u{7e}]/gu, "") : "";
  return {
    method: random() < 0.03 ? "DELETE" : method,
    path: createPath(random, isRead ? pickOne(random, READS) : action.path),
    headers: {
      ...(random() < 0.97 && { authorization: `Bearer ${token}` }),
      ...(method === "POST" && { "content-type": random() < 0.97 ? "application/json" : "text/plain" }),
      ...(header !== "" && {
        [pickOne(random, ["last-event-id", "origin", "host"])]: header.slice(0, 5_000),
      }),
    },
    body: method === "POST" ? createBody(random) : undefined,
  };
}

async function tryOne(seed: number): Promise<string | undefined> {
  const random = createRandom(seed);
  random();
  const sent = createRequest(random);
  const answered = await sender.send(sent);
  if (answered.status < 300) fulfilled += 1;
  const isRefused = answered.status >= 400 && answered.text !== "";
  const fault = findAnswerFault(answered) ?? (isRefused ? findRefusalFault(answered) : undefined);
  return fault && `${fault}; ${describeSent(sent)} ${JSON.stringify(sent.headers)}; ${newestLine}`;
}

describe("requests to the operator's page", () => {
  it(`are each answered, whatever is in them (${REQUESTS})`, { timeout: 3_600_000 }, async () => {
    expect(await runCampaign({ firstSeed: SEED, count: REQUESTS, tryOne })).toEqual([]);
    expect(fulfilled).toBeGreaterThan(REQUESTS / 20);
  });
});
