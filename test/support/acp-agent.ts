/**
 * Owns: a real ACP agent for tests, to be run as a program: `node test/support/acp-agent.ts`.
 *
 * Its acts are named by the first line of the prompt that has `ACP:` in it, such as `ACP:delay 200 reply hello`, or
 * else by the variable SCRIPT, or else it replies `done`. Some scripts are for before the prompt (`EARLY`) and come by
 * SCRIPT only. Variables: ACP_LOG names a file that gets one JSON line for every prompt, ACP_PIDS one that gets the pid
 * of this process and of every child.
 */
import { spawn } from "node:child_process";
import { appendFileSync, readFileSync, writeSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import {
  agent,
  ndJsonStream,
  PROTOCOL_VERSION,
  RequestError,
  type AgentContext,
  type PermissionOption,
  type PromptRequest,
  type SessionUpdate,
  type StopReason,
} from "@agentclientprotocol/sdk";

/** One line of the file that ACP_LOG names. */
export interface PromptLine {
  readonly stepId?: string;
  readonly pid: number;
  readonly cwd: string;
  readonly sessionCwd: string;
  readonly texts: readonly string[];
  readonly meta: unknown;
  readonly sessionMeta: unknown;
}

interface Scene {
  readonly client: AgentContext;
  readonly request: PromptRequest;
  readonly line: PromptLine;
  /** Aborts when the client cancels. */
  readonly cancelled: AbortSignal;
}

type Play = (scene: Scene, rest: string) => Promise<StopReason>;

const SESSION_ID = `session-${process.pid}`;
const SECRET = "SECRET-of-the-agent";
const early = process.env["SCRIPT"] ?? "";
let sessionCwd = "";
let sessionMeta: unknown;
let cancellation = new AbortController();

const update = ({ client }: Scene, change: SessionUpdate): Promise<void> =>
  client.notify("session/update", { sessionId: SESSION_ID, update: change });

const say = (scene: Scene, text: string, messageId?: string): Promise<void> =>
  update(scene, {
    sessionUpdate: "agent_message_chunk",
    content: { type: "text", text },
    ...(messageId !== undefined && { messageId }),
  });

const callTool = (scene: Scene): Promise<void> =>
  update(scene, { sessionUpdate: "tool_call", toolCallId: "call-1", title: "look", status: "completed" });

const end = async (words: Promise<void>): Promise<StopReason> => {
  await words;
  return "end_turn";
};

const replyJson = (scene: Scene, value: unknown): Promise<StopReason> =>
  end(say(scene, JSON.stringify(value)));

function waitUntilCancelled({ cancelled }: Scene): Promise<void> {
  return new Promise((resolve) => {
    if (cancelled.aborted) resolve();
    cancelled.addEventListener("abort", () => resolve());
  });
}

const waitForever = (): Promise<never> => new Promise(() => setInterval(() => undefined, 1_000));

/** Stops everything in this process, such as reading. */
function block(ms = Number.POSITIVE_INFINITY): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function writeBlocking(text: string): void {
  for (let rest = Buffer.from(text); rest.length > 0;) {
    try {
      rest = rest.subarray(writeSync(process.stdout.fd, rest));
    } catch {
      block(1); // EAGAIN: nobody has read yet.
    }
  }
}

/** Starts a process that outlives this one unless it is killed. */
function startChild(detached: boolean): void {
  const child = spawn(process.execPath, ["-e", "setInterval(() => undefined, 1_000)"], {
    stdio: ["ignore", "inherit", "ignore"],
    detached,
  });
  child.unref();
  notePid(child.pid);
}

function notePid(pid: number | undefined): void {
  const file = process.env["ACP_PIDS"];
  if (file) appendFileSync(file, `${pid}\n`);
}

/** How many prompts this step had, this one included. */
function promptsOf(stepId: string | undefined): number {
  const lines = readFileSync(process.env["ACP_LOG"] ?? "", "utf8")
    .trim()
    .split("\n");
  return lines.filter((line) => (JSON.parse(line) as PromptLine).stepId === stepId).length;
}

const PERMISSION_OPTIONS: readonly PermissionOption[] = [
  { optionId: "1", name: "always", kind: "allow_always" },
  { optionId: "2", name: "yes", kind: "allow_once" },
  { optionId: "3", name: "never", kind: "reject_always" },
  { optionId: "4", name: "no", kind: "reject_once" },
];

async function askPermission({ client }: Scene, kinds: string): Promise<unknown> {
  const options = PERMISSION_OPTIONS.filter(({ kind }) => kinds === "" || kinds.split(" ").includes(kind));
  const { outcome } = await client.request("session/request_permission", {
    sessionId: SESSION_ID,
    toolCall: { toolCallId: "call-1" },
    options,
  });
  return outcome;
}

/** The error code that a request of ours got. */
async function codeOf(pendingAnswer: Promise<unknown>): Promise<number> {
  return pendingAnswer.then(
    () => 0,
    (error: unknown) => (error instanceof RequestError ? error.code : -1),
  );
}

const PLAYS: Readonly<Record<string, Play>> = {
  reply: (scene, text) => end(say(scene, text)),
  json: (scene, text) => end(say(scene, text)),
  /** Waits to be cancelled, and says so as the protocol demands. */
  hang: async (scene) => {
    await waitUntilCancelled(scene);
    return "cancelled";
  },
  /** Answers a cancellation with an error, as agents do that forget to catch their own abort. */
  "hang-badly": async (scene) => {
    await waitUntilCancelled(scene);
    throw RequestError.internalError();
  },
  never: waitForever,
  /** Does not stop for anything less than SIGKILL. */
  stubborn: (scene, then) => {
    process.on("SIGTERM", () => undefined);
    return playScript(scene, then);
  },
  /** Asks for permission once it is cancelled, and replies what it was answered. */
  "ask-late": async (scene) => {
    await waitUntilCancelled(scene);
    return replyJson(scene, await askPermission(scene, ""));
  },
  fail: () => {
    process.stderr.write(`${SECRET}\n`);
    throw RequestError.internalError({ details: SECRET }, SECRET);
  },
  /** Fails the first `n` prompts of a step. */
  "fail-first": (scene, rest) => {
    const [times, then] = split(rest);
    if (promptsOf(scene.line.stepId) <= Number(times)) throw RequestError.internalError();
    return playScript(scene, then);
  },
  exit: (_scene, code) => {
    process.stderr.write(`${SECRET}\n`);
    return process.exit(Number(code));
  },
  crash: () => {
    process.kill(process.pid, "SIGKILL");
    return waitForever();
  },
  /** Answers, and is gone before anybody can have read the answer. */
  "answer-and-exit": (_scene, text) => {
    process.stdout.write(sendLastMessages(text), () => process.exit(0));
    return waitForever();
  },
  "close-output": () => {
    process.stdout.end();
    process.on("SIGTERM", () => process.exit(0));
    return waitForever();
  },
  garbage: () => {
    process.stdout.write("this is not JSON\n");
    return waitForever();
  },
  /** JSON that is no message. */
  "garbage-json": () => {
    process.stdout.write('{"jsonrpc":"1.0"}\n');
    return waitForever();
  },
  /** A message that a client may well ignore. */
  noise: (scene, text) => {
    process.stdout.write('\n{"jsonrpc":"2.0","id":"nobody asked","result":{}}\n');
    process.stdout.write('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}\n');
    process.stdout.write(
      '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"new"}}}\n',
    );
    process.stdout.write('{"jsonrpc":"2.0","method":"_ours/news","params":[]}\n');
    return end(say(scene, text));
  },
  oversized: (_scene, bytes) => {
    process.stdout.write("x".repeat(Number(bytes)));
    return waitForever();
  },
  /** Says `n` chunks of 1,000 characters. */
  flood: async (scene, chunks) => {
    for (let count = 0; count < Number(chunks); count += 1)
      await say(scene, String(count % 10).repeat(1_000));
    return "end_turn";
  },
  "flood-then": async (scene, rest) => {
    const [chunks, then] = split(rest);
    await PLAYS["flood"]?.(scene, chunks);
    await say(scene, "\n");
    return playScript(scene, then);
  },
  chatter: async (scene) => {
    for (;;) await say(scene, "x".repeat(10_000));
  },
  /** Asks without ever reading an answer. */
  "ask-without-end": () => {
    for (let id = 0; ; id += 1) {
      const method = `_ours/${"x".repeat(1_000)}`;
      writeBlocking(`${JSON.stringify({ jsonrpc: "2.0", id, method })}\n`);
    }
  },
  permission: async (scene, kinds) => replyJson(scene, await askPermission(scene, kinds)),
  capabilities: async (scene) =>
    replyJson(scene, [
      await codeOf(scene.client.request("fs/read_text_file", { sessionId: SESSION_ID, path: "/x" })),
      await codeOf(scene.client.request("terminal/create", { sessionId: SESSION_ID, command: "true" })),
    ]),
  child: (scene, then) => {
    startChild(false);
    return playScript(scene, then);
  },
  /** A child in a group of its own that holds the pipe open. */
  orphan: (scene, then) => {
    startChild(true);
    return playScript(scene, then);
  },
  linger: (scene, then) => {
    void waitForever();
    return playScript(scene, then);
  },
  delay: async (scene, rest) => {
    const [ms, then] = split(rest);
    await Promise.race([delay(Number(ms)), waitUntilCancelled(scene)]);
    return scene.cancelled.aborted ? "cancelled" : playScript(scene, then);
  },
  /** Speaks, uses a tool, and goes on. */
  tool: async (scene, then) => {
    await say(scene, "Let me look.");
    await callTool(scene);
    return playScript(scene, then);
  },
  /** The tool comes last. */
  "then-tool": async (scene, text) => {
    await say(scene, text);
    await callTool(scene);
    return "end_turn";
  },
  /** Every word is a message, said in two chunks. */
  messages: async (scene, rest) => {
    for (const [index, word] of rest.split(" ").entries()) {
      await say(scene, word.slice(0, 1), `m${index}`);
      await say(scene, word.slice(1), `m${index}`);
    }
    return "end_turn";
  },
  think: async (scene, then) => {
    await update(scene, { sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "Hm." } });
    return playScript(scene, then);
  },
  /** Half a character at the end. */
  surrogate: (scene, text) => end(say(scene, `${text}\ud83d`)),
  usage: async (scene, rest) => {
    const [used, amount, currency] = rest.split(" ");
    const cost = amount === undefined ? undefined : { amount: Number(amount), currency: currency ?? "USD" };
    await update(scene, {
      sessionUpdate: "usage_update",
      used: Number(used),
      size: 200_000,
      ...(cost && { cost }),
    });
    await update(scene, { sessionUpdate: "usage_update", used: 1, size: 200_000 });
    return end(say(scene, "done"));
  },
  stop: async (scene, reason) => {
    await say(scene, "so far");
    return reason as StopReason;
  },
  "echo-meta": (scene) => replyJson(scene, { prompt: scene.line.meta, session: scene.line.sessionMeta }),
  "echo-texts": (scene) => replyJson(scene, scene.line.texts),
  "echo-env": (scene) => replyJson(scene, process.env),
  "echo-cwd": (scene) => replyJson(scene, [scene.line.cwd, scene.line.sessionCwd]),
  "echo-initialize": (scene) => replyJson(scene, hello),
};

