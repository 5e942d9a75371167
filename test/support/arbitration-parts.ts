/** Owns: everything that arbitration needs of the world: the real file system, and the operator's defaults. */
import {
  parsePluginConfig,
  type ConflictsConfig,
} from "../../src/agents/coordination/contracts/config/config.ts";
import type { ArbitrationParts } from "../../src/agents/coordination/runtime/arbiter/arbiter-parts.ts";
import { realFiles } from "../../src/infra/files/real-files.ts";
import { lineMerge } from "../../src/infra/merge/line-merge.ts";

export function arbitrationParts(
  conflicts: Partial<ConflictsConfig> = {},
  workspace = "/nowhere",
): ArbitrationParts {
  return {
    files: realFiles(),
    textMerge: () => Promise.resolve(lineMerge()),
    conflicts: { ...parsePluginConfig({}).conflicts, ...conflicts },
    workspaceOf: () => workspace,
  };
}
