/**
 * A process that appends to one run beside others until it has won a number of times, reading the log again after every
 * lost race; then acquires as many claims in a run of its own. Prints what it won.
 */
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import { isCoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { fold } from "../../src/agents/coordination/ledger/evolve.ts";
import { createAuthor, openRun, openingOf, runIdOf, spawnOf } from "../support/ledger-fixtures.ts";
import { openAnyLedger } from "../support/any-ledger.ts";
import { createAcquired } from "./ledger-store-claim-play.ts";

export interface WriterReport {
  readonly name: string;
  readonly won: readonly string[];
  /** The tokens of its claims. */
  readonly tokens: readonly number[];
}

const WINS = 40;

const [, , path = "", name = ""] = process.argv;
const store = await openAnyLedger(path, { busyTimeoutMs: 10_000 });
const runId = runIdOf("shared");
const won: string[] = [];
while (won.length < WINS) {
  const events = await store.read(runId, { from: 0, limit: 10_000 });
  const writer = createAuthor("shared", { from: fold(runId, events) });
  const call = `${name}-${won.length}`;
  const opening = events.length === 0 ? [openingOf("shared")] : [];
  try {
    await store.append(writer.append(...opening, spawnOf(call)));
    won.push(call);
  } catch (error) {
    if (!isCoordinationError(error) || error.code !== "LEDGER_CONFLICT") throw error;
  }
}
const ownRun = openRun(name);
await store.append(ownRun.request);
const tokens: number[] = [];
while (tokens.length < WINS) {
  const resource = `queue:${name}`;
  const { lastToken } = await store.overlapping({ resource, atMs: 0 as EpochMs, limit: 0 });
  const spawn = spawnOf(`claim-${tokens.length}`);
  const claims = [createAcquired(lastToken + 1, resource), createAcquired(lastToken + 2, resource)];
  try {
    await store.append({ ...ownRun.author.propose(spawn), claims });
    ownRun.author.append(spawn);
    tokens.push(...claims.map(({ token }) => token));
  } catch (error) {
    if (!isCoordinationError(error) || error.code !== "CLAIM_CONFLICT") throw error;
  }
}
await store.close();
process.stdout.write(JSON.stringify({ name, won, tokens } satisfies WriterReport));
