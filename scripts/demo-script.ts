/**
 * Owns: what the demo asks for, and what the scripted model says: a small piece of research with two helpers and a
 * helper's helper, and a plan of four steps, one of which fails at first.
 */
import {
  isAnnounce,
  textOf,
  type ChatRequest,
  type Rule,
  type Turn,
} from "../test/support/scripted-model.ts";

export const DEMO_TASK = "Write a short comparison of SQLite and PostgreSQL as an event store.";

const SQLITE_TASK = "Collect what speaks for SQLite as an event store.";
const POSTGRES_TASK = "Collect what speaks for PostgreSQL as an event store.";
const BENCHMARK_TASK = "Find figures on durable appends per second.";

const SQLITE_RESULT = "SQLite: one file, no server, and fast enough when appends are grouped.";

/** The second part of the demo: who does what after what is said beforehand. */
export const DEMO_PLAN = {
  coordinationId: "release-notes",
  objective: "Write the release notes of version 2.0.",
  ownerSession: "agent:main:demo",
  deadlineMs: 1_200_000,
  conflictPolicy: { strategy: "owner_wins" },
  failurePolicy: { retryBudget: 2, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
  defaults: { timeoutMs: 240_000, retry: { budget: 1, backoffMs: 400 } },
  steps: [
    {
      stepId: "changes",
      agent: "main",
      task: "Name three plausible changes of a release 2.0. Answer with JSON only.",
      outputSchema: {
        type: "object",
        required: ["changes"],
        properties: { changes: { type: "array", items: { type: "string" } } },
      },
    },
    {
      stepId: "short",
      agent: "main",
      task: "Put these changes into one short sentence.",
      dependsOn: ["changes"],
      input: { changes: "{{steps.changes.outputs.changes}}" },
    },
    {
      stepId: "long",
      agent: "main",
      task: "Write a paragraph about these changes.",
      dependsOn: ["changes"],
      priority: "high",
      input: { changes: "{{steps.changes.outputs.changes}}" },
    },
    {
      stepId: "check",
      agent: "main",
      task: "Say whether the two texts agree.",
      dependsOn: ["short", "long"],
      lane: "control",
      input: { short: "{{steps.short.outputs.text}}", long: "{{steps.long.outputs.text}}" },
    },
  ],
} as const;

/** The first match answers. Announcements of the host come before the tasks, which they may quote. */
export const DEMO_RULES: readonly Rule[] = [
  { when: (text) => text.includes("has ended: "), turns: [{ delayMs: 200, say: "Thank you." }] },
  createTask(DEMO_PLAN.steps[0].task, {
    delayMs: 900,
    say: '{"changes":["plans","lanes","retries"]}',
  }),
  createFailingRule(DEMO_PLAN.steps[1].task),
  createTask(DEMO_PLAN.steps[1].task, { delayMs: 700, say: "Plans run now, in lanes, with retries." }),
  createTask(DEMO_PLAN.steps[2].task, {
    delayMs: 2_200,
    say: "This release runs plans. Their steps go through lanes, and what fails is tried again.",
  }),
  createTask(DEMO_PLAN.steps[3].task, { delayMs: 600, say: "They agree." }),
  {
    when: (text, request) => isAnnounce(text) && taskOf(request).includes(SQLITE_TASK),
    turns: [{ delayMs: 200, say: SQLITE_RESULT }],
  },
  { when: isAnnounce, turns: [{ delayMs: 100, say: "Noted." }] },
  createTask(BENCHMARK_TASK, {
    delayMs: 900,
    say: "About 3,100 durable appends a second one by one, 25,000 in groups of 100.",
  }),
  createTask(
    SQLITE_TASK,
    { delayMs: 400, spawn: [{ label: "benchmarks", task: BENCHMARK_TASK }] },
    { delayMs: 200, say: "Waiting for the figures." },
  ),
  createTask(POSTGRES_TASK, {
    delayMs: 1_500,
    say: "PostgreSQL: many writers on many machines, and LISTEN to hear of news.",
  }),
  createTask(
    DEMO_TASK,
    {
      delayMs: 300,
      spawn: [
        { label: "sqlite", task: SQLITE_TASK },
        { label: "postgresql", task: POSTGRES_TASK },
      ],
    },
    { say: "Two helpers are at work; I will write the comparison when both have answered." },
  ),
];

/** Answers every message that has the phrase in it. */
export function createTask(phrase: string, ...turns: Turn[]): Rule {
  return { when: (text) => text.includes(phrase), turns };
}

/** The model is out of order for the first session that asks. */
function createFailingRule(phrase: string): Rule {
  let first: string | undefined;
  return {
    when: (text, { messages }) => {
      const session = /"targetSession":"([^"]+)"/u.exec(messages.map(textOf).join("\n"))?.[1];
      if (!text.includes(phrase) || !session) return false;
      first ??= session;
      return session === first;
    },
    turns: [{ delayMs: 400, httpError: 400 }],
  };
}

/** Returns the task that the session was created for. */
function taskOf({ messages }: ChatRequest): string {
  const first = messages.find((message) => message.role === "user");
  return first ? textOf(first) : "";
}
