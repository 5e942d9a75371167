/** Contested writes of a session that people talk to: they are asked, or the session is told who can be. */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { OWNER_STEP_ID } from "../../src/agents/coordination/contracts/ids.ts";
import type { SpawnArgs, Turn } from "../support/scripted-model.ts";
import { openApprover, type Approver } from "./approver.ts";
import type { OpenedCoordination, Stage } from "./stage.ts";
import {
  call,
  childOf,
  listConflicts,
  waitForEnd,
  createExec,
  expectHeld,
  expectSound,
  factsOf,
  fileOf,
  gate,
  openWritesStage,
  ownerOf,
  pathOf,
  REFUSED,
  resultsOf,
  run,
  stepIdOf,
  taskOf,
  readText,
  write,
  type Conflict,
} from "./writes-stage.ts";

const REVIEW_MS = 10_000;

let stage: Stage;
let approver: Approver | undefined;

beforeAll(async () => {
  stage = await openWritesStage({
    overrides: [{ resource: "manual/**", strategy: "manual_review" }],
    highRisk: ["secrets.txt"],
    reviewMs: REVIEW_MS,
  });
});

afterEach(() => {
  approver?.close();
  approver = undefined;
});

afterAll(() => stage.close());

/** Begins a turn as a person does who chats with the session. */
async function sendChat(label: string, ...turns: readonly Turn[]): Promise<void> {
  const params = { sessionKey: ownerOf(label), message: taskOf(label, turns), idempotencyKey: randomUUID() };
  await stage.gateway.call("chat.send", params);
}

const HELD = "held\n";
const WANTED = "wanted by the owner\n";

/** A child that holds a file until a gate is open. */
const createHolder = (label: string, file: string, ...more: readonly Turn[]): SpawnArgs =>
  childOf(
    `${label}-holder`,
    call(write(file, HELD)),
    gate({ opens: [`${label} held`], awaits: [`${label} over`] }),
    ...more,
  );

/** The owner's turn: a child holds the file, and the owner writes it, so often. */
const createWanting = (label: string, file: string, times = 1): Turn[] => [
  { spawn: [createHolder(label, file)] },
  gate({ awaits: [`${label} held`] }),
  ...Array.from({ length: times }, () => call(write(file, WANTED))),
  gate({ opens: [`${label} over`] }),
];

async function onlyConflictOf(state: OpenedCoordination): Promise<Conflict> {
  const [conflict, ...more] = listConflicts(await expectSound(stage, state));
  expect(more).toEqual([]);
  if (!conflict) throw new Error("there is no conflict");
  return conflict;
}

describe("a session that writes what its child holds", () => {
  it("is refused like any other", async () => {
    const state = await run(stage, "own", ...createWanting("own", "own.txt"));
    const conflict = await onlyConflictOf(state);
    const by = `${stepIdOf(state, "own-holder")} ("own-holder")`;
    expectHeld(resultsOf(stage, "own")[2], {
      resource: fileOf(stage, "own.txt"),
      by,
      conflictId: conflict.conflictId,
    });
    expect(conflict).toMatchObject({
      contest: { requester: OWNER_STEP_ID, strategy: "owner_wins" },
      resolutions: [{ winner: stepIdOf(state, "own-holder"), losers: [OWNER_STEP_ID] }],
    });
    expect(readText(stage, "own.txt")).toBe(HELD);
  });
});

