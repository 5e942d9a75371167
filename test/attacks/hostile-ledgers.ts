/** Owns: ledgers with some of everything in them, whose texts are replaced by hostile ones and whose hashes are right all the same. */
import { hash } from "node:crypto";
import { copyFileSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type Database from "better-sqlite3";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { recordConflicts } from "../cli/recorded-conflicts.ts";
import { OPEN, recordLedger, RESEARCH } from "../cli/recorded-ledger.ts";
import { ENDED_PLAN, FORKED_PLAN, recordPlans, RUNNING_PLAN } from "../cli/recorded-plan.ts";
import { recordQuestions } from "../cli/recorded-questions.ts";
import { pickOne, type Random } from "../support/hostile-values.ts";
import { buildLedger, forge, rehashRun } from "../support/ledger-fixtures-damage.ts";
import type { TempFolder } from "../support/temp-ledger.ts";

const LONG = 100_000;

/** Texts that do something to a terminal, or to whoever reads it. */
export const TERMINAL_TEXTS: readonly string[] = [
  "\u{1b}[2J\u{1b}]0;owned\u{7}",
  "\u{1b}]8;;http://evil.example\u{7}link\u{1b}]8;;\u{7}",
  "\u{1b}P1;2|x\u{1b}\\",
  "\u{9b}31mC1\u{9d}0;t\u{9c}",
  "\u{8}\u{8}\u{7f}\u{7f}",
  "a\r\nerror FORGED: a line of its own\n",
  "\r\rover it",
  "\u{202e}gnp.exe\u{202c}",
  "\u{2066}isolated\u{2069}\u{200f}",
  "one\u{2028}two\u{2029}three\u{85}four",
  "\u{e0041}\u{e0042}\u{feff}\u{200b}\u{ad}",
  "lone \u{d800} and \u{dc00}",
  "nul \0 and \v\f",
  "😀".repeat(LONG / 4),
  "é́".repeat(LONG / 4),
  "\u{1b}[31m".repeat(LONG / 5),
  "x".repeat(LONG),
  "",
  "--json",
  "__proto__",
];

/** Keys of events whose values people and models write. */
const TEXT_KEYS: ReadonlySet<string> = new Set([
  "name",
  "message",
  "reason",
  "agentId",
  "ownerAgent",
  "ownerSession",
  "sourceSession",
  "childSessionKey",
  "childRunId",
  "resource",
  "path",
  "id",
  "toolCallId",
  "traceId",
  "workflowId",
  "key",
  "tool",
  "model",
]);

/** Records a ledger of every kind; returns where they are. */
export async function recordLedgers(folder: TempFolder): Promise<readonly string[]> {
  const paths = ["spawns", "questions", "conflicts", "plans", "workflows"].map((name) =>
    folder.file(`${name}.sqlite`),
  );
  const [spawns = "", questions = "", conflicts = "", plans = "", workflows = ""] = paths;
  await recordLedger(spawns, [RESEARCH, OPEN]);
  await recordQuestions(questions);
  mkdirSync(folder.file("project"));
  await recordConflicts(conflicts, folder.file("project"));
  await recordPlans(plans, [RUNNING_PLAN, ENDED_PLAN, FORKED_PLAN]);
  await buildLedger(workflows);
  for (const path of paths) forge(path, "");
  return paths;
}

/** The runs of a ledger in which hostile texts stand. */
export interface PoisonedLedger {
  readonly runIds: readonly string[];
}

/** Copies a ledger and puts hostile texts in place of some that are in it. */
export function createPoisonedLedger(random: Random, from: string, to: string): PoisonedLedger {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
  const runIds: string[] = [];
  forge(to, (database) => {
    const poison = createPoison(random);
    replaceInContents(database, poison);
    replaceInEvents(database, poison);
    replaceInNames(database, poison);
    for (const { run_id: runId } of listRows<{ run_id: string }>(database, "select run_id from run")) {
      runIds.push(runId);
      rehashRun(database, runId as CoordinationId);
    }
  });
  return { runIds };
}

interface Poison {
  readonly random: Random;
  readonly chance: number;
  /** Whether every text may be replaced, which makes many events unreadable. */
  readonly isWild: boolean;
  /** The same text is replaced by the same one everywhere. */
  readonly replaced: Map<string, string>;
  readonly contents: Map<string, { readonly sha256: string; readonly bytes: number }>;
}

function createPoison(random: Random): Poison {
  const isWild = random() < 0.2;
  const chance = isWild ? 0.05 : pickOne(random, [0.1, 0.3, 0.8]);
  return { random, chance, isWild, replaced: new Map(), contents: new Map() };
}

/** Longer ones make the event unreadable. */
const SHORT = 60;

function shortenMostly(random: Random, text: string): string {
  return random() < 0.95 ? text.slice(0, SHORT) : text;
}

function replaceText({ random, chance, replaced }: Poison, text: string): string {
  const earlier = replaced.get(text);
  if (earlier !== undefined) return earlier;
  const hostile = pickOne(random, TERMINAL_TEXTS);
  const changed = shortenMostly(random, random() < 0.5 ? hostile : `${text}${hostile}`);
  const chosen = random() < chance ? changed : text;
  replaced.set(text, chosen);
  return chosen;
}

function replaceInValue(poison: Poison, value: unknown, key: string): unknown {
  if (typeof value === "string")
    return poison.isWild || TEXT_KEYS.has(key) ? replaceText(poison, value) : value;
  if (Array.isArray(value)) return value.map((item) => replaceInValue(poison, item, key));
  if (typeof value !== "object" || value === null) return value;
  const { sha256 } = value as { readonly sha256?: unknown };
  const content = typeof sha256 === "string" ? poison.contents.get(sha256) : undefined;
  const entries = Object.entries({ ...value, ...content });
  return Object.fromEntries(entries.map(([name, member]) => [name, replaceInValue(poison, member, name)]));
}

function replaceInContents(database: Database.Database, poison: Poison): void {
  const update = database.prepare("update content set sha256 = ?, text = ? where sha256 = ?");
  const updateUse = database.prepare("update or replace content_use set sha256 = ? where sha256 = ?");
  for (const { sha256, text } of listRows<{ sha256: string; text: string }>(
    database,
    "select * from content",
  )) {
    const hostile = replaceText(poison, text).toWellFormed();
    if (hostile === text || hostile === "") continue;
    const changed = hash("sha256", hostile, "hex");
    if ([...poison.contents.values()].some((content) => content.sha256 === changed)) continue;
    poison.contents.set(sha256, { sha256: changed, bytes: Buffer.byteLength(hostile) });
    update.run(changed, hostile, sha256);
    updateUse.run(changed, sha256);
  }
}

interface EventTexts {
  readonly event_key: number;
  readonly node_id: string | null;
  readonly payload: string;
}

function replaceInEvents(database: Database.Database, poison: Poison): void {
  const update = database.prepare("update event set payload = ?, node_id = ? where event_key = ?");
  for (const { event_key: key, node_id: node, payload } of listRows<EventTexts>(
    database,
    "select * from event",
  )) {
    const changed = replaceInValue(poison, JSON.parse(payload), "");
    const isNodeChanged = node !== null && poison.random() < poison.chance / 20;
    update.run(JSON.stringify(changed), isNodeChanged ? replaceText(poison, node) : node, key);
  }
  const updateRun = database.prepare("update run set summary = ? where run_key = ?");
  for (const { run_key: key, summary } of listRows<{ run_key: number; summary: string }>(
    database,
    "select * from run",
  ))
    updateRun.run(JSON.stringify(replaceInValue(poison, JSON.parse(summary), "")), key);
}

function replaceInNames(database: Database.Database, poison: Poison): void {
  const changes = [...poison.replaced].filter(([text, changed]) => text.length > 3 && changed !== text);
  for (const [table, column] of [
    ["reference", "name"],
    ["claim", "resource"],
    ["run_label", "value"],
  ] as const) {
    const update = database.prepare(`update or ignore ${table} set ${column} = replace(${column}, ?, ?)`);
    for (const [text, changed] of changes) update.run(text, changed);
  }
}

function listRows<T>(database: Database.Database, sql: string): T[] {
  return database.prepare<[], T>(sql).all();
}
