/** Owns: the life of one gateway process: its calls to ports can be late, fail, be its last, or wait while it is paused. */
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import { waitUntilSettled, type FakeClock } from "../support/fake-clock.ts";
import type { Group, PortFault } from "./moves.ts";

interface ArmedFault extends PortFault {
  callsLeft: number;
  untilMs?: number;
}

export interface Life {
  state: "on" | "paused" | "dead";
  readonly clock: FakeClock;
  readonly ended: PromiseWithResolvers<"dead">;
  readonly timers: Set<() => void>;
  readonly waiting: (() => void)[];
  faults: ArmedFault[];
  /** Hears of the end, with how long nobody runs then. */
  readonly onEnd: (downMs: number) => void;
  /** Any fault or pause has been met. */
  isDisturbed: boolean;
  /** Calls of ports that take time, which an orderly stop waits for. */
  slowCalls: number;
  /** Hears of a broken promise. */
  readonly report: (problem: string) => void;
  /** Counts what the process does; false once that is more than any play needs. */
  readonly mayGoOn: () => boolean;
}

export function createLife(
  clock: FakeClock,
  onEnd: Life["onEnd"],
  mayGoOn: Life["mayGoOn"] = () => true,
  report: Life["report"] = () => undefined,
): Life {
  return {
    state: "on",
    clock,
    ended: Promise.withResolvers(),
    timers: new Set(),
    waiting: [],
    faults: [],
    onEnd,
    isDisturbed: false,
    slowCalls: 0,
    report,
    mayGoOn,
  };
}

export function armFault(life: Life, fault: PortFault): void {
  life.faults.push({ ...fault, callsLeft: fault.atCall });
}

export function endLife(life: Life, downMs: number): void {
  if (life.state === "dead") return;
  life.state = "dead";
  life.isDisturbed = true;
  for (const cancel of life.timers) cancel();
  life.timers.clear();
  life.ended.resolve("dead");
  life.onEnd(downMs);
}

export function pauseLife(life: Life): void {
  if (life.state !== "on") return;
  life.state = "paused";
  life.isDisturbed = true;
}

export function resumeLife(life: Life): void {
  if (life.state !== "paused") return;
  life.state = "on";
  for (const resume of life.waiting.splice(0)) resume();
}

/** A call, because it may have changed at every `await`. */
function hasEnded({ state }: Life): boolean {
  return state === "dead";
}

const waitForever = <T>(): Promise<T> => new Promise(() => undefined);

/** Resolves when the process is at work; never in a dead one. */
async function waitUntilOn(life: Life): Promise<void> {
  while (life.state === "paused") await new Promise<void>((resolve) => life.waiting.push(resolve));
  if (hasEnded(life)) await waitForever();
}

/** Counts the call down in every fault of its group, and returns the one that it meets. */
function meetFault(life: Life, group: Group): ArmedFault | undefined {
  const aimed = life.faults.filter((fault) => fault.group === "any" || fault.group === group);
  for (const fault of aimed) fault.callsLeft -= 1;
  const met = aimed.find(({ callsLeft }) => callsLeft <= 0);
  if (!met) return undefined;
  const nowMs = life.clock.now();
  life.isDisturbed = true;
  met.untilMs ??= nowMs + (met.kind === "fails" ? met.lastsMs : 0);
  if (met.untilMs <= nowMs) life.faults = life.faults.filter((fault) => fault !== met);
  return met;
}

export async function callPort<T>(life: Life, group: Group, work: () => T | Promise<T>): Promise<T> {
  // A loop of calls would starve the play: it ends at the call that never answers.
  if (!life.mayGoOn()) return waitForever();
  if (life.state !== "on") await waitUntilOn(life);
  const fault = meetFault(life, group);
  if (fault?.kind === "dies before") endLife(life, fault.downMs);
  if (hasEnded(life)) return waitForever();
  const failure = fault && FAILURES[fault.kind];
  if (failure) return failPort(failure);
  try {
    return await performCall(life, fault, work);
  } catch (error) {
    if (hasEnded(life)) return waitForever();
    throw error;
  }
}

async function performCall<T>(
  life: Life,
  fault: ArmedFault | undefined,
  work: () => T | Promise<T>,
): Promise<T> {
  const answer = await work();
  if (fault) await spoilAnswer(life, fault);
  if (life.state !== "on") await waitUntilOn(life);
  return answer;
}

const FULL = new CoordinationError("LEDGER_FULL", "the disk is full for a moment");
/** Faults of calls that do nothing. */
const FAILURES: Partial<Record<ArmedFault["kind"], CoordinationError>> = {
  fails: FULL,
  "loses a race": new CoordinationError("LEDGER_CONFLICT", "another append came first"),
};

/** A disk takes a moment to say no. */
async function failPort(error: CoordinationError): Promise<never> {
  await waitUntilSettled();
  throw error;
}

async function spoilAnswer(life: Life, fault: ArmedFault): Promise<void> {
  if (fault.kind === "dies after") endLife(life, fault.downMs);
  if (fault.kind === "answers late")
    await new Promise<void>((resolve) => {
      life.clock.wakeAt((life.clock.now() + fault.lastsMs) as EpochMs, resolve);
    });
  if (fault.kind === "fails after") await failPort(FULL);
}

/** Every function of a port, as calls of one group. */
export function wrapPort<T extends object>(life: Life, group: Group, port: T): T {
  const entries = Object.entries(port).map(([name, value]: [string, unknown]) => {
    if (typeof value !== "function") return [name, value];
    return [
      name,
      (...args: unknown[]) => callPort(life, group, () => Reflect.apply(value, port, args) as unknown),
    ];
  });
  return Object.fromEntries(entries) as T;
}

export function wrapClock(life: Life): Clock {
  return {
    now: () => life.clock.now(),
    wakeAt: (atMs, run) => {
      if (hasEnded(life) || !life.mayGoOn()) return () => undefined;
      const cancel = (): void => {
        life.timers.delete(cancel);
        unset();
      };
      const unset = life.clock.wakeAt(atMs, () => {
        life.timers.delete(cancel);
        void waitUntilOn(life).then(run);
      });
      life.timers.add(cancel);
      return cancel;
    },
  };
}
