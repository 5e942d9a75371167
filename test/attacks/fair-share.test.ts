/** A tenant that forks large runs as fast as it can, against a host on loopback, while another one works. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startServing, type Served } from "../../src/plugins/serve-openwop.ts";
import { node, workflow } from "../openwop/levels-workflows.ts";
import { tempFolder } from "../support/temp-ledger.ts";
import { threadClient, type ThreadAnswer, type ThreadClient } from "./thread-client.ts";

const P99_MS_MAX = 250;
const ROUND_MS = 2_500;
const ROUNDS = 3;
const AT_ONCE = 8;
/** Few enough that a slow machine reaches them too. */
const FORKS = 30;
const ATTACKER = "token-of-the-attacker";
const VICTIM = "token-of-the-victim";
const slow = workflow("slow", { nodes: [node("wait", "core.delay", { config: { delayMs: 60_000 } })] });
const closing: (() => unknown)[] = [];
let served: Served;

beforeAll(async () => {
  const folder = tempFolder();
  served = await startServing({
    ledgerPath: `${folder.path}/runs.sqlite`,
    definitions: [slow],
    version: "0.0.0",
    port: 0,
    hostname: "127.0.0.1",
    tokens: [
      { tenant: "attacker", token: ATTACKER },
      { tenant: "victim", token: VICTIM },
    ],
    allowRemote: false,
    testSeams: false,
    verbose: false,
    privateOrigins: [],
    peerTokens: {},
    confidenceFloor: 0.5,
    escalationThreshold: 0.7,
    quotas: { forksPerMinute: FORKS },
    log: () => undefined,
  });
  closing.push(
    () => served.stop(),
    () => folder[Symbol.dispose](),
  );
});
afterAll(async () => {
  for (const close of closing) await close();
});

function client(): ThreadClient {
  const made = threadClient(served.baseUrl);
  closing.unshift(() => made.close());
  return made;
}

const post = (token: string, body: unknown): RequestInit => ({
  method: "POST",
  headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
  body: JSON.stringify(body),
});

async function createRun(by: ThreadClient, token: string, inputs: unknown): Promise<string> {
  const { status, text } = await by.ask("/v1/runs", post(token, { workflowId: "slow", inputs }));
  expect(status).toBe(201);
  return (JSON.parse(text) as { runId: string }).runId;
}

async function p99Until(endsAtMs: number, victim: ThreadClient, runId: string): Promise<number> {
  const headers = { authorization: `Bearer ${VICTIM}` };
  const tookMs: number[] = [];
  while (Date.now() < endsAtMs) {
    const startedMs = performance.now();
    const { status } = await victim.ask(`/v1/runs/${runId}`, { headers });
    tookMs.push(performance.now() - startedMs);
    expect(status).toBe(200);
  }
  return tookMs.toSorted((a, b) => a - b)[Math.floor(tookMs.length * 0.99)] ?? Infinity;
}

test("another tenant's requests are answered while one forks runs of 0.95 MB as fast as it can", async () => {
  const [attacker, victim] = [client(), client()];
  const large = await createRun(attacker, ATTACKER, { text: "x".repeat(950_000) });
  const small = await createRun(victim, VICTIM, {});
  const answers: ThreadAnswer[] = [];
  let bestP99 = Infinity;
  // Others work on the same machine: the host is as fair as in its best round.
  for (let round = 0; round < ROUNDS && bestP99 >= P99_MS_MAX; round += 1) {
    const endsAtMs = Date.now() + ROUND_MS;
    const attack = async (): Promise<void> => {
      while (Date.now() < endsAtMs)
        answers.push(
          await attacker.ask(`/v1/runs/${large}:fork`, post(ATTACKER, { mode: "branch", fromSeq: 1 })),
        );
    };
    const attacks = Array.from({ length: AT_ONCE }, attack);
    bestP99 = Math.min(bestP99, await p99Until(endsAtMs, victim, small));
    await Promise.all(attacks);
  }
  const refused = answers.filter(({ status }) => status === 429);
  expect(answers.filter(({ status }) => status === 201).length).toBe(FORKS);
  expect(refused[0]?.text).toContain("forksPerMinute");
  expect(bestP99).toBeLessThan(P99_MS_MAX);
});
