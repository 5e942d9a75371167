/** Names that lead to one resource, and when it is free again: files by any path, commands, sessions and queues. */
import { createHash } from "node:crypto";
import { mkdirSync, symlinkSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Stage, stepNamed } from "./stage.ts";
import {
  begin,
  call,
  childOf,
  listConflicts,
  edit,
  waitForEnd,
  createExec,
  expectHeld,
  expectSound,
  factsOf,
  fileOf,
  gate,
  createMeeting,
  open,
  openWritesStage,
  ownerOf,
  patchOf,
  pathOf,
  put,
  read,
  REFUSED,
  resultsOf,
  run,
  stepIdOf,
  readText,
  write,
} from "./writes-stage.ts";

let stage: Stage;

beforeAll(async () => {
  stage = await openWritesStage({
    tools: { notify: { sessions: ["to"] } },
    commands: [
      { command: "sh build.sh", outputs: ["built"] },
      { command: "sh pack.sh *", outputs: ["packed"] },
    ],
  });
});

afterAll(() => stage.close());

const waitUntilCompleted = (owner: string, name: string): Promise<unknown> =>
  stage.until(ownerOf(owner), (state) => stepNamed(state, name).phase.status === "completed");

const versionOf = (text: string): string => `sha256:${createHash("sha256").update(text).digest("hex")}`;

describe("a file that another step has changed since it was read", () => {
  it("is not overwritten until it has been read again", async () => {
    put(stage, "lost/f.txt", "first\n");
    const spawn = [
      childOf(
        "lost-a",
        call(read("lost/f.txt")),
        gate({ opens: ["lost read"], awaits: ["lost b ended"] }),
        call(write("lost/f.txt", "of a, without b\n")),
        call(edit("lost/f.txt", "of b", "of a")),
        call(read("lost/f.txt")),
        call(write("lost/f.txt", "of a and b\n")),
      ),
      childOf("lost-b", gate({ awaits: ["lost read"] }), call(write("lost/f.txt", "of b\n"))),
    ];
    await begin(stage, "lost", { spawn });
    await waitUntilCompleted("lost", "lost-b");
    await open(stage, "lost b ended");
    const state = await waitForEnd(stage, "lost");
    const events = await expectSound(stage, state);
    const [, , overwriting, editing, again, written] = resultsOf(stage, "lost-a");
    expect(readText(stage, "lost/f.txt")).toBe("of a and b\n");
    const b = stepIdOf(state, "lost-b");
    const changed = `${pathOf(stage, "lost/f.txt")} was changed by ${b} ("lost-b") since you read`;
    for (const sentence of [overwriting, editing]) expect(sentence).toMatch(REFUSED);
    expect(overwriting).toContain(
      `${changed} all of it; your change would undo that. Read it again to its end`,
    );
    expect(editing).toContain(`${changed} it; your change would undo that. Read it again with`);
    expect(again).toBe("of b\n");
    expect(written).not.toMatch(REFUSED);
    const [conflict] = listConflicts(events);
    expect(conflict).toMatchObject({
      contest: { cause: "stale_base", base: versionOf("first\n"), current: versionOf("of b\n") },
      resolutions: [{ winner: b, losers: [stepIdOf(state, "lost-a")], because: "changed-since" }],
    });
    expect(overwriting).toContain(String(conflict?.conflictId));
  });
});

