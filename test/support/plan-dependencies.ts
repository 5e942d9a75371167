/** Owns: everything that plans need of the world, with one runner for all steps. */
import { hash } from "node:crypto";
import type { AgentRunner } from "../../src/agents/coordination/ports/agent-runner.ts";
import type { Worktrees } from "../../src/agents/coordination/ports/worktrees.ts";
import type { OutputContract } from "../../src/agents/coordination/ports/output-contract.ts";
import type { PlanDependencies } from "../../src/agents/coordination/runtime/environment/runtime-dependencies.ts";
import { createAjvOutputContract } from "../../src/infra/json-schema/ajv-output-contract.ts";

/** For plans that isolate nothing. */
export function createNoWorktrees(): Worktrees {
  const refuse = (): Promise<never> => Promise.reject(new Error("no worktree was to be asked for"));
  return {
    findObstacle: refuse,
    open: refuse,
    list: () => Promise.resolve([]),
    compare: refuse,
    texts: refuse,
    versionOf: refuse,
    write: refuse,
    keep: refuse,
    remove: refuse,
    forget: refuse,
  };
}

export function planDependencies(
  runner: AgentRunner,
  worktrees: Worktrees = createNoWorktrees(),
): PlanDependencies {
  let contract: OutputContract | undefined;
  return {
    runners: { subagent: runner, acp_stdio: runner, owner: runner },
    contract: () => Promise.resolve((contract ??= createAjvOutputContract())),
    refOf: (text) => ({ sha256: hash("sha256", text), bytes: Buffer.byteLength(text) }),
    runnerOf: () => "subagent",
    worktrees,
    folderOf: () => "/nowhere",
  };
}
