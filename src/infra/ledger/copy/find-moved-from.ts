/**
 * Owns: whose the coordinations of a ledger are when it is copied to where more gateways can use it, or fewer. A gateway that has a
 * ledger file for itself takes all coordinations in it for its own, and tells their results to its own sessions.
 */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { readTablePages } from "./compare-tables.ts";
import { RUN_TABLE } from "./copied-tables.ts";
import type { CopiedRow, CopySource } from "./copy-sides.ts";

/** The target of a ledger's copy, and who can use the source and the target. */
export interface LedgerMove {
  /** Where the ledger is copied to, as it may be shown. */
  readonly to: string;
  /** Whether several gateways can use the source. False for a file, which one gateway uses. */
  readonly isFromShared: boolean;
  /** The same of the target. */
  readonly isShared: boolean;
  /** The gateway whose own ledger the source is, or a target that is a file is to be, where whoever copies has named it. */
  readonly gateway?: string | undefined;
}

/**
 * Returns the gateway that the target is to record as the opener of coordinations that name none; `undefined` for a
 * file as target, and where none was named and none is needed. @throws CoordinationError `INPUT_INVALID` where the
 * gateway has to be named, where another one was named before, where it is named from a file to a file, and where a
 * file would get open coordinations of other gateways than its own
 */
export async function findMovedFrom(source: CopySource, move: LedgerMove): Promise<string | undefined> {
  const { to, isShared, gateway } = move;
  if (!isShared) {
    await assertCanMoveToFile(source, move);
    return undefined;
  }
  const before = await source.readMovedFrom();
  if (before !== undefined && gateway !== undefined && before !== gateway)
    throw new CoordinationError(
      "INPUT_INVALID",
      `${source.place} was moved from the ledger of gateway ${before}, and not of ${gateway}; leave --gateway out`,
    );
  const movedFrom = gateway ?? before;
  if (movedFrom === undefined && (await hasUnnamedCoordination(source)))
    throw new CoordinationError(
      "INPUT_INVALID",
      `${source.place} has coordinations that name no gateway, and several gateways can use ${to}; say with --gateway whose they are: the gateway.id of the gateway that used ${source.place}`,
    );
  return movedFrom;
}

/** Throws where a file would get open coordinations of other gateways, or a gateway is named from a file to a file. */
async function assertCanMoveToFile(source: CopySource, move: LedgerMove): Promise<void> {
  if (move.isFromShared) await assertNoOtherGateways(source, move);
  else if (move.gateway !== undefined)
    throw new CoordinationError(
      "INPUT_INVALID",
      `${source.place} and ${move.to} are files, which only one gateway uses; leave --gateway out`,
    );
}

/** Returns whether the source has a coordination that names no gateway. */
async function hasUnnamedCoordination(source: CopySource): Promise<boolean> {
  for await (const page of readTablePages(source, RUN_TABLE))
    if (page.some(isUnnamedCoordination)) return true;
  return false;
}

/** Throws where gateways other than the named one have open coordinations in the source. */
async function assertNoOtherGateways(source: CopySource, { to, gateway }: LedgerMove): Promise<void> {
  const [first, ...more] = (await listOpenGateways(source)).filter((name) => name !== gateway);
  if (first === undefined) return;
  const names = more.length === 0 ? `gateway ${first}` : `gateways ${[first, ...more].join(" and ")}`;
  const user = gateway === undefined ? "only one gateway" : `only ${gateway}`;
  const left = gateway === undefined ? " with --gateway and the one that is left" : "";
  const remedy =
    gateway === undefined && more.length === 0
      ? `Say with --gateway which gateway is to use the file; only ${first} can`
      : `Start a gateway on the source, cancel the coordinations of the other gateways or let them end, stop it, and copy then${left}`;
  throw new CoordinationError(
    "INPUT_INVALID",
    `${source.place} has open coordinations of the ${names}, and ${to} is a file that ${user} uses: it would take them for its own. ${remedy}`,
  );
}

/** Lists the gateways with open coordinations, by name. */
async function listOpenGateways(source: CopySource): Promise<string[]> {
  const movedFrom = await source.readMovedFrom();
  const gateways = new Set<string>();
  for await (const page of readTablePages(source, RUN_TABLE))
    for (const row of page.filter(isOpenCoordination)) {
      const gateway = readGatewayOfRun(row) ?? movedFrom;
      if (gateway !== undefined) gateways.add(gateway);
    }
  return [...gateways].toSorted();
}

const COLUMNS = Object.keys(RUN_TABLE.columns);
const KIND_PLACE = COLUMNS.indexOf("kind");
const ENDED_PLACE = COLUMNS.indexOf("ended");
const SUMMARY_PLACE = COLUMNS.indexOf("summary");

function isUnnamedCoordination(row: CopiedRow): boolean {
  return row[KIND_PLACE] === "coordination" && readGatewayOfRun(row) === undefined;
}

function isOpenCoordination(row: CopiedRow): boolean {
  return row[KIND_PLACE] === "coordination" && row[ENDED_PLACE] === 0;
}

/**
 * Returns the gateway that a run's summary names; `undefined` where it names none. No text in the JSON is taken for
 * that key, because quotes within a text have backslashes.
 */
function readGatewayOfRun(row: CopiedRow): string | undefined {
  return /"gateway":"([^"]*)"/u.exec(String(row[SUMMARY_PLACE]))?.[1];
}