describe("the end of a step", () => {
  it("frees what it holds for the next", async () => {
    put(stage, "freed.txt", "first\n");
    const spawn = [
      childOf("freed-first", call(write("freed.txt", "by the first\n"))),
      childOf(
        "freed-second",
        gate({ awaits: ["freed first ended"] }),
        call(read("freed.txt")),
        call(edit("freed.txt", "first", "second")),
      ),
    ];
    await begin(stage, "freed", { spawn });
    await waitUntilCompleted("freed", "freed-first");
    await open(stage, "freed first ended");
    const state = await waitForEnd(stage, "freed");
    const events = await expectSound(stage, state);
    expect(readText(stage, "freed.txt")).toBe("by the second\n");
    expect(listConflicts(events)).toEqual([]);
    const ofClaims = events.filter(({ type }) => /^claim\./u.test(type));
    const [first, second] = ["freed-first", "freed-second"].map((name) => ({
      stepId: stepIdOf(state, name),
    }));
    expect(ofClaims).toMatchObject([
      { type: "claim.acquired", payload: first },
      { type: "claim.released", payload: first },
      { type: "claim.acquired", payload: second },
      { type: "claim.released", payload: second },
    ]);
    const changed = factsOf(events, "resource.changed").map(({ version }) => version);
    expect(changed).toEqual([versionOf("by the first\n"), versionOf("by the second\n")]);
  });

  it("frees it though its owner is not told yet, being in a call of its own", async () => {
    const spawnOf = (label: string) => ({
      spawn: [childOf(label, call(write("told.txt", `by ${label}\n`)))],
    });
    const turn = begin(
      stage,
      "told",
      spawnOf("told-first"),
      gate({ awaits: ["told first ended"] }),
      spawnOf("told-second"),
    );
    await stage.until(
      ownerOf("told"),
      (state) => state.kind === "open" && state.changes.size > 0 && state.claims.isEmpty(),
    );
    await open(stage, "told first ended");
    await turn;
    const events = await expectSound(stage, await waitForEnd(stage, "told"));
    expect(readText(stage, "told.txt")).toBe("by told-second\n");
    expect(listConflicts(events)).toEqual([]);
  });

  it("frees it for a later coordination, which need not have read it", async () => {
    const spawn = [childOf("freed-later", call(write("freed.txt", "later\n")))];
    const events = await expectSound(stage, await run(stage, "later", { spawn }));
    expect(readText(stage, "freed.txt")).toBe("later\n");
    expect(listConflicts(events)).toEqual([]);
  });
});

describe("several calls of one message", () => {
  it("by one agent never stand in each other's way", async () => {
    put(stage, "message/g.txt", "g\nold\n");
    const turn = call(
      write("message/f.txt", "one\n"),
      edit("message/f.txt", "one", "two"),
      patchOf("*** Update File: message/g.txt", "@@", "-old", "+new", "*** Add File: message/h.txt", "+h"),
      write("message/i.txt", "i\n"),
    );
    const state = await run(stage, "message", { spawn: [childOf("message-a", turn)] });
    const events = await expectSound(stage, state);
    const left = { "f.txt": "two\n", "g.txt": "g\nnew\n", "h.txt": "h\n", "i.txt": "i\n" };
    for (const result of resultsOf(stage, "message-a")) expect(result).not.toMatch(REFUSED);
    expect(listConflicts(events)).toEqual([]);
    const changed = factsOf(events, "resource.changed");
    for (const [name, text] of Object.entries(left)) {
      expect(readText(stage, `message/${name}`)).toBe(text);
      const resource = fileOf(stage, `message/${name}`);
      expect(changed.findLast((change) => change.resource === resource)?.version).toBe(versionOf(text));
    }
    expect(factsOf(events, "claim.acquired")).toHaveLength(Object.keys(left).length);
  });

  it("by two agents in opposite order hold nobody up", async () => {
    const labels = ["crossed-a", "crossed-b"];
    const createWriter = (label: string, names: readonly string[]) =>
      childOf(
        label,
        createMeeting("crossed", label, labels),
        call(...names.map((name) => write(`crossed/${name}`, `by ${label}\n`))),
        createMeeting("crossed over", label, labels),
      );
    const spawn = [
      createWriter("crossed-a", ["x.txt", "y.txt"]),
      createWriter("crossed-b", ["y.txt", "x.txt"]),
    ];
    const state = await run(stage, "crossed", { spawn });
    const events = await expectSound(stage, state);
    const results = labels.flatMap((label) => resultsOf(stage, label).slice(1, 3));
    expect(results.filter((result) => REFUSED.test(result))).toHaveLength(2);
    expect(results.join("\n")).not.toContain("hook failed");
    for (const name of ["x.txt", "y.txt"]) {
      const [changed, ...more] = factsOf(events, "resource.changed").filter(
        ({ resource }) => resource === fileOf(stage, `crossed/${name}`),
      );
      expect(more).toEqual([]);
      const winner = labels.find((label) => stepIdOf(state, label) === changed?.stepId);
      expect(readText(stage, `crossed/${name}`)).toBe(`by ${winner}\n`);
    }
  });
});

