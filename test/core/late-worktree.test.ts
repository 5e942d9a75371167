/** Worktrees that git makes for an attempt that another process ends meanwhile, and those that are left over so. */
import { describe, expect, it } from "vitest";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { Coordination } from "../../src/agents/coordination/ledger/state.ts";
import {
  prepareWorkFolder,
  type WorkFolderOutcome,
} from "../../src/agents/coordination/runtime/attempts/open-worktree.ts";
import { removeForgottenWorktrees } from "../../src/agents/coordination/runtime/worktrees/remove-forgotten.ts";
import {
  admit,
  dispatch,
  failStep,
  openPlan,
  planScene,
  planStep,
  startStep,
  type PlanScene,
} from "./planned-scene.ts";
import { createContentRef } from "./scene.ts";

interface WorktreeOpening {
  readonly place: Promise<WorkFolderOutcome>;
  readonly removed: readonly string[];
  readonly warnings: readonly string[];
}

/** Asks for the place of step `a`, and lets `meanwhile` happen while git is at work. The ledger answers the worktree with `submit`. */
function openWhile(
  meanwhile: (scene: PlanScene) => unknown,
  submit: () => Promise<object>,
  left?: string,
): WorktreeOpening {
  const scene = planScene(
    openPlan({ steps: 1 }),
    admit(planStep("a", { isolate: "worktree" })),
    dispatch("a"),
  );
  const removed: string[] = [];
  const warnings: string[] = [];
  const opened = { kind: "opened", repository: "/repo", base: "0".repeat(40), folder: "/worktree" };
  const dependencies = {
    runs: {
      findOnDisk: (_: string, find: (state: Coordination) => unknown) => Promise.resolve(find(scene.state)),
      submit,
    },
    worktrees: {
      open: () => {
        meanwhile(scene);
        return Promise.resolve(opened);
      },
      remove: (name: string) => {
        removed.push(name);
        return Promise.resolve(left);
      },
    },
    worktreeTurns: { run: <T>(_: string, work: () => T) => work() },
    refOf: createContentRef,
    folderOf: () => "/repo",
    logger: { warn: (_: object, message: string) => warnings.push(message) },
  };
  const { open } = scene;
  return {
    place: prepareWorkFolder(
      dependencies as never,
      { state: open, step: scene.step("a") },
      new AbortController().signal,
    ),
    removed,
    warnings,
  };
}

const refuse = () => Promise.resolve({ kind: "refused" });
/** Ends the attempt, and records that its worktree is removed: git has not made it yet. */
const endAttempt = (scene: PlanScene): void => {
  const stepId = "a" as StepId;
  scene.then(startStep("a"), failStep("a"), {
    type: "removeWorktree",
    stepId,
    attempt: 1,
    outcome: "removed",
  });
};

describe("a worktree that was made for an attempt which is over", () => {
  it("is removed where the ledger refuses it, and people hear where it cannot be", async () => {
    const { place, removed, warnings } = openWhile(endAttempt, refuse, "it is locked");
    expect(await place).toEqual({ kind: "late" });
    expect(removed).toHaveLength(1);
    expect(warnings).toEqual(["it is locked"]);
  });

  it("is removed where the process does not drive the plan any more", async () => {
    const refuseAsOther = () =>
      Promise.reject(new CoordinationError("NOT_OWNER", "another gateway drives it"));
    const { place, removed } = openWhile(endAttempt, refuseAsOther);
    await expect(place).rejects.toMatchObject({ code: "NOT_OWNER" });
    expect(removed).toHaveLength(1);
  });

  it("stays where the attempt goes on in another process, and where its removal is still to come", async () => {
    const failAttempt = (scene: PlanScene): unknown => scene.then(startStep("a"), failStep("a"));
    for (const meanwhile of [() => undefined, failAttempt]) {
      const { place, removed } = openWhile(meanwhile, refuse);
      expect(await place).toEqual({ kind: "late" });
      expect(removed).toEqual([]);
    }
  });
});

const FOUND = {
  name: "a-1",
  coordinationId: "co-1",
  stepId: "a",
  attempt: 1,
  repository: "/repo",
  folder: "/worktrees/a-1",
  hasFolder: true,
  branch: "coordination/a-1",
};

/** Starts a process that finds one worktree on its machine, of attempt 1 of step `a`. */
async function startBeside(
  state: Coordination,
  { list = () => Promise.resolve([FOUND]), isStopping = false } = {},
): Promise<Pick<WorktreeOpening, "removed" | "warnings">> {
  const removed: string[] = [];
  const warnings: string[] = [];
  const dependencies = {
    runs: { findOnDisk: (_: string, find: (state: Coordination) => unknown) => Promise.resolve(find(state)) },
    worktrees: { list, remove: (name: string) => Promise.resolve(void removed.push(name)) },
    worktreeTurns: { run: <T>(_: string, work: () => T) => work() },
    logger: { warn: (_: object, message: string) => warnings.push(message) },
  };
  const stopping = isStopping ? AbortSignal.abort() : new AbortController().signal;
  await removeForgottenWorktrees(dependencies as never, stopping);
  return { removed, warnings };
}

describe("a worktree that a process finds at its start", () => {
  const createScene = (): PlanScene =>
    planScene(openPlan({ steps: 1 }), admit(planStep("a", { isolate: "worktree" })), dispatch("a"));

  it("is removed where the log calls it gone, and not by a process that is stopped", async () => {
    const scene = createScene();
    endAttempt(scene);
    expect(await startBeside(scene.state)).toEqual({ removed: ["a-1"], warnings: [] });
    expect((await startBeside(scene.state, { isStopping: true })).removed).toEqual([]);
  });

  it("stays where the log expects it", async () => {
    expect(await startBeside(createScene().state)).toEqual({ removed: [], warnings: [] });
  });

  it("stays where the ledger does not know the coordination, and people hear where it is", async () => {
    const { coordinationId } = createScene().open;
    const { removed, warnings } = await startBeside({ kind: "unopened", coordinationId, nextSequence: 0 });
    expect(removed).toEqual([]);
    expect(warnings).toEqual([
      expect.stringMatching(/not in the ledger.*\/worktrees\/a-1`.*coordination\/a-1`/u),
    ]);
  });

  it("stays where it cannot be looked for, and people hear of that", async () => {
    const list = () => Promise.reject(new Error("the folder is locked"));
    const { warnings } = await startBeside(createScene().state, { list });
    expect(warnings).toEqual(["could not look for worktrees that are left over: the folder is locked"]);
  });
});
