/*
 * Runs the real gateway of node_modules/openclaw as a child process in a temporary home.
 * Stop the gateway before its model: with a run active it drains for minutes.
 *
 * G1 Everything the host writes stays under `home`; nothing of the caller's OPENCLAW_* environment reaches it.
 * G2 Every process started here is killed, with its children, when this process ends.
 */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  truncateSync,
} from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { homedir, tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { connectOnUse, type GatewayClient, type Json } from "./gateway-client.ts";
import {
  createBaseConfig,
  mergeConfig,
  readJson,
  withPlugins,
  writeJson,
  type GatewayOptions,
} from "./gateway-config.ts";
import { waitForReload, type Reload } from "./gateway-reload.ts";
import { killAtExit, signalGroup } from "./kill-at-exit.ts";
import { waitFor } from "./wait-for.ts";

export type { Json } from "./gateway-client.ts";

export type AgentRun = {
  readonly runId: string;
  readonly status: string;
  /** The visible reply of the run, its texts joined by a new line. */
  readonly text: string;
  readonly raw: Json;
};

export type CliResult = { readonly code: number; readonly stdout: string; readonly stderr: string };

export type Gateway = {
  readonly home: string;
  readonly stateDir: string;
  readonly configPath: string;
  readonly port: number;
  readonly token: string;
  readonly pid: number;
  /** Milliseconds from the start of the process to readiness. */
  readonly readyMs: number;
  readonly log: () => string;
  isRunning(): boolean;
  /** Runs one turn and answers when the run ended; announce turns of children come later. */
  agent(turn: {
    readonly message: string;
    readonly sessionKey?: string;
    readonly agent?: string;
    readonly timeoutMs?: number;
  }): Promise<AgentRun>;
  call(method: string, params?: Json, timeoutMs?: number): Promise<Json>;
  openclaw(args: readonly string[], timeoutMs?: number): Promise<CliResult>;
  updateConfig(mutate: (config: Json) => void): void;
  /** Replaces the whole configuration of the running gateway and begins its log anew. Answers when the host has ended its reload. */
  reconfigure(options: GatewayOptions): Promise<Reload>;
  stop(graceMs?: number): Promise<void>;
  kill9(): Promise<void>;
  /** Stops and deletes the home, which holds some 60 MB. */
  dispose(): Promise<void>;
};

/** The program of the host. */
export const HOST_ENTRY = fileURLToPath(new URL("../../node_modules/openclaw/openclaw.mjs", import.meta.url));
const CLI_TIMEOUT_MS = 180_000;
/** A start after a kill took more than two minutes once, on a machine with other work. */
const READY_TIMEOUT_MS = 200_000;
/** The code of a command that was killed, because its time was over. */
const NOT_ENDED = -1;
const CALL_TIMEOUT_MS = 30_000;
const AGENT_TIMEOUT_MS = 120_000;
const STOP_GRACE_MS = 15_000;
const PASSED_ON =
  /^(PATH|NODE_OPTIONS|LANG|LC_.*|TZ|TMPDIR|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR)|(https?|no)_proxy)$/iu;