describe("one file by many paths", () => {
  it("is one resource, there or not", async () => {
    put(stage, "paths/real/x.txt", "x\n");
    mkdirSync(pathOf(stage, "paths/other"));
    symlinkSync(pathOf(stage, "paths/real"), pathOf(stage, "paths/link"));
    const holding = { opens: ["paths held"], awaits: ["paths b", "paths c"] };
    const other = "y\n";
    const elsewhere = {
      ...childOf(
        "paths-c",
        gate({ awaits: ["paths held"] }),
        call(write("x.txt", other)),
        call(write("free.txt", "free\n")),
        gate({ opens: ["paths c"] }),
      ),
      cwd: pathOf(stage, "paths/real"),
    };
    const spawn = [
      childOf(
        "paths-a",
        call(write("paths/link/x.txt", "x by a\n")),
        call(write("paths/link/deep/absent.txt", "made by a\n")),
        gate(holding),
      ),
      childOf(
        "paths-b",
        gate({ awaits: ["paths held"] }),
        call(write("paths/real/x.txt", other)),
        call(write("paths/other/../real/./x.txt", other)),
        call(write(pathOf(stage, "paths/link/x.txt"), other)),
        call(edit("paths/real/x.txt", "x by a", other)),
        call(patchOf("*** Update File: paths/real/x.txt", "@@", "-x by a", "+y")),
        call(patchOf("*** Delete File: paths/real/x.txt")),
        call(
          patchOf("*** Update File: paths/real/x.txt", "*** Move to: paths/moved.txt", "@@", "-x by a", "+y"),
        ),
        call(write("paths/real/deep/absent.txt", other)),
        gate({ opens: ["paths b"] }),
      ),
      elsewhere,
    ];
    const state = await run(stage, "paths", { spawn });
    const events = await expectSound(stage, state);
    expect(readText(stage, "paths/real/x.txt")).toBe("x by a\n");
    expect(readText(stage, "paths/moved.txt")).toBeUndefined();
    expect(readText(stage, "paths/real/deep/absent.txt")).toBe("made by a\n");
    expect(readText(stage, "paths/real/free.txt")).toBe("free\n");
    const [x, absent] = ["x.txt", "deep/absent.txt"].map((name) => fileOf(stage, `paths/real/${name}`));
    const a = `${stepIdOf(state, "paths-a")} ("paths-a")`;
    const conflicts = listConflicts(events);
    const conflictOf = (label: string, resource = x) =>
      conflicts.find(
        (conflict) =>
          conflict.resource === resource && conflict.contest?.requester === stepIdOf(state, label),
      );
    const refused = resultsOf(stage, "paths-b").slice(1, 9);
    for (const sentence of refused.slice(0, 7)) {
      expectHeld(sentence, { resource: x ?? "", by: a, conflictId: conflictOf("paths-b")?.conflictId });
    }
    const ofAbsent = conflictOf("paths-b", absent)?.conflictId;
    expectHeld(refused[7], { resource: absent ?? "", by: a, conflictId: ofAbsent });
    const ofC = conflictOf("paths-c")?.conflictId;
    expectHeld(resultsOf(stage, "paths-c")[1], { resource: x ?? "", by: a, conflictId: ofC });
    expect(conflicts).toHaveLength(3);
  });
});

