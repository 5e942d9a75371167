/** One gateway at a time drives the coordinations of a ledger that several reach (G1, G2). */
import { describe, expect, it } from "vitest";
import {
  createGatewayOwnerId,
  createHomeOwnerId,
  parseGatewayOwnerId,
} from "../../src/agents/coordination/runtime/ownership/gateway-owner.ts";
import type { OwnerBeat, RunOwner, RunOwners } from "../../src/agents/coordination/ports/run-owners.ts";
import {
  takeSeat,
  type GatewaySeat,
  type SeatParts,
} from "../../src/agents/coordination/runtime/ownership/gateway-seat.ts";
import { createFakeClock, waitUntilSettled, type FakeClock } from "../support/fake-clock.ts";
import { createMemoryOwners } from "../support/memory-owners.ts";

const LEASE_MS = 10_000;
const isBusy = { code: "LEDGER_BUSY" };
const isNotOwner = expect.objectContaining({ code: "NOT_OWNER" }) as Error;

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

interface Gateway {
  readonly owner: RunOwner;
  readonly parts: SeatParts;
  /** How often it was told that another one took its place. */
  losses: number;
  /** Nothing that it asks the ledger for, or waits for, happens while it is paused. */
  isPaused: boolean;
  /** Lets happen what it waited for. */
  resume(): void;
}

function createGateway(machine: Machine, name: string, process = name, start = 1): Gateway {
  const { clock, rows, lines, ended } = machine;
  const pausedCalls: (() => void)[] = [];
  const owners = createMemoryOwners({ runs: new Map(), owners: rows, hasEnded: () => true }, (work) =>
    Promise.resolve().then(() => work()),
  );
  const hold = async <T>(work: () => T | Promise<T>): Promise<T> => {
    if (gateway.isPaused) await new Promise<void>((resolve) => pausedCalls.push(resolve));
    return work();
  };
  const paused: Pick<RunOwners, "beat" | "beats" | "remove"> = {
    beat: (owner) => hold(() => owners.beat(owner)),
    beats: () => hold(() => owners.beats()),
    remove: (id) => hold(() => owners.remove(id)),
  };
  const owner = { id: createGatewayOwnerId(name, `${process}-${start}`), process };
  const log = (_: object, line: string): void => {
    lines.push(line);
  };
  const gateway: Gateway = {
    owner,
    losses: 0,
    isPaused: false,
    resume: () => {
      gateway.isPaused = false;
      for (const go of pausedCalls.splice(0)) go();
    },
    parts: {
      owner,
      owners: paused,
      clock: {
        now: () => clock.now(),
        wakeAt: (atMs, run) => clock.wakeAt(atMs, () => void hold(run)),
      },
      steady: clock.steady,
      leaseMs: LEASE_MS,
      isProcessGone: (one) => ended.has(one),
      logger: { debug: log, info: log, warn: log, error: log },
      onLost: () => {
        gateway.losses += 1;
      },
    },
  };
  return gateway;
}

/** What came of a try, once time has gone on for more than a lease. */
async function takeInTime({ clock }: Machine, { parts }: Gateway): Promise<GatewaySeat | Error> {
  const taking = takeSeat(parts).catch((error: unknown) => error as Error);
  await clock.advance(LEASE_MS * 1.5);
  return taking;
}

async function takeAtLast(machine: Machine, gateway: Gateway): Promise<GatewaySeat> {
  const seated = await takeInTime(machine, gateway);
  if (seated instanceof Error) throw seated;
  return seated;
}

