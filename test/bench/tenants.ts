/**
 * How long a tenant waits for its answers while another one takes all it can get from the same OpenWOP host, with the quotas
 * that hold where the operator sets none. Host, attacker and client are three processes.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { round, type BenchOptions, type BenchRow } from "./bench-row.ts";
import { openClient } from "./keep-alive-client.ts";
import { startServe, type ServerProcess } from "./openwop-servers.ts";
import { NOOP } from "./openwop-workflows.ts";
import { ATTACK_NAMES, type Attack, type AttackName } from "./tenants-attack.ts";

const ATTACK = fileURLToPath(new URL("tenants-attack.ts", import.meta.url));
const TOKENS = { good: "token-of-the-good-tenant", greedy: "token-of-the-greedy-tenant" };
const P99_MS_MAX = 250;
const PAUSE_MS = 10;

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  const forMs = quick ? 1_000 : 8_000;
  const rows: BenchRow[] = [];
  for (const attack of ATTACK_NAMES) rows.push(await measureUnder(attack, forMs));
  return rows;
}

async function measureUnder(attack: AttackName, forMs: number): Promise<BenchRow> {
  using folder = createTempFolder();
  const host = await startHost(folder);
  try {
    await timeRequests(host, 1_000);
    const attacker = await startAttacker({ baseUrl: host.baseUrl, token: TOKENS.greedy, attack });
    attacker.begin();
    const times = (await timeRequests(host, forMs)).toSorted((a, b) => a - b);
    const answers = await attacker.end();
    const pick = (share: number): number => round(times[Math.ceil(times.length * share) - 1] ?? Number.NaN);
    return {
      name: `OpenWOP: p99 of a tenant's requests while another one sends ${attack}`,
      compares: `${times.length} requests, starting a run and reading it by turns, within ${forMs / 1_000} s`,
      value: pick(0.99),
      unit: "ms",
      target: { is: "at most", value: P99_MS_MAX },
      detail: {
        p50Ms: pick(0.5),
        longestMs: pick(1),
        ...Object.fromEntries(Object.entries(answers).map(([status, count]) => [`answers${status}`, count])),
      },
    };
  } finally {
    await host.stop();
  }
}

function startHost(folder: TempFolder): Promise<ServerProcess> {
  const workflows = folder.file("workflows");
  mkdirSync(workflows);
  for (const { id, nodes } of [
    NOOP,
    { id: "bench-wait", nodes: [{ id: "wait", typeId: "core.delay", config: { delayMs: 3_600_000 } }] },
    {
      id: "bench-self",
      nodes: [{ id: "self", typeId: "core.subWorkflow", config: { workflowId: "bench-self" } }],
    },
  ])
    writeFileSync(`${workflows}/${id}.json`, JSON.stringify({ id, name: id, version: "1", nodes }));
  const tokens = folder.file("tokens.json");
  writeFileSync(tokens, JSON.stringify(TOKENS), { mode: 0o600 });
  const ledger = folder.file("ledger.sqlite");
  return startServe(["--tokens", tokens, "--workflows", workflows, "--ledger", ledger]);
}

/** Milliseconds of each request of one client, which makes a short pause after each. */
async function timeRequests({ baseUrl }: ServerProcess, forMs: number): Promise<number[]> {
  const client = await openClient(baseUrl, TOKENS.good);
  const times: number[] = [];
  const time = async (ask: () => Promise<{ status: number; body: string }>): Promise<string> => {
    const startedAt = performance.now();
    const { status, body } = await ask();
    times.push(performance.now() - startedAt);
    if (status >= 300) throw new Error(`the good tenant was answered with ${status}: ${body}`);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    return body;
  };
  const until = performance.now() + forMs;
  while (performance.now() < until) {
    const created = await time(() => client.post("/v1/runs", JSON.stringify({ workflowId: NOOP.id })));
    await time(() => client.get(`/v1/runs/${(JSON.parse(created) as { runId: string }).runId}`));
  }
  client.close();
  return times;
}

interface Attacker {
  begin(): void;
  /** Answers of each status. */
  end(): Promise<Record<string, number>>;
}

async function startAttacker(attack: Attack): Promise<Attacker> {
  const child = spawn(process.execPath, [ATTACK, JSON.stringify(attack)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text));
  await once(child.stdout, "data");
  return {
    begin: () => child.stdin.write("begin\n"),
    end: async () => {
      child.stdin.end();
      await once(child, "close");
      return JSON.parse(printed.split("\n")[1] ?? "{}") as Record<string, number>;
    },
  };
}
