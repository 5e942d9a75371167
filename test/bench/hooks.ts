/**
 * The cost of the plugin's hooks for the host, in this process: the real handlers, the real durable ledger, and a host that
 * answers at once. One spawn after the other, 8 to a coordination; beside each spawn one raw durable commit of one row,
 * which is the least that a recorded intent can cost on this disk. Each child writes one file of 4 kB twice, as the host's
 * `write` would: the first write acquires a claim, the second has it. Every other child is held to some tools and files.
 */
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import type { HookContext, HookEvent, OpenClawPluginApi } from "../../src/plugins/openclaw/host/sdk.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { findMedian, round, type BenchOptions, type BenchRow } from "./bench-row.ts";

const STEPS_PER_COORDINATION = 8;
const WARM_UP = 50;
const MEDIAN_MS_MAX = 1;
const P99_MS_MAX = 5;

const COMMIT = "raw durable commit of one row";

/** The folder that all agents work in. */
let workspace = "";

/** Milliseconds of every call, by what was called. */
type Times = Map<string, number[]>;

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  using folder = createTempFolder();
  workspace = folder.path;
  const handlers = createHookHandlers(hostOf(folder.path));
  const commit = openRawCommit(folder);
  const times: Times = new Map();
  await handlers.start();
  const spawns = quick ? 200 : 2_000;
  for (let index = 0; index < WARM_UP; index += 1) await spawn(handlers, { index, times: new Map() });
  for (let index = WARM_UP; index < WARM_UP + spawns; index += 1) {
    await spawn(handlers, { index, times });
    await timeCall(times, COMMIT, () => commit.run());
  }
  await handlers.stop();
  commit.close();
  const commits = times.get(COMMIT) ?? [];
  return [...times].filter(([name]) => name !== COMMIT).flatMap(([name, ms]) => rowsOf(name, ms, commits));
}

function rowsOf(hook: string, ms: readonly number[], commits: readonly number[]): BenchRow[] {
  const compares = `one call at a time on a durable ledger, ${ms.length} calls`;
  const unit = "ms";
  const ofCommit = findMedian(commits);
  return [
    {
      name: `hook ${hook}, median`,
      compares,
      value: round(findMedian(ms)),
      unit,
      target: { is: "at most", value: MEDIAN_MS_MAX },
      detail: { commitMs: round(ofCommit), timesOneCommit: round(findMedian(ms) / ofCommit) },
    },
    {
      name: `hook ${hook}, p99`,
      compares,
      value: round(pickPercentile(ms, 0.99)),
      unit,
      target: { is: "at most", value: P99_MS_MAX },
      detail: { highest: round(Math.max(...ms)), commitP99Ms: round(pickPercentile(commits, 0.99)) },
    },
  ];
}

function pickPercentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

async function timeCall<T>(times: Times, name: string, work: () => T | Promise<T>): Promise<T> {
  const start = performance.now();
  const result = await work();
  const ms = performance.now() - start;
  const knownInput = times.get(name);
  if (knownInput) knownInput.push(ms);
  else times.set(name, [ms]);
  return result;
}

