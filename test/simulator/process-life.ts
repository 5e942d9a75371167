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
  /** The plugin's parts were made anew in the same process: timers go on, and the ledger of before is closed. */
  isReloaded: boolean;
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
    isReloaded: false,
    isDisturbed: false,
    slowCalls: 0,
    report,
    mayGoOn,
  };
}

export function armFault(life: Life, fault: PortFault): void {
  life.faults.push({ ...fault, callsLeft: fault.atCall });
}

/** The storage is full for that long: every write fails, of whatever kind. */
export function failWrites(life: Life, ms: number): void {
  const untilMs = life.clock.now() + ms;
  for (const group of ["append", "owners"] as const)
    life.faults.push({ kind: "fails", group, atCall: 1, lastsMs: ms, downMs: 0, callsLeft: 1, untilMs });
}

export function endLife(life: Life, downMs: number): void {
  if (life.state === "dead") return;
  life.state = "dead";
  life.isDisturbed = true;
  if (!life.isReloaded) {
    for (const cancel of life.timers) cancel();
    life.timers.clear();
  }
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

/** Calls of a process that is no more have no answer. */
function answerAfterEnd<T>({ isReloaded }: Life): Promise<T> {
  if (!isReloaded) return waitForever();
  return Promise.reject(new CoordinationError("LEDGER_CLOSED", "the plugin was loaded again"));
}

/** Resolves when the process is at work; never in a dead one. */
async function waitUntilOn(life: Life): Promise<void> {
  while (life.state === "paused") await new Promise<void>((resolve) => life.waiting.push(resolve));
  if (hasEnded(life)) await waitForever();
}

/** @throws CoordinationError `LEDGER_CLOSED` where the plugin was loaded again */
async function waitForTurn(life: Life): Promise<void> {
  if (life.isReloaded) await answerAfterEnd(life);
  await waitUntilOn(life);
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

/** `onFailure` hears at once that the call will fail; the caller only when the disk has taken its moment. */
export async function callPort<T>(
  life: Life,
  group: Group,
  work: () => T | Promise<T>,
  onFailure?: () => void,
): Promise<T> {
  // A loop of calls would starve the play: it ends at the call that never answers.
  if (!life.mayGoOn()) return waitForever();
  if (life.state !== "on") await waitForTurn(life);
  const fault = meetFault(life, group);
  if (fault?.kind === "dies before") endLife(life, fault.downMs);
  if (hasEnded(life)) return waitForever();
  const failure = fault && FAILURES[fault.kind];
  if (failure) return failPort(failure, onFailure);
  try {
    return await performCall(life, fault, work);
  } catch (error) {
    if (hasEnded(life)) return answerAfterEnd(life);
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
  if (life.state !== "on") await waitForTurn(life);
  return answer;
}

const FULL = new CoordinationError("LEDGER_FULL", "the disk is full for a moment");
/** Faults of calls that do nothing. */
const FAILURES: Partial<Record<ArmedFault["kind"], CoordinationError>> = {
  fails: FULL,
  "loses a race": new CoordinationError("LEDGER_CONFLICT", "another append came first"),
};

/** A disk takes a moment to say no. */
async function failPort(error: CoordinationError, onFailure?: () => void): Promise<never> {
  onFailure?.();
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
      if ((hasEnded(life) && !life.isReloaded) || !life.mayGoOn()) return () => undefined;
      const cancel = (): void => {
        life.timers.delete(cancel);
        unset();
      };
      const unset = life.clock.wakeAt(atMs, () => {
        life.timers.delete(cancel);
        if (life.isReloaded) run();
        else void waitUntilOn(life).then(run);
      });
      life.timers.add(cancel);
      return cancel;
    },
  };
}
