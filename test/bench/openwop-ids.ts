import { hash } from "node:crypto";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";

/** The id of the nth run that a ledger was filled with: in no order, as the ids of clients' runs are. */
export function runIdOf(number: number): CoordinationId {
  return `run-${hash("sha256", String(number)).slice(0, 32)}` as CoordinationId;
}
