/** Owns: what happens to the targets of a call that people are not asked about while they are asked about others. */
import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { replayCoordination } from "../../src/agents/coordination/runtime/replay-coordination.ts";
import { OWNER } from "../support/fake-clock-host.ts";
import {
  createShellCall,
  requireRefused,
  requireReview,
  write,
  type Review,
  type ToolCall,
} from "./arbiter-calls.ts";
import { LEASE_MS, openScene, type Scene, type SceneOptions } from "./arbiter-scene.ts";

const BY_OWNER = "the session that began this work";
const OTHER_OWNER = "agent:main:other" as SessionKey;
const RISKY = { highRisk: ["*.env"] };

interface ReviewScene {
  readonly s: Scene;
  readonly a: SessionKey;
  readonly b: SessionKey;
  readonly call: ToolCall;
  readonly review: Review;
}

/** The owner wants prod.env, which `a` holds and people rule on, and notes.md, which nobody holds. */
async function openBesideScene(options: SceneOptions = {}): Promise<ReviewScene> {
  const s = await openScene({ ...options, conflicts: { ...RISKY, ...options.conflicts } });
  const [a, b] = [await s.child("a"), await s.child("b")];
  s.put("notes.md", "v0");
  await s.does(write(s, a, { "prod.env": "a" }));
  const call = write(s, OWNER, { "prod.env": "o", "notes.md": "o" });
  return { s, a, b, call, review: requireReview(await s.ask(call)) };
}

function listPreemptedTokens(s: Scene): number[] {
  return s.events("claim.released").flatMap(({ token, because }) => (because === "preempted" ? [token] : []));
}

