/** Owns: plans with isolated steps that are run by a real coordinator over worktrees in memory. */
import { expect } from "vitest";
import { createWorld } from "../support/fake-clock-host.ts";
import { createFakeWorktrees, type FakeWorktrees } from "../support/fake-worktrees.ts";
import type { GivenGates } from "../support/gate-dependencies.ts";
import { createScriptedRunner, endDone, type ScriptedAttempt } from "../support/scripted-runner.ts";
import { step, submitTo, type Fields, type PlanRun } from "./planned-world.ts";

export const BASE = "first\n\n\nlast\n";
export const createIsolated = (stepId: string, fields: Fields = {}): Fields =>
  step(stepId, { isolate: "worktree", ...fields });

export interface IsolatedRun extends PlanRun {
  readonly worktrees: FakeWorktrees;
  /** The files that each step began with, by step: one object for each start in a worktree. */
  readonly begun: Readonly<Record<string, readonly Readonly<Record<string, string>>[]>>;
}

/** Texts of files, or how an agent changes the text that it finds there. */
type Work = Readonly<Record<string, string | ((text: string) => string)>>;

/** Each agent does its work in its worktree, or without one in the folder, and then comes to what its script says. */
export async function runIsolated(
  work: Readonly<Record<string, Work>>,
  planFields: Fields,
  {
    gates = {},
    scripts = {},
    worktrees = createFakeWorktrees({ "a.txt": BASE, "b.txt": "b\n" }),
  }: {
    readonly gates?: GivenGates;
    readonly scripts?: Readonly<Record<string, readonly ScriptedAttempt[]>>;
    readonly worktrees?: FakeWorktrees;
  } = {},
): Promise<IsolatedRun> {
  const begun: Record<string, Record<string, string>[]> = {};
  const starts = new Map<string, number>();
  const runner = createScriptedRunner(({ envelope: { stepId }, folder }) => {
    const tree = worktrees.trees.get(folder?.split("/").at(-1) ?? "");
    if (tree) (begun[stepId] ??= []).push(Object.fromEntries(tree));
    const files = folder === undefined ? worktrees.folder : tree;
    if (files) changeFiles(files, work[stepId]);
    const start = starts.get(stepId) ?? 0;
    starts.set(stepId, start + 1);
    const script = scripts[stepId] ?? [endDone()];
    return script[Math.min(start, script.length - 1)] ?? endDone();
  });
  const run = await submitTo(createWorld({}, runner, gates, worktrees), planFields);
  await run.advance(100);
  return Object.assign(run, { worktrees, begun });
}

function changeFiles(files: Map<string, string>, work: Work = {}): void {
  for (const [path, change] of Object.entries(work))
    files.set(path, typeof change === "string" ? change : change(files.get(path) ?? ""));
}

export function expectNothingLeft({ worktrees }: IsolatedRun): void {
  expect([...worktrees.trees.keys()]).toEqual([]);
}
