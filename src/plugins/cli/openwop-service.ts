/** Owns: what the command line says about OpenWOP in the gateway: whether it is served and where, and what is wrong with it. */
import type { Phase1Config } from "../../agents/coordination/contracts/config/config.ts";
import { isCoordinationError } from "../../agents/coordination/contracts/errors.ts";
import { isCoordinating, type ReadConfig, type Switches } from "../openclaw/host/operator-config.ts";
import { openWopBaseUrl } from "../openclaw/openwop/openwop-address.ts";
import type { Check } from "./doctor-checks.ts";
import { formatCount } from "../../agents/coordination/std/quantities.ts";

export interface OpenWopStatus {
  /** `null`: the configuration cannot be read from here. */
  readonly served: boolean | null;
  readonly url?: string;
  readonly tenants?: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Returns what the configuration wants, without looking at whether a gateway runs. */
export function openWopStatus(
  read: ReadConfig | undefined,
  switches: Switches | undefined,
  env: Environment,
): OpenWopStatus {
  if (!read || !switches) return { served: null };
  const { phase1 } = switches;
  if (isCoordinationError(phase1) || !phase1.openwop.enabled || !isCoordinating(switches))
    return { served: false };
  const url = openWopBaseUrl(phase1.openwop.baseUrl, { config: read.config, env });
  return { served: true, url, tenants: tenantsOf(phase1) };
}

function tenantsOf({ openwop }: Phase1Config): number {
  return new Set(openwop.tokens.map(({ tenant }) => tenant)).size;
}

export interface OpenWopPlace {
  readonly stateDir: string;
  readonly env: Environment;
}

/** Checks the OpenWOP service; empty when nobody wants it. */
export async function openWopChecks(
  switches: Switches | undefined,
  { stateDir, env }: OpenWopPlace,
): Promise<Check[]> {
  const phase1 = switches?.phase1;
  if (!phase1 || isCoordinationError(phase1) || !phase1.openwop.enabled) return [];
  const { bearerTokensOf, readPeerTokens, readAgents, readDefinitions } =
    await import("../compose-openwop.ts");
  const { openwop } = phase1;
  const hasPeers = Object.keys(openwop.peerTokens).length > 0;
  const readVariable = (name: string): string | undefined => env[name];
  return [
    ...(phase1.enabled ? [] : [OFF]),
    await tryCheck("openwop-tokens", "warn", {
      work: () => bearerTokensOf(openwop, readVariable),
      good: (tokens) =>
        `${formatCount(tokens.length, "token")} of ${formatCount(tenantsOf(phase1), "tenant")}`,
      advice: SET_VARIABLE,
    }),
    ...(hasPeers ? [await checkPeers(() => readPeerTokens(openwop, readVariable))] : []),
    await tryCheck("openwop-workflows", "fail", {
      work: () => readDefinitions(openwop, stateDir),
      good: (definitions) =>
        `${formatCount(definitions.length, "workflow")} in ${formatCount(openwop.workflows.length, "folder")}`,
      advice: MEND_FILES,
    }),
    await tryCheck("openwop-agents", "fail", {
      work: () => readAgents(openwop, stateDir),
      good: (agents) =>
        `${formatCount(agents.length, "agent")} in ${formatCount(openwop.agents.length, "folder")}`,
      advice: MEND_FILES,
    }),
  ];
}

function checkPeers(work: () => object): Promise<Check> {
  return tryCheck("openwop-peer-tokens", "warn", {
    work,
    good: (tokens) => formatCount(Object.keys(tokens).length, "token"),
    advice: `Until then the host does not call the peer. ${SET_VARIABLE}`,
  });
}

const SET_VARIABLE =
  "Set the variable for the gateway's process; this command sees its own environment only.";
const MEND_FILES = "OpenWOP is not served before they are mended; the next request reads them again.";

const OFF: Check = {
  name: "openwop",
  status: "warn",
  message: "openwop.enabled has no effect while coordination is off",
  advice: "Set coordination.phase1.enabled too.",
};

interface Trying<T> {
  readonly work: () => T | Promise<T>;
  readonly good: (result: T) => string;
  readonly advice: string;
}

async function tryCheck<T>(
  name: string,
  status: "warn" | "fail",
  { work, good, advice }: Trying<T>,
): Promise<Check> {
  try {
    return { name, status: "ok", message: good(await work()) };
  } catch (error) {
    if (!isCoordinationError(error)) throw error;
    return { name, status, message: error.message, advice };
  }
}
