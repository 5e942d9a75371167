/**
 * A process that opens a ledger and appends until something fails, and prints what failed and how many appends it had
 * been told of as done. It gives up being root, which no permission stops.
 */
import { isCoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { openRun } from "../support/ledger-fixtures.ts";
import { openTestLedger, createTempFolder } from "../support/temp-ledger.ts";

const APPENDS_MAX = 5_000;
const NOBODY = 65_534;

const [, , path = ""] = process.argv;
// Without a handler the system ends a process that passes its file size limit.
process.on("SIGXFSZ", () => undefined);
// All code is loaded while this is still root: the checkout may lie where nobody else may look.
{
  using folder = createTempFolder();
  await (await openTestLedger(folder.file("first.sqlite"))).close();
}
if (path.includes("closed") && process.getuid?.() === 0) process.seteuid?.(NOBODY);

let acknowledged = 0;
let code = "NONE";
try {
  const store = await openTestLedger(path);
  for (; acknowledged < APPENDS_MAX; acknowledged += 1)
    await store.append(openRun(`limited-${acknowledged}`).request);
} catch (error) {
  code = isCoordinationError(error) ? error.code : String(error);
}
process.stdout.write(JSON.stringify({ code, acknowledged }), () => process.exit(0));
