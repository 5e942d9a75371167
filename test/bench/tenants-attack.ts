/**
 * `node test/bench/tenants-attack.ts '{"baseUrl":...,"token":...,"attack":"forks"}'`: one tenant that takes what it can get from
 * an OpenWOP host, until its standard input ends. Then it prints how many answers of each status it had, as JSON. A process
 * of its own, so that its work is not that of the client whose answers are timed.
 */
import { once } from "node:events";

export interface Attack {
  readonly baseUrl: string;
  readonly token: string;
  readonly attack: AttackName;
}

export type AttackName = (typeof ATTACK_NAMES)[number];

export const ATTACK_NAMES = [
  "nothing",
  "forks of a run of 0.95 MB",
  "differences of two runs of 0.95 MB",
  "a workflow that calls itself",
  "a megabyte of brackets",
  "event streams",
  "bodies that never end",
] as const;

const SENDERS = 8;
const LARGE = JSON.stringify({ workflowId: "bench-wait", inputs: { text: "x".repeat(950_000) } });

if (import.meta.main) await run(JSON.parse(process.argv[2] ?? "{}") as Attack);

async function run({ baseUrl, token, attack }: Attack): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const answers: Record<string, number> = {};
  const ended = new AbortController();
  const ask = async (path: string, body?: RequestInit["body"]): Promise<string> => {
    const method = body === undefined ? "GET" : "POST";
    const request: RequestInit = {
      method,
      headers,
      signal: ended.signal,
      ...(body !== undefined && { body }),
    };
    if (body instanceof ReadableStream) Object.assign(request, { duplex: "half" });
    const response = await fetch(`${baseUrl}${path}`, request);
    answers[response.status] = (answers[response.status] ?? 0) + 1;
    return response.text();
  };
  const send = await prepare(attack, ask);
  process.stdout.write("ready\n");
  await once(process.stdin, "data");
  const senders = Array.from({ length: send ? SENDERS : 0 }, async () => {
    while (!ended.signal.aborted) await send?.().catch(() => undefined);
  });
  await once(process.stdin, "end");
  ended.abort();
  await Promise.all(senders);
  process.stdout.write(`${JSON.stringify(answers)}\n`);
  process.exit(0);
}

type AskHost = (path: string, body?: RequestInit["body"]) => Promise<string>;

/** Makes what the attack needs and returns its request, sent again when it is answered. */
async function prepare(attack: AttackName, ask: AskHost): Promise<(() => Promise<unknown>) | undefined> {
  const createLarge = async (): Promise<string> =>
    (JSON.parse(await ask("/v1/runs", LARGE)) as { runId: string }).runId;
  switch (attack) {
    case "nothing":
      return undefined;
    case "forks of a run of 0.95 MB": {
      const runId = await createLarge();
      return () => ask(`/v1/runs/${runId}:fork`, JSON.stringify({ mode: "branch", fromSeq: 1 }));
    }
    case "differences of two runs of 0.95 MB": {
      const [first, second] = [await createLarge(), await createLarge()];
      return () => ask(`/v1/runs/${first}:diff?against=${second}`);
    }
    case "a workflow that calls itself":
      return () => ask("/v1/runs", JSON.stringify({ workflowId: "bench-self" }));
    case "a megabyte of brackets":
      return () => ask("/v1/interrupts/unknown", "[".repeat(999_000));
    case "event streams": {
      const runId = await createLarge();
      return () => ask(`/v1/runs/${runId}/events`);
    }
    case "bodies that never end":
      return () => ask("/v1/webhooks/unknown", createEndlessBody());
  }
}

function createEndlessBody(): ReadableStream<Uint8Array> {
  return new ReadableStream({ start: (body) => body.enqueue(new TextEncoder().encode("{")) });
}
