import { describe, expect, it } from "vitest";
import { OWNER } from "../support/fake-clock-host.ts";
import {
  edit,
  createNamedCall,
  createOutputCall,
  read,
  requireRefused,
  requireReview,
  write,
} from "./arbiter-calls.ts";
import { createRealSceneFiles, openScene, LEASE_MS, type Scene } from "./arbiter-scene.ts";

describe("owner_wins", () => {
  it("lets who holds the file go on and refuses the next ones, who are told by whom and until when", async () => {
    await using s = await openScene({ files: createRealSceneFiles() });
    const [a, b, c] = [await s.child("a"), await s.child("b"), await s.child("c")];
    expect(await s.does(write(s, a, { "notes.md": "a" }))).toEqual({ kind: "granted" });
    const second = requireRefused(await s.does(write(s, b, { "notes.md": "b" })));
    expect(second.sentence).toContain(`${s.folder}/notes.md is held by step-1 since 2026-01-02T03:04:05Z`);
    expect(second.sentence).toContain("until 2026-01-02T03:05:05Z, or until that step ends");
    expect(second).toMatchObject({ conflictId: "co-1:conflict-1" });
    const third = requireRefused(await s.does(write(s, c, { "notes.md": "c" })));
    expect(third).toMatchObject({ conflictId: "co-1:conflict-2" });
    expect(await s.does(edit(s, a, ["notes.md", "a", "a2"]))).toEqual({ kind: "granted" });
    expect(s.text("notes.md")).toBe("a2");
    expect(s.events("conflict.resolved")).toMatchObject([
      { winner: "step-1", losers: ["step-2"], rule: "lease", because: "lease-holder" },
      { winner: "step-1", losers: ["step-3"], rule: "lease", because: "lease-holder" },
    ]);
  });

  it("records the same refusal of the same claims once", async () => {
    await using s = await openScene();
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(write(s, a, { "notes.md": "a" }));
    for (let tries = 0; tries < 3; tries += 1)
      expect(await s.does(write(s, b, { "notes.md": "b" }))).toMatchObject({
        conflictId: "co-1:conflict-1",
      });
    expect(s.events("conflict.detected")).toHaveLength(1);
  });

  it("of two coordinations refuses the later one, which is told the other's id", async () => {
    await using s = await openScene();
    const a = await s.child("a");
    const b = await s.child("b", { trace: "trace-2" });
    await s.does(write(s, a, { "notes.md": "a" }));
    const answer = requireRefused(await s.does(write(s, b, { "notes.md": "b" })));
    expect(answer.sentence).toContain("held by step-1 of coordination co-1");
    expect(answer.conflictId).toBe("co-2:conflict-1");
  });

  it("gives the file to the next one when the lease has run out or the step has ended", async () => {
    await using s = await openScene();
    const [a, b, c] = [await s.child("a"), await s.child("b"), await s.child("c")];
    await s.does(write(s, a, { "notes.md": "a" }));
    await s.clock.advance(LEASE_MS);
    await s.does(read(s, b, "notes.md"));
    expect(await s.does(write(s, b, { "notes.md": "b" }))).toEqual({ kind: "granted" });
    await s.ends(b);
    await s.does(read(s, c, "notes.md"));
    expect(await s.does(write(s, c, { "notes.md": "c" }))).toEqual({ kind: "granted" });
    expect(await s.holders("notes.md")).toEqual(["co-1/step-3"]);
  });

  it("keeps everybody out of what is below a folder that is held, and out of what is above", async () => {
    await using s = await openScene();
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(write(s, a, { "src/lib/deep.ts": "a" }));
    expect((await s.ask(createOutputCall(s, b, "src/lib"))).kind).toBe("refused");
    expect((await s.ask(write(s, b, { "src/lib/deep.ts/below": "b" }))).kind).toBe("refused");
    expect((await s.ask(write(s, b, { "src/lib/other.ts": "b" }))).kind).toBe("granted");
  });

  it("rules on sessions and queues as on files, but never on telling whom one works for", async () => {
    await using s = await openScene();
    const [a, b] = [await s.child("a"), await s.child("b")];
    expect(await s.does(createNamedCall(s, a, "session:agent:main:other"))).toEqual({ kind: "granted" });
    const answer = requireRefused(await s.does(createNamedCall(s, b, "session:agent:main:other")));
    expect(answer.sentence).toContain("session:agent:main:other is held by step-1");
    expect(await s.does(createNamedCall(s, b, `session:${OWNER}`))).toEqual({ kind: "free" });
    expect(await s.does(createNamedCall(s, a, "queue:mail"))).toEqual({ kind: "granted" });
    expect((await s.does(createNamedCall(s, b, "queue:mail"))).kind).toBe("refused");
  });

  it("takes all targets of a call or none of them", async () => {
    await using s = await openScene();
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(write(s, a, { "2.md": "a" }));
    expect((await s.does(write(s, b, { "1.md": "b", "2.md": "b", "3.md": "b" }))).kind).toBe("refused");
    expect(await s.holders("1.md")).toEqual([]);
    expect(await s.holders("3.md")).toEqual([]);
    expect(s.events("conflict.detected")).toHaveLength(1);
    await s.ends(a);
    await s.does(read(s, b, "2.md"));
    expect(await s.does(write(s, b, { "1.md": "b", "2.md": "b", "3.md": "b" }))).toEqual({ kind: "granted" });
    expect(s.events("claim.acquired").map(({ token }) => token)).toEqual([1, 2, 3, 4]);
  });

  it("takes several changes of one file in a call, and the same file by two paths, as one", async () => {
    await using s = await openScene({ files: createRealSceneFiles() });
    const a = await s.child("a");
    const call = write(s, a, { "1.md": "x", "./sub/../1.md": "y" });
    expect(await s.does(call)).toEqual({ kind: "granted" });
    expect(s.events("claim.acquired")).toHaveLength(1);
    expect(s.events("resource.changed")).toMatchObject([{ stepId: "step-1", tool: "write", token: 1 }]);
  });
});

