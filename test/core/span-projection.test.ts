/** Owns: which spans a recorded coordination comes to. */
import { hash } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { Usage } from "../../src/agents/coordination/contracts/fact-fields.ts";
import type { CoordinationId, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { RunUsage } from "../../src/agents/coordination/contracts/usage.ts";
import { createCoordinationSpans } from "../../src/agents/coordination/telemetry/project-coordination.ts";
import type { Span } from "../../src/agents/coordination/telemetry/span.ts";
import { recordConflicts, WRITERS } from "../cli/recorded-conflicts.ts";
import { recordLedger, RESEARCH } from "../cli/recorded-ledger.ts";
import { ENDED_PLAN, recordPlans, RUNNING_PLAN, type PlanScript } from "../cli/recorded-plan.ts";
import { recordQuestions, SPAWNS } from "../cli/recorded-questions.ts";
import { step } from "./plan-scene.ts";
import { createTempFolder, openTestLedger, type TempFolder } from "../support/temp-ledger.ts";

/** A step of a program outside of the host, at its second attempt, one whose calls the host reports, and one that is cancelled. */
const BILLED_PLAN: PlanScript = {
  ...ENDED_PLAN,
  id: "plan-billed",
  steps: [step("outside", [], { retry: { budget: 1, backoffMs: 1_000 } }), step("inside"), step("stopped")],
  acts: [
    [100_000, "dispatch", "outside", 1],
    [100_000, "dispatch", "inside", 1],
    [100_000, "dispatch", "stopped", 1],
    [100_100, "ack", "outside", 1],
    [100_100, "ack", "inside", 1],
    [100_100, "ack", "stopped", 1],
    [100_200, "command", createEnd("failStep", "outside", { tokens: 1_000, costMicroUsd: 10_000 })],
    [100_300, "command", { type: "recordUsage", ...createUsage("inside", 40) }],
    [100_400, "command", createEnd("completeStep", "inside", { tokens: 45, costMicroUsd: 40 })],
    [100_500, "command", { ...createEnd("failStep", "stopped"), cancelled: true }],
    [110_000, "dispatch", "outside", 2],
    [110_100, "ack", "outside", 2],
    [110_200, "command", createEnd("completeStep", "outside", { tokens: 500 }, 2)],
    [120_100, "command", { type: "settleCoordination" }],
    [120_200, "dispatch", "@delivery", 1],
    [120_300, "ack", "@delivery", 1],
    [121_000, "command", createEnd("completeStep", "@delivery", { tokens: 7_000 })],
    [121_100, "command", { type: "settleCoordination" }],
  ],
};
const BILLED = `plans.sqlite ${BILLED_PLAN.id}`;
const TREE = `spawns.sqlite ${RESEARCH.id}`;
const PLAN = `plans.sqlite ${RUNNING_PLAN.id}`;
const HELD = `questions.sqlite ${SPAWNS}`;
const CONTESTED = `conflicts.sqlite ${WRITERS}`;
const hashText = (text: string): string => hash("sha256", text);
const logs = new Map<string, readonly RunEvent[]>();
let folder: TempFolder;

function createEnd<Type extends "completeStep" | "failStep">(
  type: Type,
  stepId: string,
  usage?: Usage,
  attempt = 1,
): Extract<Command, { readonly type: Type }> {
  const end = { type, stepId: stepId as StepId, attempt, via: "runner", ...(usage && { usage }) };
  const error = { code: "child_failed", message: "it ended" };
  return { ...end, ...(type === "failStep" && { error, cancelled: false }) } as never;
}

function createUsage(stepId: string, tokens: number): RunUsage {
  const totals = {
    calls: 1,
    inputTokens: tokens - 10,
    outputTokens: 10,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
  };
  return {
    stepId: stepId as StepId,
    runId: "run",
    meter: "meter",
    models: ["mock/small"],
    ...totals,
    costMicroUsd: 90,
  };
}

beforeAll(async () => {
  folder = createTempFolder();
  await recordLedger(folder.file("spawns.sqlite"), [{ ...RESEARCH, ownerCalls: 2 }]);
  await recordPlans(folder.file("plans.sqlite"), [RUNNING_PLAN, ENDED_PLAN, BILLED_PLAN]);
  await recordQuestions(folder.file("questions.sqlite"));
  await recordConflicts(folder.file("conflicts.sqlite"), folder.path);
  await readLogs("spawns.sqlite", [RESEARCH.id]);
  await readLogs("plans.sqlite", [RUNNING_PLAN.id, ENDED_PLAN.id, BILLED_PLAN.id]);
  await readLogs("questions.sqlite", [SPAWNS]);
  await readLogs("conflicts.sqlite", [WRITERS]);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

/** Ledgers have coordinations of the same id. */
async function readLogs(file: string, ids: readonly string[]): Promise<void> {
  const ledger = await openTestLedger(folder.file(file));
  for (const id of ids)
    logs.set(`${file} ${id}`, await ledger.read(id as CoordinationId, { from: 0, limit: 10_000 }));
  await ledger.close();
}

function projectLog(id: string): Span[] {
  const projection = createCoordinationSpans(hashText);
  return (logs.get(id) ?? []).flatMap((event) => projection.take(event));
}

function findSpan(spans: readonly Span[], attributes: Span["attributes"]): Span {
  const found = spans.find((span) =>
    Object.entries(attributes).every(([name, value]) => span.attributes[name] === value),
  );
  if (!found) throw new Error(`no span with ${JSON.stringify(attributes)}`);
  return found;
}

describe("the spans of a coordination", () => {
  it("are one tree: each has its parent in it, an id of its own, and one root", () => {
    const spans = projectLog(TREE);
    const ids = new Set(spans.map(({ spanId }) => spanId));
    expect(ids.size).toBe(spans.length);
    // The root is below the span that the host had then.
    const tops = spans.filter(({ parentSpanId }) => parentSpanId === undefined || !ids.has(parentSpanId));
    expect(tops).toHaveLength(1);
    expect(tops[0]?.attributes).toMatchObject({
      "gen_ai.operation.name": "invoke_agent",
      "coordination.id": RESEARCH.id,
      "coordination.outcome": "partial",
    });
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
  });

  it("put a child's spawn below the attempt of the child that asked for it", () => {
    const spans = projectLog(TREE);
    const under = findSpan(spans, { "coordination.step_id": "step-4", "coordination.attempt": 1 });
    const above = findSpan(spans, { "coordination.step_id": "step-1", "coordination.attempt": 1 });
    expect(under.parentSpanId).toBe(above.spanId);
  });

  it("have a span for each attempt, which says what went wrong and links the one before it", () => {
    const spans = projectLog(PLAN);
    const first = findSpan(spans, { "coordination.step_id": "fetch", "coordination.attempt": 1 });
    const second = findSpan(spans, { "coordination.step_id": "fetch", "coordination.attempt": 2 });
    expect(first.error).toBe(first.attributes["error.type"]);
    expect(first.attributes).toMatchObject({
      "coordination.outcome": "failed",
      "coordination.retried": true,
    });
    expect(second.links).toContainEqual({ traceId: first.traceId, spanId: first.spanId });
  });

  it("name the attempt of a planned step as its agent is told it", () => {
    const [dispatched] = (logs.get(PLAN) ?? []).filter(({ type }) => type === "step.dispatched");
    if (dispatched?.type !== "step.dispatched") throw new Error("nothing was dispatched");
    const { idempotencyKey } = dispatched.payload;
    const spanIds = projectLog(PLAN).map(({ spanId }) => spanId);
    expect(spanIds).toContain(hashText(idempotencyKey).slice(0, 16));
  });

  it("end an attempt where its result is held, and a gate where it is ruled on, below the attempt", () => {
    const spans = projectLog(HELD);
    const attempt = findSpan(spans, { "coordination.step_id": "step-3", "coordination.outcome": "held" });
    const gate = findSpan(
      spans.filter(({ name }) => name === "coordination.gate"),
      { "coordination.step_id": "step-3" },
    );
    expect(gate.parentSpanId).toBe(attempt.spanId);
    expect(gate.startMs).toBe(attempt.endMs);
    expect(gate.attributes["coordination.gate.released"]).toBe("approved");
  });

  it("have questions with what was told of them, from asking to the answer", () => {
    const question = projectLog(HELD).find(({ name }) => name === "coordination.question confidence");
    expect(question?.attributes["coordination.question.resolution"]).toBe("approved");
    expect(question?.events.map(({ name }) => name)).toContain("coordination.question.answered");
  });

  it("have conflicts with their strategy, and no name of a file", () => {
    const spans = projectLog(CONTESTED);
    const conflict = spans.find(({ name }) => name === "coordination.conflict");
    expect(conflict?.attributes["coordination.conflict.strategy"]).toBeDefined();
    expect(JSON.stringify(spans)).not.toContain(folder.path);
  });

  it("tell what the models of a step used, and of all of them at the root", () => {
    const spans = projectLog(TREE);
    const root = findSpan(spans, { "coordination.id": RESEARCH.id });
    expect(root.attributes["gen_ai.usage.output_tokens"]).toBeGreaterThan(0);
    expect(root.attributes["gen_ai.provider.name"]).toBe("mock");
    expect(root.attributes["gen_ai.response.model"]).toBe("scripted");
  });

  it("have what a runner says of an attempt where that is more than its calls say, and the sum at the root", () => {
    const spans = projectLog(BILLED);
    const usageOf = (attributes: Span["attributes"]): Span["attributes"] =>
      Object.fromEntries(
        Object.entries(findSpan(spans, attributes).attributes).filter(([name]) => name.includes(".usage.")),
      );
    expect(usageOf({ "coordination.step_id": "outside", "coordination.attempt": 1 })).toEqual({
      "coordination.usage.tokens": 1_000,
      "coordination.usage.cost_usd": 0.01,
    });
    expect(usageOf({ "coordination.step_id": "outside", "coordination.attempt": 2 })).toEqual({
      "coordination.usage.tokens": 500,
    });
    expect(usageOf({ "coordination.step_id": "inside" })).toEqual({
      "gen_ai.usage.input_tokens": 30,
      "gen_ai.usage.output_tokens": 10,
      "coordination.usage.tokens": 45,
      "coordination.usage.cost_usd": 0.000_09,
    });
    expect(usageOf({ "coordination.step_id": "@delivery" })).toEqual({});
    expect(usageOf({ "coordination.id": BILLED_PLAN.id })).toEqual({
      "gen_ai.usage.input_tokens": 30,
      "gen_ai.usage.output_tokens": 10,
      "coordination.usage.tokens": 1_545,
      "coordination.usage.cost_usd": 0.010_09,
    });
  });

  it("tell that an attempt was cancelled, which is no error", () => {
    const stopped = findSpan(projectLog(BILLED), { "coordination.step_id": "stopped" });
    expect(stopped.attributes["coordination.outcome"]).toBe("cancelled");
    expect(stopped.attributes["coordination.code"]).toBe("child_failed");
    expect(stopped).not.toHaveProperty("error");
    expect(stopped.attributes).not.toHaveProperty(["error.type"]);
  });

  it("are the same from wherever the log is read on, and whole with their ends alone", () => {
    const events = logs.get(TREE) ?? [];
    const whole = projectLog(TREE);
    fc.assert(
      fc.property(fc.nat(events.length), (at) => {
        const before = createCoordinationSpans(hashText);
        const early = events.slice(0, at).flatMap((event) => before.take(event));
        // Another process begins anew, and leaves out what was exported.
        const after = createCoordinationSpans(hashText);
        for (const event of events.slice(0, at)) after.take(event);
        const late = events.slice(at).flatMap((event) => after.take(event));
        expect([...early, ...late]).toEqual(whole);
      }),
    );
  });
});
