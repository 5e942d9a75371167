/** A process that copies a ledger until it is killed. After each batch it writes a line. */
import { writeSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { isPostgresUrl } from "../../src/infra/ledger/ledger-place.ts";
import { copyLedgerBetween } from "../../src/plugins/copy-ledger-between.ts";

const STDOUT_FD = 1;
const [, , from = "", to = ""] = process.argv;

const gateway = [from, to].some(isPostgresUrl) ? "home" : undefined;
const made = await copyLedgerBetween({ from, to, gateway }, ({ step, table }) => {
  writeSync(STDOUT_FD, `${step} ${table}\n`);
});
flushCompileCache();
writeSync(STDOUT_FD, `completed ${JSON.stringify(made)}\n`);
