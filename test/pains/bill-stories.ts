/** P29 and P30: what people see of a tree of agents and of its bill. */
import { expect } from "vitest";
import type { Stage } from "../e2e/stage.ts";
import { begin, call, childOf, ownerOf, read, resultsOf, waitForEnd } from "../e2e/writes-stage.ts";
import { runCli } from "../cli/run-cli.ts";
import type { Json } from "../support/gateway.ts";
import { textOf, type RecordedRequest, type Turn } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import type { Pair } from "./pair.ts";
import { WAIT_MS_MAX } from "./story-parts.ts";

/** US dollars for a million tokens. */
const PRICES = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
export const PRICED_MODEL: Json = {
  id: "scripted",
  name: "Scripted",
  reasoning: false,
  input: ["text"],
  cost: PRICES,
  contextWindow: 128_000,
  maxTokens: 8_000,
};

/** More calls than the budget is enough for. */
const READS = 12;
const READER_TOKENS = 8_000;
const MAIN_SPAWNS = 4;
/** The setting `budget` of the gateway with the flag on. */
export const BUDGET = {
  agents: { reader: { tokens: READER_TOKENS }, main: { spawns: MAIN_SPAWNS, depth: 2 } },
};

/** Gives both gateways an agent with a budget, and room for a tree, beside the model with prices. */
export const BILL_CONFIG: Json = {
  agents: {
    defaults: {
      subagents: { maxConcurrent: 16, allowAgents: ["*"], maxSpawnDepth: 4, maxChildrenPerAgent: 20 },
    },
    // Beside another agent the main one would have a folder of its own.
    ownership: "explicit",
    entries: { main: { workspace: "~/workspace" }, reader: {} },
  },
};

interface Bill {
  readonly calls: number;
  readonly tokens: number;
  readonly costUsd: number;
}

/** Returns what the provider itself counted of the requests of one story, all of whose texts name it. */
function countByProvider({ model }: Stage, story: string): Bill {
  const isOfStory = ({ body }: RecordedRequest): boolean => JSON.stringify(body.messages).includes(story);
  const used = model.requests.filter(isOfStory).flatMap((request) => request.used ?? []);
  const tokens = used.reduce((sum, count) => sum + count.promptTokens + count.completionTokens, 0);
  const costs = used.map(
    ({ promptTokens, cachedTokens, completionTokens }) =>
      (promptTokens - cachedTokens) * PRICES.input +
      cachedTokens * PRICES.cacheRead +
      completionTokens * PRICES.output,
  );
  return { calls: used.length, tokens, costUsd: costs.reduce((sum, cost) => sum + cost, 0) / 1_000_000 };
}

const isSaid = ({ model }: Stage, label: string): boolean =>
  model.requests.some(({ turn, used }) => turn.say === `${label} is at its end` && used !== undefined);

async function playTree(stage: Stage, story: string): Promise<void> {
  const leaf = childOf(`${story}-leaf`, call(read("y.md")));
  const mid = childOf(`${story}-mid`, call(read("x.md")), { spawn: [leaf] });
  await begin(stage, story, { spawn: [mid] });
  await waitFor(() => isSaid(stage, `${story}-leaf`), { what: "the leaf", timeoutMs: WAIT_MS_MAX });
}

interface TreeNode {
  readonly name: string;
  readonly status: string;
  readonly usage?: {
    readonly tokens: number;
    readonly costMicroUsd: number;
    readonly models: readonly string[];
  };
  readonly children: readonly TreeNode[];
}

/** Returns what a command says of the stage's ledger. */
async function readJson({ ledgerPath }: Stage, ...args: readonly string[]): Promise<Json> {
  const { stdout, stderr, exitCode } = await runCli([...args, "--ledger", ledgerPath, "--json"]);
  if (exitCode !== 0) throw new Error(`${args.join(" ")}: ${stdout}${stderr}`);
  return JSON.parse(stdout) as Json;
}

function expectWithinOnePercent(actual: number, expected: number): void {
  expect(Math.abs(actual - expected)).toBeLessThanOrEqual(expected / 100);
}

/** P29: what people see of a tree of agents. */
export async function tellTree({ plain, coordinated }: Pair): Promise<void> {
  await playTree(plain, "tree-p29");
  const { tasks } = (await plain.gateway.call("tasks.list")) as { tasks: readonly Json[] };
  const leaf = tasks.find(({ title }) => title === "tree-p29-leaf");
  // One row for each, side by side, without model, tokens or cost; `openclaw tasks list` shows less of it.
  expect(leaf).toBeDefined();
  expect(Object.keys(leaf ?? {}).join(" ")).not.toMatch(/model|token|usage|cost|children/iu);

  await playTree(coordinated, "tree-p29");
  const state = await waitForEnd(coordinated, "tree-p29");
  const { tree } = (await readJson(coordinated, "tree", state.coordinationId)) as unknown as {
    tree: TreeNode;
  };
  expect(tree).toMatchObject({
    name: ownerOf("tree-p29"),
    usage: { models: ["mock/scripted"] },
    children: [
      {
        name: "tree-p29-mid",
        status: "completed",
        usage: { models: ["mock/scripted"] },
        children: [{ name: "tree-p29-leaf", status: "completed", usage: { models: ["mock/scripted"] } }],
      },
    ],
  });
}