function split(text: string): [string, string] {
  const [, first = "", rest = ""] = /^(\S*)\s*(.*)$/s.exec(text) ?? [];
  return [first, rest];
}

async function playScript(scene: Scene, script: string): Promise<StopReason> {
  const [verb, rest] = split(script);
  const act = PLAYS[verb];
  if (!act) throw RequestError.invalidParams({ script });
  return act(scene, rest);
}

/** The end of the conversation as bytes; the prompt is our third request. */
function sendLastMessages(text: string): string {
  const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text } };
  return [
    { jsonrpc: "2.0", method: "session/update", params: { sessionId: SESSION_ID, update } },
    { jsonrpc: "2.0", id: 2, result: { stopReason: "end_turn" } },
  ]
    .map((message) => `${JSON.stringify(message)}\n`)
    .join("");
}

function lineOf({ prompt, _meta: meta }: PromptRequest): PromptLine {
  const stepId = (meta?.["coordination"] as { readonly stepId?: string } | undefined)?.stepId;
  return {
    ...(stepId !== undefined && { stepId }),
    pid: process.pid,
    cwd: process.cwd(),
    sessionCwd,
    texts: prompt.map((block) => (block.type === "text" ? block.text : `<${block.type}>`)),
    meta,
    sessionMeta,
  };
}