describe("priority_wins", () => {
  const conflicts = { strategy: "priority_wins" } as const;
  const steps = [
    { stepId: "low", priority: "low" },
    { stepId: "normal" },
    { stepId: "high", priority: "high" },
  ];

  it("lets the higher priority take the file over, and ends the loser's claim", async () => {
    await using s = await openScene({ conflicts });
    await s.plan(steps);
    const [low, normal, high] = [s.sessionOf("low"), s.sessionOf("normal"), s.sessionOf("high")];
    await s.does(write(s, low, { "notes.md": "low" }));
    await s.does(read(s, normal, "notes.md"));
    expect(await s.does(write(s, normal, { "notes.md": "normal" }))).toEqual({ kind: "granted" });
    expect(await s.holders("notes.md")).toEqual(["plan-1/normal"]);
    expect((await s.does(write(s, low, { "notes.md": "low" }))).kind).toBe("refused");
    await s.does(read(s, high, "notes.md"));
    expect(await s.does(write(s, high, { "notes.md": "high" }))).toEqual({ kind: "granted" });
    expect(s.events("claim.released")).toMatchObject([
      { stepId: "low", because: "preempted" },
      { stepId: "normal", because: "preempted" },
    ]);
    expect(s.events("conflict.resolved").map(({ winner, because }) => [winner, because])).toEqual([
      ["normal", "highest-priority"],
      ["normal", "highest-priority"],
      ["high", "highest-priority"],
    ]);
  });

  it("takes over what steps of another coordination hold, whose claims end in their own log", async () => {
    await using s = await openScene({ conflicts });
    const a = await s.child("a");
    await s.does(write(s, a, { "notes.md": "a" }));
    await s.plan(steps, { ownerSession: "agent:main:other" });
    const high = s.sessionOf("high");
    await s.does(read(s, high, "notes.md"));
    expect(await s.does(write(s, high, { "notes.md": "high" }))).toEqual({ kind: "granted" });
    expect(await s.holders("notes.md")).toEqual(["plan-1/high"]);
    expect((await s.store.claims({ after: 0, limit: 10 })).map(({ runId }) => runId)).toEqual(["plan-1"]);
    expect(s.events("claim.released")).toMatchObject([{ stepId: "step-1", because: "preempted" }]);
  });

  it("among equals lets who came first go on", async () => {
    await using s = await openScene({ conflicts });
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(write(s, a, { "notes.md": "a" }));
    expect((await s.does(write(s, b, { "notes.md": "b" }))).kind).toBe("refused");
  });

  it("takes a folder from several steps at once, each losing all that it holds there", async () => {
    await using s = await openScene({ conflicts });
    await s.plan(steps);
    await s.does(write(s, s.sessionOf("low"), { "src/1": "l", "src/2": "l", elsewhere: "l" }));
    await s.does(write(s, s.sessionOf("normal"), { "src/3": "n" }));
    expect(await s.ask(createOutputCall(s, s.sessionOf("high"), "src"))).toEqual({ kind: "granted" });
    expect(await s.holders("src")).toEqual(["plan-1/high"]);
    expect(await s.holders("elsewhere")).toEqual(["plan-1/low"]);
  });
});

