/**
 * A process that appends to one run beside others until it has won a number of times, reading the log again after every
 * lost race, and prints what it won.
 */
import { isCoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { fold } from "../../src/agents/coordination/ledger/evolve.ts";
import { author, openingOf, runIdOf, spawnOf } from "../support/ledger-fixtures.ts";
import { openTestLedger } from "../support/temp-ledger.ts";

export interface WriterReport {
  readonly name: string;
  readonly won: readonly string[];
}

const WINS = 40;

const [, , path = "", name = ""] = process.argv;
const store = await openTestLedger(path, { busyTimeoutMs: 10_000 });
const runId = runIdOf("shared");
const won: string[] = [];
while (won.length < WINS) {
  const events = await store.read(runId, { from: 0, limit: 10_000 });
  const writer = author("shared", { from: fold(runId, events) });
  const call = `${name}-${won.length}`;
  const opening = events.length === 0 ? [openingOf("shared")] : [];
  try {
    await store.append(writer.append(...opening, spawnOf(call)));
    won.push(call);
  } catch (error) {
    if (!isCoordinationError(error) || error.code !== "LEDGER_CONFLICT") throw error;
  }
}
await store.close();
process.stdout.write(JSON.stringify({ name, won } satisfies WriterReport));
