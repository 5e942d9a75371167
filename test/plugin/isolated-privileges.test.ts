/** Holds what isolated steps may change: with the real ledger, git and files, and agents that are scripted. */
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunningCoordinator } from "../../src/plugins/compose.ts";
import { createScriptedRunner } from "../support/scripted-runner.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { AGENT, plan, step, type Fields } from "../core/planned-world.ts";
import { createRepository } from "../contract/git-scene.ts";
import { composeWith } from "./composed-coordinator.ts";

interface AtWork extends AsyncDisposable {
  /** The folder that the agent has below its workspace. */
  readonly tree: string;
  /** The agent's workspace, which the worktree is merged into. */
  readonly repository: string;
  /** Says by whom a change of a path is refused, if it is. */
  readonly refuse: (path: string) => Promise<string | undefined>;
}

/** An isolated step is at work, and the operator says that agents may change no more than `src`. */
async function startIsolated(fields: Fields = {}): Promise<AtWork> {
  const temporary = createTempFolder();
  const repository = temporary.file("agent");
  createRepository(repository, { "src/a.ts": "a\n", "docs/a.md": "a\n" });
  const atWork = Promise.withResolvers<{ readonly session: SessionKey; readonly tree: string }>();
  const runner = createScriptedRunner(({ childSessionKey, folder }) => {
    atWork.resolve({ session: childSessionKey, tree: folder ?? "" });
    return "work";
  });
  const coordinator: RunningCoordinator = await composeWith({
    temporary,
    phase1: { privileges: { default: { write: ["src/**"] } } },
    runner,
    onEvents: () => undefined,
    workingFolder: "agent",
  });
  await coordinator.start();
  const isolated = step("a", { isolate: "worktree", ...fields });
  await coordinator.submitPlan({ plan: plan([isolated]), ownerAgent: AGENT });
  const { session, tree } = await atWork.promise;
  return {
    tree,
    repository,
    refuse: async (path) => {
      const bounds = await coordinator.privileges.boundsOf(session, () => undefined);
      const targets = [{ at: { path, folder: tree }, replaces: true }];
      const folders = { ofSession: () => tree, ofAgent: () => repository };
      const refusal = await coordinator.privileges.ruleOnChanges(bounds, { tool: "write", targets }, folders);
      return refusal?.bound.by;
    },
    [Symbol.asyncDispose]: async () => {
      await coordinator.close();
      temporary[Symbol.dispose]();
    },
  };
}

it("may change in their worktree whatever the operator lets them change where it will be merged", async () => {
  await using atWork = await startIsolated();
  const { tree, refuse } = atWork;
  expect(await refuse("src/a.ts")).toBeUndefined();
  expect(await refuse(join(tree, "src/new/b.ts"))).toBeUndefined();
  expect(await refuse("docs/a.md")).toBe("policy");
  expect(await refuse("../other/src/a.ts")).toBe("policy");
});

it("may change nothing beyond it by way of a link in their worktree", async () => {
  await using atWork = await startIsolated();
  const { tree, repository, refuse } = atWork;
  mkdirSync(join(repository, "../outside/src"), { recursive: true });
  symlinkSync(join(repository, "../outside/src"), join(tree, "src/link"));
  symlinkSync(join(tree, "docs"), join(tree, "src/docs"));
  expect(await refuse("src/link/a.ts")).toBe("policy");
  expect(await refuse("src/docs/a.md")).toBe("policy");
});

it("may change no more than both the operator and their own plan say", async () => {
  await using atWork = await startIsolated({ write: ["src/a.ts", "docs/**"] });
  const { repository, refuse } = atWork;
  expect(await refuse("src/a.ts")).toBeUndefined();
  expect(await refuse("src/b.ts")).toBe("step");
  expect(await refuse("docs/a.md")).toBe("policy");
  expect(await refuse(join(repository, "src/a.ts"))).toBe("step");
});