describe("commands", () => {
  it("that declare a folder hold what is below it, and are held up by it", async () => {
    put(stage, "build.sh", "mkdir -p built && echo built > built/out.txt\n");
    put(stage, "pack.sh", "mkdir -p packed && echo packed > packed/out.txt\n");
    const spawn = [
      childOf(
        "command-a",
        call(createExec("echo free > free-of-claims.txt")),
        call(createExec("sh build.sh")),
        createMeeting("command claimed", "a", ["a", "b"]),
        call(createExec("sh pack.sh --all")),
        createMeeting("command over", "a", ["a", "b"]),
      ),
      childOf(
        "command-b",
        call(write("packed/mine.txt", "mine\n")),
        createMeeting("command claimed", "b", ["a", "b"]),
        call(write("built/other.txt", "other\n")),
        createMeeting("command over", "b", ["a", "b"]),
      ),
    ];
    const state = await run(stage, "command", { spawn });
    const events = await expectSound(stage, state);
    const nameBy = (label: string): string => `${stepIdOf(state, label)} ("${label}")`;
    const conflicts = listConflicts(events);
    const idOf = (resource: string) =>
      conflicts.find((conflict) => conflict.resource === resource)?.conflictId;
    const other = fileOf(stage, "built/other.txt");
    const packed = fileOf(stage, "packed");
    const ofB = resultsOf(stage, "command-b")[2];
    expectHeld(ofB, { resource: other, by: nameBy("command-a"), conflictId: idOf(other) });
    const ofA = resultsOf(stage, "command-a")[3];
    expectHeld(ofA, { resource: packed, by: nameBy("command-b"), conflictId: idOf(packed) });
    expect(conflicts).toHaveLength(2);
    expect(readText(stage, "free-of-claims.txt")).toBe("free\n");
    expect(readText(stage, "built/out.txt")).toBe("built\n");
    expect(readText(stage, "built/other.txt")).toBeUndefined();
    expect(readText(stage, "packed/out.txt")).toBeUndefined();
    const claimed = factsOf(events, "claim.acquired").map(({ resource }) => resource);
    expect(claimed.toSorted()).toEqual([fileOf(stage, "built"), fileOf(stage, "packed/mine.txt")].toSorted());
  });
});

describe("what is no file", () => {
  it("a session that a step writes to is not written to by its sibling or its owner", async () => {
    const inbox = ownerOf("inbox");
    const notify = { name: "notify", args: { to: inbox } };
    const spawn = [
      childOf("session-a", call(notify), gate({ opens: ["session held"], awaits: ["session over"] })),
      childOf(
        "session-b",
        gate({ awaits: ["session held"] }),
        call(notify),
        // A child that ended now would have the host skip the owner's next call, to tell it of the result.
        gate({ opens: ["session b"], awaits: ["session over"] }),
      ),
    ];
    const state = await run(
      stage,
      "session",
      { spawn },
      gate({ awaits: ["session b"] }),
      call({
        name: "sessions_send",
        args: { sessionKey: inbox, message: "hello", timeoutSeconds: 0 },
      }),
      gate({ opens: ["session over"] }),
    );
    const events = await expectSound(stage, state);
    const resource = `session:${inbox}`;
    const by = `${stepIdOf(state, "session-a")} ("session-a")`;
    const [ofB, ofOwner] = listConflicts(events);
    expectHeld(resultsOf(stage, "session-b")[1], { resource, by, conflictId: ofB?.conflictId });
    expectHeld(resultsOf(stage, "session")[3], { resource, by, conflictId: ofOwner?.conflictId });
    expect(await stage.of(inbox)).toEqual([]);
    expect(stage.model.requests.some(({ text }) => text === "hello")).toBe(false);
  });

  it("a queue is what its plugin's extractor says, and an extractor that throws refuses the call", async () => {
    const push = (queue: string) => call({ name: "queue_push", args: { queue, item: "one" } });
    const spawn = [
      childOf("queue-a", push("jobs"), gate({ opens: ["queue held"], awaits: ["queue b"] })),
      childOf(
        "queue-b",
        gate({ awaits: ["queue held"] }),
        push("jobs"),
        push("other"),
        call({ name: "queue_drop", args: { queue: "third" } }),
        gate({ opens: ["queue b"] }),
      ),
    ];
    const state = await run(stage, "queue", { spawn });
    const events = await expectSound(stage, state);
    const [, jobs, other, drop] = resultsOf(stage, "queue-b");
    const [conflict] = listConflicts(events);
    const by = `${stepIdOf(state, "queue-a")} ("queue-a")`;
    expectHeld(jobs, { resource: "queue:jobs", by, conflictId: conflict?.conflictId });
    expect(other).toBe("queue_push is done");
    expect(drop).toMatch(REFUSED);
    expect(drop).toContain('"writing-tools.broken"');
    expect(factsOf(events, "write.undetermined")).toEqual([
      {
        stepId: stepIdOf(state, "queue-b"),
        tool: "queue_drop",
        because: "extractor_failed",
        action: "denied",
        extractor: "writing-tools.broken",
      },
    ]);
    const { done: finished } = await stage.gateway.call("writing-tools.done");
    expect(JSON.stringify(finished)).not.toContain("queue_drop");
  });
});
