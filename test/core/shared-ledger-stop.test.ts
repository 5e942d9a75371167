/** Owns: what a gateway on a shared ledger still does when it is stopped. */
import { expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { createGatewayOwnerId } from "../../src/agents/coordination/runtime/ownership/gateway-owner.ts";
import { createSharedLedger } from "../../src/agents/coordination/runtime/ownership/shared-ledger.ts";
import { createFakeClock, waitUntilSettled } from "../support/fake-clock.ts";
import { openRun, quietLogger, runIdOf } from "../support/ledger-fixtures.ts";
import { createMemoryLedger } from "../support/memory-store.ts";
import { LEASE_MS, ORPHAN_MS } from "./gateways-scene.ts";

it("a gateway that stops waits for a coordination that it goes on with, and begins with no other one", async () => {
  const clock = createFakeClock();
  const store = createMemoryLedger().open(clock);
  const { owners } = store;
  const owner = { id: createGatewayOwnerId("a", "a-1") };
  const other = { id: createGatewayOwnerId("b", "b-1"), token: 1 };
  await owners.beat(other);
  for (const name of ["1", "2"]) await store.append({ ...openRun(name).request, owner: other });
  const { steady } = clock;
  const shared = createSharedLedger({
    owners,
    owner,
    clock,
    steady,
    logger: quietLogger,
    gateway: "a",
    leaseMs: LEASE_MS,
    orphanMs: ORPHAN_MS,
    isProcessGone: () => false,
    onReplaced: () => undefined,
  });
  const adopted: CoordinationId[] = [];
  let endAdopting = (): void => undefined;
  const adopt = async (runId: CoordinationId): Promise<void> => {
    adopted.push(runId);
    await new Promise<void>((resolve) => {
      endAdopting = resolve;
    });
  };
  await shared.start({ adopt, drop: () => undefined, follow: () => Promise.resolve() });
  for (const name of ["1", "2"]) await owners.give(runIdOf(name), other, owner.id);
  await clock.advance(LEASE_MS / 20);
  expect(adopted).toEqual([runIdOf("1")]);
  let hasStopped = false;
  const stopping = shared.stop().then(() => {
    hasStopped = true;
  });
  await waitUntilSettled();
  expect(hasStopped).toBe(false);
  endAdopting();
  await stopping;
  expect(adopted).toEqual([runIdOf("1")]);
});
