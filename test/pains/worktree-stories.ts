/**
 * P25: agents that work in one folder see each other's half-done work. With a worktree for each attempt they work
 * alone, and what they did is merged.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "vitest";
import type { Json } from "../support/gateway.ts";
import type { Turn } from "../support/scripted-model.ts";
import type { Stage } from "../e2e/stage.ts";
import {
  begin,
  call,
  childOf,
  createMeeting,
  edit,
  expectSound,
  factsOf,
  pathOf,
  put,
  read,
  readText,
  resultsOf,
  waitForEnd,
  write,
} from "../e2e/writes-stage.ts";
import type { Pair } from "./pair.ts";
import { planOf, runPlan, stepOf, waitUntilSaid } from "./story-parts.ts";

const BASE = "first\n\n\nmiddle\n\n\nlast\n";
const HALF_DONE = "half done\n";

function runGit(stage: Stage, ...args: string[]): string {
  const author = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "init.defaultBranch=main"];
  return execFileSync("git", [...author, ...args], {
    cwd: pathOf(stage, ""),
    encoding: "utf8",
    stdio: "pipe",
  });
}

/** The folder of the agents is a repository with one commit. */
export function commitFolder(stage: Stage, files: Readonly<Record<string, string>>): void {
  runGit(stage, "init", "--quiet");
  for (const [name, text] of Object.entries(files)) put(stage, name, text);
  runGit(stage, "add", ...Object.keys(files));
  runGit(stage, "commit", "--quiet", "-m", "base");
}

/** The first is in the middle of its work while the second looks. */
function createWork(of: string): { readonly first: Turn[]; readonly second: Turn[] } {
  const both = [`${of}-first`, `${of}-second`];
  const meet = (where: string, label: string): Turn => createMeeting(`${of} ${where}`, label, both);
  return {
    first: [
      call(write(`${of}.txt`, HALF_DONE)),
      meet("half", `${of}-first`),
      meet("seen", `${of}-first`),
      call(write(`${of}.txt`, BASE.replace("first", "FIRST"))),
    ],
    second: [
      meet("half", `${of}-second`),
      call(read(`${of}.txt`)),
      meet("seen", `${of}-second`),
      call(edit(`${of}.txt`, "last", "LAST")),
    ],
  };
}

export const IN_WORKTREE: Json = { isolate: "worktree" };

/** Remains of worktrees: folders, branches, and what git knows of. */
export function listLeftOvers(stage: Stage): string[] {
  const folder = join(dirname(pathOf(stage, "")), "state", "coordination-worktrees");
  return [
    ...(existsSync(folder) ? readdirSync(folder) : []),
    ...runGit(stage, "branch", "--list", "coordination/*").split("\n").filter(Boolean),
    ...runGit(stage, "worktree", "list").trim().split("\n").slice(1),
  ];
}

/** P25: one agent is in the middle of its work when another one of the same repository looks. */
export async function tellHalfDoneWork({ plain, coordinated }: Pair): Promise<void> {
  for (const stage of [plain, coordinated]) commitFolder(stage, { "folder.txt": BASE, "kept.txt": "base\n" });
  const { first, second } = createWork("folder");

  await begin(plain, "folder", {
    spawn: [childOf("folder-first", ...first), childOf("folder-second", ...second)],
  });
  await waitUntilSaid(plain, ["folder-first", "folder-second"]);
  expect(resultsOf(plain, "folder-second")[1]).toContain("half done");

  // Uncommitted changes are not in a worktree, and are not lost.
  put(coordinated, "kept.txt", "not committed\n");
  const steps = [stepOf("folder-first", first, IN_WORKTREE), stepOf("folder-second", second, IN_WORKTREE)];
  await runPlan(coordinated, planOf("folder", steps));
  const state = await waitForEnd(coordinated, "folder");
  expect(state).toMatchObject({ kind: "ended", status: "success" });
  expect(resultsOf(coordinated, "folder-second")[1]).toContain("first");
  expect(readText(coordinated, "folder.txt")).toBe(BASE.replace("first", "FIRST").replace("last", "LAST"));
  expect(readText(coordinated, "kept.txt")).toBe("not committed\n");
  expect(listLeftOvers(coordinated)).toEqual([]);
  const events = await expectSound(coordinated, state);
  expect(factsOf(events, "worktree.merged")).toHaveLength(2);
  expect(factsOf(events, "worktree.removed").map(({ outcome }) => outcome)).toEqual(["removed", "removed"]);
}