describe("a target beside one that people are asked about", () => {
  it("is claimed while they think, so that nobody loses it by their answer", async () => {
    const { s, b, call, review } = await openBesideScene();
    await using _ = s;
    expect(await s.holders("notes.md")).toEqual(["co-1/@owner"]);
    const ruling = s.ask(write(s, b, { "notes.md": "b" }));
    await s.clock.advance(2_000);
    const { sentence } = requireRefused(await ruling);
    expect(sentence).toContain(BY_OWNER);
    expect(sentence).toContain("a person is asked");
    expect(sentence).not.toContain("in a moment");
    await review.settle("approved");
    await s.runs(call, { kind: "granted" });
    expect(listPreemptedTokens(s)).toEqual([1]);
    expect(s.events("resource.changed").slice(1)).toMatchObject([
      { stepId: "@owner", resource: s.resource("notes.md"), token: 2 },
      { stepId: "@owner", resource: s.resource("prod.env"), token: 3 },
    ]);
  });

  it.each(["denied", "unanswered", "nobody_to_ask", "withdrawn"] as const)(
    "is free again when the answer is %s",
    async (answer) => {
      const { s, b, review } = await openBesideScene();
      await using _ = s;
      await review.settle(answer);
      expect(await s.holders("notes.md")).toEqual([]);
      expect((await s.ask(write(s, b, { "notes.md": "b" }))).kind).toBe("granted");
    },
  );

  it("stays claimed when they deny where another call has changed it", async () => {
    const { s, review } = await openBesideScene();
    await using _ = s;
    await s.does(write(s, OWNER, { "notes.md": "another" }));
    await review.settle("denied");
    expect(await s.holders("notes.md")).toEqual(["co-1/@owner"]);
  });

  it("stays claimed when they deny where another call is changing it", async () => {
    const { s, review } = await openBesideScene();
    await using _ = s;
    const other = write(s, OWNER, { "notes.md": "another" });
    const granted = await s.ask(other);
    await review.settle("denied");
    expect(await s.holders("notes.md")).toEqual(["co-1/@owner"]);
    await s.runs(other, granted);
  });

  it("stays claimed when they deny where its session held it before", async () => {
    await using s = await openScene({ conflicts: RISKY });
    const a = await s.child("a");
    await s.does(write(s, a, { "prod.env": "a" }));
    await s.does(write(s, OWNER, { "notes.md": "before" }));
    const review = requireReview(await s.ask(write(s, OWNER, { "prod.env": "o", "notes.md": "o" })));
    await review.settle("denied");
    expect(await s.holders("notes.md")).toEqual(["co-1/@owner"]);
  });

  it("is claimed for as long as people may think", async () => {
    const { s, call, review } = await openBesideScene({ conflicts: { reviewMs: 2 * LEASE_MS } });
    await using _ = s;
    await s.clock.advance(LEASE_MS + 1_000);
    expect(await s.holders("notes.md")).toEqual(["co-1/@owner"]);
    await review.settle("approved");
    await s.runs(call, { kind: "granted" });
    expect(await s.holders("notes.md")).toEqual(["co-1/@owner"]);
  });

  it("is not being written yet: what a command of others overwrites there is their change", async () => {
    const { s, call, review } = await openBesideScene();
    await using _ = s;
    const other = await s.child("c", { trace: "trace-2", source: "agent:main:other" as SessionKey });
    await s.clock.advance(1);
    await s.does(createShellCall(s, other, () => s.put("notes.md", "of c")));
    expect(s.events("conflict.detected").slice(1)).toMatchObject([
      { resource: s.resource("notes.md"), contest: { requester: "step-1", cause: "overwritten" } },
    ]);
    await review.settle("approved");
    await s.coordinator.arbiter.callEnded(call.callKey, { hasFailed: true });
    const changed = s
      .events("resource.changed")
      .filter(({ resource }) => resource === s.resource("notes.md"));
    expect(changed.map(({ stepId }) => stepId)).toEqual(["step-1"]);
  });

  it("is free again where the approved call fails before its claim is renewed", async () => {
    const { s, call, review } = await openBesideScene();
    await using _ = s;
    const settled = review.settle("approved");
    await s.coordinator.arbiter.callEnded(call.callKey, { hasFailed: true });
    await settled;
    expect(await s.holders("notes.md")).toEqual([]);
  });

  it("stays claimed where the approved call fails after another call has changed it", async () => {
    const { s, b, call, review } = await openBesideScene();
    await using _ = s;
    await s.does(write(s, OWNER, { "notes.md": "another" }));
    await review.settle("approved");
    await s.coordinator.arbiter.callEnded(call.callKey, { hasFailed: true });
    expect(await s.holders("notes.md")).toEqual(["co-1/@owner"]);
    expect((await s.ask(write(s, b, { "notes.md": "b" }))).kind).toBe("refused");
  });

  it("is refused to the owner of another coordination, without a question about it", async () => {
    await using s = await openScene({ conflicts: { strategy: "manual_review" } });
    const a = await s.child("a");
    await s.plan([{ stepId: "step" }], { ownerSession: OTHER_OWNER });
    await s.does(write(s, a, { "prod.env": "a" }));
    const review = requireReview(await s.ask(write(s, OWNER, { "prod.env": "o", "notes.md": "o" })));
    const other = write(s, OWNER, { "notes.md": "another" });
    for (const isWriting of [false, true]) {
      if (isWriting) await s.ask(other);
      const ruling = s.ask(write(s, OTHER_OWNER, { "notes.md": "b" }));
      await s.clock.advance(2_000);
      const { sentence } = requireRefused(await ruling);
      expect(sentence, String(isWriting)).toContain("a person is asked");
    }
    await s.runs(other, { kind: "granted" });
    expect(s.events("conflict.detected").map(({ resource }) => resource)).toEqual([s.resource("prod.env")]);
    await review.settle("denied");
  });

  it("is kept from nobody any more where the approval cannot be recorded", async () => {
    let isFailing = false;
    const { s, b, review } = await openBesideScene({
      wrap: (store) => ({
        ...store,
        append: (...batch: Parameters<typeof store.append>) =>
          isFailing
            ? Promise.reject(new CoordinationError("LEDGER_UNAVAILABLE", "the disk is full"))
            : store.append(...batch),
      }),
    });
    await using _ = s;
    isFailing = true;
    await expect(review.settle("approved")).rejects.toThrow("the disk is full");
    isFailing = false;
    expect((await s.ask(write(s, b, { "notes.md": "b" }))).kind).toBe("granted");
  });

  it("stays with whoever claimed it after its claim had ended", async () => {
    const { s, b, call, review } = await openBesideScene();
    await using _ = s;
    await s.coordinator.arbiter.release(2);
    await s.does(write(s, b, { "notes.md": "b" }));
    await review.settle("approved");
    await s.runs(call, { kind: "granted" });
    expect(await s.holders("notes.md")).toEqual(["co-1/step-2"]);
    const changed = s
      .events("resource.changed")
      .filter(({ resource }) => resource === s.resource("notes.md"));
    expect(changed.at(-1)).toMatchObject({ stepId: "@owner" });
    expect(changed.at(-1)).not.toHaveProperty("token");
    expect(requireRefused(await s.ask(write(s, b, { "notes.md": "b2" }))).sentence).toContain(BY_OWNER);
  });
});

