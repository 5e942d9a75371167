/** Owns: which gateway opened what names none in a ledger that is copied to where several gateways can use it. */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { readPages } from "./compare-tables.ts";
import { RUN_TABLE } from "./copied-tables.ts";
import type { CopiedRow, CopySource } from "./copy-sides.ts";

export interface Move {
  /** Where the ledger is copied to, as it may be shown. */
  readonly to: string;
  /** False for a file, which one gateway uses. */
  readonly isShared: boolean;
  /** The gateway whose own ledger the source is, where whoever copies has named it. */
  readonly gateway?: string | undefined;
}

/**
 * Returns the gateway that opened what names none; `undefined` where nothing lacks a name, and for a file.
 * @throws CoordinationError `INPUT_INVALID` where the gateway has to be named, where another one was named before, and for a file
 */
export async function findMovedFrom(
  source: CopySource,
  { to, isShared, gateway }: Move,
): Promise<string | undefined> {
  if (!isShared && gateway === undefined) return undefined;
  if (!isShared)
    throw new CoordinationError(
      "INPUT_INVALID",
      `${to} is a file, which only one gateway uses; leave --gateway out`,
    );
  const before = await source.readMovedFrom();
  if (before !== undefined && gateway !== undefined && before !== gateway)
    throw new CoordinationError(
      "INPUT_INVALID",
      `${source.place} was moved from the ledger of gateway ${before}, and not of ${gateway}; leave --gateway out`,
    );
  const movedFrom = gateway ?? before;
  if (movedFrom === undefined && (await hasUnnamed(source)))
    throw new CoordinationError(
      "INPUT_INVALID",
      `${source.place} has coordinations that name no gateway, and several gateways can use ${to}; say with --gateway whose they are: the gateway.id of the gateway that used ${source.place}`,
    );
  return movedFrom;
}

async function hasUnnamed(source: CopySource): Promise<boolean> {
  for await (const page of readPages(source, RUN_TABLE)) if (page.some(isUnnamed)) return true;
  return false;
}

const COLUMNS = Object.keys(RUN_TABLE.columns);
const KIND_PLACE = COLUMNS.indexOf("kind");
const SUMMARY_PLACE = COLUMNS.indexOf("summary");

/** A key of JSON is behind a quote that no text has in it without a backslash. */
function isUnnamed(row: CopiedRow): boolean {
  return row[KIND_PLACE] === "coordination" && !String(row[SUMMARY_PLACE]).includes('"gateway":"');
}
