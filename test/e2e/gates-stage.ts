/**
 * Agents whose results are held: what their models say, who reads of it, and what people answer. Secrets here are said by the
 * model alone and stand in no script: a script is in the task, which the parent wrote.
 */
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { FactEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { findChildOfPhase, type Escalation } from "../../src/agents/coordination/ledger/state.ts";
import type { Json } from "../support/gateway.ts";
import type { GatewayOptions } from "../support/gateway-config.ts";
import {
  isAnnounce,
  renderScript,
  textOf,
  type RecordedRequest,
  type Rule,
  type SpawnArgs,
  type Turn,
} from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import {
  hasEnded,
  openStage,
  PHASE1,
  createPluginConfig,
  stepNamed,
  type OpenedCoordination,
  type Stage,
} from "./stage.ts";

export interface GateStage extends Stage {
  /** The model's answer to whoever was given the task. */
  teach(task: string, ...turns: readonly Turn[]): void;
  /** When it was first taught anything. */
  readonly taughtAtMs: () => number;
  /** Its answer to the same agent when its result comes back to it, each time. */
  teachRevision(task: string, ...turns: readonly Turn[]): void;
}

export const WAIT_MS_MAX = 90_000;

export async function openGateStage(
  phase1: Json = {},
  options: Partial<GatewayOptions> = {},
  firstRules: readonly Rule[] = [],
): Promise<GateStage> {
  const rules = [...firstRules];
  let taughtAtMs = Infinity;
  const add = (rule: Rule): void => {
    taughtAtMs = Math.min(taughtAtMs, Date.now() - 1_000);
    rules.push(rule);
  };
  const stage = await openStage(
    { pluginConfig: createPluginConfig({ ...PHASE1, ...phase1 }), ...options },
    rules,
  );
  return Object.assign(stage, {
    taughtAtMs: () => taughtAtMs,
    teach: (task: string, ...turns: readonly Turn[]) => {
      add({ when: (text) => isTask(text, task), turns });
    },
    teachRevision: (task: string, ...turns: readonly Turn[]) => {
      add({
        when: (text, { messages }) =>
          text.includes(NOT_ACCEPTED) && messages.some((message) => isTask(textOf(message), task)),
        turns,
      });
    },
  });
}

export const NOT_ACCEPTED = "is not accepted yet";

/** Whoever spawns has the task in a script, and the host may quote it. */
function isTask(text: string, task: string): boolean {
  return text.includes(task) && !text.includes("SCRIPT:") && !isAnnounce(text);
}

export const ownerOf = (label: string): string => `agent:main:${label}`;

/** A turn of the owner's session, named by a label, that spawns the child of that name. */
export async function spawnFrom(
  stage: GateStage,
  label: string,
  words: readonly Turn[],
  fields: Omit<SpawnArgs, "task"> = {},
): Promise<void> {
  const task = `Task of ${label}.`;
  stage.teach(task, ...words);
  const message = renderScript({ spawn: [{ label, task, ...fields }] }, { say: "spawned" });
  await stage.gateway.agent({ sessionKey: ownerOf(label), message });
}

export interface OpenQuestion extends Escalation {
  readonly state: OpenedCoordination;
  readonly questionId: string;
}

/** The first question of a label's coordination, once it is asked. */
export async function waitForQuestion(stage: Stage, label: string): Promise<OpenQuestion> {
  const state = await stage.until(ownerOf(label), ({ escalations }) => escalations.size > 0, WAIT_MS_MAX);
  const request = state.escalations.first();
  if (!request) throw new Error("no question was asked");
  return { ...request, state, questionId: `${state.coordinationId}:${request.escalationId}` };
}

/** Returns words that only the model says, and no script. */
export const secretOf = (label: string): string => `raw-result-of-${label}-7f3a`;

export interface HeldResult extends OpenQuestion {
  readonly child: string;
}

/** A child that states how sure it is of its result. */
export async function spawnDoubting(stage: GateStage, label: string): Promise<HeldResult> {
  await spawnFrom(stage, label, [{ say: `It is ${secretOf(label)}.\n{"confidence": 0.4}` }]);
  const question = await waitForQuestion(stage, label);
  return { ...question, child: findChildOfStep(question.state, label) };
}

export const waitForEnd = (stage: Stage, label: string): Promise<OpenedCoordination> =>
  stage.until(ownerOf(label), hasEnded, WAIT_MS_MAX);

export function answer(stage: Stage, questionId: string, answerWord: string, text?: string): Promise<Json> {
  const params = { questionId, answer: answerWord, ...(text !== undefined && { text }) };
  return stage.gateway.call("coordination.answer", params);
}

/** As a person writes it in the chat of a session. */
export async function sendChat(stage: Stage, label: string, message: string): Promise<void> {
  const params = { sessionKey: ownerOf(label), message, idempotencyKey: randomUUID() };
  await stage.gateway.call("chat.send", params);
}

/** The text that a session's model read in a further turn: everything that the session still has. */
export async function askToReadAfterwards(stage: Stage, label: string): Promise<RecordedRequest> {
  const asking = `What do you know by now? (${randomUUID()})`;
  await stage.gateway.agent({ sessionKey: ownerOf(label), message: asking });
  const request = stage.model.requests.find(({ text }) => text.includes(asking));
  if (!request) throw new Error(`${label} had no turn`);
  return request;
}

/** How many messages of a request hold the text. */
export function countTimesRead({ body }: RecordedRequest, text: string): number {
  return body.messages.filter((message) => textOf(message).includes(text)).length;
}

export function findChildOfStep(state: OpenedCoordination, name: string): string {
  const child = findChildOfPhase(stepNamed(state, name).phase);
  if (!child) throw new Error(`the step ${name} has no child`);
  return child.childSessionKey;
}

/** The host tells a child in its system prompt which session it is. */
export function requestsOf({ model }: Stage, session: string): RecordedRequest[] {
  return model.requests.filter(({ body }) =>
    body.messages.some((message) => message.role === "system" && textOf(message).includes(session)),
  );
}

/** Nobody but the child read it, and it lies in no file but the ledger's. */
export function expectKept(stage: GateStage, secret: string, child: string): void {
  const ownRequests = new Set(requestsOf(stage, child));
  const others = stage.model.requests.filter(
    (request) => !ownRequests.has(request) && JSON.stringify(request.body).includes(secret),
  );
  expect(others.map(({ body }) => body.messages.at(-1))).toEqual([]);
  expect(findFilesWith(stage, secret)).toEqual([]);
}

const LEDGER = /^state\/coordination\/ledger\.sqlite/u;
/** The host's copies of programs: thousands of files, which nobody writes a result to. */
const PROGRAMS = new Set(["state/tmp/plugin-captures", "state/cache/control-ui-assets"]);

/** The files under the gateway's home in which the bytes of a text are, without those of the ledger. */
export function findFilesWith({ gateway: { home }, taughtAtMs }: GateStage, text: string): string[] {
  return listFilesBelow(home, "").filter(
    (path) => !LEDGER.test(path) && readSince(join(home, path), taughtAtMs()).includes(text),
  );
}

/** The gateway deletes folders while they are listed. */
function listFilesBelow(home: string, folder: string): string[] {
  if (PROGRAMS.has(folder) || !existsSync(join(home, folder))) return [];
  return readdirSync(join(home, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return listFilesBelow(home, path);
    return entry.isFile() ? [path] : [];
  });
}

/** Files written before the model knew any secret hold none. The gateway deletes files while they are listed. */
function readSince(path: string, sinceMs: number): Buffer {
  try {
    return statSync(path).mtimeMs < sinceMs ? Buffer.alloc(0) : readFileSync(path);
  } catch {
    return Buffer.alloc(0);
  }
}

/** The gateway has shown the parent something in the place of the result. */
export function waitUntilAnnounced(stage: Stage, child: string): Promise<RecordedRequest> {
  return waitFor(
    () =>
      stage.model.requests.find(({ body }) => {
        const last = textOf(body.messages.at(-1) ?? { role: "" });
        return last.includes("[Internal task completion event]") && last.includes(child);
      }),
    { what: `the announcement of ${child}`, timeoutMs: WAIT_MS_MAX },
  );
}

export const HELD_BACK = "this result is held back until it is ruled on";

type Facts = { readonly [T in FactEvent["type"]]: (FactEvent & { type: T })["payload"] };

export async function factsOf<T extends FactEvent["type"]>(
  stage: Stage,
  state: OpenedCoordination,
  type: T,
): Promise<Facts[T][]> {
  return (await stage.events(state))
    .filter((event) => event.type === type)
    .map(({ payload }) => payload as Facts[T]);
}

/** The ledger is sound, and every session was told once what it was to be told. */
export async function expectSound(stage: Stage, state: OpenedCoordination): Promise<void> {
  const tellings = await factsOf(stage, state, "session.told");
  const ids = tellings.map(({ tellingId }) => tellingId);
  expect(new Set(ids).size).toBe(ids.length);
  expect(state.tellings.size).toBe(0);
  expect(await stage.verify()).toMatchObject({ ok: true, problems: [] });
}

/** The session was told once, and its history has it once, also when the agent goes on. */
export async function expectHeardOnce(
  stage: Stage,
  state: OpenedCoordination,
  { label, text }: { readonly label: string; readonly text: string },
): Promise<void> {
  const messages = (await factsOf(stage, state, "session.told")).map(({ tellingId }) => tellingId);
  expect(messages).toEqual([`result:${stepNamed(state, label).spec.stepId}:1`]);
  expect(countTimesRead(await askToReadAfterwards(stage, label), text)).toBe(1);
  await expectSound(stage, state);
}

export const stepOf = (stepId: string, task: string, fields: Json = {}): Json => ({
  stepId,
  agent: "main",
  task,
  ...fields,
});

/** A plan whose owner is named like it. */
export function planOf(label: string, steps: readonly Json[], fields: Json = {}): Json {
  return {
    coordinationId: label,
    objective: `objective of ${label}`,
    ownerSession: ownerOf(label),
    conflictPolicy: {},
    failurePolicy: { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
    defaults: { retry: { budget: 0, backoffMs: 200 }, timeoutMs: 60_000 },
    steps,
    ...fields,
  };
}

export const runPlan = (stage: Stage, plan: Json): Promise<Json> =>
  stage.gateway.call("coordination.plan.run", { plan });