describe("people who are asked", () => {
  it("allow the write: it happens, and the other's claim ends", async () => {
    approver = await openApprover(stage, "allow-once");
    const { requests } = approver;
    await sendChat("allowed", ...createWanting("allowed", "manual/allowed.txt"));
    const state = await waitForEnd(stage, "allowed");
    const conflict = await onlyConflictOf(state);
    const events = await stage.events(state);
    expect(readText(stage, "manual/allowed.txt")).toBe(WANTED);
    expect(resultsOf(stage, "allowed")[2]).toContain("Successfully wrote");
    const child1 = stepIdOf(state, "allowed-holder");
    expect(conflict.resolutions).toMatchObject([
      { winner: OWNER_STEP_ID, losers: [child1], because: "approved", rule: "people" },
    ]);
    expect(requests).toHaveLength(1);
    const { request } = requests[0] as { request: { title: string; description: string } };
    expect(request.title).toContain("manual/allowed.txt");
    expect(request.description).toContain(pathOf(stage, "manual/allowed.txt"));
    expect(request.description).toContain(`${child1} ("allowed-holder")`);
    const [first] = factsOf(events, "claim.acquired");
    expect(factsOf(events, "claim.released")).toContainEqual({
      stepId: child1,
      token: first?.token,
      because: "preempted",
    });
    expect(factsOf(events, "resource.changed").map(({ stepId }) => stepId)).toEqual([child1, OWNER_STEP_ID]);
  });

  it("deny it: it does not happen, whatever the default strategy, where the file is high-risk", async () => {
    approver = await openApprover(stage, "deny");
    await sendChat("writes-denied", ...createWanting("writes-denied", "secrets.txt"));
    const state = await waitForEnd(stage, "writes-denied");
    const conflict = await onlyConflictOf(state);
    expect(readText(stage, "secrets.txt")).toBe(HELD);
    expect(resultsOf(stage, "writes-denied")[2]).toContain("Denied by user");
    expect(conflict).toMatchObject({
      contest: { strategy: "manual_review", from: "high_risk" },
      resolutions: [{ losers: [OWNER_STEP_ID], because: "denied", rule: "people" }],
    });
    expect(conflict.resolutions[0]?.winner).toBeUndefined();
  });

  it("do not answer in time: it does not happen", async () => {
    approver = await openApprover(stage, "nothing");
    await sendChat("unanswered", ...createWanting("unanswered", "manual/unanswered.txt"));
    const conflict = await onlyConflictOf(await waitForEnd(stage, "unanswered"));
    expect(readText(stage, "manual/unanswered.txt")).toBe(HELD);
    expect(conflict.resolutions).toMatchObject([{ losers: [OWNER_STEP_ID], because: "unanswered" }]);
  });
});

describe("nobody who could be asked", () => {
  it("is recorded, and the session is not asked about again but hears of a conflict's id", async () => {
    await sendChat("nobody", ...createWanting("nobody", "manual/nobody.txt", 2));
    const [askedConflict, unasked, ...more] = listConflicts(
      await expectSound(stage, await waitForEnd(stage, "nobody")),
    );
    expect(more).toEqual([]);
    expect(readText(stage, "manual/nobody.txt")).toBe(HELD);
    expect(askedConflict?.resolutions).toMatchObject([
      { losers: [OWNER_STEP_ID], because: "nobody-to-ask", rule: "people" },
    ]);
    expect(unasked?.resolutions).toMatchObject([
      { losers: [OWNER_STEP_ID], because: "manual-review", rule: "strategy" },
    ]);
    const [, , first, second] = resultsOf(stage, "nobody");
    expect(first).toContain("approval unavailable");
    expect(second).toMatch(REFUSED);
    expect(second).toContain(`(conflict ${unasked?.conflictId})`);
  });
});

describe("a shell command that nobody declared", () => {
  it("that overwrites what another agent holds is recorded, a conflict for people, and told to the holder", async () => {
    const spawn = [
      childOf(
        "shell-holder",
        call(write("shell.txt", HELD)),
        gate({ opens: ["shell held"], awaits: ["shell overwritten"] }),
        call(write("shell.txt", "held again\n")),
        gate({ opens: ["shell over"] }),
      ),
      childOf(
        "shell-writer",
        gate({ awaits: ["shell held"] }),
        call(createExec("cat shell.txt")),
        call(createExec("echo of the shell > shell.txt")),
        gate({ opens: ["shell overwritten"], awaits: ["shell over"] }),
      ),
    ];
    const state = await run(stage, "of-shell", { spawn });
    const events = await expectSound(stage, state);
    const [holder, writer] = [stepIdOf(state, "shell-holder"), stepIdOf(state, "shell-writer")];
    const resource = fileOf(stage, "shell.txt");
    const allowed = { stepId: writer, tool: "exec", because: "undeclared", action: "allowed" };
    expect(factsOf(events, "write.undetermined")).toEqual([allowed, allowed]);
    expect(factsOf(events, "resource.changed")).toMatchObject([
      { stepId: holder, resource, tool: "write" },
      { stepId: writer, resource, tool: "exec" },
    ]);
    // The holder may be told of the change by its next write, before the host has told us of the command's end.
    const overwritten = listConflicts(events).filter(({ contest }) => contest?.cause === "overwritten");
    expect(overwritten).toMatchObject([
      {
        resource,
        contest: { requester: writer },
        resolutions: [{ losers: [writer], because: "manual-review" }],
      },
    ]);
    expect(readText(stage, "shell.txt")).toBe("of the shell\n");
    expect(resultsOf(stage, "shell-holder")[2]).toContain(`was changed by ${writer}`);
  });
});
