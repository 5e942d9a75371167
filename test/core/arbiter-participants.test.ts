import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import {
  type CoordinationId,
  type SessionKey,
  type StepId,
  DELIVERY_STEP_ID,
} from "../../src/agents/coordination/contracts/ids.ts";
import { OWNER } from "../support/fake-clock-host.ts";
import type { ScriptedAttempt } from "../support/scripted-runner.ts";
import { read, requireRefused, createShellCall, write } from "./arbiter-calls.ts";
import { LEASE_MS, openScene, type Scene } from "./arbiter-scene.ts";

const OTHER = "agent:main:other" as SessionKey;
const STEP_2 = { coordinationId: "co-1" as CoordinationId, stepId: "step-2" as StepId };

describe("the owner of a coordination", () => {
  it("holds what it wrote until its turn ends", async () => {
    await using s = await openScene();
    await s.child("a");
    expect(await s.does(write(s, OWNER, { "notes.md": "o" }))).toEqual({ kind: "granted" });
    expect(await s.holders("notes.md")).toEqual(["co-1/@owner"]);
    s.coordinator.turnBegan(OWNER, "run-1");
    await s.coordinator.turnEnded(OWNER, "run-1");
    expect(await s.holders("notes.md")).toEqual([]);
    expect(s.events("claim.released")).toMatchObject([{ because: "turn_ended" }]);
  });

  it("stands against the children of another owner", async () => {
    await using s = await openScene();
    await s.child("a");
    const b = await s.child("b", { source: OTHER });
    await s.does(write(s, OWNER, { "notes.md": "o" }));
    const answer = requireRefused(await s.does(write(s, b, { "notes.md": "b" })));
    expect(answer.sentence).toContain("@owner of coordination co-1");
  });

  it("is refused what its child holds", async () => {
    await using s = await openScene();
    const a = await s.child("a");
    await s.does(write(s, a, { "notes.md": "a" }));
    expect(requireRefused(await s.does(write(s, OWNER, { "notes.md": "o" }))).sentence).toContain(
      "held by step-1",
    );
  });

  it("hands what it holds to its child, under the reason `delegated`", async () => {
    await using s = await openScene();
    const a = await s.child("a");
    await s.does(write(s, OWNER, { "notes.md": "o" }));
    await s.does(read(s, a, "notes.md"));
    expect(await s.does(write(s, a, { "notes.md": "a" }))).toEqual({ kind: "granted" });
    expect(s.events("claim.released")).toMatchObject([{ stepId: "@owner", because: "delegated" }]);
    expect(await s.holders("notes.md")).toEqual(["co-1/step-1"]);
    expect(s.events("conflict.detected")).toEqual([]);
  });

  it("takes part as the owner of its newest open coordination, also after a restart", async () => {
    await using s = await openScene();
    await s.child("a");
    await s.clock.advance(1_000);
    await s.child("b", { trace: "trace-2" });
    await s.does(write(s, OWNER, { "1.md": "o" }));
    await s.restart();
    await s.does(write(s, OWNER, { "2.md": "o" }));
    expect([...(await s.holders("1.md")), ...(await s.holders("2.md"))]).toEqual([
      "co-2/@owner",
      "co-2/@owner",
    ]);
  });

  it("does not stand against itself or its children in another coordination that it owns", async () => {
    await using s = await openScene();
    await s.child("a");
    await s.does(write(s, OWNER, { "1.md": "o", "2.md": "o" }));
    const b = await s.child("b", { trace: "trace-2" });
    expect((await s.does(write(s, OWNER, { "1.md": "again" }))).kind).toBe("granted");
    await s.does(read(s, b, "2.md"));
    expect((await s.does(write(s, b, { "2.md": "b" }))).kind).toBe("granted");
    expect(await s.holders("2.md")).toEqual(["co-2/step-1"]);
  });
});

