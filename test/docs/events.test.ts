import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { FACT_PAYLOADS, QM2_EVENT_TYPES } from "../../src/agents/coordination/contracts/facts.ts";
import { OPENWOP_PAYLOADS } from "../../src/agents/coordination/contracts/openwop-events.ts";
import { readTableRows } from "./read-tables.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/events.md"), "utf8");
const PAYLOADS: Readonly<Record<string, z.ZodObject>> = { ...FACT_PAYLOADS, ...OPENWOP_PAYLOADS };

/** As the page writes a payload: each field in backquotes, with a question mark where it may be absent. */
function fieldsOf({ shape }: z.ZodObject): string {
  return Object.entries(shape as Readonly<Record<string, z.ZodType>>)
    .map(([name, field]) => `\`${name}\`${field.safeParse(undefined).success ? "?" : ""}`)
    .join(", ");
}

/** The enums whose values the page lists in words; `verify` and readers rely on them. */
const LISTED = [
  "claim.released.because",
  "write.undetermined.because",
  "write.undetermined.action",
  "privilege.refused.rule",
  "conflict.detected.contest.cause",
  "conflict.detected.contest.from",
  "conflict.resolved.rule",
  "step.skipped.because",
  "step.outcome_refused.because",
  "step.child_stopped.outcome",
  "step.completed.released",
  "budget.reached.limit",
  "budget.reached.stopped",
  "result.verified.verdict",
  "verification.failed.because",
  "session.told.delivery",
  "coordination.escalated.cause",
  "coordination.escalated.onExpiry",
  "escalation.answered.refused",
  "escalation.notified.outcome",
  "escalation.closed.resolution",
  "coordination.terminal.status",
] as const;

/** The values of the enum at `type.field`, through what is optional or nested. */
function valuesOf(name: string): readonly string[] {
  const type = Object.keys(PAYLOADS).find((candidate) => name.startsWith(`${candidate}.`)) ?? "";
  const fields = name.slice(type.length + 1).split(".");
  const field = fields.reduce<unknown>(findField, PAYLOADS[type]);
  return (unwrapOptional(field) as z.ZodEnum).options.map(String);
}

function findField(schema: unknown, field: string): unknown {
  return (unwrapOptional(schema) as z.ZodObject).shape[field];
}

function unwrapOptional(schema: unknown): unknown {
  return schema instanceof z.ZodOptional ? unwrapOptional(schema.unwrap()) : schema;
}

/** The page says "`type.field` is `a` (why), `b` or `c`." What is in brackets, or behind a semicolon, is about them. */
function listNamedValues(name: string): string[] {
  const text = page.replaceAll(/\s+/gu, " ");
  const start = `\`${name}\` is `;
  const from = text.indexOf(start);
  if (from === -1) return [];
  const sentence = text.slice(from + start.length).replaceAll(/\([^)]*\)/gu, "");
  return listQuoted(/^.*?(?:[.;] |$)/u.exec(sentence)?.[0] ?? "");
}

const listQuoted = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/gu)].map(([, name = ""]) => name);

describe("docs/events.md", () => {
  it("lists every event type with its payload fields, and no other", () => {
    const rows = readTableRows(page, "type").map(([type, , payload]) => [type, payload]);
    expect(rows).toEqual(Object.entries(PAYLOADS).map(([type, schema]) => [`\`${type}\``, fieldsOf(schema)]));
  });

  it("says what each event means", () => {
    for (const [type, meaning] of readTableRows(page, "type")) expect(meaning, type).toMatch(/\S{2,}/u);
  });

  it.each(LISTED)("lists the values of %s, and no other", (name) => {
    expect(listNamedValues(name).toSorted()).toEqual(valuesOf(name).toSorted());
  });

  it("has a projection of every fact, to types that there are", () => {
    const rows = readTableRows(page, "fact");
    expect(rows.map(([fact = ""]) => listQuoted(fact)[0])).toEqual(Object.keys(FACT_PAYLOADS));
    const targets = rows
      .flatMap(([, target = ""]) => listQuoted(target))
      .filter((name) => name.includes("."));
    for (const target of targets) expect([...Object.keys(OPENWOP_PAYLOADS), "error.code"]).toContain(target);
  });

  it("has a cause of every fact but the first", () => {
    const named = readTableRows(page, "event").flatMap(([event = ""]) => listQuoted(event));
    const facts = Object.keys(FACT_PAYLOADS).filter((type) => type !== "coordination.created");
    expect(named).toEqual(expect.arrayContaining(facts));
  });

  it("counts the types that QM2 demands", () => {
    expect(page).toContain(`(${QM2_EVENT_TYPES.length} of ${Object.keys(FACT_PAYLOADS).length})`);
  });
});