/** All hooks in the life of one spawn, with what the host hands over. */
async function spawn(
  handlers: HookHandlers,
  { index, times }: { readonly index: number; readonly times: Times },
): Promise<void> {
  const coordination = Math.floor(index / STEPS_PER_COORDINATION);
  const owner = createOwnerTurn(coordination);
  const child = { sessionKey: `agent:main:subagent:${randomUUID()}`, runId: randomUUID() };
  const ofChild = { ...owner, ...child };
  const task = `Read file ${index} and report what it is about.`;
  const call = { toolName: "sessions_spawn", toolCallId: `call_${index}`, runId: owner.runId };
  const createPromptEvent = (text: string) =>
    ({ prompt: text, messages: [] }) as HookEvent<"before_prompt_build">;
  await timeCall(times, "before_prompt_build of any session", () =>
    handlers.beforePromptBuild(
      createPromptEvent("Read all files."),
      owner as HookContext<"before_prompt_build">,
    ),
  );
  const isHeld = index % 2 === 1;
  const privilege = isHeld
    ? { coordination: { tools: { allow: ["group:fs"], deny: ["exec"] }, write: ["*.txt"] } }
    : {};
  const before = {
    ...call,
    params: { task, label: `file ${index}`, ...privilege },
  } as HookEvent<"before_tool_call">;
  const answer = await timeCall(times, "before_tool_call", () =>
    handlers.beforeSpawn(before, owner as HookContext<"before_tool_call">),
  );
  const params = answer && "params" in answer ? answer.params : undefined;
  if (!params?.["coordination"]) throw new Error("the spawn was not coordinated");
  const details = { status: "accepted", childSessionKey: child.sessionKey, runId: child.runId };
  const after = { ...call, params, result: { details } } as HookEvent<"after_tool_call">;
  await timeCall(times, "after_tool_call", () =>
    handlers.afterSpawn(after, owner as HookContext<"after_tool_call">),
  );
  const whose = isHeld ? "a held child" : "a child";
  const prompt = await timeCall(times, `before_prompt_build of ${whose}`, () =>
    handlers.beforePromptBuild(createPromptEvent(task), ofChild as HookContext<"before_prompt_build">),
  );
  if (!prompt) throw new Error("the child got no context");
  for (const which of ["first", "further"])
    await write(handlers, { index, which: isHeld ? `held ${which}` : which, times, child: ofChild });
  const end = { messages: [], success: true } as unknown as HookEvent<"agent_end">;
  await timeCall(times, "agent_end", () => handlers.agentEnded(end, ofChild as HookContext<"agent_end">));
  const ended = { targetSessionKey: child.sessionKey, outcome: "ok" } as HookEvent<"subagent_ended">;
  await timeCall(times, "subagent_ended", () => handlers.subagentEnded(ended));
  await handlers.agentEnded(end, owner);
}

async function write(
  handlers: HookHandlers,
  input: {
    readonly index: number;
    readonly which: string;
    readonly times: Times;
    readonly child: ReturnType<typeof createOwnerTurn>;
  },
): Promise<void> {
  const { index, which, times, child } = input;
  const path = `written-${index % 64}.txt`;
  const content = `${which} ${index}\n`.repeat(400).slice(0, 4_096);
  const call = { toolName: "write", toolCallId: `call_${index}_${which}`, runId: child.runId };
  const before = { ...call, params: { path, content } } as unknown as HookEvent<"before_tool_call">;
  const ctx = child as HookContext<"before_tool_call">;
  const answer = await timeCall(times, `before_tool_call of a ${which} write`, () =>
    handlers.beforeCall(before, ctx),
  );
  if (answer) throw new Error(`the write was not allowed: ${JSON.stringify(answer)}`);
  writeFileSync(join(workspace, path), content);
  const after = { ...before, result: {} } as unknown as HookEvent<"after_tool_call">;
  await timeCall(times, `after_tool_call of a ${which} write`, () =>
    handlers.afterCall(after, child as HookContext<"after_tool_call">),
  );
}

function createOwnerTurn(coordination: number) {
  const id = coordination.toString(16);
  return {
    agentId: "main",
    sessionKey: `agent:main:owner-${coordination}`,
    runId: `run-${coordination}`,
    trace: { traceId: id.padStart(32, "0"), spanId: id.padStart(16, "0") },
  };
}

/** As much of the host as the handlers touch. */
function hostOf(stateDir: string): OpenClawPluginApi {
  const doNothing = (): void => undefined;
  return {
    pluginConfig: { coordination: { phase1: { enabled: true } } },
    logger: { debug: doNothing, info: doNothing, warn: doNothing, error: doNothing },
    agent: { events: { emitAgentEvent: () => ({ emitted: true }) } },
    runtime: {
      state: { resolveStateDir: () => stateDir },
      tasks: { async: { runs: { bindSession: () => ({ list: () => Promise.resolve([]) }) } } },
      agent: {
        session: { patchSessionEntry: () => Promise.resolve(null), getSessionEntry: () => undefined },
        resolveAgentWorkspaceDir: () => stateDir,
      },
      config: { current: () => ({}) },
    },
  } as unknown as OpenClawPluginApi;
}

function openRawCommit(folder: TempFolder): { run: () => void; close: () => void } {
  const database = new Database(folder.file("raw.sqlite"));
  database.pragma("journal_mode = wal");
  database.pragma("synchronous = full");
  database.exec("create table row (id integer primary key, payload text not null) strict");
  const insert = database.prepare("insert into row (payload) values (?)");
  const payload = "x".repeat(500);
  return {
    run: () => void insert.run(payload),
    close: () => database.close(),
  };
}