export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  if (Number(process.versions.node.split(".")[0]) < 24) throw new Error("the gateway needs Node 24");
  const home = options.home ?? mkdtempSync(join(tmpdir(), "coordination-gateway-"));
  const stateDir = join(home, "state");
  const configPath = join(home, "openclaw.json");
  mkdirSync(join(home, "workspace"), { recursive: true });
  mkdirSync(stateDir, { recursive: true });
  const port = await findFreePort();
  const token = randomBytes(16).toString("hex");
  const env = { ...environmentOf(home, { stateDir, configPath, token }), ...options.env };

  const stored = existsSync(configPath) ? readJson(configPath) : {};
  const base = mergeConfig(
    stored,
    createBaseConfig({ home, port, token, modelBaseUrl: options.modelBaseUrl }),
  );
  writeJson(configPath, base);
  if (options.plugin.kind === "packed") await installPacked(env, options.plugin.tarball, stateDir);
  writeJson(configPath, withPlugins(readJson(configPath), options));

  const logPath = join(home, "gateway-output.log");
  const startedAt = performance.now();
  const log = (): string => (existsSync(logPath) ? readFileSync(logPath, "utf8") : "");
  const logged = log().length;
  const child = startProcess(["gateway", "run", "--port", String(port), "--verbose"], env, logPath);
  await waitUntilReady({ child, port, log: () => log().slice(logged), timeoutMs: READY_TIMEOUT_MS });
  const readyMs = Math.round(performance.now() - startedAt);
  const client = connectOnUse(port, token);
  const stop = async (graceMs = STOP_GRACE_MS): Promise<void> => {
    client.close();
    await end(child, "SIGTERM", graceMs);
  };

  return {
    home,
    stateDir,
    configPath,
    port,
    token,
    readyMs,
    log,
    pid: child.pid ?? -1,
    agent: (turn) => runAgent(client, turn),
    call: (method, params = {}, timeoutMs = CALL_TIMEOUT_MS) => client.request({ method, params, timeoutMs }),
    openclaw: (args, timeoutMs = CLI_TIMEOUT_MS) => runCli(env, args, timeoutMs),
    updateConfig: (mutate) => {
      const config = readJson(configPath);
      mutate(config);
      writeJson(configPath, config);
    },
    isRunning: () => !hasEnded(child),
    reconfigure: ({ modelBaseUrl, ...others }) => {
      // The process appends, so that it goes on at the new end.
      truncateSync(logPath);
      const next = createBaseConfig({ home, port, token, modelBaseUrl });
      writeJson(configPath, withPlugins(next, { modelBaseUrl, ...others }));
      return waitForReload(log);
    },
    stop,
    kill9: async () => {
      client.close();
      await end(child, "SIGKILL", 5_000);
    },
    dispose: async () => {
      client.close();
      // Nobody looks at what it would leave behind, and a host that waits for lost children takes minutes to stop.
      await end(child, "SIGKILL", 5_000);
      rmSync(home, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

type HomeFiles = { readonly stateDir: string; readonly configPath: string; readonly token: string };

function environmentOf(home: string, files: HomeFiles): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => PASSED_ON.test(name));
  const env: NodeJS.ProcessEnv = Object.fromEntries(inherited);
  return {
    ...env,
    // The host starts `node` and `npm` by name: both must be the Node which runs us.
    PATH: [dirname(process.execPath), env["PATH"] ?? ""].join(delimiter),
    HOME: home,
    npm_config_cache: join(homedir(), ".npm"),
    OPENCLAW_HOME: home,
    OPENCLAW_STATE_DIR: files.stateDir,
    OPENCLAW_CONFIG_PATH: files.configPath,
    OPENCLAW_GATEWAY_TOKEN: files.token,
    OPENCLAW_DISABLE_TELEMETRY: "1",
  };
}

async function installPacked(env: NodeJS.ProcessEnv, tarball: string, stateDir: string): Promise<void> {
  if (existsSync(join(stateDir, "npm", "projects"))) return;
  const args = ["plugins", "install", `npm-pack:${tarball}`, "--force", "--accept-capabilities"];
  const { code, stdout, stderr } = await runCli(env, args, CLI_TIMEOUT_MS);
  if (code === 0) return;
  const how =
    code === NOT_ENDED
      ? `did not end within ${CLI_TIMEOUT_MS / 1_000} s; it needs the npm registry: is that in reach?`
      : `ended with ${code}`;
  throw new Error(`plugins install ${how}\n${stdout}\n${stderr}`);
}

function startProcess(args: readonly string[], env: NodeJS.ProcessEnv, logPath: string): ChildProcess {
  const output = openSync(logPath, "a");
  const stdio = ["ignore", output, output] as const;
  // A process group of its own, so that helpers of the gateway die with it.
  const child = spawn(process.execPath, [HOST_ENTRY, ...args], { env, detached: true, stdio: [...stdio] });
  closeSync(output);
  killAtExit(child);
  return child;
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode !== null || signalCode !== null;

async function end(child: ChildProcess, signal: "SIGTERM" | "SIGKILL", graceMs: number): Promise<void> {
  if (!hasEnded(child)) {
    if (signal === "SIGTERM") child.kill("SIGTERM");
    else signalGroup(child, "SIGKILL");
    await waitFor(() => hasEnded(child), {
      what: "the gateway to end",
      timeoutMs: graceMs,
      everyMs: 25,
    }).catch(() => undefined);
  }
  signalGroup(child, "SIGKILL");
  await waitFor(() => hasEnded(child), { what: "the killed gateway to end", timeoutMs: 5_000, everyMs: 25 });
}

type ReadyInput = {
  readonly child: ChildProcess;
  readonly port: number;
  readonly log: () => string;
  readonly timeoutMs: number;
};

async function waitUntilReady({ child, port, log, timeoutMs }: ReadyInput): Promise<void> {
  const tail = (): string => log().slice(-4_000);
  const isAnswered = async (): Promise<"yes" | "dead" | false> => {
    if (hasEnded(child)) return "dead";
    if (!/\bready\b\s*$/mu.test(stripVTControlCharacters(log()))) return false;
    const health = await fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(2_000) });
    return health.ok && "yes";
  };
  const subject = "the gateway to be ready";
  const state = await waitFor(isAnswered, { what: subject, timeoutMs, everyMs: 50 }).catch(
    async (cause: unknown) => {
      await end(child, "SIGKILL", 1_000);
      throw new Error(`the gateway did not get ready; its log ends with\n${tail()}`, { cause });
    },
  );
  if (state === "dead") throw new Error(`the gateway ended before it was ready\n${tail()}`);
}