/** Scripts for before the prompt: what each does when the agent is asked to initialize. */
const EARLY: Readonly<Record<string, () => Promise<unknown>>> = {
  "never-initialize": waitForever,
  "refuse-initialize": () => Promise.reject(RequestError.internalError({ details: SECRET }, SECRET)),
  "old-version": () => Promise.resolve({ protocolVersion: 0 }),
  "exit-early": () => process.exit(7),
  "garbage-early": () => {
    process.stdout.write("Welcome!\n");
    return waitForever();
  },
};

let hello: unknown;
notePid(process.pid);
const { closed } = agent({ name: "test-agent" })
  .onRequest("initialize", async ({ params }) => {
    hello = params;
    const answer = (await EARLY[early]?.()) ?? { protocolVersion: PROTOCOL_VERSION, agentCapabilities: {} };
    return answer as { protocolVersion: number };
  })
  .onRequest("session/new", ({ params }) => {
    sessionCwd = params.cwd;
    sessionMeta = params._meta;
    if (early === "login-first") throw RequestError.authRequired();
    if (early === "no-session-id") return { sessionId: "" };
    if (early === "deaf") {
      process.stdout.write(
        `${JSON.stringify({ jsonrpc: "2.0", id: 1, result: { sessionId: SESSION_ID } })}\n`,
      );
      block();
    }
    return { sessionId: early === "long-session-id" ? "s".repeat(10_000) : SESSION_ID };
  })
  .onRequest("session/prompt", async ({ params, client }) => {
    const line = lineOf(params);
    const log = process.env["ACP_LOG"];
    if (log) appendFileSync(log, `${JSON.stringify(line)}\n`);
    cancellation = new AbortController();
    const message = /ACP:(.*)/.exec(line.texts.join("\n"))?.[1];
    const fallback = PLAYS[split(early)[0]] ? early : "reply done";
    const scene: Scene = { client, request: params, line, cancelled: cancellation.signal };
    return { stopReason: await playScript(scene, message ?? fallback) };
  })
  .onNotification("session/cancel", () => cancellation.abort())
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
// Whatever still holds the process open is `never`, and means to.
await closed;
