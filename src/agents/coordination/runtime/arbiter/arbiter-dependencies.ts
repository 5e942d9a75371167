/** Owns: the collaborators that the modules of arbitration share. */
import type { ConflictsConfig } from "../../contracts/config/config.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ContentReader } from "../../ports/content-store.ts";
import type { LedgerStore } from "../../ports/ledger-store.ts";
import type { Logger } from "../../ports/logger.ts";
import type { ResourceFiles } from "../../ports/resource-files.ts";
import type { TextMerge } from "../../ports/text-merge.ts";
import type { PlanSource } from "../log/plan-source.ts";
import type { PluginHooks } from "../environment/plugin-hooks.ts";
import type { PlanDependencies, RuntimeSettings } from "../environment/runtime-dependencies.ts";
import type { RunLog } from "../log/run-log.ts";

/** The collaborators that ruling on writes needs. */
export interface ArbitrationDependencies {
  readonly files: ResourceFiles;
  /** Loaded with the first merge. */
  readonly textMerge: () => Promise<TextMerge>;
  readonly conflicts: ConflictsConfig;
  /** Hooks of other authors' plugins; absent where there can be none. */
  readonly hooks?: PluginHooks;
}

export interface ArbiterDependencies
  extends ArbitrationDependencies, Pick<PlanDependencies, "refOf" | "folderOf"> {
  readonly store: LedgerStore;
  readonly content: ContentReader;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly runs: RunLog;
  readonly plans: PlanSource;
  readonly settings: RuntimeSettings;
}
