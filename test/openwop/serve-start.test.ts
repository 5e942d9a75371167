/** Owns: what a host that cannot start leaves behind. */
import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { startServedOpenWop } from "../../src/plugins/serve-openwop.ts";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import { createServing } from "./create-serving.ts";

/** Has the ledger take no process that drives runs, as one on a full disk would. */
const REFUSE_DRIVERS =
  "create trigger refuse before insert on run_owner begin select raise(abort, 'no room'); end";

const countSockets = (): number =>
  process.getActiveResourcesInfo().filter((name) => name === "TCPServerWrap").length;

it("a host whose runs cannot go on listens no more, and has closed its ledger", async () => {
  using folder = createTempFolder();
  const ledger = folder.file("runs.sqlite");
  await (await openTestLedger(ledger)).close();
  forge(ledger, REFUSE_DRIVERS);
  const before = countSockets();
  await expect(startServedOpenWop(createServing(ledger))).rejects.toThrow("no room");
  expect(countSockets()).toBe(before);
  expect(existsSync(`${ledger}-wal`)).toBe(false);
});

it("a host whose key of interrupt tokens cannot be used has closed its ledger", async () => {
  using folder = createTempFolder();
  const ledger = folder.file("runs.sqlite");
  const options = { ...createServing(ledger), interruptKeyFile: folder.path };
  await expect(startServedOpenWop(options)).rejects.toThrow("--interrupt-key");
  expect(existsSync(ledger)).toBe(true);
  expect(existsSync(`${ledger}-wal`)).toBe(false);
});
