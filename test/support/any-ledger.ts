/** Owns: opening a ledger of either kind by its place, for processes that are told it. */
import type { OpenedLedger } from "../../src/infra/ledger/opened-ledger.ts";
import { isPostgresUrl } from "../../src/infra/ledger/ledger-place.ts";
import { openTestPostgres } from "./postgres-ledger.ts";
import { openTestLedger, type OpenTestLedger } from "./temp-ledger.ts";

export function openAnyLedger(place: string, options: OpenTestLedger = {}): Promise<OpenedLedger> {
  return isPostgresUrl(place) ? openTestPostgres(place, options) : openTestLedger(place, options);
}