/** P30: what a tree costs, and what a budget does to an agent that spawns and calls on. */
export async function tellBill({ plain, coordinated }: Pair): Promise<void> {
  await playTree(plain, "bill-p30");
  // The host says what the last run of each session cost, and nothing of the tree.
  const { sessions } = (await plain.gateway.call("sessions.list")) as { sessions: readonly Json[] };
  const owner = sessions.find(({ key }) => key === ownerOf("bill-p30"));
  expect(Number(owner?.["estimatedCostUsd"] ?? 0)).toBeLessThan(
    0.7 * countByProvider(plain, "bill-p30").costUsd,
  );

  await playTree(coordinated, "bill-p30");
  const { coordinationId } = await waitForEnd(coordinated, "bill-p30");
  await expectBill(coordinated, coordinationId, "bill-p30");

  await playFanOut(plain);
  await waitFor(() => isSaid(plain, "fan-p30-reader"), { what: "the reader", timeoutMs: WAIT_MS_MAX });
  expect(listReaderTokens(plain)).toHaveLength(READS + 1);

  await playFanOut(coordinated);
  const state = await waitForEnd(coordinated, "fan-p30");
  expect(countWorkers(coordinated)).toBe(MAIN_SPAWNS - 1);
  const tokens = listReaderTokens(coordinated);
  expect(tokens.length).toBeLessThan(READS);
  // The call that reached the bound was the last one.
  expect(sum(tokens)).toBeGreaterThanOrEqual(READER_TOKENS);
  expect(sum(tokens.slice(0, -1))).toBeLessThan(READER_TOKENS);
  expect(resultsOf(coordinated, "fan-p30").at(-1)).toMatch(
    /^Coordination refused this spawn: .*4 of 4 subagents/u,
  );
  const shown = await readJson(coordinated, "show", state.coordinationId);
  const stops = shown["budgetStops"] as readonly Json[];
  expect(stops.toSorted((a, b) => String(a["agentId"]).localeCompare(String(b["agentId"])))).toMatchObject([
    { agentId: "main", limit: "spawns", allowed: MAIN_SPAWNS, used: MAIN_SPAWNS, stopped: "spawn" },
    { agentId: "reader", limit: "tokens", allowed: READER_TOKENS, stopped: "call" },
  ]);
  await expectBill(coordinated, state.coordinationId, "fan-p30");
  expect((await coordinated.verify()).problems).toEqual([]);
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

/** A reader that reads on and on, and then one worker after the other. */
async function playFanOut(stage: Stage): Promise<void> {
  const reads = Array.from({ length: READS }, (_, index) => call(read(`${index}.md`)));
  const reader = { ...childOf("fan-p30-reader", ...reads), agentId: "reader" };
  const workers = [1, 2, 3, 4, 5, 6].map((number): Turn => ({
    spawn: [childOf(`fan-p30-worker-${number}`)],
  }));
  const isOver = (): boolean => isSaid(stage, "fan-p30-reader") || listReaderTokens(stage).length >= 3;
  await begin(stage, "fan-p30", { spawn: [reader] }, ...workers);
  await waitFor(isOver, { what: "the reader at work", timeoutMs: WAIT_MS_MAX });
}

const isWorker = ({ turn }: RecordedRequest): boolean =>
  /^fan-p30-worker-\d is at its end$/u.test(turn.say ?? "");

const countWorkers = ({ model }: Stage): number =>
  new Set(model.requests.filter(isWorker).map(({ turn }) => turn.say)).size;

/** Returns what each call of the reader's model used, in their order. */
function listReaderTokens({ model }: Stage): number[] {
  const ofReader = model.requests.filter(({ body }) =>
    body.messages.some(
      (message) =>
        message.role === "user" &&
        /You are running as a subagent[^]*SCRIPT:[^]*fan-p30-reader is at its end/u.test(textOf(message)),
    ),
  );
  return ofReader.flatMap(({ used }) => (used ? used.promptTokens + used.completionTokens : []));
}

/** The whole bill is there when the newest run has ended and was recorded. */
async function expectBill(stage: Stage, coordinationId: string, story: string): Promise<void> {
  const readBill = async () => {
    const { usage } = (await readJson(stage, "tree", coordinationId)) as { usage?: Json };
    const counted = countByProvider(stage, story);
    const tokens = Number(usage?.["tokens"]);
    if (tokens < 0.99 * counted.tokens)
      throw new Error(`${tokens} of the ${counted.tokens} tokens of ${counted.calls} calls are recorded`);
    return { tokens, costUsd: Number(usage?.["costMicroUsd"]) / 1_000_000, counted };
  };
  const { tokens, costUsd, counted } = await waitFor(readBill, {
    what: `the bill of ${story}`,
    timeoutMs: WAIT_MS_MAX,
    everyMs: 500,
  });
  expectWithinOnePercent(tokens, counted.tokens);
  expectWithinOnePercent(costUsd, counted.costUsd);
}
