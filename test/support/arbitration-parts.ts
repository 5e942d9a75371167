/** Owns: everything that arbitration needs of the world: the real file system, and the operator's defaults. */
import {
  parsePluginConfig,
  type ConflictsConfig,
} from "../../src/agents/coordination/contracts/config/config.ts";
import type { ArbitrationParts } from "../../src/agents/coordination/runtime/arbiter/arbiter-parts.ts";
import { createRealFiles } from "../../src/infra/files/real-files.ts";
import { createFormatMerge } from "../../src/infra/merge/format-merge.ts";

const DEFAULTS = parsePluginConfig({});

export function createArbitrationParts(
  conflicts: Partial<ConflictsConfig> = {},
  workspace = "/nowhere",
): ArbitrationParts {
  return {
    files: createRealFiles(),
    textMerge: () => Promise.resolve(createFormatMerge()),
    conflicts: { ...DEFAULTS.conflicts, ...conflicts },
    workspaceOf: () => workspace,
  };
}
