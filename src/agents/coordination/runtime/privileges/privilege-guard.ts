/** Owns: what hosts ask before a call of a session: what holds it, whether its changes are allowed, and recording what was refused. */
import { BOUNDS } from "../../contracts/bounds.ts";
import { readErrorCode } from "../../contracts/errors.ts";
import type { SessionKey } from "../../contracts/ids.ts";
import { nameFile } from "../../contracts/resource-names.ts";
import type { LedgerStore } from "../../ports/ledger-store.ts";
import type { Logger } from "../../ports/logger.ts";
import type { ResourceFiles } from "../../ports/resource-files.ts";
import type { PrivilegeBound, PrivilegedStep } from "../../privileges/privilege-bound.ts";
import type { PrivilegeRefusal } from "../../privileges/privilege-sentence.ts";
import type { RunLog } from "../log/run-log.ts";
import {
  findBoundsOfSession,
  type BoundsDependencies,
  type ParentOf,
  type SessionBounds,
} from "./bounds-of-session.ts";
import { createChildlessSpawnFinder, type ChildlessSpawnDependencies } from "./childless-spawns.ts";
import { findWriteRefusal, type CallChanges, type WriteDependencies } from "./write-bounds.ts";

/** Where relative globs begin: the operator's at the workspace of the agent, others at the folder of the session that they hold. */
export interface GlobFolders {
  readonly ofSession: (session: SessionKey, agentId: string) => string;
  readonly ofAgent: (bound: PrivilegeBound) => string;
}

export interface PrivilegeGuard {
  /**
   * True while a spawn with privileges that an earlier process began, and that this parent made, may have a child that the
   * ledger does not know: a session of the parent of which `boundsOf`, asked afterwards, knows nothing may be that child.
   * `undefined`: nobody knows the parent. @throws CoordinationError where it cannot be told
   */
  hasChildlessSpawn(parent: SessionKey | undefined): Promise<boolean>;
  /** @throws CoordinationError where it cannot be told; the caller must not let the call happen then. */
  boundsOf(session: SessionKey, parentOf: ParentOf): Promise<SessionBounds>;
  /** `undefined`: the call may change all that it changes. */
  ruleOnChanges(
    sessionBounds: Pick<SessionBounds, "bounds" | "worktrees">,
    changes: CallChanges,
    folders: GlobFolders,
  ): Promise<PrivilegeRefusal | undefined>;
  /** Records a refused call. Never throws: the call is refused whether or not it could be recorded. */
  record(step: PrivilegedStep, refusal: PrivilegeRefusal): Promise<void>;
}

export interface GuardDependencies extends BoundsDependencies, ChildlessSpawnDependencies {
  readonly store: LedgerStore;
  readonly runs: RunLog;
  readonly files: ResourceFiles;
  readonly logger: Logger;
}

/**
 * Creates the guard that finds the privileges of a session, rules on the files that its tool calls change, and records
 * refusals.
 */
export function createPrivilegeGuard(dependencies: GuardDependencies): PrivilegeGuard {
  return {
    hasChildlessSpawn: createChildlessSpawnFinder(dependencies),
    boundsOf: (session, parentOf) => findBoundsOfSession(dependencies, session, parentOf),
    ruleOnChanges: (sessionBounds, changes, folders) =>
      findWriteRefusal(createWriteDependencies(dependencies, folders), sessionBounds, changes),
    record: (step, refusal) => recordRefusalByPrivilege(dependencies, step, refusal),
  };
}

function createWriteDependencies(
  { files }: GuardDependencies,
  { ofSession, ofAgent }: GlobFolders,
): WriteDependencies {
  return {
    files,
    folderOf: (bound) => (bound.by === "policy" ? ofAgent(bound) : ofSession(bound.session, bound.agentId)),
  };
}

async function recordRefusalByPrivilege(
  { runs, files, logger }: GuardDependencies,
  { coordinationId, stepId }: PrivilegedStep,
  { tool, rule, bound, path }: PrivilegeRefusal,
): Promise<void> {
  const isElsewhere = bound.coordinationId !== coordinationId;
  logger.info(
    { runId: coordinationId, stepId, tool, rule },
    "a call was refused by the privileges of its session",
  );
  try {
    await runs.submit(coordinationId, [
      {
        type: "recordRefusedCall",
        stepId,
        tool: tool.slice(0, BOUNDS.nameCharsMax).toWellFormed(),
        rule,
        from: {
          by: bound.by,
          stepId: bound.stepId,
          ...(isElsewhere && { coordinationId: bound.coordinationId }),
        },
        ...(path !== undefined && { resource: nameFile(path, files.machine) }),
      },
    ]);
  } catch (error) {
    const code = readErrorCode(error);
    logger.warn({ runId: coordinationId, stepId, code }, "a refused call could not be recorded");
  }
}
