/** Contested writes where the operator wants calls to wait, undeclared commands to be refused, or none of it. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Turn } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { PHASE1, createPluginConfig, type Stage } from "./stage.ts";
import { turnFlag } from "./turn-flag.ts";
import {
  begin,
  call,
  childOf,
  listConflicts,
  createExec,
  expectSound,
  factsOf,
  fileOf,
  gate,
  openWritesStage,
  read,
  REFUSED,
  resultsOf,
  run,
  stepIdOf,
  readText,
  write,
} from "./writes-stage.ts";

/** Long enough for the other agent to come before it ends, shorter than a call may wait. */
const LEASE_MS = 5_000;

let stage: Stage;

beforeAll(async () => {
  const phase1 = { ...PHASE1, enabled: false, conflicts: { unknownWrites: "deny" } };
  stage = await openWritesStage({}, { pluginConfig: createPluginConfig(phase1) });
});

afterAll(() => stage.close());

/** Two agents, named by a label, overwrite one file while both are at work, and neither has read it. */
function createOverwriting(label: string): Turn {
  const [a, b, file] = [`${label}-a`, `${label}-b`, `${label}.txt`];
  return {
    spawn: [
      childOf(a, call(write(file, `by ${a}\n`)), gate({ opens: [a], awaits: [b] })),
      childOf(
        b,
        gate({ awaits: [a] }),
        call(write(file, `by ${b}\n`), createExec(`echo undeclared > undeclared-${file}`)),
        gate({ opens: [b] }),
      ),
    ],
  };
}

function expectPlain(label: string): void {
  for (const result of [...resultsOf(stage, `${label}-a`), ...resultsOf(stage, `${label}-b`)])
    expect(result).not.toMatch(/Coordination/u);
  expect(readText(stage, `${label}.txt`)).toBe(`by ${label}-b\n`);
  expect(readText(stage, `undeclared-${label}.txt`)).toBe("undeclared\n");
}

describe("what is off", () => {
  it("the flag: there is not even a ledger", async () => {
    const label = "writes-flag-off";
    await begin(stage, label, createOverwriting(label));
    const areDone = (): boolean =>
      resultsOf(stage, `${label}-a`).length > 0 && resultsOf(stage, `${label}-b`).length > 0;
    await waitFor(areDone, { what: "both agents to end", timeoutMs: 60_000 });
    expectPlain(label);
    expect(stage.hasLedger()).toBe(false);
  });

  it("conflicts.enabled: false: writes happen as in the plain host, and there are no claims", async () => {
    const label = "writes-off";
    const conflicts = { enabled: false, unknownWrites: "deny" };
    await turnFlag(stage, { enabled: true, phase1: { conflicts } });
    const events = await expectSound(stage, await run(stage, label, createOverwriting(label)));
    expectPlain(label);
    expect(events.map(({ type }) => type)).toContain("step.completed");
    const ofWrites = /^(?:claim|conflict|resource|write)\./u;
    expect(events.filter(({ type }) => ofWrites.test(type))).toEqual([]);
  });
});

describe("onConflict: wait, unknownWrites: deny", () => {
  beforeAll(() => {
    const conflicts = {
      onConflict: "wait",
      leaseMs: LEASE_MS,
      waitMs: 8_000,
      unknownWrites: "deny",
      commands: [{ command: "echo declared > declared.txt", outputs: ["declared.txt"] }],
    };
    return turnFlag(stage, { enabled: true, phase1: { conflicts } });
  });

  it("holds a call until the other's lease has ended, and then lets it through", async () => {
    const spawn = [
      childOf(
        "wait-a",
        call(write("wait.txt", "by a\n")),
        gate({ opens: ["wait held"], awaits: ["wait over"] }),
      ),
      childOf(
        "wait-b",
        gate({ awaits: ["wait held"] }),
        call(read("wait.txt")),
        call(write("wait.txt", "by b\n")),
        gate({ opens: ["wait over"] }),
      ),
    ];
    const state = await run(stage, "wait", { spawn });
    const events = await expectSound(stage, state);
    expect(readText(stage, "wait.txt")).toBe("by b\n");
    expect(resultsOf(stage, "wait-b")[2]).not.toMatch(REFUSED);
    expect(listConflicts(events)).toEqual([]);
    const [ofA, ofB] = factsOf(events, "claim.acquired");
    expect(ofA).toMatchObject({ stepId: stepIdOf(state, "wait-a"), resource: fileOf(stage, "wait.txt") });
    expect(ofB).toMatchObject({ stepId: stepIdOf(state, "wait-b"), resource: fileOf(stage, "wait.txt") });
    const recordedRequest = stage.model.requests.find(
      ({ turn }) => turn.call?.[0]?.args["content"] === "by b\n",
    );
    expect(recordedRequest?.receivedAt).toBeLessThan(ofA?.expiresAtMs ?? 0);
    const takenEvent = events.findLast(({ type }) => type === "claim.acquired");
    expect(new Date(takenEvent?.timestamp ?? 0).getTime()).toBeGreaterThanOrEqual(
      ofA?.expiresAtMs ?? Infinity,
    );
  });

  it("refuses a command that declares no outputs, records it, and runs one that does", async () => {
    const spawn = [
      childOf(
        "denied",
        call(createExec("echo undeclared > undeclared.txt")),
        call(createExec("echo declared > declared.txt")),
      ),
    ];
    const state = await run(stage, "of-denied", { spawn });
    const events = await expectSound(stage, state);
    const [undeclared, declared] = resultsOf(stage, "denied");
    expect(undeclared).toMatch(REFUSED);
    expect(undeclared).toContain("what exec would change cannot be told");
    expect(declared).not.toMatch(REFUSED);
    expect(readText(stage, "undeclared.txt")).toBeUndefined();
    expect(readText(stage, "declared.txt")).toBe("declared\n");
    expect(factsOf(events, "write.undetermined")).toEqual([
      { stepId: stepIdOf(state, "denied"), tool: "exec", because: "undeclared", action: "denied" },
    ]);
    expect(factsOf(events, "resource.changed")).toMatchObject([
      { resource: fileOf(stage, "declared.txt"), tool: "exec" },
    ]);
  });
});
