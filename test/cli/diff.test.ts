/** Owns: what `diff` says of two workflow runs that differ in a little, or of which one still goes on. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import {
  COMPLETED,
  createNodeStarted,
  createRunStarted,
  createWorkflowAuthor,
} from "../contract/workflow-store-tested.ts";
import { createTempFolder, openTestLedger, type TempFolder } from "../support/temp-ledger.ts";
import { runCli } from "./run-cli.ts";

let folder: TempFolder;

const start = (inputs: Readonly<Record<string, unknown>>): WorkflowDraft => {
  const started = createRunStarted();
  return { ...started, payload: { ...started.payload, inputs } } as WorkflowDraft;
};
const change = (name: string): WorkflowDraft => ({ type: "variable.changed", payload: { name, next: 1 } });

/** The runs by name, and what happened in each; all but the open ones have ended. */
const RUNS: Readonly<Record<string, readonly WorkflowDraft[]>> = {
  first: [start({ id: "order-1" }), createNodeStarted("a"), COMPLETED],
  second: [start({ id: "order-2" }), createNodeStarted("a"), COMPLETED],
  open: [start({ id: "order-1" }), createNodeStarted("a")],
  other: [start({ id: "order-1" }), createNodeStarted("b")],
  named: [start({}), change("of run-named"), COMPLETED],
  called: [start({}), change("of run-called"), COMPLETED],
};

beforeAll(async () => {
  folder = createTempFolder();
  const store = await openTestLedger(folder.file("ledger.sqlite"));
  for (const [name, drafts] of Object.entries(RUNS)) {
    const status = drafts.at(-1) === COMPLETED ? "completed" : "running";
    await store.workflows.append(createWorkflowAuthor(name).append(drafts, { status }));
  }
  await store.close();
});

afterAll(() => {
  folder[Symbol.dispose]();
});

async function diff(one: string, other: string) {
  const args = ["diff", `run-${one}`, `run-${other}`, "--ledger", folder.file("ledger.sqlite")];
  const [people, json] = [await runCli(args), await runCli([...args, "--json"])];
  expect(json.exitCode).toBe(people.exitCode);
  return { stdout: people.stdout, exitCode: people.exitCode, json: JSON.parse(json.stdout) as object };
}

describe("diff", () => {
  test("tells of inputs that differ by an id alone", async () => {
    const { stdout, exitCode, json } = await diff("first", "second");
    expect(stdout).toMatch(/^differ {2}from event 0 on, 1 place\n {5}0 {2}changed {2}run\.started\n/u);
    expect(exitCode).toBe(1);
    expect(json).toMatchObject({ divergedAtSeq: 0, stateDiff: { variables: [{ name: "id" }] } });
  });

  test("tells of a difference that only the states of the runs show", async () => {
    const { stdout, exitCode, json } = await diff("named", "called");
    expect(stdout).toMatch(/^differ {2}in the state alone\nstate {3}\{"variables":\[/u);
    expect(exitCode).toBe(1);
    expect(json).toMatchObject({ divergedAtSeq: null, eventDiffs: [] });
  });

  test("compares a run that goes on as far as it has come, and says so", async () => {
    for (const [one, other] of [
      ["first", "open"],
      ["open", "first"],
    ] as const) {
      const { stdout, exitCode, json } = await diff(one, other);
      expect(stdout).toBe(`equal so far  run-${one} and run-${other}\n`);
      expect(exitCode).toBe(0);
      expect(json).toMatchObject({ divergedAtSeq: null, eventDiffs: [], stateDiff: {}, truncated: true });
    }
    const { stdout, exitCode } = await diff("first", "other");
    expect(stdout).toMatch(/^differ {2}from event 1 on, 1 place or more\n/u);
    expect(exitCode).toBe(1);
  });

  test("calls a run equal to itself", async () => {
    expect(await diff("first", "first")).toEqual({
      stdout: "equal  run-first and run-first\n",
      exitCode: 0,
      json: { a: "run-first", b: "run-first", divergedAtSeq: null, eventDiffs: [], stateDiff: {} },
    });
  });
});
