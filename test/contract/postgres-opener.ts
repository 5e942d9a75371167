/** A process that opens a ledger for writing, appends a run of its own and ends. */
import { openRun } from "../support/ledger-fixtures.ts";
import { openAnyLedger } from "../support/any-ledger.ts";

const [, , place = "", name = ""] = process.argv;
const store = await openAnyLedger(place, { busyTimeoutMs: 60_000 });
await store.append(openRun(name).request);
await store.close();