describe("the owner of a plan that is being told the result", () => {
  const openToldScene = async (answer: ScriptedAttempt): Promise<Scene> => {
    const s = await openScene({
      script: (order) => (order.envelope.stepId === DELIVERY_STEP_ID ? answer : "work"),
    });
    await s.plan([{ stepId: "a" }]);
    s.plans.end("a", { outcome: "completed", reply: "{}" });
    await s.clock.advance(1_000);
    expect(s.plans.orders.at(-1)?.envelope.stepId).toBe(DELIVERY_STEP_ID);
    return s;
  };

  it("changes files as before", async () => {
    await using s = await openToldScene("work");
    expect((await s.does(write(s, OWNER, { "notes.md": "o" }))).kind).toBe("granted");
  });

  it("changes files also when it could not be told and is told again", async () => {
    await using s = await openToldScene({ refuse: "the session is busy" });
    expect((await s.does(write(s, OWNER, { "notes.md": "o" }))).kind).toBe("granted");
  });
});

describe("a parent", () => {
  it("hands what it holds to its descendants, not to its siblings", async () => {
    await using s = await openScene();
    const [parent, sibling] = [await s.child("parent"), await s.child("sibling")];
    const child = await s.child("child", { source: parent });
    const grandchild = await s.child("grandchild", { source: child });
    await s.does(write(s, parent, { "1.md": "p", "2.md": "p" }));
    for (const session of [sibling, grandchild]) await s.does(read(s, session, "1.md"));
    expect((await s.does(write(s, sibling, { "1.md": "s" }))).kind).toBe("refused");
    expect((await s.does(write(s, grandchild, { "1.md": "g" }))).kind).toBe("granted");
    expect(await s.holders("1.md")).toEqual(["co-1/step-4"]);
    expect(await s.holders("2.md")).toEqual(["co-1/step-1"]);
    expect((await s.does(write(s, parent, { "1.md": "p" }))).kind).toBe("refused");
  });

  it("whose child runs a plan hands it to the plan's steps, and the claim ends as `delegated`", async () => {
    await using s = await openScene();
    const parent = await s.child("parent");
    await s.does(write(s, parent, { "notes.md": "p" }));
    await s.plan([{ stepId: "a" }], { ownerSession: parent });
    const a = s.sessionOf("a");
    await s.does(read(s, a, "notes.md"));
    expect(await s.does(write(s, a, { "notes.md": "a" }))).toEqual({ kind: "granted" });
    expect(await s.holders("notes.md")).toEqual(["plan-1/a"]);
    expect(s.events("claim.released").map(({ because }) => because)).toEqual(["delegated"]);
  });

  it("hands it through plans within plans, and so do its own parents and their owner", async () => {
    await using s = await openScene();
    const grandparent = await s.child("grandparent");
    const parent = await s.child("parent", { source: grandparent });
    const sibling = await s.child("sibling");
    await s.does(write(s, OWNER, { "owner.md": "o" }));
    for (const session of [grandparent, parent, sibling])
      await s.does(write(s, session, { [`${session}.md`]: "x" }));
    await s.plan([{ stepId: "outer" }, { stepId: "beside" }], { ownerSession: parent });
    const outer = s.sessionOf("outer");
    for (const step of ["outer", "beside"])
      await s.does(write(s, s.sessionOf(step), { [`${step}.md`]: "x" }));
    await s.plan([{ stepId: "inner" }], { coordinationId: "plan-2", ownerSession: outer });
    const inner = s.sessionOf("inner");
    const makeCall = async (name: string): Promise<string> => {
      await s.does(read(s, inner, name));
      return (await s.does(write(s, inner, { [name]: "i" }))).kind;
    };
    for (const name of ["owner.md", `${grandparent}.md`, `${parent}.md`, "outer.md"])
      expect([name, await makeCall(name)]).toEqual([name, "granted"]);
    for (const name of [`${sibling}.md`, "beside.md"])
      expect([name, await makeCall(name)]).toEqual([name, "refused"]);
  });
});

