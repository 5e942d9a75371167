/**
 * Owns: whether a gateway runs, and goes by the configuration that is written. The host may refuse to reload the plugin.
 */
import { isCoordinationError } from "../../agents/coordination/contracts/errors.ts";
import { isBootedSince, isProcessGone, isProcessThere } from "../../platform/process-name.ts";
import {
  hashConfig,
  hasUnresolvedVariable,
  isCoordinating,
  readCoordinationSwitches,
  type CoordinationSwitches,
} from "../openclaw/host/operator-config.ts";
import type { DoctorCheck } from "./doctor-checks.ts";
import { importLedgerReader, resolveSidecarPath } from "./ledger/open-ledger.ts";
import type { CliHost } from "./terminal/cli-host.ts";
import type { ReaderOptions } from "./terminal/run-command.ts";

export const NOT_TAKEN_UP = "the running gateway goes by another configuration";
const TAKEN_UP =
  "the running gateway goes by this configuration; values of secrets, headers and `env` are not compared";
export const TAKE_UP_ADVICE = "Run `openclaw plugins reload coordination`, or restart the gateway.";

/**
 * Returns whether the running gateway goes by the given configuration; `undefined` where no gateway of this state
 * folder runs for sure, where a ledger is named, or where the configurations cannot be compared.
 */
export async function isConfigTakenUp(
  host: CliHost,
  options: ReaderOptions,
  config: unknown,
): Promise<boolean | undefined> {
  // Beside a ledger that is named another gateway may have reported.
  if (options.ledger !== undefined || config === undefined || hasUnresolvedVariable(config)) return undefined;
  const { readGatewayBeside } = await importLedgerReader();
  const gateway = readGatewayBeside(await resolveSidecarPath(host, options));
  if (!gateway || !isProcessThere(gateway.process)) return undefined;
  const switches = readCoordinationSwitches(config);
  const { phase1 } = switches;
  const isWanted = !isCoordinationError(phase1) && isCoordinating(switches);
  return gateway.configSha256 === (isWanted ? hashConfig(phase1) : undefined);
}

/**
 * `stopped`: the process of the last one is there, and coordinates no more. `ended`: its process is gone for sure. `none`: no report
 * of any is found.
 */
export type GatewayPresence = "running" | keyof typeof ABSENCES;

/** Sentences for where no gateway coordinates. The gateway may run all the same, without having taken up the configuration. */
export const ABSENCES = {
  stopped: "a gateway runs without coordination",
  ended: "no gateway coordinates: the process of the last one has ended",
  none: "no report of a gateway is found in the state folder",
} as const;

/**
 * Returns by the report in the state folder whether a gateway runs with coordination (`running`) or without
 * (`stopped`), has `ended`, or left no report (`none`); `undefined` where unknown, off, or a ledger is named.
 */
export async function findGatewayPresence(
  host: CliHost,
  options: ReaderOptions,
  switches: CoordinationSwitches | undefined,
): Promise<GatewayPresence | undefined> {
  // Beside a ledger that is named another gateway may have reported.
  if (options.ledger !== undefined || !switches || !isCoordinating(switches)) return undefined;
  const { readGatewayBeside, readHealthBeside } = await importLedgerReader();
  const path = await resolveSidecarPath(host, options);
  const gateway = readGatewayBeside(path);
  if (!gateway) return readHealthBeside(path) ? undefined : "none";
  const { process, boot, configSha256 } = gateway;
  if (isProcessThere(process)) return configSha256 === undefined ? "stopped" : "running";
  return hasEnded(process, boot) ? "ended" : undefined;
}

function hasEnded(process: string, boot: string | undefined): boolean {
  return isProcessGone(process) || (boot !== undefined && isBootedSince(boot));
}

const START_ADVICE: Readonly<Record<keyof typeof ABSENCES, string>> = {
  stopped: `Its log says why coordination stopped. ${TAKE_UP_ADVICE}`,
  ended:
    "Start the gateway with `openclaw gateway run`; if it runs, run `openclaw plugins reload coordination`.",
  none: "See whether `openclaw plugins list` has coordination; `openclaw plugins install` installs it. Then start the gateway.",
};

/** Returns the check that a gateway runs with coordination, a warning where none does; empty where nobody can tell. */
export function checkGateway(gateway: GatewayPresence | undefined): DoctorCheck[] {
  if (gateway === undefined) return [];
  const name = "gateway";
  return gateway === "running"
    ? [{ name, status: "ok", message: "a gateway runs with coordination" }]
    : [{ name, status: "warn", message: ABSENCES[gateway], advice: START_ADVICE[gateway] }];
}

/**
 * Returns whether the configuration coordinates nothing and no gateway is known to go by another one, so that whatever
 * the gateway reported last is of the time before; false where a ledger is named, or the configuration is not valid.
 */
export function isSwitchedOff(
  switches: CoordinationSwitches | undefined,
  takenUp: boolean | undefined,
  { ledger }: ReaderOptions,
): boolean {
  // A configuration that is not valid switches nothing off, and a named ledger may be of another gateway.
  if (!switches || isCoordinationError(switches.phase1) || ledger !== undefined) return false;
  return !isCoordinating(switches) && takenUp !== false;
}

/**
 * Returns the check that the gateway goes by the written configuration, a warning where it goes by another one; empty
 * where that is not known.
 */
export function checkTakenUp(takenUp: boolean | undefined): DoctorCheck[] {
  if (takenUp === undefined) return [];
  const name = "taken-up";
  return takenUp
    ? [{ name, status: "ok", message: TAKEN_UP }]
    : [{ name, status: "warn", message: NOT_TAKEN_UP, advice: TAKE_UP_ADVICE }];
}
