/** The listeners of a run log hear of events that others appended. */
import { expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { createRunLog, type RunLog } from "../../src/agents/coordination/runtime/log/run-log.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { createWorld, type World } from "../support/fake-clock-host.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { logOver } from "./run-log-scene.ts";
import { acknowledge, complete, OPEN, spawn } from "./scene.ts";

const RUN = "co-1" as CoordinationId;
const ignore = (): void => undefined;
const SILENT = { debug: ignore, info: ignore, warn: ignore, error: ignore };

interface ListenedLog {
  readonly log: RunLog;
  /** The sequences of what its listeners heard. */
  readonly sequences: number[];
  /** Whether its process drives the coordination. */
  isDriver: boolean;
}

function createHeard(w: World, wrap: (store: MemoryStore) => MemoryStore = (store) => store): ListenedLog {
  const sequences: number[] = [];
  const heard = { sequences, isDriver: true };
  const log = createRunLog({
    store: wrap(w.ledger.open(w.clock)),
    clock: w.clock,
    logger: SILENT,
    ownRuns: {
      ownerId: "",
      tokenOf: () => (heard.isDriver ? 1 : undefined),
      add: ignore,
      settle: ignore,
      remove: ignore,
      lose: ignore,
    },
    onAppended: (events: readonly RunEvent[]) => {
      sequences.push(...events.map(({ sequence }) => sequence));
    },
  });
  return Object.assign(heard, { log });
}

const listAll = (w: World): number[] =>
  w.ledger
    .events()
    .flat()
    .map(({ sequence }) => sequence);

it("they hear of all of it, however much it is, and once", async () => {
  const w = createWorld();
  const heard = createHeard(w);
  await heard.log.submit(RUN, [OPEN]);
  const many = Array.from({ length: 400 }, (_, index) => spawn(`theirs-${index}`));
  await logOver(w).submit(RUN, many);
  await heard.log.catchUp(RUN);
  await heard.log.catchUp(RUN);
  expect(listAll(w).length).toBeGreaterThan(1_000);
  expect(heard.sequences).toEqual(listAll(w));
});

it("they hear of it also where it was read for another reason", async () => {
  const w = createWorld();
  const heard = createHeard(w);
  await heard.log.submit(RUN, [OPEN, spawn("mine")]);
  await logOver(w).submit(RUN, [acknowledge(1)]);
  await heard.log.latest(RUN);
  await heard.log.catchUp(RUN);
  expect(heard.sequences).toEqual(listAll(w));
});

it("they hear of it where an append lost a race to it, and of that append behind it", async () => {
  const w = createWorld();
  const heard = createHeard(w);
  await heard.log.submit(RUN, [OPEN, spawn("mine")]);
  await logOver(w).submit(RUN, [acknowledge(1)]);
  await heard.log.submit(RUN, [complete(1)]);
  await heard.log.catchUp(RUN);
  expect(heard.sequences).toEqual(listAll(w));
});

it("they hear of an append that reached the ledger though it failed", async () => {
  const w = createWorld();
  let isLost = false;
  const heard = createHeard(w, (store) => ({
    ...store,
    append: async (request) => {
      await store.append(request);
      if (isLost) throw new CoordinationError("LEDGER_UNAVAILABLE", "the answer was lost");
    },
  }));
  await heard.log.submit(RUN, [OPEN, spawn("mine")]);
  isLost = true;
  await expect(heard.log.submit(RUN, [acknowledge(1)])).rejects.toThrow("the answer was lost");
  isLost = false;
  await heard.log.submit(RUN, [complete(1)]);
  expect(heard.sequences).toEqual(listAll(w));
});

it("they hear of it where the coordination was forgotten meanwhile, and of what was before it was first read never", async () => {
  const w = createWorld();
  await logOver(w).submit(RUN, [OPEN, spawn("theirs")]);
  const before = listAll(w).length;
  const heard = createHeard(w);
  await heard.log.state(RUN);
  await logOver(w).submit(RUN, [acknowledge(1)]);
  // More coordinations than are kept in memory.
  for (let other = 0; other < 600; other += 1) await heard.log.state(`other-${other}` as CoordinationId);
  await heard.log.state(RUN);
  expect(heard.sequences).toEqual(listAll(w).slice(before));
});

it("they hear nothing of it while another process drives the coordination: that one's listeners do", async () => {
  const w = createWorld();
  const heard = createHeard(w);
  await heard.log.submit(RUN, [OPEN, spawn("mine")]);
  const mine = listAll(w);
  heard.isDriver = false;
  await logOver(w).submit(RUN, [acknowledge(1)]);
  await heard.log.state(RUN);
  const until = listAll(w).length;
  heard.isDriver = true;
  await logOver(w).submit(RUN, [complete(1)]);
  await heard.log.catchUp(RUN);
  expect(heard.sequences).toEqual([...mine, ...listAll(w).slice(until)]);
});

it("they hear of what others appended behind an append whose answer is late, once that answer is there", async () => {
  const w = createWorld();
  const answer = Promise.withResolvers<undefined>();
  let isLate = false;
  const heard = createHeard(w, (store) => ({
    ...store,
    append: async (request) => {
      await store.append(request);
      if (isLate) await answer.promise;
    },
  }));
  await heard.log.submit(RUN, [OPEN, spawn("mine")]);
  isLate = true;
  const submitting = heard.log.submit(RUN, [acknowledge(1)]);
  await waitUntilSettled();
  await logOver(w).submit(RUN, [complete(1)]);
  const catching = heard.log.catchUp(RUN);
  await waitUntilSettled();
  answer.resolve(undefined);
  await Promise.all([submitting, catching]);
  expect(heard.sequences).toEqual(listAll(w));
});