describe("a plan's declared owner", () => {
  const steps = [
    { stepId: "editor", resources: ["file:notes.md", "queue:mail"] },
    { stepId: "other" },
    { stepId: "late", resources: ["file:late.md"], dependsOn: ["other"] },
  ];

  it("that is running keeps others of its plan out before it has written anything", async () => {
    await using s = await openScene();
    await s.plan(steps);
    const answer = requireRefused(await s.does(write(s, s.sessionOf("other"), { "notes.md": "x" })));
    expect(answer.sentence).toMatch(/is declared by editor .*as its own in the plan, until that step ends/u);
    expect((await s.does(write(s, s.sessionOf("editor"), { "notes.md": "e" }))).kind).toBe("granted");
    expect(s.events("conflict.resolved")).toMatchObject([
      { winner: "editor", rule: "ownership", because: "declared-owner" },
    ]);
  });

  it("takes the resource from a step that holds it", async () => {
    await using s = await openScene();
    await s.plan([{ stepId: "early" }, { ...steps[0], dependsOn: ["early"] }, steps[1] ?? {}]);
    const other = s.sessionOf("other");
    await s.does(write(s, other, { "notes.md": "x" }));
    s.plans.end("early", { outcome: "completed", reply: "{}" });
    await s.clock.advance(1_000);
    const editor = s.sessionOf("editor");
    await s.does(read(s, editor, "notes.md"));
    expect((await s.does(write(s, editor, { "notes.md": "e" }))).kind).toBe("granted");
    expect(await s.holders("notes.md")).toEqual(["plan-1/editor"]);
  });

  it("that does not run yet, or has ended, keeps nobody out", async () => {
    await using s = await openScene();
    await s.plan(steps);
    const other = s.sessionOf("other");
    expect((await s.does(write(s, other, { "late.md": "x" }))).kind).toBe("granted");
    s.plans.end("editor", { outcome: "completed", reply: "{}" });
    await s.clock.advance(1_000);
    expect((await s.does(write(s, other, { "notes.md": "x" }))).kind).toBe("granted");
  });

  it("keeps out none of those that work for it, whether it holds the folder or has written nothing", async () => {
    await using s = await openScene();
    await s.plan([{ stepId: "editor", resources: ["file:src"] }, { stepId: "other" }]);
    const editor = s.sessionOf("editor");
    const child = await s.child("child", { source: editor });
    const grandchild = await s.child("grandchild", { source: child });
    const other = await s.child("beside", { source: s.sessionOf("other") });
    expect(await s.does(write(s, child, { "src/a.md": "c" }))).toEqual({ kind: "granted" });
    await s.does(write(s, editor, { "src/b.md": "e" }));
    await s.does(read(s, grandchild, "src/b.md"));
    expect(await s.does(write(s, grandchild, { "src/b.md": "g" }))).toEqual({ kind: "granted" });
    expect(s.events("conflict.detected")).toEqual([]);
    expect((await s.does(write(s, other, { "src/c.md": "o" }))).kind).toBe("refused");
  });

  it("is not one for the steps of another coordination", async () => {
    await using s = await openScene();
    await s.plan(steps, { ownerSession: OTHER });
    const stranger = await s.child("stranger");
    expect((await s.does(write(s, stranger, { "notes.md": "x" }))).kind).toBe("granted");
  });
});

describe("an attempt that was given up", () => {
  const steps = [
    { stepId: "slow", timeoutMs: 10_000, retry: { budget: 1, backoffMs: 1_000 } },
    { stepId: "b" },
  ];

  it("is refused every change, and keeps what it looks at and what changes nothing", async () => {
    await using s = await openScene();
    s.plans.cancel = () => new Promise(() => undefined);
    await s.plan(steps);
    const first = s.sessionOf("slow");
    await s.does(write(s, first, { "notes.md": "1" }));
    await s.clock.advance(20_000);
    expect(s.sessionOf("slow")).not.toBe(first);
    const answer = requireRefused(await s.does(write(s, first, { "notes.md": "1" })));
    expect(answer.sentence).toContain("this attempt of step slow was given up");
    expect((await s.does(createShellCall(s, first))).kind).toBe("refused");
    expect((await s.does(read(s, first, "notes.md"))).kind).toBe("free");
    const second = s.sessionOf("slow");
    await s.does(read(s, second, "notes.md"));
    expect((await s.does(write(s, second, { "notes.md": "2" }))).kind).toBe("granted");
  });

  it("has no claim any more", async () => {
    await using s = await openScene();
    s.plans.cancel = () => new Promise(() => undefined);
    await s.plan(steps);
    await s.does(write(s, s.sessionOf("slow"), { "notes.md": "1" }));
    await s.clock.advance(15_500);
    expect(await s.holders("notes.md")).toEqual([]);
    expect(s.events("claim.released")).toMatchObject([{ stepId: "slow", because: "step_ended" }]);
  });

  it("of a spawn is refused, too, while its coordination goes on", async () => {
    await using s = await openScene({ settings: { stepTimeoutMs: 10_000 } });
    const a = await s.child("a");
    await s.clock.advance(35_000);
    const b = await s.child("b");
    await s.does(write(s, b, { "notes.md": "b" }));
    await s.clock.advance(10_000);
    expect(s.events("step.timed_out")).toMatchObject([{ stepId: "step-1" }]);
    expect((await s.does(write(s, a, { "notes.md": "a" }))).kind).toBe("refused");
  });
});