describe("manual_review", () => {
  it("refuses a child, whom nobody can be asked about, with the id of the conflict to report", async () => {
    await using s = await openScene({ conflicts: { strategy: "manual_review" } });
    const [a, b] = [await s.child("a"), await s.child("b")];
    expect((await s.does(write(s, a, { "notes.md": "a" }))).kind).toBe("granted");
    const answer = requireRefused(await s.does(write(s, b, { "notes.md": "b" })));
    expect(answer.sentence).toContain("a person must decide who may change");
    expect(answer.sentence).toContain("report this in your result");
    expect(s.events("conflict.resolved")).toMatchObject([
      { losers: ["step-2"], because: "manual-review", rule: "strategy" },
    ]);
  });

  it("holds for what is marked high-risk, whatever else the plan says", async () => {
    await using s = await openScene({ conflicts: { highRisk: ["*.env"] } });
    await s.plan([{ stepId: "a" }, { stepId: "b", priority: "critical" }], {
      conflictPolicy: { strategy: "priority_wins" },
    });
    await s.does(write(s, s.sessionOf("a"), { "prod.env": "a" }));
    expect(requireRefused(await s.does(write(s, s.sessionOf("b"), { "prod.env": "b" }))).sentence).toContain(
      "person",
    );
    expect(s.events("conflict.detected")[0]).toMatchObject({
      contest: { strategy: "manual_review", from: "high_risk" },
    });
  });

  it("asks about a call of the owner's session", async () => {
    await using s = await openScene({ conflicts: { strategy: "manual_review" } });
    const a = await s.child("a");
    await s.does(write(s, a, { "notes.md": "a" }));
    const review = requireReview(await s.ask(write(s, OWNER, { "notes.md": "o" })));
    expect(review.title).toContain("notes.md");
    expect(review.description).toContain("also wanted by step-1");
  });
});

describe("a session", () => {
  it("that takes part in no coordination is not ruled on", async () => {
    await using s = await openScene();
    const a = await s.child("a");
    await s.does(write(s, a, { "notes.md": "a" }));
    const stranger = "agent:main:stranger" as typeof OWNER;
    expect(await s.coordinator.arbiter.concerns(stranger)).toBe(false);
    expect(await s.coordinator.arbiter.concerns(a)).toBe(true);
    expect(await s.coordinator.arbiter.concerns(OWNER)).toBe(true);
    expect(await s.does(write(s, stranger, { "notes.md": "x" }))).toEqual({ kind: "free" });
  });

  it("renews its lease with a further change, but not with each", async () => {
    await using s = await openScene();
    const a = await s.child("a");
    await s.does(write(s, a, { "notes.md": "1" }));
    await s.clock.advance(1_000);
    await s.does(write(s, a, { "notes.md": "2" }));
    expect(s.events("claim.renewed")).toEqual([]);
    await s.clock.advance(LEASE_MS - 2_000);
    await s.does(write(s, a, { "notes.md": "3" }));
    await s.clock.advance(LEASE_MS - 1_000);
    expect(await s.holders("notes.md")).toEqual(["co-1/step-1"]);
    expect(s.events("claim.renewed")).toHaveLength(1);
  });

  it("whose lease ran out acquires a new claim with a new token", async () => {
    await using s = await openScene();
    const a = await s.child("a");
    await s.does(write(s, a, { "notes.md": "1" }));
    await s.clock.advance(LEASE_MS);
    expect(await s.does(write(s, a, { "notes.md": "2" }))).toEqual({ kind: "granted" });
    expect(s.events("claim.acquired").map(({ token }) => token)).toEqual([1, 2]);
    expect(s.events("claim.released")).toMatchObject([{ token: 1, because: "expired" }]);
  });

  /** An act that happens once between the look at the claims and the record of the ruling. */
  const interruptScene = async (between: (s: Scene) => unknown): Promise<Scene> => {
    let isOn = false;
    const s: Scene = await openScene({
      wrap: (store) => ({
        ...store,
        overlapping: async (query) => {
          const found = await store.overlapping(query);
          if (isOn) await between(s);
          isOn = false;
          return found;
        },
      }),
    });
    const a = await s.child("a");
    await s.does(write(s, a, { "notes.md": "1" }));
    isOn = true;
    expect(await s.does(write(s, a, { "notes.md": "2" }))).toEqual({ kind: "granted" });
    return s;
  };

  it.each([
    ["is released", (s: Scene) => s.coordinator.arbiter.release(1)],
    ["runs out", (s: Scene) => s.clock.jump(s.clock.now() + LEASE_MS)],
  ])("whose claim %s between the ruling and its record is ruled on again", async (_, between) => {
    await using s = await interruptScene(between);
    expect(await s.holders("notes.md")).toEqual(["co-1/step-1"]);
    expect(s.events("claim.acquired").map(({ token }) => token)).toEqual([1, 2]);
  });
});
