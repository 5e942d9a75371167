/** What counts as one resource, and when it is free again: files by any path, commands, sessions and queues. */
import { createHash } from "node:crypto";
import { mkdirSync, symlinkSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Stage, stepNamed } from "./stage.ts";
import {
  begin,
  calls,
  child,
  conflictsIn,
  edit,
  ended,
  exec,
  expectHeld,
  expectSound,
  factsOf,
  fileOf,
  gate,
  meet,
  open,
  openWritesStage,
  ownerOf,
  patch,
  pathOf,
  put,
  read,
  REFUSED,
  resultsOf,
  run,
  stepIdOf,
  textIn,
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

const completed = (owner: string, name: string): Promise<unknown> =>
  stage.until(ownerOf(owner), (state) => stepNamed(state, name).phase.status === "completed");

const versionOf = (text: string): string => `sha256:${createHash("sha256").update(text).digest("hex")}`;

describe("a file that another step has changed since it was read", () => {
  it("is not overwritten until it has been read again", async () => {
    put(stage, "lost/f.txt", "first\n");
    const spawn = [
      child(
        "lost-a",
        calls(read("lost/f.txt")),
        gate({ opens: ["lost read"], awaits: ["lost b ended"] }),
        calls(write("lost/f.txt", "of a, without b\n")),
        calls(edit("lost/f.txt", "of b", "of a")),
        calls(read("lost/f.txt")),
        calls(write("lost/f.txt", "of a and b\n")),
      ),
      child("lost-b", gate({ awaits: ["lost read"] }), calls(write("lost/f.txt", "of b\n"))),
    ];
    await begin(stage, "lost", { spawn });
    await completed("lost", "lost-b");
    await open(stage, "lost b ended");
    const state = await ended(stage, "lost");
    const events = await expectSound(stage, state);
    const [, , overwriting, editing, again, written] = resultsOf(stage, "lost-a");
    expect(textIn(stage, "lost/f.txt")).toBe("of a and b\n");
    const b = stepIdOf(state, "lost-b");
    for (const sentence of [overwriting, editing]) {
      expect(sentence).toMatch(REFUSED);
      expect(sentence).toContain(
        `${pathOf(stage, "lost/f.txt")} was changed by ${b} ("lost-b") since you read it`,
      );
      expect(sentence).toContain("Read it again");
    }
    expect(again).toBe("of b\n");
    expect(written).not.toMatch(REFUSED);
    const [conflict] = conflictsIn(events);
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
      child("freed-first", calls(write("freed.txt", "by the first\n"))),
      child(
        "freed-second",
        gate({ awaits: ["freed first ended"] }),
        calls(read("freed.txt")),
        calls(edit("freed.txt", "first", "second")),
      ),
    ];
    await begin(stage, "freed", { spawn });
    await completed("freed", "freed-first");
    await open(stage, "freed first ended");
    const state = await ended(stage, "freed");
    const events = await expectSound(stage, state);
    expect(textIn(stage, "freed.txt")).toBe("by the second\n");
    expect(conflictsIn(events)).toEqual([]);
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
    const spawnOf = (label: string) => ({ spawn: [child(label, calls(write("told.txt", `by ${label}\n`)))] });
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
    const events = await expectSound(stage, await ended(stage, "told"));
    expect(textIn(stage, "told.txt")).toBe("by told-second\n");
    expect(conflictsIn(events)).toEqual([]);
  });

  it("frees it for a later coordination, which need not have read it", async () => {
    const spawn = [child("freed-later", calls(write("freed.txt", "later\n")))];
    const events = await expectSound(stage, await run(stage, "later", { spawn }));
    expect(textIn(stage, "freed.txt")).toBe("later\n");
    expect(conflictsIn(events)).toEqual([]);
  });
});

