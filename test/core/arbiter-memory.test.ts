/** The memory of arbitration in one process is bounded, and has the newest. */
import { describe, expect, it } from "vitest";
import type { EpochMs, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { createKnownVersions } from "../../src/agents/coordination/runtime/arbiter/known-versions.ts";
import type { Participant } from "../../src/agents/coordination/runtime/arbiter/participants.ts";
import {
  createWritesUnderWay,
  type CallUnderWay,
} from "../../src/agents/coordination/runtime/arbiter/writes-under-way.ts";

const nameSession = (name: string | number): SessionKey => `agent:main:subagent:${name}` as SessionKey;
const timeAt = (ms: number): EpochMs => ms as EpochMs;

describe("what sessions have seen", () => {
  it("is the newest of each file, and of each session its own", () => {
    const versions = createKnownVersions();
    versions.see(nameSession(1), "file:/a", { version: "v1", atMs: timeAt(1) });
    versions.see(nameSession(1), "file:/a", { version: "v2", atMs: timeAt(2) });
    versions.touchAnything(nameSession(2), timeAt(3));
    expect(versions.seen(nameSession(1), "file:/a")).toMatchObject({ version: "v2", atMs: 2 });
    expect(versions.seen(nameSession(2), "file:/a")).toBeUndefined();
    expect([versions.touchedAtMs(nameSession(1)), versions.touchedAtMs(nameSession(2))]).toEqual([
      undefined,
      3,
    ]);
  });

  it("is forgotten of the session and the file that were used least lately", () => {
    const versions = createKnownVersions();
    const seen = { version: "v", atMs: timeAt(1) };
    for (let index = 0; index < 2_000; index += 1) versions.see(nameSession(index), "file:/a", seen);
    versions.see(nameSession(0), "file:/b", seen);
    versions.see(nameSession("new"), "file:/a", seen);
    expect(versions.seen(nameSession(0), "file:/a")).toBeDefined();
    expect(versions.seen(nameSession(1), "file:/a")).toBeUndefined();
    for (let index = 0; index < 4_000; index += 1) versions.see(nameSession(0), `file:/many/${index}`, seen);
    expect(versions.seen(nameSession(0), "file:/a")).toBeUndefined();
    expect(versions.seen(nameSession(0), "file:/many/0")).toBeDefined();
  });
});

describe("calls under way", () => {
  const END = { hasFailed: true, atMs: timeAt(5) };
  const call = (key: string, resource: string, token = 1): CallUnderWay => ({
    callKey: key,
    tool: "write",
    atMs: timeAt(0),
    mayTouchAnything: false,
    seenOrder: 0,
    looks: [],
    participant: { session: nameSession(key) } as Participant,
    changes: [{ resource, replaces: true, isNew: true, token, before: "absent", text: key }],
  });

  it("are in the way of others on the same file, above and below it, never of their own session", () => {
    const underWay = createWritesUnderWay();
    underWay.begin(call("a", "file:/src/lib"));
    for (const resource of ["file:/src/lib", "file:/src", "file:/src/lib/deep"])
      expect(underWay.ofOthers(nameSession("b"), resource, timeAt(1))?.callKey).toBe("a");
    expect(underWay.ofOthers(nameSession("b"), "file:/src/libs", timeAt(1))).toBeUndefined();
    expect(underWay.ofOthers(nameSession("a"), "file:/src/lib", timeAt(1))).toBeUndefined();
    expect(underWay.listOwn(nameSession("a"), "file:/src/lib", timeAt(1))).toMatchObject([{ text: "a" }]);
  });

  it("are not begun where their resources are reserved: calls that have begun come before them", () => {
    const underWay = createWritesUnderWay();
    const findOfOthers = (): string | undefined =>
      underWay.ofOthers(nameSession("b"), "file:/a", timeAt(1))?.callKey;
    underWay.begin({ ...call("a", "file:/a"), callKey: "a beside", isReserved: true });
    expect(underWay.listOwn(nameSession("a"), "file:/a", timeAt(1))).toEqual([]);
    expect(findOfOthers()).toBe("a beside");
    underWay.begin(call("a", "file:/a"));
    expect(findOfOthers()).toBe("a");
  });

  it("are taken once, are in the way until they are over, and then wake who waits, once", () => {
    const underWay = createWritesUnderWay();
    let woken = 0;
    underWay.begin(call("a", "file:/a"));
    const takenCall = underWay.take("a", END);
    expect(underWay.take("a", END)).toBeUndefined();
    expect(underWay.ofOthers(nameSession("b"), "file:/a", timeAt(1))).toBeDefined();
    underWay.onFree(() => (woken += 1));
    const cancel = underWay.onFree(() => (woken += 100));
    cancel();
    if (takenCall) underWay.end(takenCall);
    underWay.freed([7]);
    expect(woken).toBe(1);
    expect(underWay.ofOthers(nameSession("b"), "file:/a", timeAt(1))).toBeUndefined();
  });

  it("are in nobody's way any more when their claim has ended, but can still be told over", () => {
    const underWay = createWritesUnderWay();
    let woken = 0;
    underWay.begin(call("a", "file:/a", 7));
    underWay.onFree(() => (woken += 1));
    underWay.freed([]);
    expect([woken, underWay.ofOthers(nameSession("b"), "file:/a", timeAt(1))?.callKey]).toEqual([0, "a"]);
    underWay.freed([7]);
    expect([woken, underWay.ofOthers(nameSession("b"), "file:/a", timeAt(1))]).toEqual([1, undefined]);
    expect(underWay.take("a", END)?.callKey).toBe("a");
  });

  it("whose end was told before they began do not begin, once, and are in nobody's way", () => {
    const underWay = createWritesUnderWay();
    expect(underWay.take("a", END)).toBeUndefined();
    expect(underWay.hasEnded("a")).toBe(true);
    expect(underWay.begin(call("a", "file:/a"))).toEqual(END);
    expect(underWay.hasEnded("a")).toBe(false);
    expect(underWay.ofOthers(nameSession("b"), "file:/a", timeAt(1))).toBeUndefined();
    expect(underWay.listOwn(nameSession("a"), "file:/a", timeAt(1))).toEqual([]);
    expect(underWay.begin(call("a", "file:/a"))).toBeUndefined();
    expect(underWay.ofOthers(nameSession("b"), "file:/a", timeAt(1))?.callKey).toBe("a");
  });

  it("whose end was told too early are remembered by number, the newest", () => {
    const underWay = createWritesUnderWay();
    for (let index = 0; index <= 1_000; index += 1) underWay.take(`n${index}`, END);
    expect(["n0", "n1", "n1000"].map((key) => underWay.hasEnded(key))).toEqual([false, true, true]);
  });

  it("whose id was used before begin, unless their own end was told before", () => {
    const underWay = createWritesUnderWay();
    underWay.take("a", END);
    underWay.forgetEnd("a", timeAt(4));
    expect(underWay.hasEnded("a")).toBe(true);
    underWay.forgetEnd("a", timeAt(5));
    expect(underWay.begin(call("a", "file:/a"))).toBeUndefined();
  });

  it("are commands beside each other where their times overlap, also those that have ended", () => {
    const underWay = createWritesUnderWay();
    const createCommand = (session: string, ms: number): CallUnderWay => ({
      ...call(session, "file:/a"),
      callKey: `${session} at ${ms}`,
      atMs: timeAt(ms),
      mayTouchAnything: true,
    });
    const listBeside = (ms: number) =>
      underWay.listCommandersBeside(createCommand("a", ms)).map(({ session }) => session);
    underWay.begin(call("write", "file:/a"));
    for (const session of ["a", "b", "c"]) underWay.begin(createCommand(session, 1));
    for (const session of ["a", "b"]) underWay.take(`${session} at 1`, { hasFailed: false, atMs: timeAt(5) });
    expect(listBeside(5)).toEqual([nameSession("c"), nameSession("b")]);
    expect(listBeside(6)).toEqual([nameSession("c")]);
    expect(listBeside(60 * 60_000)).toEqual([]);
    for (let index = 0; index < 1_000; index += 1) {
      underWay.begin(createCommand(`n${index}`, 1));
      underWay.take(`n${index} at 1`, { hasFailed: false, atMs: timeAt(5) });
    }
    expect(listBeside(5)).not.toContain(nameSession("b"));
  });

  it("whose end nobody tells are forgotten in time, and by number", () => {
    const underWay = createWritesUnderWay();
    underWay.begin(call("a", "file:/a"));
    const hour = timeAt(60 * 60_000);
    expect(underWay.ofOthers(nameSession("b"), "file:/a", hour)).toBeUndefined();
    expect(underWay.listOwn(nameSession("a"), "file:/a", hour)).toEqual([]);
    for (let index = 0; index < 10_000; index += 1) underWay.begin(call(`n${index}`, "file:/n"));
    expect(underWay.take("a", END)).toBeUndefined();
    expect(underWay.take("n9999", END)).toBeDefined();
  });
});