function runCli(env: NodeJS.ProcessEnv, args: readonly string[], timeoutMs: number): Promise<CliResult> {
  return new Promise((resolve) => {
    const limits = { env, timeout: timeoutMs, killSignal: "SIGKILL", maxBuffer: 64 * 1024 * 1024 } as const;
    const child = execFile(process.execPath, [HOST_ENTRY, ...args], limits, (error, stdout, stderr) => {
      const code = error ? (typeof error.code === "number" ? error.code : NOT_ENDED) : 0;
      resolve({ code, stdout, stderr });
    });
    killAtExit(child);
  });
}

async function runAgent(client: GatewayClient, turn: Parameters<Gateway["agent"]>[0]): Promise<AgentRun> {
  const raw = await requestTurn(client, turn);
  const result = (raw["result"] ?? {}) as { payloads?: readonly { text?: string }[] };
  const text = (result.payloads ?? []).map((payload) => payload.text ?? "").join("\n");
  return { runId: String(raw["runId"]), status: String(raw["status"]), text, raw };
}

/** Asks again where the session was changed while the turn began, by a turn of the host's own: the host says "Retry" then. */
async function requestTurn(client: GatewayClient, turn: Parameters<Gateway["agent"]>[0]): Promise<Json> {
  const { message, agent = "main", timeoutMs = AGENT_TIMEOUT_MS } = turn;
  const params = {
    message,
    agentId: agent,
    sessionKey: turn.sessionKey ?? `agent:${agent}:main`,
    deliver: false,
  };
  const ask = (): Promise<Json> =>
    client.request({
      method: "agent",
      params: { ...params, idempotencyKey: randomUUID() },
      timeoutMs,
      final: true,
    });
  const askUnlessFailed = (): Promise<Json | Error> =>
    ask().catch((error: unknown) => {
      // An error is "not yet" to `waitFor`, and the cause of its failure.
      if (error instanceof Error && !error.message.includes("SESSION_WORK_START_CHANGED")) return error;
      throw error;
    });
  // The host may say so only after it has waited for another turn, for as long as a turn may take.
  const answer = await waitFor(askUnlessFailed, {
    what: `a turn of ${params.sessionKey}`,
    timeoutMs: 2 * timeoutMs,
    everyMs: 500,
  });
  if (answer instanceof Error) throw answer;
  return answer;
}

export function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