describe("several calls of one message", () => {
  it("by one agent never stand in each other's way", async () => {
    put(stage, "message/g.txt", "g\nold\n");
    const turn = calls(
      write("message/f.txt", "one\n"),
      edit("message/f.txt", "one", "two"),
      patch("*** Update File: message/g.txt", "@@", "-old", "+new", "*** Add File: message/h.txt", "+h"),
      write("message/i.txt", "i\n"),
    );
    const state = await run(stage, "message", { spawn: [child("message-a", turn)] });
    const events = await expectSound(stage, state);
    const left = { "f.txt": "two\n", "g.txt": "g\nnew\n", "h.txt": "h\n", "i.txt": "i\n" };
    for (const result of resultsOf(stage, "message-a")) expect(result).not.toMatch(REFUSED);
    expect(conflictsIn(events)).toEqual([]);
    const changed = factsOf(events, "resource.changed");
    for (const [name, text] of Object.entries(left)) {
      expect(textIn(stage, `message/${name}`)).toBe(text);
      const resource = fileOf(stage, `message/${name}`);
      expect(changed.findLast((change) => change.resource === resource)?.version).toBe(versionOf(text));
    }
    expect(factsOf(events, "claim.acquired")).toHaveLength(Object.keys(left).length);
  });

  it("by two agents in opposite order hold nobody up", async () => {
    const labels = ["crossed-a", "crossed-b"];
    const writer = (label: string, names: readonly string[]) =>
      child(
        label,
        meet("crossed", label, labels),
        calls(...names.map((name) => write(`crossed/${name}`, `by ${label}\n`))),
        meet("crossed over", label, labels),
      );
    const spawn = [writer("crossed-a", ["x.txt", "y.txt"]), writer("crossed-b", ["y.txt", "x.txt"])];
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
      expect(textIn(stage, `crossed/${name}`)).toBe(`by ${winner}\n`);
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
      ...child(
        "paths-c",
        gate({ awaits: ["paths held"] }),
        calls(write("x.txt", other)),
        calls(write("free.txt", "free\n")),
        gate({ opens: ["paths c"] }),
      ),
      cwd: pathOf(stage, "paths/real"),
    };
    const spawn = [
      child(
        "paths-a",
        calls(write("paths/link/x.txt", "x by a\n")),
        calls(write("paths/link/deep/absent.txt", "made by a\n")),
        gate(holding),
      ),
      child(
        "paths-b",
        gate({ awaits: ["paths held"] }),
        calls(write("paths/real/x.txt", other)),
        calls(write("paths/other/../real/./x.txt", other)),
        calls(write(pathOf(stage, "paths/link/x.txt"), other)),
        calls(edit("paths/real/x.txt", "x by a", other)),
        calls(patch("*** Update File: paths/real/x.txt", "@@", "-x by a", "+y")),
        calls(patch("*** Delete File: paths/real/x.txt")),
        calls(
          patch("*** Update File: paths/real/x.txt", "*** Move to: paths/moved.txt", "@@", "-x by a", "+y"),
        ),
        calls(write("paths/real/deep/absent.txt", other)),
        gate({ opens: ["paths b"] }),
      ),
      elsewhere,
    ];
    const state = await run(stage, "paths", { spawn });
    const events = await expectSound(stage, state);
    expect(textIn(stage, "paths/real/x.txt")).toBe("x by a\n");
    expect(textIn(stage, "paths/moved.txt")).toBeUndefined();
    expect(textIn(stage, "paths/real/deep/absent.txt")).toBe("made by a\n");
    expect(textIn(stage, "paths/real/free.txt")).toBe("free\n");
    const [x, absent] = ["x.txt", "deep/absent.txt"].map((name) => fileOf(stage, `paths/real/${name}`));
    const a = `${stepIdOf(state, "paths-a")} ("paths-a")`;
    const conflicts = conflictsIn(events);
    const conflictOf = (label: string, resource = x) =>
      conflicts.find((it) => it.resource === resource && it.contest?.requester === stepIdOf(state, label));
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
      child(
        "command-a",
        calls(exec("echo free > free-of-claims.txt")),
        calls(exec("sh build.sh")),
        meet("command claimed", "a", ["a", "b"]),
        calls(exec("sh pack.sh --all")),
        meet("command over", "a", ["a", "b"]),
      ),
      child(
        "command-b",
        calls(write("packed/mine.txt", "mine\n")),
        meet("command claimed", "b", ["a", "b"]),
        calls(write("built/other.txt", "other\n")),
        meet("command over", "b", ["a", "b"]),
      ),
    ];
    const state = await run(stage, "command", { spawn });
    const events = await expectSound(stage, state);
    const by = (label: string): string => `${stepIdOf(state, label)} ("${label}")`;
    const conflicts = conflictsIn(events);
    const idOf = (resource: string) => conflicts.find((it) => it.resource === resource)?.conflictId;
    const other = fileOf(stage, "built/other.txt");
    const packed = fileOf(stage, "packed");
    const ofB = resultsOf(stage, "command-b")[2];
    expectHeld(ofB, { resource: other, by: by("command-a"), conflictId: idOf(other) });
    const ofA = resultsOf(stage, "command-a")[3];
    expectHeld(ofA, { resource: packed, by: by("command-b"), conflictId: idOf(packed) });
    expect(conflicts).toHaveLength(2);
    expect(textIn(stage, "free-of-claims.txt")).toBe("free\n");
    expect(textIn(stage, "built/out.txt")).toBe("built\n");
    expect(textIn(stage, "built/other.txt")).toBeUndefined();
    expect(textIn(stage, "packed/out.txt")).toBeUndefined();
    const claimed = factsOf(events, "claim.acquired").map(({ resource }) => resource);
    expect(claimed.toSorted()).toEqual([fileOf(stage, "built"), fileOf(stage, "packed/mine.txt")].toSorted());
  });
});

