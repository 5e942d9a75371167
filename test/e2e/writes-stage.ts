/**
 * Agents that contend for files: what they do, what their models read, and what the ledger says of it. Agents wait for each other
 * at gates of the `writing-tools` plugin, so that the order of their calls is the test's and no clock's.
 */
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "vitest";
import type { FactEvent, RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { mergeConfig, type GatewayOptions } from "../support/gateway-config.ts";
import type { Json } from "../support/gateway-client.ts";
import {
  renderScript,
  textOf,
  type Rule,
  type SpawnArgs,
  type ToolCall,
  type Turn,
} from "../support/scripted-model.ts";
import {
  hasEnded,
  openStage,
  PHASE1,
  createPluginConfig,
  stepNamed,
  type OpenedCoordination,
  type Stage,
} from "./stage.ts";

const WAIT_MS_MAX = 90_000;

export interface WritesOptions {
  readonly pluginConfig?: Json;
  /** Fixtures to load beside `writing-tools`. */
  readonly plugins?: readonly string[];
  /** Merged into what this stage sets. */
  readonly configPatch?: Json;
}

const CONFIG: Json = {
  tools: { exec: { host: "gateway", security: "full", ask: "off" } },
  agents: {
    defaults: {
      maxConcurrent: 8,
      subagents: { maxConcurrent: 16 },
      // A history is compacted when a test asks for it, however short it is.
      compaction: { mode: "default", keepRecentTokens: 1 },
    },
  },
};

/** A gateway whose agents have the tools of `writing-tools` and a shell. */
export function openWritesStage(
  conflicts: Json,
  {
    pluginConfig = createPluginConfig({ ...PHASE1, conflicts }),
    plugins = [],
    configPatch = {},
  }: WritesOptions = {},
  rules: readonly Rule[] = [],
): Promise<Stage> {
  const options: Partial<GatewayOptions> = {
    pluginConfig,
    toolSearch: false,
    extraPluginPaths: ["writing-tools", ...plugins].map((name) =>
      join(import.meta.dirname, "fixtures", name),
    ),
    configPatch: mergeConfig(CONFIG, configPatch),
  };
  return openStage(options, rules);
}

export function pathOf(stage: Stage, name: string): string {
  return join(realpathSync(stage.gateway.home), "workspace", name);
}

export const fileOf = (stage: Stage, name: string): string => `file:${pathOf(stage, name)}`;

export function put(stage: Stage, name: string, text: string): void {
  mkdirSync(dirname(pathOf(stage, name)), { recursive: true });
  writeFileSync(pathOf(stage, name), text);
}

/** `undefined`: there is no such file. */
export function readText(stage: Stage, name: string): string | undefined {
  const path = pathOf(stage, name);
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}

export const call = (...call: readonly ToolCall[]): Turn => ({ call });
export const read = (path: string): ToolCall => ({ name: "read", args: { path } });
export const write = (path: string, content: string): ToolCall => ({
  name: "write",
  args: { path, content },
});
export const createExec = (command: string): ToolCall => ({ name: "exec", args: { command } });

export function edit(path: string, oldText: string, newText: string): ToolCall {
  return { name: "edit", args: { path, edits: [{ oldText, newText }] } };
}

export function patchOf(...lines: readonly string[]): ToolCall {
  const input = ["*** Begin Patch", ...lines, "*** End Patch"].join("\n");
  return { name: "apply_patch", args: { input } };
}

export function gate(args: {
  readonly opens?: readonly string[];
  readonly awaits?: readonly string[];
}): Turn {
  return { call: [{ name: "gate", args }] };
}

/** All of them go on when all of them are here. */
export function createMeeting(where: string, label: string, all: readonly string[]): Turn {
  const nameOf = (participant: string): string => `${where} ${participant}`;
  return gate({ opens: [nameOf(label)], awaits: all.map(nameOf) });
}

export const open = (stage: Stage, name: string): Promise<Json> =>
  stage.gateway.call("writing-tools.open", { gate: name });

export const openGate = (stage: Stage, name: string): Promise<Json> =>
  stage.gateway.call("writing-tools.opened", { gate: name }, WAIT_MS_MAX);

const nameEnding = (label: string): string => `${label} is at its end`;

/** A task that does the turns; its label finds what its model read. */
export const taskOf = (label: string, turns: readonly Turn[]): string =>
  renderScript(...turns, { say: nameEnding(label) });

export function childOf(label: string, ...turns: readonly Turn[]): SpawnArgs {
  return { label, task: taskOf(label, turns) };
}

/** Runs a turn of the owner's session, named by its label, and answers when all of its coordination has ended. */
export async function run(
  stage: Stage,
  label: string,
  ...turns: readonly Turn[]
): Promise<OpenedCoordination> {
  await begin(stage, label, ...turns);
  return waitForEnd(stage, label);
}

export const ownerOf = (label: string): string => `agent:main:${label}`;

export function begin(stage: Stage, label: string, ...turns: readonly Turn[]): Promise<unknown> {
  return stage.gateway.agent({ sessionKey: ownerOf(label), message: taskOf(label, turns) });
}

export function waitForEnd(stage: Stage, label: string): Promise<OpenedCoordination> {
  return stage.until(ownerOf(label), hasEnded, WAIT_MS_MAX);
}

/** Returns the results of its calls as the model of an agent read them, in their order. */
export function resultsOf({ model }: Stage, label: string): string[] {
  const last = model.requests.findLast(({ turn }) => turn.say === nameEnding(label));
  if (!last) throw new Error(`${label} did not come to its end`);
  const { messages } = last.body;
  const from = messages.findLastIndex((message) => textOf(message) === last.text);
  return messages
    .slice(from + 1)
    .filter(({ role }) => role === "tool")
    .map(textOf);
}

export const REFUSED = /^Coordination refused this call: /u;
const TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`;

export const stepIdOf = (state: OpenedCoordination, name: string): string =>
  stepNamed(state, name).spec.stepId;

/** The sentence names the resource, its holder, the times of the claim and the conflict, all on one line. */
export function expectHeld(
  sentence: string | undefined,
  report: { readonly resource: string; readonly by: string; readonly conflictId: string | undefined },
): void {
  expect(sentence).toMatch(REFUSED);
  expect(sentence).toContain(`${report.resource.replace(/^file:/u, "")} is held by ${report.by} since `);
  expect(sentence).toMatch(new RegExp(`since ${TIME} until ${TIME}`, "u"));
  expect(sentence).toContain(`(conflict ${report.conflictId ?? "?"})`);
  expect(sentence?.trim()).not.toContain("\n");
}

type Facts = { readonly [T in FactEvent["type"]]: (FactEvent & { type: T })["payload"] };

export function factsOf<T extends FactEvent["type"]>(events: readonly RunEvent[], type: T): Facts[T][] {
  const isOf = (event: RunEvent): event is FactEvent & { type: T } => event.type === type;
  return events.filter(isOf).map(({ payload }) => payload as Facts[T]);
}

export type Conflict = Facts["conflict.detected"] & {
  readonly resolutions: readonly Facts["conflict.resolved"][];
};

export function listConflicts(events: readonly RunEvent[]): Conflict[] {
  const resolved = factsOf(events, "conflict.resolved");
  return factsOf(events, "conflict.detected").map((detected) => ({
    ...detected,
    resolutions: resolved.filter(({ conflictId }) => conflictId === detected.conflictId),
  }));
}

/** The ledger is sound, every conflict was resolved once, and nothing is held any more. */
export async function expectSound(stage: Stage, state: OpenedCoordination): Promise<RunEvent[]> {
  const events = await stage.events(state);
  for (const { conflictId, resolutions } of listConflicts(events))
    expect(resolutions, `resolutions of ${conflictId}`).toHaveLength(1);
  const released = new Set(factsOf(events, "claim.released").map(({ token }) => token));
  const tokens = factsOf(events, "claim.acquired").map(({ token }) => token);
  expect(tokens.filter((token) => !released.has(token))).toEqual([]);
  expect(await stage.verify()).toMatchObject({ ok: true, problems: [] });
  return events;
}
