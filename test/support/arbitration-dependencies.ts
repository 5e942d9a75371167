/** Owns: everything that arbitration needs of the world: the real file system, and the operator's defaults. */
import {
  parsePluginConfig,
  type ConflictsConfig,
} from "../../src/agents/coordination/contracts/config/config.ts";
import type { ArbitrationDependencies } from "../../src/agents/coordination/runtime/arbiter/arbiter-dependencies.ts";
import type { PlanDependencies } from "../../src/agents/coordination/runtime/environment/runtime-dependencies.ts";
import { createRealFiles } from "../../src/infra/files/real-files.ts";
import { createFormatMerge } from "../../src/infra/merge/format-merge.ts";

const DEFAULTS = parsePluginConfig({});

export function createArbitrationDependencies(
  conflicts: Partial<ConflictsConfig> = {},
  workspace = "/nowhere",
): ArbitrationDependencies & Pick<PlanDependencies, "folderOf"> {
  return {
    files: createRealFiles(),
    textMerge: () => Promise.resolve(createFormatMerge()),
    conflicts: { ...DEFAULTS.conflicts, ...conflicts },
    folderOf: () => workspace,
  };
}