describe("what is no file", () => {
  it("a session that a step writes to is not written to by its sibling or its owner", async () => {
    const inbox = ownerOf("inbox");
    const notify = { name: "notify", args: { to: inbox } };
    const spawn = [
      child("session-a", calls(notify), gate({ opens: ["session held"], awaits: ["session over"] })),
      child(
        "session-b",
        gate({ awaits: ["session held"] }),
        calls(notify),
        // A child that ended now would have the host skip the owner's next call, to tell it of the result.
        gate({ opens: ["session b"], awaits: ["session over"] }),
      ),
    ];
    const state = await run(
      stage,
      "session",
      { spawn },
      gate({ awaits: ["session b"] }),
      calls({ name: "sessions_send", args: { sessionKey: inbox, message: "hello", timeoutSeconds: 0 } }),
      gate({ opens: ["session over"] }),
    );
    const events = await expectSound(stage, state);
    const resource = `session:${inbox}`;
    const by = `${stepIdOf(state, "session-a")} ("session-a")`;
    const [ofB, ofOwner] = conflictsIn(events);
    expectHeld(resultsOf(stage, "session-b")[1], { resource, by, conflictId: ofB?.conflictId });
    expectHeld(resultsOf(stage, "session")[3], { resource, by, conflictId: ofOwner?.conflictId });
    expect(await stage.of(inbox)).toEqual([]);
    expect(stage.model.requests.some(({ text }) => text === "hello")).toBe(false);
  });

  it("a queue is what its plugin's extractor says, and an extractor that throws refuses the call", async () => {
    const push = (queue: string) => calls({ name: "queue_push", args: { queue, item: "one" } });
    const spawn = [
      child("queue-a", push("jobs"), gate({ opens: ["queue held"], awaits: ["queue b"] })),
      child(
        "queue-b",
        gate({ awaits: ["queue held"] }),
        push("jobs"),
        push("other"),
        calls({ name: "queue_drop", args: { queue: "third" } }),
        gate({ opens: ["queue b"] }),
      ),
    ];
    const state = await run(stage, "queue", { spawn });
    const events = await expectSound(stage, state);
    const [, jobs, other, drop] = resultsOf(stage, "queue-b");
    const [conflict] = conflictsIn(events);
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
    const { done } = await stage.gateway.call("writing-tools.done");
    expect(JSON.stringify(done)).not.toContain("queue_drop");
  });
});
