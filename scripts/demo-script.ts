/** Owns: what the scripted model says in the demo: a small piece of research with two helpers and a helper's helper. */
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

/** The first match answers. What the host announces comes before the tasks, which it may quote. */
export const DEMO_RULES: readonly Rule[] = [
  {
    when: (text, request) => isAnnounce(text) && ownTaskOf(request).includes(SQLITE_TASK),
    turns: [{ delayMs: 200, say: SQLITE_RESULT }],
  },
  { when: isAnnounce, turns: [{ delayMs: 100, say: "Noted." }] },
  task(BENCHMARK_TASK, {
    delayMs: 900,
    say: "About 3,100 durable appends a second one by one, 25,000 in groups of 100.",
  }),
  task(
    SQLITE_TASK,
    { delayMs: 400, spawn: [{ label: "benchmarks", task: BENCHMARK_TASK }] },
    { delayMs: 200, say: "Waiting for the figures." },
  ),
  task(POSTGRES_TASK, {
    delayMs: 1_500,
    say: "PostgreSQL: many writers on many machines, and LISTEN to hear of news.",
  }),
  task(
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

function task(phrase: string, ...turns: Turn[]): Rule {
  return { when: (text) => text.includes(phrase), turns };
}

/** What the session was created for. */
function ownTaskOf({ messages }: ChatRequest): string {
  const first = messages.find((message) => message.role === "user");
  return first ? textOf(first) : "";
}
