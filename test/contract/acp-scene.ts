/** Owns: an ACP runner with real agent processes, and finding out that they are gone. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { AcpAgentConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import type { CoordinationEnvelope } from "../../src/agents/coordination/contracts/envelope.ts";
import type {
  AgentId,
  EpochMs,
  IdempotencyKey,
  SessionKey,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { Observation } from "../../src/agents/coordination/contracts/observation.ts";
import type { AttemptOrder } from "../../src/agents/coordination/ports/agent-runner.ts";
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import type { LogFields } from "../../src/agents/coordination/ports/logger.ts";
import { createAcpRunner, type AcpRunner } from "../../src/infra/acp/acp-runner.ts";
import type { AcpLimits } from "../../src/infra/acp/acp-limits.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import type { PromptLine } from "../support/acp-agent.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";

const PROGRAM = fileURLToPath(new URL("../support/acp-agent.ts", import.meta.url));
export const TRACEPARENT = "00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01";

export interface SceneOptions {
  readonly clock?: Clock;
  readonly limits?: Partial<AcpLimits>;
  readonly config?: Partial<AcpAgentConfig>;
  /** The script of the agent where the prompt has none. */
  readonly script?: string;
  /** Where the runner notes its processes; absent: in the folder of the scene. */
  readonly notesFolder?: string;
}

export interface Scene extends AsyncDisposable {
  readonly runner: AcpRunner;
  readonly folder: string;
  readonly logged: { readonly fields: LogFields; readonly message: string }[];
  /** The pids of all agents and of the children that they told of. */
  pids(): number[];
  prompts(): PromptLine[];
  allGone(): Promise<void>;
}

export function createAcpScene({
  clock = systemClock,
  limits = {},
  config = {},
  script,
  notesFolder,
}: SceneOptions = {}): Scene {
  const folder = createTempFolder();
  const log = folder.file("prompts.jsonl");
  const pidFile = folder.file("pids");
  const logged: Scene["logged"] = [];
  const note = (fields: LogFields, message: string): void => {
    logged.push({ fields, message });
  };
  const agent: AcpAgentConfig = {
    command: process.execPath,
    args: [PROGRAM],
    permissions: "deny",
    ...config,
    env: { ACP_LOG: log, ACP_PIDS: pidFile, ...(script !== undefined && { SCRIPT: script }), ...config.env },
  };
  const runner = createAcpRunner({
    agents: { coder: agent },
    defaultCwd: () => folder.path,
    notesFolder: notesFolder ?? folder.file("acp-agents"),
    clock,
    logger: { debug: note, info: note, warn: note, error: note },
    programVersion: "1.2.3",
    limits,
  });
  const readPids = (): number[] => linesOf(pidFile).map(Number);
  const waitUntilAllGone = async (): Promise<void> => {
    await waitFor(() => readPids().every(isGone), {
      what: `the end of the processes ${readPids().join(" ")}`,
    });
  };
  return {
    runner,
    folder: folder.path,
    logged,
    pids: readPids,
    prompts: () => linesOf(log).map((line) => JSON.parse(line) as PromptLine),
    allGone: waitUntilAllGone,
    [Symbol.asyncDispose]: async () => {
      await runner.close();
      await waitUntilAllGone();
      folder[Symbol.dispose]();
    },
  };
}

function linesOf(file: string): string[] {
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
}

/** Dead ones that nobody waited for count as gone. */
export function isGone(pid: number): boolean {
  const { stdout } = spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" });
  return stdout.trim() === "" || stdout.startsWith("Z");
}

export function orderOf(message: string, change: Partial<AttemptOrder> = {}): AttemptOrder {
  const envelope = {
    coordinationId: "co-1",
    stepId: "build",
    sourceSession: "agent:main:main",
    targetSession: "agent:coder:plan:build-1",
    intent: "execute",
    priority: "normal",
    deliveryMode: "at_least_once",
    createdAtMs: 1_000,
    trace: { runId: "run-1" },
  } as CoordinationEnvelope;
  return {
    idempotencyKey: "co-1:build:1" as IdempotencyKey,
    agentId: "coder" as AgentId,
    childSessionKey: "agent:coder:plan:build-1" as SessionKey,
    dispatchedAtMs: 1_000 as EpochMs,
    envelope,
    lane: "data",
    message,
    deadlineAtMs: 601_000 as EpochMs,
    traceparent: TRACEPARENT,
    ...change,
  };
}

export function createKeyed(key: string): Partial<AttemptOrder> {
  return { idempotencyKey: key as IdempotencyKey };
}

/** Starts an order that must start, and waits for its end. */
export async function outcomeOf({ runner }: Scene, order: AttemptOrder): Promise<Observation> {
  const start = await runner.start(order);
  if (start.kind !== "started") throw new Error(`not started: ${start.message}`);
  return runner.follow(order, new AbortController().signal);
}

/** The agent's words, as JSON. */
export async function jsonOf(scene: Scene, order: AttemptOrder): Promise<unknown> {
  const seen = await outcomeOf(scene, order);
  if (seen.kind !== "ended" || seen.reply === undefined) throw new Error(`no reply: ${JSON.stringify(seen)}`);
  return JSON.parse(seen.reply);
}
