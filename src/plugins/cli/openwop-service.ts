/** Owns: what the command line says about OpenWOP in the gateway: whether it is served and where, and what is wrong with it. */
import type { Phase1Config } from "../../agents/coordination/contracts/config/config.ts";
import { isCoordinationError } from "../../agents/coordination/contracts/errors.ts";
import {
  isCoordinating,
  type ReadConfig,
  type CoordinationSwitches,
} from "../openclaw/host/operator-config.ts";
import { formatOpenWopBaseUrl } from "../openclaw/openwop/openwop-address.ts";
import type { DoctorCheck } from "./doctor-checks.ts";
import { formatCount } from "../../agents/coordination/std/quantities.ts";

export interface OpenWopStatus {
  /** `null`: the configuration cannot be read from here. */
  readonly served: boolean | null;
  readonly url?: string;
  readonly tenants?: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns whether the configuration has OpenWOP served, at which URL and for how many tenants, without looking at
 * whether a gateway runs; `served: null` where the configuration cannot be read.
 */
export function readOpenWopStatus(
  read: ReadConfig | undefined,
  switches: CoordinationSwitches | undefined,
  env: Environment,
): OpenWopStatus {
  if (!read || !switches) return { served: null };
  const { phase1 } = switches;
  if (isCoordinationError(phase1) || !phase1.openwop.enabled || !isCoordinating(switches))
    return { served: false };
  const url = formatOpenWopBaseUrl(phase1.openwop.baseUrl, { config: read.config, env });
  return { served: true, url, tenants: countTenants(phase1) };
}

function countTenants({ openwop }: Phase1Config): number {
  return new Set(openwop.tokens.map(({ tenant }) => tenant)).size;
}

export interface OpenWopPlace {
  readonly stateDir: string;
  readonly env: Environment;
}

/**
 * Returns the checks of what serving OpenWOP needs (tokens, workflows, agents), for which it reads the files that the
 * configuration names; empty where OpenWOP is not enabled.
 */
export async function checkOpenWop(
  switches: CoordinationSwitches | undefined,
  { stateDir, env }: OpenWopPlace,
): Promise<DoctorCheck[]> {
  const phase1 = switches?.phase1;
  if (!phase1 || isCoordinationError(phase1) || !phase1.openwop.enabled) return [];
  const { readBearerTokens, readPeerTokens, readInstalledAgents, readWorkflowDefinitions } =
    await import("../compose-openwop.ts");
  const { openwop } = phase1;
  const hasPeers = Object.keys(openwop.peerTokens).length > 0;
  const readVariable = (name: string): string | undefined => env[name];
  return [
    ...(phase1.enabled ? [] : [OFF]),
    await runAsCheck("openwop-tokens", "warn", {
      work: () => readBearerTokens(openwop, readVariable),
      good: (tokens) =>
        `${formatCount(tokens.length, "token")} of ${formatCount(countTenants(phase1), "tenant")}`,
      advice: SET_VARIABLE,
    }),
    ...(hasPeers ? [await checkPeerTokens(() => readPeerTokens(openwop, readVariable))] : []),
    await runAsCheck("openwop-workflows", "fail", {
      work: () => readWorkflowDefinitions(openwop, stateDir),
      good: (definitions) =>
        `${formatCount(definitions.length, "workflow")} in ${formatCount(openwop.workflows.length, "folder")}`,
      advice: MEND_FILES,
    }),
    await runAsCheck("openwop-agents", "fail", {
      work: () => readInstalledAgents(openwop, stateDir),
      good: (agents) =>
        `${formatCount(agents.length, "agent")} in ${formatCount(openwop.agents.length, "folder")}`,
      advice: MEND_FILES,
    }),
  ];
}

function checkPeerTokens(work: () => object): Promise<DoctorCheck> {
  return runAsCheck("openwop-peer-tokens", "warn", {
    work,
    good: (tokens) => formatCount(Object.keys(tokens).length, "token"),
    advice: `Until then the host does not call the peer. ${SET_VARIABLE}`,
  });
}

const SET_VARIABLE =
  "Set the variable for the gateway's process; this command sees its own environment only.";
const MEND_FILES = "OpenWOP is not served before they are mended; the next request reads them again.";

const OFF: DoctorCheck = {
  name: "openwop",
  status: "warn",
  message: "openwop.enabled has no effect while coordination is off",
  advice: "Set coordination.phase1.enabled too.",
};

/** Work that a check tries, with its words for success and its advice for a failure. */
interface TriedWork<T> {
  readonly work: () => T | Promise<T>;
  readonly good: (result: T) => string;
  readonly advice: string;
}

/** Runs the work: a good check where it succeeds, else one of the given status with the error's message. */
async function runAsCheck<T>(
  name: string,
  status: "warn" | "fail",
  { work, good, advice }: TriedWork<T>,
): Promise<DoctorCheck> {
  try {
    return { name, status: "ok", message: good(await work()) };
  } catch (error) {
    if (!isCoordinationError(error)) throw error;
    return { name, status, message: error.message, advice };
  }
}
