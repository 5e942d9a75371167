/** Contested writes where the operator wants calls to wait, undeclared commands to be refused, or none of it. */
import { afterAll, afterEach, describe, expect, it } from "vitest";
import type { Turn } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { PHASE1, createPluginConfig, type Stage } from "./stage.ts";
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

let stage: Stage | undefined;

/** One gateway after another, each with its own configuration. */
async function openStageWith(conflicts: Parameters<typeof openWritesStage>[0], flag = true): Promise<Stage> {
  const phase1 = { ...PHASE1, enabled: flag, conflicts };
  stage = await openWritesStage(conflicts, { pluginConfig: createPluginConfig(phase1) });
  return stage;
}

const close = async (): Promise<void> => {
  await stage?.close();
  stage = undefined;
};

describe("onConflict: wait, unknownWrites: deny", () => {
  afterAll(close);

  it("holds a call until the other's lease has ended, and then lets it through", async () => {
    const there = await openStageWith({
      onConflict: "wait",
      leaseMs: LEASE_MS,
      waitMs: 8_000,
      unknownWrites: "deny",
      commands: [{ command: "echo declared > declared.txt", outputs: ["declared.txt"] }],
    });
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
    const state = await run(there, "wait", { spawn });
    const events = await expectSound(there, state);
    expect(readText(there, "wait.txt")).toBe("by b\n");
    expect(resultsOf(there, "wait-b")[2]).not.toMatch(REFUSED);
    expect(listConflicts(events)).toEqual([]);
    const [ofA, ofB] = factsOf(events, "claim.acquired");
    expect(ofA).toMatchObject({ stepId: stepIdOf(state, "wait-a"), resource: fileOf(there, "wait.txt") });
    expect(ofB).toMatchObject({ stepId: stepIdOf(state, "wait-b"), resource: fileOf(there, "wait.txt") });
    const recordedRequest = there.model.requests.find(
      ({ turn }) => turn.call?.[0]?.args["content"] === "by b\n",
    );
    expect(recordedRequest?.receivedAt).toBeLessThan(ofA?.expiresAtMs ?? 0);
    const takenEvent = events.findLast(({ type }) => type === "claim.acquired");
    expect(new Date(takenEvent?.timestamp ?? 0).getTime()).toBeGreaterThanOrEqual(
      ofA?.expiresAtMs ?? Infinity,
    );
  });

  it("refuses a command that declares no outputs, records it, and runs one that does", async () => {
    if (!stage) throw new Error("there is no gateway");
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

/** Two agents overwrite one file while both are at work, and neither has read it. */
const overwriting: Turn = {
  spawn: [
    childOf("off-a", call(write("off.txt", "by a\n")), gate({ opens: ["off a"], awaits: ["off b"] })),
    childOf(
      "off-b",
      gate({ awaits: ["off a"] }),
      call(write("off.txt", "by b\n"), createExec("echo undeclared > undeclared.txt")),
      gate({ opens: ["off b"] }),
    ),
  ],
};

function expectPlain(there: Stage): void {
  for (const result of [...resultsOf(there, "off-a"), ...resultsOf(there, "off-b")])
    expect(result).not.toMatch(/Coordination/u);
  expect(readText(there, "off.txt")).toBe("by b\n");
  expect(readText(there, "undeclared.txt")).toBe("undeclared\n");
}

describe("what is off", () => {
  afterEach(close);

  it("conflicts.enabled: false: writes happen as in the plain host, and there are no claims", async () => {
    const there = await openStageWith({ enabled: false, unknownWrites: "deny" });
    const events = await expectSound(there, await run(there, "writes-off", overwriting));
    expectPlain(there);
    expect(events.map(({ type }) => type)).toContain("step.completed");
    const ofWrites = /^(?:claim|conflict|resource|write)\./u;
    expect(events.filter(({ type }) => ofWrites.test(type))).toEqual([]);
  });

  it("the flag: there is not even a ledger", async () => {
    const there = await openStageWith({ unknownWrites: "deny" }, false);
    await begin(there, "writes-flag-off", overwriting);
    const areDone = (): boolean =>
      resultsOf(there, "off-a").length > 0 && resultsOf(there, "off-b").length > 0;
    await waitFor(areDone, { what: "both agents to end", timeoutMs: 60_000 });
    expectPlain(there);
    expect(there.hasLedger()).toBe(false);
  });
});
