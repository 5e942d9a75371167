/**
 * `node test/bench/openwop-fill.ts LEDGER FROM TO`: opens a ledger and fills it with no-op runs that have ended, in a process of
 * its own, through the host of workflow runs but without HTTP. Prints how long opening took. `runIdOf` names the runs: in no order, as those of clients are.
 */
import { openWorkflowHost } from "../../src/plugins/compose-workflows.ts";
import { runIdOf } from "./openwop-ids.ts";
import { NOOP, TENANT } from "./openwop-workflows.ts";

/** Appended together, so that a commit is shared by many. */
const TOGETHER = 256;

const [, , ledgerPath = "", from = "0", to = "0"] = process.argv;
const logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: console.error };
const begun = performance.now();
const running = await openWorkflowHost({
  ledgerPath,
  logger,
  definitions: [NOOP],
  secrets: new Map(),
  privateOrigins: [],
  confidenceFloor: 0.5,
  escalationThreshold: 0.7,
  peerTokens: {},
  baseUrl: () => "http://127.0.0.1",
  readVariable: () => undefined,
});
await running.host.start();
const openMs = performance.now() - begun;
const caller = { tenant: TENANT, principal: "bench" };
const last = Number(to);
for (let next = Number(from); next < last; next += TOGETHER) {
  const numbers = Array.from({ length: Math.min(TOGETHER, last - next) }, (_, index) => next + index);
  const created = await Promise.all(
    numbers.map((number) =>
      running.host.create(caller, {
        workflowId: NOOP.id,
        inputs: {},
        transport: "rest" as const,
        runId: runIdOf(number),
      }),
    ),
  );
  const refused = created.find(({ kind }) => kind === "refused");
  if (refused) throw new Error(JSON.stringify(refused));
}
await running.close();
process.stdout.write(`${JSON.stringify({ openMs })}\n`);
