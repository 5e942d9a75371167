import { describe, expect, it } from "vitest";
import { addMs, type SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { WriteAnswer } from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import { OWNER } from "../support/fake-clock-host.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { edit, read, requireRefused, write } from "./arbiter-calls.ts";
import { LEASE_MS, openScene, type Scene, type SceneOptions } from "./arbiter-scene.ts";

const WAIT_MS = 5_000;
const waiting: SceneOptions = { conflicts: { onConflict: "wait", waitMs: WAIT_MS } };

interface PendingAnswer {
  readonly answer: Promise<WriteAnswer>;
  /** `undefined` while it waits. */
  now(): WriteAnswer | undefined;
}

async function askScene(s: Scene, ...call: Parameters<Scene["ask"]>): Promise<PendingAnswer> {
  let now: WriteAnswer | undefined;
  const answer = s.ask(...call).then((writeAnswer) => (now = writeAnswer));
  await waitUntilSettled();
  return { answer, now: () => now };
}

/** A file that the first step holds, and that the second has read; the first has run half of its lease but for `ms`. */
async function openHeldScene(
  options: SceneOptions,
  leftMs: number,
): Promise<{ s: Scene; a: SessionKey; b: SessionKey }> {
  const s = await openScene(options);
  const [a, b] = [await s.child("a"), await s.child("b")];
  await s.does(write(s, a, { "notes.md": "a" }));
  await s.clock.advance(LEASE_MS - leftMs);
  await s.does(read(s, b, "notes.md"));
  return { s, a, b };
}

describe("a call that waits for a lease", () => {
  it("is granted as soon as the lease has ended", async () => {
    const { s, b } = await openHeldScene(waiting, 3_000);
    await using _ = s;
    const call = await askScene(s, write(s, b, { "notes.md": "b" }));
    await s.clock.advance(2_999);
    expect(call.now()).toBeUndefined();
    await s.clock.advance(1);
    await waitUntilSettled();
    expect(call.now()).toEqual({ kind: "granted" });
    expect(s.events("conflict.detected")).toEqual([]);
  });

  it("is granted as soon as the holder's step has ended", async () => {
    const { s, a, b } = await openHeldScene(waiting, 30_000);
    await using _ = s;
    const call = await askScene(s, write(s, b, { "notes.md": "b" }));
    await s.clock.advance(1_000);
    await s.ends(a);
    await waitUntilSettled();
    expect(call.now()).toEqual({ kind: "granted" });
  });

  it("is granted as soon as an operator has released the claim", async () => {
    const { s, b } = await openHeldScene(waiting, 30_000);
    await using _ = s;
    const call = await askScene(s, write(s, b, { "notes.md": "b" }));
    await s.coordinator.arbiter.release(1);
    await waitUntilSettled();
    expect(call.now()).toEqual({ kind: "granted" });
  });

  it("waits for less when its hook has waited for something else already", async () => {
    const { s, b } = await openHeldScene(waiting, 30_000);
    await using _ = s;
    const hookBeganAtMs = addMs(s.clock.now(), -3_000);
    const call = await askScene(s, { ...write(s, b, { "notes.md": "b" }), hookBeganAtMs });
    await s.clock.advance(WAIT_MS - 3_001);
    expect(call.now()).toBeUndefined();
    await s.clock.advance(1);
    await waitUntilSettled();
    requireRefused(await call.answer);
  });

  it("is refused when its time is out, once, with the conflict recorded then", async () => {
    const { s, b } = await openHeldScene(waiting, 30_000);
    await using _ = s;
    const call = await askScene(s, write(s, b, { "notes.md": "b" }));
    await s.clock.advance(WAIT_MS - 1);
    expect(call.now()).toBeUndefined();
    expect(s.events("conflict.detected")).toEqual([]);
    await s.clock.advance(1);
    await waitUntilSettled();
    expect(requireRefused(await call.answer).conflictId).toBe("co-1:conflict-1");
    expect(s.events("conflict.detected")).toHaveLength(1);
  });

  it("is refused when the lease is renewed while it waits", async () => {
    const { s, a, b } = await openHeldScene(waiting, 3_000);
    await using _ = s;
    const call = await askScene(s, write(s, b, { "notes.md": "b" }));
    await s.does(write(s, a, { "notes.md": "a2" }));
    await s.clock.advance(WAIT_MS);
    await waitUntilSettled();
    expect((await call.answer).kind).toBe("refused");
  });

  it("is told to read again when what it waited for was changed meanwhile", async () => {
    const { s, a, b } = await openHeldScene(waiting, 30_000);
    await using _ = s;
    const call = await askScene(s, write(s, b, { "notes.md": "b" }));
    await s.clock.advance(1_000);
    await s.does(write(s, a, { "notes.md": "a2" }));
    await s.ends(a);
    await waitUntilSettled();
    expect(requireRefused(await call.answer).sentence).toContain("Read it again");
  });

  it("holds up no other ruling, also not one for the same session", async () => {
    const { s, a, b } = await openHeldScene(waiting, 30_000);
    await using _ = s;
    const call = await askScene(s, write(s, b, { "notes.md": "b" }));
    expect((await s.does(write(s, a, { "other.md": "a" }))).kind).toBe("granted");
    expect((await s.does(write(s, b, { "third.md": "b" }))).kind).toBe("granted");
    expect((await s.does(write(s, a, { "notes.md": "a3" }))).kind).toBe("granted");
    expect(call.now()).toBeUndefined();
    await s.clock.advance(WAIT_MS);
    expect((await call.answer).kind).toBe("refused");
  });

  it("is refused when its own step ends while it waits", async () => {
    const { s, a, b } = await openHeldScene(waiting, 30_000);
    await using _ = s;
    const call = await askScene(s, write(s, b, { "notes.md": "b" }));
    await s.ends(b);
    await s.ends(a);
    await waitUntilSettled();
    expect((await call.answer).kind).toBe("refused");
    expect(await s.holders("notes.md")).toEqual([]);
  });

  it("leaves one winner of several that wait for the same lease", async () => {
    const { s, a, b } = await openHeldScene(waiting, 30_000);
    await using _ = s;
    const c = await s.child("c");
    await s.does(read(s, c, "notes.md"));
    const calls = [
      await askScene(s, write(s, b, { "notes.md": "b" })),
      await askScene(s, write(s, c, { "notes.md": "c" })),
    ];
    await s.ends(a);
    await s.clock.advance(WAIT_MS);
    await waitUntilSettled();
    expect(calls.map((call) => call.now()?.kind)).toEqual(["granted", "refused"]);
  });

  it("does not wait for what waiting does not change: a file that was changed, a declared owner without a claim", async () => {
    await using s = await openScene(waiting);
    await s.plan([{ stepId: "editor", resources: ["file:mine.md"] }, { stepId: "b" }, { stepId: "c" }]);
    const [b, c] = [s.sessionOf("b"), s.sessionOf("c")];
    expect((await askScene(s, write(s, b, { "mine.md": "b" }))).now()?.kind).toBe("refused");
    s.put("notes.md", "v0");
    await s.does(read(s, b, "notes.md"));
    await s.does(write(s, c, { "notes.md": "c" }));
    s.plans.end("c", { outcome: "completed", reply: "{}" });
    await s.clock.advance(100);
    expect((await askScene(s, write(s, b, { "notes.md": "b" }))).now()?.kind).toBe("refused");
  });
});

describe("a call that is cancelled", () => {
  const CANCELLED = { hasFailed: true };

  it("while it waits gets no claim, and leaves no conflict behind", async () => {
    const { s, a, b } = await openHeldScene(waiting, 30_000);
    await using _ = s;
    const cancelled = write(s, b, { "notes.md": "b" });
    const call = await askScene(s, cancelled);
    await s.coordinator.arbiter.callEnded(cancelled.callKey, CANCELLED);
    await s.ends(a);
    await waitUntilSettled();
    expect(requireRefused(await call.answer).sentence).toContain("has ended");
    expect(await s.holders("notes.md")).toEqual([]);
    expect(s.events("conflict.detected")).toEqual([]);
  });

  it("before its hook came to ask gets no claim", async () => {
    await using s = await openScene();
    const b = await s.child("b");
    const hookBeganAtMs = s.clock.now();
    const call = { ...write(s, b, { "notes.md": "b" }), hookBeganAtMs };
    await s.clock.advance(1_000);
    await s.coordinator.arbiter.callEnded(call.callKey, CANCELLED);
    requireRefused(await s.ask(call));
    expect(await s.holders("notes.md")).toEqual([]);
  });

  it("may be made again under the same id", async () => {
    const { s, a, b } = await openHeldScene(waiting, 30_000);
    await using _ = s;
    const again = write(s, b, { "notes.md": "b" });
    const call = await askScene(s, again);
    await s.coordinator.arbiter.callEnded(again.callKey, CANCELLED);
    await s.ends(a);
    requireRefused(await call.answer);
    await s.clock.advance(1);
    expect((await s.does({ ...again, hookBeganAtMs: s.clock.now() })).kind).toBe("granted");
    expect(await s.holders("notes.md")).toEqual(["co-1/step-2"]);
    expect(s.events("resource.changed")).toHaveLength(2);
  });

  it("while its claim is being recorded gives the claim back", async () => {
    const recording = Promise.withResolvers<undefined>();
    let isSlow = false;
    await using s = await openScene({
      wrap: (inner) => ({
        ...inner,
        append: async (request) => {
          if (isSlow) await recording.promise;
          return inner.append(request);
        },
      }),
    });
    const b = await s.child("b");
    isSlow = true;
    const cancelled = write(s, b, { "notes.md": "b" });
    const call = await askScene(s, cancelled);
    for (let turn = 0; turn < 10; turn += 1) await waitUntilSettled();
    await s.coordinator.arbiter.callEnded(cancelled.callKey, CANCELLED);
    recording.resolve(undefined);
    await call.answer;
    expect(s.events("claim.released")).toMatchObject([{ because: "unused" }]);
    expect(await s.holders("notes.md")).toEqual([]);
  });
});

describe("a call that somebody else's call is in the way of", () => {
  it("waits for its end and is ruled on by what it left", async () => {
    await using s = await openScene();
    s.put("notes.md", "v0");
    const a = await s.child("a");
    await s.does(read(s, a, "notes.md"));
    const first = write(s, OWNER, { "notes.md": "o" });
    const allowed = await s.ask(first);
    // A claim of the owner does not stand against its child; a write under way does.
    const second = await askScene(s, write(s, a, { "notes.md": "a" }));
    expect(second.now()).toBeUndefined();
    await s.runs(first, allowed);
    await waitUntilSettled();
    expect(requireRefused(await second.answer).sentence).toMatch(
      /changed by the session that began .*Read it again/u,
    );
  });

  it("is refused at once under owner_wins, because waiting would change nothing", async () => {
    await using s = await openScene();
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.ask(write(s, a, { "notes.md": "a" }));
    expect((await askScene(s, write(s, b, { "notes.md": "b" }))).now()?.kind).toBe("refused");
  });

  it("waits two seconds for a loser's call to end before it takes the file over", async () => {
    await using s = await openScene({ conflicts: { strategy: "priority_wins" } });
    await s.plan([
      { stepId: "low", priority: "low" },
      { stepId: "high", priority: "high" },
    ]);
    const [low, high] = [s.sessionOf("low"), s.sessionOf("high")];
    const first = write(s, low, { "notes.md": "low" });
    const allowed = await s.ask(first);
    const second = await askScene(s, write(s, high, { "notes.md": "high" }));
    await s.clock.advance(1_000);
    expect(second.now()).toBeUndefined();
    await s.runs(first, allowed);
    await waitUntilSettled();
    // It never saw what the other one wrote.
    expect(second.now()?.kind).toBe("granted");
    expect(await s.holders("notes.md")).toEqual(["plan-1/high"]);
  });

  it("is refused after two seconds where the other call goes on", async () => {
    await using s = await openScene({ conflicts: { strategy: "priority_wins" } });
    await s.plan([
      { stepId: "low", priority: "low" },
      { stepId: "high", priority: "high" },
    ]);
    await s.ask(write(s, s.sessionOf("low"), { "notes.md": "low" }));
    const second = await askScene(s, write(s, s.sessionOf("high"), { "notes.md": "high" }));
    await s.clock.advance(2_000);
    await waitUntilSettled();
    expect(requireRefused(await second.answer).sentence).toMatch(
      /is being changed just now by low .*Try again in a moment/u,
    );
    expect(await s.holders("notes.md")).toEqual(["plan-1/low"]);
  });

  it("never is in the way of a call of its own session", async () => {
    await using s = await openScene();
    const a = await s.child("a");
    const calls = [
      write(s, a, { "notes.md": "one two" }),
      edit(s, a, ["notes.md", "one", "1"]),
      write(s, a, { "notes.md/..": "folder" }),
    ];
    for (const call of calls) expect((await askScene(s, call)).now()).toEqual({ kind: "granted" });
  });

  it("is no longer in the way when its step has died, or its claim was released", async () => {
    await using s = await openScene();
    const [a, b, c] = [await s.child("a"), await s.child("b"), await s.child("c")];
    await s.ask(write(s, a, { "notes.md": "a" }));
    await s.ends(a, "cancelled");
    expect((await askScene(s, write(s, b, { "notes.md": "b" }))).now()).toEqual({ kind: "granted" });
    await s.coordinator.arbiter.release(2);
    expect((await askScene(s, write(s, c, { "notes.md": "c" }))).now()).toEqual({ kind: "granted" });
  });
});
