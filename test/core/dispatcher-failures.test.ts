/** Owns: what is logged of coordinations that do not go on: a cause once while it lasts, and once when it is over. */
import { expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { createWorld, SETTINGS, type World } from "../support/fake-clock-host.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { createScriptedRunner, endFailing } from "../support/scripted-runner.ts";
import { AGENT, plan, scriptOf, step } from "./planned-world.ts";

interface Disk {
  readonly wrap: (store: MemoryStore) => MemoryStore;
  isFull: boolean;
}

/** A disk that has no room for the events of skipped steps while it is full. */
function createDisk(): Disk {
  const disk: Disk = {
    isFull: true,
    wrap: (store) => ({
      ...store,
      append: (request) => {
        const isSkip = request.events.some(({ type }) => type === "step.skipped");
        if (!disk.isFull || !isSkip) return store.append(request);
        return Promise.reject(new CoordinationError("LEDGER_FULL", "the disk is full"));
      },
    }),
  };
  return disk;
}

const listLines = ({ logged }: World): string[] =>
  logged.filter(({ message }) => /move the coordination on|no longer fail/u.test(message)).map(describeLine);

function describeLine({ level, message }: World["logged"][number]): string {
  return `${level}: ${message}`;
}

it("a full disk is logged once for all coordinations while it lasts, and once when it is over, and so the next time", async () => {
  const disk = createDisk();
  const world = createWorld(
    {},
    createScriptedRunner(scriptOf({ a: [endFailing(), endFailing(), endFailing()] })),
  );
  const coordinator = world.start(disk.wrap);
  await coordinator.start();
  const steps = [step("a"), step("b", { dependsOn: ["a"] })];
  const submitPlan = (coordinationId: string) =>
    coordinator.submitPlan({ plan: plan(steps, { coordinationId }), ownerAgent: AGENT });
  await submitPlan("plan-one");
  await submitPlan("plan-two");
  await world.clock.advance(SETTINGS.sweepMs * 5);
  const full = "error: could not move the coordination on: the disk is full";
  expect(listLines(world)).toEqual([full]);
  disk.isFull = false;
  await world.clock.advance(SETTINGS.sweepMs * 5);
  const over = "info: coordinations that no longer fail with LEDGER_FULL: 2";
  expect(listLines(world)).toEqual([full, over]);
  disk.isFull = true;
  await submitPlan("plan-three");
  await world.clock.advance(SETTINGS.sweepMs);
  expect(listLines(world)).toEqual([full, over, full]);
  disk.isFull = false;
  await coordinator.stop();
});

it("a fault of one coordination's log is logged for each, and is over for each by itself", async () => {
  const faulty = new Set<string>(["plan-one", "plan-two"]);
  const world = createWorld(
    {},
    createScriptedRunner(scriptOf({ a: [endFailing(), endFailing(), endFailing()] })),
  );
  const coordinator = world.start((store) => ({
    ...store,
    append: (request) => {
      const isSkip = request.events.some(({ type }) => type === "step.skipped");
      if (!isSkip || !faulty.has(request.runId)) return store.append(request);
      return Promise.reject(new CoordinationError("LEDGER_CORRUPT", `${request.runId} is damaged`));
    },
  }));
  await coordinator.start();
  const steps = [step("a"), step("b", { dependsOn: ["a"] })];
  for (const coordinationId of ["plan-one", "plan-two"])
    await coordinator.submitPlan({ plan: plan(steps, { coordinationId }), ownerAgent: AGENT });
  await world.clock.advance(SETTINGS.sweepMs * 5);
  const failures = [
    "error: could not move the coordination on: plan-one is damaged",
    "error: could not move the coordination on: plan-two is damaged",
  ];
  expect(listLines(world)).toEqual(failures);
  faulty.delete("plan-two");
  await world.clock.advance(SETTINGS.sweepMs * 5);
  const [, , ...later] = listLines(world);
  expect(later).toEqual(["info: coordinations that no longer fail with LEDGER_CORRUPT: 1"]);
  const over = world.logged.find(({ message }) => message.includes("no longer fail"));
  expect(over?.fields).toEqual({ runId: "plan-two", code: "LEDGER_CORRUPT" });
  await coordinator.stop();
});