describe("a child that was spawned by one that was cancelled", () => {
  it.each(["is at work", "has completed"])("is refused every change where it %s", async (course) => {
    await using s = await openScene();
    await s.child("beside");
    const above = await s.child("above");
    const below = await s.child("below", { source: above });
    if (course === "has completed") await s.ends(below);
    // The host answers of `above`, and not of `below`.
    const stop = s.observer.stop.bind(s.observer);
    s.observer.stop = (query) =>
      query.childSessionKey === below ? new Promise(() => undefined) : stop(query);
    await s.coordinator.cancel({ ...STEP_2, by: "operator" });
    await s.clock.advance(1_000);
    expect(s.events("step.failed")).toMatchObject([{ stepId: "step-2" }]);
    const answer = requireRefused(await s.does(write(s, below, { "notes.md": "x" })));
    expect(answer.sentence).toContain("step-3 was given up, or one that it works for");
    expect((await s.does(read(s, below, "notes.md"))).kind).toBe("free");
  });
});

describe("a child whose step has ended", () => {
  it("is refused what nobody can look at, and by no setting allowed", async () => {
    await using s = await openScene();
    await s.child("a");
    const b = await s.child("b");
    await s.ends(b);
    const many = { ...write(s, b, { "z.md": "x" }), undetermined: { because: "too_many" } as const };
    expect(requireRefused(await s.does(many)).sentence).toContain(String(BOUNDS.resourcesPerCallMax));
    const failed = {
      ...write(s, b, { "z.md": "x" }),
      undetermined: { because: "extractor_failed", extractor: "crm.customers" } as const,
    };
    expect(requireRefused(await s.does(failed)).sentence).toContain('the extractor "crm.customers"');
    expect((await s.does(createShellCall(s, b))).kind).toBe("free");
    expect((await s.does(write(s, b, { "z.md": "x" }))).kind).toBe("free");
  });
});

describe("an operator", () => {
  it("releases a claim by its token, once, and whoever comes next gets the resource", async () => {
    await using s = await openScene();
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(write(s, a, { "1.md": "a", "2.md": "a" }));
    await s.does(read(s, b, "2.md"));
    expect(await s.coordinator.arbiter.release(2)).toEqual({ runId: "co-1" });
    expect(await s.coordinator.arbiter.release(2)).toBeUndefined();
    expect(await s.coordinator.arbiter.release(99)).toBeUndefined();
    expect((await s.does(write(s, b, { "2.md": "b" }))).kind).toBe("granted");
    expect((await s.does(write(s, b, { "1.md": "b" }))).kind).toBe("refused");
    expect(s.events("claim.released")).toMatchObject([{ token: 2, because: "operator" }]);
    // The former holder asks again as everybody does.
    expect((await s.does(write(s, a, { "2.md": "a" }))).kind).toBe("refused");
  });

  it("releases a claim that has run out", async () => {
    await using s = await openScene();
    await s.does(write(s, await s.child("a"), { "1.md": "a" }));
    await s.clock.advance(LEASE_MS);
    expect(await s.coordinator.arbiter.release(1)).toEqual({ runId: "co-1" });
  });
});
