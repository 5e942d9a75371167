/** Owns: everything that plans need of the world, with one runner for all steps. */
import { hash } from "node:crypto";
import type { AgentRunner } from "../../src/agents/coordination/ports/agent-runner.ts";
import type { OutputContract } from "../../src/agents/coordination/ports/output-contract.ts";
import type { PlanParts } from "../../src/agents/coordination/runtime/environment/runtime-parts.ts";
import { createAjvOutputContract } from "../../src/infra/json-schema/ajv-output-contract.ts";

export function planParts(runner: AgentRunner): PlanParts {
  let contract: OutputContract | undefined;
  return {
    runners: { subagent: runner, acp_stdio: runner, owner: runner },
    contract: () => Promise.resolve((contract ??= createAjvOutputContract())),
    refOf: (text) => ({ sha256: hash("sha256", text), bytes: Buffer.byteLength(text) }),
    runnerOf: () => "subagent",
  };
}
