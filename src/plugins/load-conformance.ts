/**
 * Owns: loading the play for the protocol's conformance suite. Only hosts that are tested and replays of what they ran need it, and
 * an installation may lack its folder.
 */
import { CoordinationError } from "../agents/coordination/contracts/errors.ts";
import type { InstalledAgent } from "../agents/coordination/contracts/workflows/agent-manifest.ts";
import type { ConformancePlay } from "../agents/coordination/runtime/workflow-host/records/conformance-play.ts";
import type { NodePlay } from "../agents/coordination/workflow/node-contract/node-type.ts";
import type { SuiteFace } from "./openwop/http/suite-face.ts";
import { readSystemErrorCode } from "../platform/system-error.ts";

/** The parts that a host under test has beside the product. */
export interface ConformanceSuite {
  /** Agents that it has installed, unless others have their ids. */
  readonly agents: readonly InstalledAgent[];
  /** Creates the play of one host. */
  readonly createPlay: () => ConformancePlay;
  /** The pure part of every play. */
  readonly nodePlay: NodePlay;
  readonly face: SuiteFace;
  /** Texts that the host must never show, by name. */
  readonly secrets: ReadonlyMap<string, string>;
}

/**
 * Loads the play of the conformance suite, which is no part of every installation, and returns it. @throws
 * CoordinationError `INPUT_INVALID` where the installation lacks it
 */
export async function loadConformance(): Promise<ConformanceSuite> {
  try {
    return (await import("./openwop/conformance/conformance-suite.ts")).CONFORMANCE_SUITE;
  } catch (error) {
    if (readSystemErrorCode(error) !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new CoordinationError(
      "INPUT_INVALID",
      "this installation lacks the conformance play (plugins/openwop/conformance), which --test-seams and replays of runs under test need; install the whole package",
      { cause: error },
    );
  }
}