describe("a target that people are asked about by two calls of one session", () => {
  it("stays claimed where both are approved, and the one that runs last fails", async () => {
    await using s = await openScene({ conflicts: RISKY });
    await s.does(write(s, await s.child("a"), { "prod.env": "a" }));
    const calls = [write(s, OWNER, { "prod.env": "1" }), write(s, OWNER, { "prod.env": "2" })];
    const [first, last] = calls;
    const reviews: Review[] = [];
    for (const call of calls) reviews.push(requireReview(await s.ask(call)));
    await reviews[0]?.settle("approved");
    if (first) await s.runs(first, { kind: "granted" });
    await reviews[1]?.settle("approved");
    await s.coordinator.arbiter.callEnded(last?.callKey ?? "", { hasFailed: true });
    expect(await s.holders("prod.env")).toEqual(["co-1/@owner"]);
  });
});

describe("a target that is won by the rules beside one that people are asked about", () => {
  /** The owner wants what `low` holds: people rule on prod.env, and notes.md goes to the higher priority. */
  async function openWonScene(): Promise<Pick<ReviewScene, "s" | "call" | "review">> {
    const overrides = [{ resource: "notes.md", strategy: "priority_wins" as const }];
    const s = await openScene({ conflicts: { ...RISKY, overrides } });
    await s.plan([
      { stepId: "low", priority: "low" },
      { stepId: "high", priority: "critical" },
    ]);
    await s.does(write(s, s.sessionOf("low"), { "prod.env": "a", "notes.md": "a" }));
    const call = write(s, OWNER, { "prod.env": "o", "notes.md": "o" });
    return { s, call, review: requireReview(await s.ask(call)) };
  }

  it.each(["denied", "unanswered"] as const)(
    "stays with its holder when the answer is %s, without a conflict",
    async (answer) => {
      const { s, review } = await openWonScene();
      await using _ = s;
      expect(await s.holders("notes.md")).toEqual(["plan-1/low"]);
      await review.settle(answer);
      expect(await s.holders("notes.md")).toEqual(["plan-1/low"]);
      expect(s.events("conflict.detected").map(({ resource }) => resource)).toEqual([s.resource("prod.env")]);
    },
  );

  it("is taken from its holder with a recorded conflict when they approve", async () => {
    const { s, call, review } = await openWonScene();
    await using _ = s;
    await review.settle("approved");
    await s.runs(call, { kind: "granted" });
    for (const name of ["notes.md", "prod.env"]) expect(await s.holders(name)).toEqual(["plan-1/@owner"]);
    expect(s.events("conflict.resolved")).toMatchObject([
      { winner: "@owner", losers: ["low"], because: "highest-priority" },
      { winner: "@owner", losers: ["low"], because: "approved" },
    ]);
    const changed = s.events("resource.changed").filter(({ stepId }) => stepId === "@owner");
    expect(changed.every(({ token }) => token !== undefined)).toBe(true);
    const runId = "plan-1" as CoordinationId;
    expect((await replayCoordination(s.store, runId)).difference).toBeUndefined();
  });

  it("stays with whoever else has won it when they approve", async () => {
    const { s, call, review } = await openWonScene();
    await using _ = s;
    await s.does(write(s, s.sessionOf("high"), { "notes.md": "h" }));
    await review.settle("approved");
    await s.runs(call, { kind: "granted" });
    expect(await s.holders("notes.md")).toEqual(["plan-1/high"]);
    expect(s.events("resource.changed").filter(({ stepId }) => stepId === "@owner")).toMatchObject([
      { resource: s.resource("notes.md") },
      { resource: s.resource("prod.env"), token: expect.any(Number) as number },
    ]);
  });
});

describe("a call that people let happen when its question was closed already", () => {
  it("takes nothing from the holder, and what it changed is recorded without a claim", async () => {
    const { s, a, call, review } = await openBesideScene();
    await using _ = s;
    s.coordinator.turnBegan(OWNER, "run-1");
    await s.coordinator.turnEnded(OWNER, "run-1");
    await review.settle("approved");
    await s.runs(call, { kind: "granted" });
    expect(await s.holders("prod.env")).toEqual(["co-1/step-1"]);
    expect(listPreemptedTokens(s)).toEqual([]);
    const changed = s.events("resource.changed").filter(({ stepId }) => stepId === "@owner");
    expect(changed.map(({ token }) => token)).toEqual([3, undefined]);
    expect((await s.ask(write(s, a, { "prod.env": "a2" }))).kind).toBe("refused");
  });
});
