import { describe, expect, it } from "vitest";
import { scheduleNotices, listUnsentNotices } from "../../src/agents/coordination/escalation/notices.ts";
import { timeAt } from "./scene.ts";

const notify = [
  { channel: "chat", afterMs: 0 },
  { channel: "chat", afterMs: 1_000 },
  { channel: "webhook:desk", afterMs: 5_000 },
];

describe("who is told of a question", () => {
  it("is told at first, again as a reminder, and then somebody else", () => {
    expect(scheduleNotices({ notify }, timeAt(10), timeAt(60_000))).toEqual([
      { channel: "chat", atMs: timeAt(10) },
      { channel: "chat", atMs: timeAt(1_010) },
      { channel: "webhook:desk", atMs: timeAt(5_010) },
    ]);
  });

  it("is told before the deadline or not at all", () => {
    expect(scheduleNotices({ notify }, timeAt(0), timeAt(1_000))).toEqual([
      { channel: "chat", atMs: timeAt(0) },
    ]);
    expect(scheduleNotices({ notify }, timeAt(0), timeAt(1_001))).toHaveLength(2);
    expect(scheduleNotices({ notify }, timeAt(0), timeAt(0))).toEqual([]);
    expect(scheduleNotices({}, timeAt(0), timeAt(1_000))).toEqual([]);
  });

  it("is told so often and no more", () => {
    const many = Array.from({ length: 40 }, () => ({ channel: "chat", afterMs: 0 }));
    expect(scheduleNotices({ notify: many }, timeAt(0), timeAt(1))).toHaveLength(16);
  });

  it("that is known already, also as failed, is not told again", () => {
    const notices = scheduleNotices({ notify }, timeAt(0), timeAt(60_000));
    expect(listUnsentNotices({ notices }).map(({ notice }) => notice)).toEqual([0, 1, 2]);
    const notified = new Map([
      [0, "failed"],
      [2, "delivered"],
    ]);
    expect(listUnsentNotices({ notices, notified })).toEqual([
      { channel: "chat", atMs: timeAt(1_000), notice: 1 },
    ]);
    expect(listUnsentNotices({})).toEqual([]);
  });
});
