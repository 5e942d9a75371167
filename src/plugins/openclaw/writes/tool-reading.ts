/** Owns: what a tool call of the host is read from, and what is read off it. */
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import type { ConflictsConfig } from "../../../agents/coordination/contracts/config/config.ts";
import type {
  ReadPlace,
  UndeterminedWrite,
  WriteTarget,
} from "../../../agents/coordination/runtime/arbiter/write-call.ts";
import type { FoundExtractor } from "./extractor-registry.ts";

/** A tool call as the host tells it before it happens. Everything in it but the folder is a model's word. */
export interface ToolCall {
  readonly tool: string;
  /** The host's name for a kind of call, where it has one. */
  readonly toolKind?: string | undefined;
  readonly params: unknown;
  /** Paths that a patch changes in the host's opinion: a hint where the patch cannot be read. */
  readonly derivedPaths?: readonly string[] | undefined;
  /** The folder that the session's tools take relative paths from. */
  readonly folder: string;
  /** The session that calls: what it names `current`, and whose agent's main session it names `main`. */
  readonly session?: string | undefined;
  /** The host's `session.mainKey`, the name of every agent's main session; its default is `main`. */
  readonly mainKey?: string | undefined;
  readonly config: ConflictsConfig;
  /** Who reads the calls of a tool, besides us. */
  readonly extractors: (tool: string) => readonly FoundExtractor[];
}

export interface ToolReading {
  readonly targets: readonly WriteTarget[];
  readonly reads: readonly ReadPlace[];
  readonly undetermined?: UndeterminedWrite;
  readonly mayTouchAnything?: boolean;
  /** Where it works, where it may touch anything. */
  readonly folder?: string;
}

export const UNREADABLE: ToolReading = {
  targets: [],
  reads: [],
  undetermined: { because: "unreadable" },
};

/**
 * Returns the readings of one tool call as one, with at most as many resources as a call may have, beyond which it is
 * undetermined. A failed extractor weighs more than anything else that is not known.
 */
export function joinReadings(readings: readonly ToolReading[]): ToolReading {
  const targets = readings.flatMap((reading) => reading.targets);
  const reads = readings.flatMap((reading) => reading.reads);
  const doubts = readings.flatMap((reading) => reading.undetermined ?? []);
  if (targets.length > BOUNDS.resourcesPerCallMax || reads.length > BOUNDS.resourcesPerCallMax)
    doubts.push({ because: "too_many" });
  const anything = readings.find((reading) => reading.mayTouchAnything);
  const undetermined =
    doubts.find(({ because }) => because === "extractor_failed" || because === "too_many") ?? doubts[0];
  return {
    targets: targets.slice(0, BOUNDS.resourcesPerCallMax),
    reads: reads.slice(0, BOUNDS.resourcesPerCallMax),
    ...(undetermined && { undetermined }),
    ...(anything && {
      mayTouchAnything: true,
      ...(anything.folder !== undefined && { folder: anything.folder }),
    }),
  };
}
