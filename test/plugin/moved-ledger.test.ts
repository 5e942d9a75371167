/** Owns: gateways as the plugin composes them on a ledger that was moved from the file of one of them. */
import { expect, it } from "vitest";
import { isOwnedBy } from "../../src/agents/coordination/contracts/coordination-summary.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { listChildrenOfSession } from "../../src/agents/coordination/runtime/children-of-session.ts";
import type { RunningCoordinator } from "../../src/plugins/compose.ts";
import { copyLedgerBetween } from "../../src/plugins/copy-ledger-between.ts";
import { OWNER, spawnRequest } from "../support/ledger-fixtures.ts";
import { createTestSchema } from "../support/postgres-server.ts";
import { createScriptedRunner } from "../support/scripted-runner.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { composeWith, type ToCompose } from "./composed-coordinator.ts";

async function compose(temporary: TempFolder, shared?: ToCompose["shared"]): Promise<RunningCoordinator> {
  const coordinator = await composeWith({
    temporary,
    runner: createScriptedRunner(),
    onEvents: () => undefined,
    workingFolder: "work",
    ...(shared && { shared }),
  });
  await coordinator.start();
  return coordinator;
}

async function listOwned({ reads }: RunningCoordinator): Promise<CoordinationId[]> {
  const runs = await reads.list({ limit: 10 });
  return runs.filter(({ summary }) => isOwnedBy(summary, OWNER, reads)).map(({ runId }) => runId);
}

it("a session has what it opened before its gateway's ledger was moved, and one of the same key elsewhere has not", async () => {
  using temporary = createTempFolder();
  await using schema = await createTestSchema();
  const alone = await compose(temporary);
  const admission = await alone.admitSpawn(spawnRequest({ call: "call-1", trace: "trace-1" }));
  if (admission.kind === "refused") throw new Error(admission.reason);
  const { coordinationId } = admission.envelope;
  await alone.close();
  await copyLedgerBetween(
    { from: temporary.file("ledger.sqlite"), to: schema.url, gateway: "shop" },
    () => undefined,
  );
  const office = await compose(temporary, { place: schema.url, gateway: "office" });
  const shop = await compose(temporary, { place: schema.url, gateway: "shop" });
  expect(await listOwned(office)).toEqual([]);
  expect(await listChildrenOfSession(office.reads, OWNER)).toEqual([]);
  expect(await listOwned(shop)).toEqual([coordinationId]);
  expect(await listChildrenOfSession(shop.reads, OWNER)).toMatchObject([{ coordinationId }]);
  expect((await office.reads.view(coordinationId))?.status).toBe("running");
  await office.close();
  await shop.close();
});
