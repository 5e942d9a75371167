/** Owns: which gateway opened a coordination and which one drives it now, where several share the ledger. */
import type { CoordinationStatus } from "../../agents/coordination/contracts/coordination-summary.ts";
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import type { CoordinationView } from "../../agents/coordination/runtime/log/coordination-view.ts";
import { parseGatewayOwnerId } from "../../agents/coordination/runtime/ownership/gateway-owner.ts";
import type { ReportedLedger } from "./reported-ledger.ts";

/** As `--json` has it. */
export interface GatewayReport {
  /** The gateway that opened it: its owner's session is there. */
  readonly home: string;
  /** The gateway that drives it now; absent where it has ended, and where none does. */
  readonly drives?: string;
}

type DriversReader = Pick<ReportedLedger, "owners">;

/** Owners that are asked for at once. */
const RUNS_AT_ONCE = 500;

/**
 * Returns, by coordination, the name of the gateway that drives it now; those that none drives are left out. @throws
 * CoordinationError as `RunOwners.ownersOf`
 */
export async function readDrivingGateways(
  { owners }: DriversReader,
  runIds: readonly CoordinationId[],
): Promise<ReadonlyMap<CoordinationId, string>> {
  const drivers = new Map<CoordinationId, string>();
  for (let at = 0; at < runIds.length; at += RUNS_AT_ONCE) {
    const found = await owners.ownersOf(runIds.slice(at, at + RUNS_AT_ONCE));
    for (const [runId, { id }] of found) {
      const gateway = parseGatewayOwnerId(id);
      if (gateway !== undefined) drivers.set(runId, gateway);
    }
  }
  return drivers;
}

/** A coordination in a listing; runs of workflows have no gateway. */
interface DrivenCoordination {
  readonly coordinationId?: CoordinationId;
  readonly status: string;
  readonly gateway?: GatewayReport;
}

/**
 * Returns the coordinations, those that are running and were opened by a named gateway with the one that drives each
 * now. @throws CoordinationError as `RunOwners.ownersOf`
 */
export async function addDrivingGateways<Run extends DrivenCoordination>(
  reader: DriversReader,
  runs: readonly Run[],
): Promise<readonly Run[]> {
  const driven = runs.flatMap(({ coordinationId, status, gateway }) =>
    coordinationId !== undefined && gateway && status === "running" ? [coordinationId] : [],
  );
  const drivers = await readDrivingGateways(reader, driven);
  return runs.map((run) => {
    const drives = run.coordinationId && drivers.get(run.coordinationId);
    return run.gateway && drives !== undefined ? { ...run, gateway: { ...run.gateway, drives } } : run;
  });
}

/**
 * Returns the field of a report with the gateway that opened a coordination; an empty object where one gateway has the
 * ledger for itself.
 */
export function createHomeField(gateway: string | undefined): { readonly gateway?: GatewayReport } {
  return gateway === undefined ? {} : { gateway: { home: gateway } };
}

/**
 * Reads the field of a report with the gateways that opened a coordination and drive it now; an empty object where one
 * gateway has the ledger for itself. @throws CoordinationError as `RunOwners.ownersOf`
 */
export async function readGatewayField(
  reader: DriversReader,
  { coordinationId, status, gateway }: CoordinationView,
): Promise<{ readonly gateway?: GatewayReport }> {
  const [run] = await addDrivingGateways(reader, [{ coordinationId, status, ...createHomeField(gateway) }]);
  return run?.gateway ? { gateway: run.gateway } : {};
}

/**
 * Returns the text that says which gateway opened a coordination and, while it runs, which other one drives it, or
 * that nobody does; empty where one gateway has the ledger for itself.
 */
export function describeGateway({
  gateway,
  status,
}: {
  readonly gateway?: GatewayReport;
  readonly status: CoordinationStatus;
}): string {
  if (!gateway) return "";
  const { home, drives } = gateway;
  if (status !== "running" || drives === home) return home;
  return `${home}, driven by ${drives ?? "nobody"}`;
}

/** A gateway that the ledger has, as `status --json` has it. */
export interface GatewayLoad {
  readonly name: string;
  /** How many running coordinations it drives. */
  readonly drives: number;
}

/**
 * Returns the gateways that told the ledger of themselves or drive one of these coordinations, by name, with how many
 * each drives. Whether they are still there is not to be learnt from one look.
 */
export async function listGateways(
  reader: DriversReader,
  running: readonly CoordinationId[],
): Promise<readonly GatewayLoad[]> {
  const counts = new Map<string, number>();
  for (const { id } of await reader.owners.beats()) {
    const name = parseGatewayOwnerId(id);
    if (name !== undefined) counts.set(name, 0);
  }
  for (const name of (await readDrivingGateways(reader, running)).values())
    counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts]
    .map(([name, drives]) => ({ name, drives }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns the text that names the gateways of a ledger with how many coordinations each drives; empty without any. */
export function describeGateways(gateways: readonly GatewayLoad[] = []): string {
  return gateways.map(({ name, drives }) => `${name} drives ${drives === 0 ? "nothing" : drives}`).join(", ");
}
