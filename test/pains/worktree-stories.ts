/**
 * The pain of agents that work in one folder: they see each other's half-done work. With a worktree for each attempt they work
 * alone, and what they did is merged.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Json } from "../support/gateway.ts";
import type { Turn } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import type { Stage } from "../e2e/stage.ts";
import {
  begin,
  call,
  childOf,
  createMeeting,
  edit,
  expectSound,
  factsOf,
  ownerOf,
  pathOf,
  put,
  read,
  readText,
  resultsOf,
  taskOf,
  waitForEnd,
  write,
} from "../e2e/writes-stage.ts";
import { openPair, type Pair } from "./pair.ts";

const WAIT_MS_MAX = 90_000;

let pair: Pair;

beforeAll(async () => {
  pair = await openPair();
});

afterAll(() => pair.close());

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
function commitFolder(stage: Stage, files: Readonly<Record<string, string>>): void {
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

const planOf = (label: string, steps: readonly Json[]): Json => ({
  coordinationId: label,
  objective: `objective of ${label}`,
  ownerSession: ownerOf(label),
  conflictPolicy: {},
  failurePolicy: { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
  defaults: { timeoutMs: 60_000 },
  steps,
});

const stepOf = (stepId: string, turns: readonly Turn[]): Json => ({
  stepId,
  agent: "main",
  task: taskOf(stepId, turns),
  isolate: "worktree",
});

const hasSaid = ({ model }: Stage, label: string): boolean =>
  model.requests.some(({ turn }) => turn.say === `${label} is at its end`);

/** What is left of worktrees: folders, branches, and what git knows of. */
function listLeftOvers(stage: Stage): string[] {
  const folder = join(dirname(pathOf(stage, "")), "state", "coordination-worktrees");
  return [
    ...(existsSync(folder) ? readdirSync(folder) : []),
    ...runGit(stage, "branch", "--list", "coordination/*").split("\n").filter(Boolean),
    ...runGit(stage, "worktree", "list").trim().split("\n").slice(1),
  ];
}

it("P25 wrong folder: two agents of one repository see each other's half-done work", async () => {
  const { plain, coordinated } = pair;
  for (const stage of [plain, coordinated]) commitFolder(stage, { "folder.txt": BASE, "kept.txt": "base\n" });
  const { first, second } = createWork("folder");

  await begin(plain, "folder", {
    spawn: [childOf("folder-first", ...first), childOf("folder-second", ...second)],
  });
  await waitFor(() => hasSaid(plain, "folder-first") && hasSaid(plain, "folder-second"), {
    what: "both agents",
    timeoutMs: WAIT_MS_MAX,
  });
  expect(resultsOf(plain, "folder-second")[1]).toContain("half done");

  // What nobody has committed is not in a worktree, and is not lost.
  put(coordinated, "kept.txt", "not committed\n");
  const plan = planOf("folder", [stepOf("folder-first", first), stepOf("folder-second", second)]);
  await coordinated.gateway.call("coordination.plan.run", { plan });
  const state = await waitForEnd(coordinated, "folder");
  expect(state).toMatchObject({ kind: "ended", status: "success" });
  expect(resultsOf(coordinated, "folder-second")[1]).toContain("first");
  expect(readText(coordinated, "folder.txt")).toBe(BASE.replace("first", "FIRST").replace("last", "LAST"));
  expect(readText(coordinated, "kept.txt")).toBe("not committed\n");
  expect(listLeftOvers(coordinated)).toEqual([]);
  const events = await expectSound(coordinated, state);
  expect(factsOf(events, "worktree.merged")).toHaveLength(2);
  expect(factsOf(events, "worktree.removed").map(({ outcome }) => outcome)).toEqual(["removed", "removed"]);
});
