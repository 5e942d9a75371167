/** One process at a time is a gateway of a ledger that several gateways share (G1). */
import { describe, expect, it } from "vitest";
import { createGatewayOwnerId } from "../../src/agents/coordination/runtime/ownership/gateway-owner.ts";
import { addMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { OwnerBeat } from "../../src/agents/coordination/ports/run-owners.ts";
import {
  takeSeat,
  type SeatDependencies,
} from "../../src/agents/coordination/runtime/ownership/gateway-seat.ts";
import { createFakeClock, waitUntilSettled, type FakeClock } from "../support/fake-clock.ts";
import { createMemoryOwners } from "../support/memory-owners.ts";

const LEASE_MS = 10_000;
const isBusy = {
  code: "LEDGER_BUSY",
  message: expect.stringContaining("another process drives coordinations") as string,
};

interface Machine {
  readonly clock: FakeClock;
  readonly rows: Map<string, OwnerBeat>;
  readonly lines: string[];
  /** Processes that have ended. */
  readonly ended: Set<string>;
}

function createMachine(): Machine {
  return { clock: createFakeClock(), rows: new Map(), lines: [], ended: new Set() };
}

function createDependencies(machine: Machine, name: string, process = name, start = 1): SeatDependencies {
  const { clock, rows, lines, ended } = machine;
  const log = (_: object, line: string): void => {
    lines.push(line);
  };
  return {
    owner: { id: createGatewayOwnerId(name, `${process}-${start}`), process },
    owners: createMemoryOwners({ runs: new Map(), owners: rows, hasEnded: () => false }, (work) =>
      Promise.resolve().then(() => work()),
    ),
    clock,
    steady: clock.steady,
    leaseMs: LEASE_MS,
    isProcessGone: (one) => ended.has(one),
    logger: { debug: log, info: log, warn: log, error: log },
  };
}

/** Takes the seat, and tells of itself from then on, until the row is removed. */
async function takeAndKeep({ clock, rows }: Machine, dependencies: SeatDependencies): Promise<void> {
  await takeSeat(dependencies);
  const { owner, owners } = dependencies;
  const scheduleBeat = (): void => {
    clock.wakeAt(addMs(clock.now(), LEASE_MS / 5), () => {
      if (!rows.has(owner.id)) return;
      void owners.beat(owner).then(scheduleBeat);
    });
  };
  scheduleBeat();
}

/** The result of a try, once time has gone on for more than a lease: `undefined` when it has the seat. */
async function takeInTime({ clock }: Machine, dependencies: SeatDependencies): Promise<unknown> {
  const taking = takeSeat(dependencies).catch((error: unknown) => error);
  await clock.advance(LEASE_MS * 1.5);
  return taking;
}

describe("a process that begins as a gateway", () => {
  it("is refused while another process of that gateway is at work, and begins once that one has left", async () => {
    const machine = createMachine();
    const first = createDependencies(machine, "a");
    await takeAndKeep(machine, first);
    expect(await takeInTime(machine, createDependencies(machine, "a", "second"))).toMatchObject(isBusy);
    expect([...machine.rows.keys()]).toEqual([first.owner.id]);
    await first.owners.remove(first.owner.id);
    await takeSeat(createDependencies(machine, "a", "second"));
  });

  it("does not mind other gateways, nor processes that run workflows", async () => {
    const machine = createMachine();
    machine.rows.set("serve-1", { id: "serve-1", count: 1 });
    await takeAndKeep(machine, createDependencies(machine, "a"));
    await takeSeat(createDependencies(machine, "b"));
    expect(machine.rows.size).toBe(3);
  });

  it("begins at once where the process before it is known to have ended", async () => {
    const machine = createMachine();
    await takeAndKeep(machine, createDependencies(machine, "a", "killed"));
    machine.ended.add("killed");
    const next = createDependencies(machine, "a", "restarted");
    await takeSeat(next);
    expect([...machine.rows.keys()]).toEqual([next.owner.id]);
  });

  it("begins when one of another machine was silent for a lease, and not before", async () => {
    const machine = createMachine();
    await takeSeat(createDependencies(machine, "a"));
    let isSeated = false;
    const taking = takeSeat(createDependencies(machine, "a", "elsewhere")).then(() => {
      isSeated = true;
    });
    await machine.clock.advance(LEASE_MS * 0.9);
    expect(isSeated).toBe(false);
    await machine.clock.advance(LEASE_MS * 0.2);
    expect(isSeated).toBe(true);
    await taking;
  });

  it("never begins together with another one of its gateway", async () => {
    const machine = createMachine();
    const tries = ["x", "y", "z"].map((process) =>
      takeSeat(createDependencies(machine, "a", process)).then(
        () => true,
        () => false,
      ),
    );
    await waitUntilSettled();
    await machine.clock.advance(LEASE_MS * 1.5);
    expect((await Promise.all(tries)).filter(Boolean).length).toBeLessThanOrEqual(1);
  });

  it("waits no longer when it is to stop, however long the lease", async () => {
    const machine = createMachine();
    await takeAndKeep(machine, createDependencies(machine, "a"));
    const stopping = new AbortController();
    const waiting = { ...createDependencies(machine, "a", "second"), signal: stopping.signal };
    const refused = expect(takeSeat(waiting)).rejects.toMatchObject({ code: "LEDGER_CLOSED" });
    await waitUntilSettled();
    stopping.abort();
    await refused;
    expect(machine.rows.has(waiting.owner.id)).toBe(false);
  });

  it("waits for what the same process drove before its configuration was changed", async () => {
    const machine = createMachine();
    const before = createDependencies(machine, "a", "one");
    await takeAndKeep(machine, before);
    const taking = takeSeat(createDependencies(machine, "a", "one", 2));
    await machine.clock.advance(LEASE_MS / 2);
    await before.owners.remove(before.owner.id);
    await machine.clock.advance(LEASE_MS / 4);
    await taking;
  });
});