describe("a gateway on a ledger that others reach", () => {
  it("drives its coordinations for as long as it tells of itself", async () => {
    const machine = createMachine();
    const seated = await takeAtLast(machine, createGateway(machine, "a"));
    await machine.clock.advance(LEASE_MS * 20);
    expect(() => seated.check()).not.toThrow();
    expect([...machine.rows.keys()].map(parseGatewayOwnerId)).toEqual(["a", "a"]);
    await seated.leave();
    expect([...machine.rows.keys()]).toEqual([createHomeOwnerId("a")]);
    expect(machine.clock.pending).toBe(0);
  });

  it("is refused where they are another one's, by its name, also when that one has left or is gone", async () => {
    const machine = createMachine();
    const first = await takeAtLast(machine, createGateway(machine, "a"));
    const refused = {
      ...isBusy,
      message: expect.stringContaining("gateway a drives the coordinations of this ledger") as string,
    };
    expect(await takeInTime(machine, createGateway(machine, "b"))).toMatchObject(refused);
    expect(() => first.check()).not.toThrow();
    await first.leave();
    expect(await takeInTime(machine, createGateway(machine, "b"))).toMatchObject(refused);
    machine.ended.add("a");
    expect(await takeInTime(machine, createGateway(machine, "b"))).toMatchObject(refused);
    const again = await takeAtLast(machine, createGateway(machine, "a", "on another machine"));
    expect(() => again.check()).not.toThrow();
  });

  it("is refused while another process drives them under its name", async () => {
    const machine = createMachine();
    const first = await takeAtLast(machine, createGateway(machine, "a"));
    expect(await takeInTime(machine, createGateway(machine, "a", "second"))).toMatchObject({
      ...isBusy,
      message: expect.stringContaining("another process drives") as string,
    });
    expect(() => first.check()).not.toThrow();
    await first.leave();
    const next = await takeSeat(createGateway(machine, "a", "second").parts);
    expect(() => next.check()).not.toThrow();
  });

  it("takes the place of one whose process has ended at once", async () => {
    const machine = createMachine();
    await takeAtLast(machine, createGateway(machine, "a", "killed"));
    machine.ended.add("killed");
    const next = await takeSeat(createGateway(machine, "a", "restarted").parts);
    expect(() => next.check()).not.toThrow();
    expect(machine.rows.size).toBe(2);
  });

  it("takes the place of one of another machine when that was silent for a lease, and of none before", async () => {
    const machine = createMachine();
    const first = createGateway(machine, "a");
    await takeAtLast(machine, first);
    first.isPaused = true;
    let isSeated = false;
    const taking = takeSeat(createGateway(machine, "a", "elsewhere").parts).then((seated) => {
      isSeated = true;
      return seated;
    });
    await machine.clock.advance(LEASE_MS * 0.9);
    expect(isSeated).toBe(false);
    await machine.clock.advance(LEASE_MS * 0.2);
    expect(isSeated).toBe(true);
    const seated = await taking;
    expect(() => seated.check()).not.toThrow();
  });

  it("appends nothing more when it was paused and another one took its place", async () => {
    const machine = createMachine();
    const first = createGateway(machine, "a");
    const paused = await takeAtLast(machine, first);
    first.isPaused = true;
    await machine.clock.advance(LEASE_MS);
    expect(() => paused.check()).toThrow(isNotOwner);
    const next = createGateway(machine, "a", "elsewhere");
    const second = await takeAtLast(machine, next);
    first.resume();
    await waitUntilSettled();
    await machine.clock.advance(LEASE_MS * 3);
    expect(() => paused.check()).toThrow(isNotOwner);
    expect(first.losses).toBe(1);
    expect(() => second.check()).not.toThrow();
    expect([...machine.rows.keys()].toSorted()).toEqual([createHomeOwnerId("a"), next.owner.id].toSorted());
  });

  it("goes on when it was paused and nobody took its place", async () => {
    const machine = createMachine();
    const gateway = createGateway(machine, "a");
    const seated = await takeAtLast(machine, gateway);
    gateway.isPaused = true;
    await machine.clock.advance(LEASE_MS * 3);
    expect(() => seated.check()).toThrow(isNotOwner);
    gateway.resume();
    await machine.clock.advance(LEASE_MS);
    expect(() => seated.check()).not.toThrow();
    expect(gateway.losses).toBe(0);
  });

  it("never drives them together with another one that begins at once", async () => {
    const machine = createMachine();
    const names = ["a", "b", "c"];
    const tries = await Promise.all(
      names.map((name) => takeSeat(createGateway(machine, name).parts).catch(() => undefined)),
    );
    expect(tries.filter((seated) => seated !== undefined).length).toBeLessThanOrEqual(1);
  });

  it("waits for what the same process drove before its configuration was changed", async () => {
    const machine = createMachine();
    const before = await takeAtLast(machine, createGateway(machine, "a", "one"));
    const next = createGateway(machine, "a", "one", 2);
    const taking = takeSeat(next.parts);
    await machine.clock.advance(LEASE_MS / 2);
    await before.leave();
    await machine.clock.advance(LEASE_MS / 4);
    const seated = await taking;
    expect(() => seated.check()).not.toThrow();
  });

  it("is no gateway's matter when a process that runs workflows tells of itself", async () => {
    const machine = createMachine();
    machine.rows.set("serve-1", { id: "serve-1", count: 1 });
    const seated = await takeSeat(createGateway(machine, "a").parts);
    expect(() => seated.check()).not.toThrow();
    expect(machine.rows.has("serve-1")).toBe(true);
  });
});
