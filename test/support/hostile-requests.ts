/** Owns: sending what a fuzzer made over real connections, several at once, and what came back of each. */
import { Agent, request } from "node:http";
import { describeError } from "../../src/agents/coordination/std/describe-error.ts";

const ANSWER_MS_MAX = 1_000;
const BODY_CHARS_MAX = 5_000_000;
const FAULTS_MAX = 20;
const AT_ONCE = 8;
/** A request whose answer takes that long hangs, also where its stream is kept alive. */
const HANG_MS = 30_000;

/** A request that is sent as it is, however wrong. */
export interface HostileRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
  /** The stream is left after its first event: it may go on for as long as somebody is waited for. */
  readonly leavesStream?: boolean;
}

/** The answer to a request, and how long it took. */
export interface TimedAnswer {
  readonly status: number;
  readonly type: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Empty for a stream, unless streams are read to their ends. */
  readonly text: string;
  readonly ms: number;
}

export interface Sender {
  send(sent: HostileRequest): Promise<TimedAnswer>;
  close(): void;
}

/** Creates what sends to one host. `readsStreams` says that its streams end by themselves, unless they are left. */
export function createSender(baseUrl: string, { readsStreams = false } = {}): Sender {
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  return {
    close: () => {
      agent.destroy();
    },
    send: ({ method, path, headers, body, leavesStream = false }) => {
      const { promise, resolve, reject } = Promise.withResolvers<TimedAnswer>();
      const start = performance.now();
      const signal = AbortSignal.timeout(HANG_MS);
      const outgoing = request(`${baseUrl}${path}`, { agent, method, headers, signal }, (response) => {
        const type = response.headers["content-type"] ?? "";
        const finish = (text: string): void => {
          const { statusCode: status = 0 } = response;
          resolve({ status, type, headers: response.headers, text, ms: performance.now() - start });
        };
        const isStream = type.startsWith("text/event-stream");
        if (isStream && !readsStreams) {
          response.destroy();
          finish("");
          return;
        }
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (part: string) => {
          text += part;
          if (!isStream || !leavesStream || !text.includes("\n\n")) return;
          response.destroy();
          finish(text.slice(0, text.indexOf("\n\n")));
        });
        response.on("end", () => {
          finish(text);
        });
        response.on("error", reject);
      });
      outgoing.on("error", reject);
      outgoing.end(body);
      return promise;
    },
  };
}

/** Describes why an answer is one that nobody may get, whatever was sent. A wait that was wanted `mayWait`. */
export function findAnswerFault(answered: TimedAnswer, { mayWait = false } = {}): string | undefined {
  const { status, ms, text } = answered;
  if (status === 500) return "it is an error of the host";
  if (ms > ANSWER_MS_MAX && !mayWait) return `it took ${Math.round(ms)} ms`;
  if (text.length > BODY_CHARS_MAX) return `it has ${text.length} characters`;
  return undefined;
}

/** Describes why a refusal does not say in words what is wrong. */
export function findRefusalFault({ type, text }: TimedAnswer): string | undefined {
  if (!type.startsWith("application/json")) return `its refusal is ${type}`;
  const { error, message } = JSON.parse(text) as { error?: unknown; message?: unknown };
  return typeof error === "string" && typeof message === "string" && message.length > 10
    ? undefined
    : `its refusal does not say what is wrong: ${text.slice(0, 200)}`;
}

export interface Campaign {
  readonly firstSeed: number;
  readonly count: number;
  /** Sends what a seed makes, and describes what is wrong with the answer. */
  readonly tryOne: (seed: number) => Promise<string | undefined>;
}

/** Tries every seed, some at once, until there are enough faults. */
export async function runCampaign({ firstSeed, count, tryOne }: Campaign): Promise<string[]> {
  const faults: string[] = [];
  let left = count;
  const trySome = async (): Promise<void> => {
    while (left > 0 && faults.length < FAULTS_MAX) {
      left -= 1;
      const seed = firstSeed + left;
      const fault = await tryOne(seed).catch((error: unknown) => describeError(error));
      if (fault !== undefined) faults.push(`seed ${seed}: ${fault}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, trySome));
  return faults;
}

/** Describes what was sent, as much as a person reads. */
export function describeSent({ method, path, body }: HostileRequest): string {
  const text = typeof body === "string" || body === undefined ? (body ?? "") : Buffer.from(body).toString();
  return `${method} ${path.slice(0, 200)} ${text.slice(0, 1_000)}`;
}
