import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { replayCoordination } from "../../src/agents/coordination/runtime/replay-coordination.ts";
import { OWNER } from "../support/fake-clock-host.ts";
import {
  createNamedCall,
  createOutputCall,
  read,
  requireRefused,
  requireReview,
  createShellCall,
  write,
  type Review,
  type ToolCall,
} from "./arbiter-calls.ts";
import { LEASE_MS, REVIEW_MS, openScene, type Scene, type SceneOptions } from "./arbiter-scene.ts";

const MANUAL: SceneOptions = { conflicts: { strategy: "manual_review" } };

/** The owner wants what its child holds. */
async function openReviewScene(
  options: SceneOptions = MANUAL,
): Promise<{ s: Scene; a: SessionKey; call: ToolCall; review: Review }> {
  const s = await openScene(options);
  const a = await s.child("a");
  await s.does(write(s, a, { "notes.md": "a" }));
  const call = write(s, OWNER, { "notes.md": "o" });
  return { s, a, call, review: requireReview(await s.ask(call)) };
}

/** The owner, which has claimed the folder, wants to write over what somebody outside wrote in it. */
async function openFolderScene(): Promise<{ s: Scene; call: ToolCall; review: Review }> {
  const s = await openScene(MANUAL);
  await s.child("a");
  s.put("dist/notes.md", "1");
  await s.does(createOutputCall(s, OWNER, "dist"));
  await s.does(read(s, OWNER, "dist/notes.md"));
  s.put("dist/notes.md", "of somebody outside");
  const call = write(s, OWNER, { "dist/notes.md": "o" });
  return { s, call, review: requireReview(await s.ask(call)) };
}

function answersOf(s: Scene): string[] {
  return s.events("conflict.resolved").map(({ because }) => because);
}

describe("a call that people are asked about", () => {
  it("happens when they approve: the others' claims end and it holds one", async () => {
    const { s, a, call, review } = await openReviewScene();
    await using _ = s;
    expect(review.timeoutMs).toBe(REVIEW_MS);
    await review.settle("approved");
    await s.runs(call, { kind: "granted" });
    expect(await s.holders("notes.md")).toEqual(["co-1/@owner"]);
    expect(s.events("conflict.resolved")).toMatchObject([
      { winner: "@owner", losers: ["step-1"], rule: "people", because: "approved" },
    ]);
    expect(s.events("claim.released")).toMatchObject([{ stepId: "step-1", because: "preempted" }]);
    expect(s.events("resource.changed")).toMatchObject([
      { stepId: "step-1", token: 1 },
      { stepId: "@owner", token: 2 },
    ]);
    expect((await s.ask(write(s, a, { "notes.md": "a" }))).kind).toBe("refused");
  });

  it("is decided again from the log where a session has the claim from another call that they approved", async () => {
    const { s, call, review } = await openReviewScene();
    await using _ = s;
    const again = requireReview(await s.ask(write(s, OWNER, { "notes.md": "again" })));
    await review.settle("approved");
    await again.settle("approved");
    await s.runs(call, { kind: "granted" });
    expect(answersOf(s)).toEqual(["approved", "approved"]);
    expect(s.events("claim.renewed")).toEqual([]);
    expect(await s.holders("notes.md")).toEqual(["co-1/@owner"]);
    expect((await replayCoordination(s.store, "co-1" as CoordinationId)).difference).toBeUndefined();
  });

  it("happens when they approve, with a claim of its own, where its session has claimed the folder around it", async () => {
    const { s, call, review } = await openFolderScene();
    await using _ = s;
    await review.settle("approved");
    await s.runs(call, { kind: "granted" });
    expect(answersOf(s)).toEqual(["approved"]);
    expect(s.events("claim.acquired")).toMatchObject([
      { resource: s.resource("dist"), token: 1 },
      { resource: s.resource("dist/notes.md"), token: 2 },
    ]);
    expect(s.events("resource.changed").at(-1)).toMatchObject({ stepId: "@owner", token: 2 });
  });

  it("keeps no claim of its own where it fails, also where its session has claimed the folder around it", async () => {
    const { s, call, review } = await openFolderScene();
    await using _ = s;
    await review.settle("approved");
    await s.coordinator.arbiter.callEnded(call.callKey, { hasFailed: true });
    expect(s.events("claim.released")).toMatchObject([{ token: 2, because: "unused" }]);
    expect(await s.holders("dist")).toEqual(["co-1/@owner"]);
    expect((await s.ask({ ...call, callKey: "again" })).kind).toBe("review");
  });

  it("does not happen when they deny, and everything stays as it was", async () => {
    const { s, a, review } = await openReviewScene();
    await using _ = s;
    await review.settle("denied");
    expect(answersOf(s)).toEqual(["denied"]);
    expect(await s.holders("notes.md")).toEqual(["co-1/step-1"]);
    expect((await s.does(write(s, a, { "notes.md": "a2" }))).kind).toBe("granted");
  });

  it("has changed nothing where it fails, whatever others changed while people thought", async () => {
    const { s, a, call, review } = await openReviewScene();
    await using _ = s;
    await s.does(read(s, OWNER, "notes.md"));
    await s.does(write(s, a, { "notes.md": "more of a" }));
    await review.settle("approved");
    await s.coordinator.arbiter.callEnded(call.callKey, { hasFailed: true });
    expect(s.events("resource.changed").map(({ stepId }) => stepId)).toEqual(["step-1", "step-1"]);
    await s.ends(a);
    const { description } = requireReview(await s.ask(write(s, OWNER, { "notes.md": "o" })));
    expect(description).toContain("notes.md: also wanted by step-1");
  });

  it("is recorded with what it changed, also where the host has run it before the approval is on disk", async () => {
    const { s, a, call, review } = await openReviewScene();
    await using _ = s;
    await s.does(write(s, a, { "notes.md": "more of a" }));
    const settled = review.settle("approved");
    await s.runs(call, { kind: "granted" });
    await settled;
    expect(s.events("resource.changed").at(-1)).toMatchObject({ stepId: "@owner", token: 2 });
  });

  it("takes nothing from the holder where it was cancelled before they approved", async () => {
    const { s, call, review } = await openReviewScene();
    await using _ = s;
    await s.coordinator.arbiter.callEnded(call.callKey, { hasFailed: true });
    await review.settle("approved");
    expect(answersOf(s)).toEqual(["withdrawn"]);
    expect(s.events("claim.released")).toEqual([]);
    expect(await s.holders("notes.md")).toEqual(["co-1/step-1"]);
  });

  it("is asked about and recorded anew when it is made again after they denied", async () => {
    const { s, call, review } = await openReviewScene();
    await using _ = s;
    await review.settle("denied");
    const again = requireReview(await s.ask({ ...call, callKey: "again" }));
    await again.settle("approved");
    expect(answersOf(s)).toEqual(["denied", "approved"]);
    expect(await s.holders("notes.md")).toEqual(["co-1/@owner"]);
  });

  it("is a question of its own, also beside another one about the same file", async () => {
    const { s, call, review } = await openReviewScene();
    await using _ = s;
    const other = requireReview(await s.ask({ ...call, callKey: "other" }));
    await review.settle("denied");
    await other.settle("approved");
    expect(answersOf(s)).toEqual(["denied", "approved"]);
    expect(await s.holders("notes.md")).toEqual(["co-1/@owner"]);
    await review.settle("approved");
    expect(answersOf(s)).toEqual(["denied", "approved"]);
  });

  it("that nobody answered is closed by the sweep, also after a restart", async () => {
    for (const isRestarted of [false, true]) {
      const { s } = await openReviewScene();
      await using _ = s;
      if (isRestarted) await s.restart();
      await s.clock.advance(REVIEW_MS + 14_000);
      expect(answersOf(s)).toEqual([]);
      await s.clock.advance(61_000);
      expect(answersOf(s)).toEqual(["unanswered"]);
    }
  });

  it("holds nothing that could keep others out while people think", async () => {
    const { s, a } = await openReviewScene();
    await using _ = s;
    const b = await s.child("b", { trace: "trace-2", source: "agent:main:other" as SessionKey });
    await s.ends(a);
    await s.does(read(s, b, "notes.md"));
    expect((await s.does(write(s, b, { "notes.md": "b" }))).kind).toBe("granted");
  });

  it.each(["trace-1", "trace-2"])(
    "takes the file also from who claimed it while people thought (%s)",
    async (trace) => {
      const { s, a, call, review } = await openReviewScene();
      await using _ = s;
      await s.ends(a);
      const b = await s.child("b", { trace });
      await s.does(read(s, b, "notes.md"));
      await s.does(write(s, b, { "notes.md": "b" }));
      await review.settle("approved");
      await s.runs(call, { kind: "granted" });
      expect(await s.holders("notes.md")).toEqual(["co-1/@owner"]);
    },
  );

  it.each(["trace-1", "trace-2"])(
    "keeps what it had not to contend for from others while people think (%s)",
    async (trace) => {
      const s = await openScene(MANUAL);
      await using _ = s;
      const a = await s.child("a");
      await s.does(write(s, a, { "notes.md": "a" }));
      const call = write(s, OWNER, { "free.md": "o", "notes.md": "o" });
      const review = requireReview(await s.ask(call));
      const b = await s.child("b", { trace });
      const ruling = s.ask(write(s, b, { "free.md": "b" }));
      await s.clock.advance(2_000);
      requireRefused(await ruling);
      await review.settle("approved");
      await s.runs(call, { kind: "granted" });
      const owner = await s.holders("notes.md");
      expect(owner).toEqual([expect.stringMatching(/@owner$/u)]);
      expect(await s.holders("free.md")).toEqual(owner);
    },
  );

  it("is approved for a new lease where its own claim ran out while people thought", async () => {
    await using s = await openScene({ conflicts: { strategy: "manual_review", reviewMs: 2 * LEASE_MS } });
    const a = await s.child("a");
    await s.does(write(s, OWNER, { "1.md": "o" }));
    await s.does(write(s, a, { "notes.md": "a" }));
    const review = requireReview(await s.ask(write(s, OWNER, { "1.md": "o2", "notes.md": "o" })));
    await s.clock.advance(LEASE_MS);
    await review.settle("approved");
    expect(await s.holders("1.md")).toEqual(["co-1/@owner"]);
    expect(await s.holders("notes.md")).toEqual(["co-1/@owner"]);
  });

  it("is recorded as approved also when another process claims something in between", async () => {
    let races = 0;
    const s = await openScene({
      ...MANUAL,
      wrap: (store) => ({
        ...store,
        append: (request) => {
          const isApproval = request.events.some(
            ({ type, payload }) => type === "conflict.resolved" && payload.because === "approved",
          );
          if (isApproval && (races += 1) === 1)
            return Promise.reject(new CoordinationError("CLAIM_CONFLICT", "another writer was first"));
          return store.append(request);
        },
      }),
    });
    await using _ = s;
    const a = await s.child("a");
    await s.does(write(s, a, { "notes.md": "a" }));
    await requireReview(await s.ask(write(s, OWNER, { "notes.md": "o" }))).settle("approved");
    expect(races).toBe(2);
    expect(await s.holders("notes.md")).toEqual(["co-1/@owner"]);
  });

  it("is withdrawn when the turn of its session ends", async () => {
    const { s, review } = await openReviewScene();
    await using _ = s;
    s.coordinator.turnBegan(OWNER, "run-1");
    await s.coordinator.turnEnded(OWNER, "run-1");
    expect(answersOf(s)).toEqual(["withdrawn"]);
    await review.settle("approved");
    expect(answersOf(s)).toEqual(["withdrawn"]);
  });

  it("is refused from then on where nobody could be asked, with the id of the conflict", async () => {
    const { s, review } = await openReviewScene();
    await using _ = s;
    await review.settle("nobody_to_ask");
    expect(answersOf(s)).toEqual(["nobody-to-ask"]);
    const answer = requireRefused(await s.ask(write(s, OWNER, { "notes.md": "o" })));
    expect(answer.sentence).toMatch(
      /nobody can be asked from here.* report this in your result \(conflict co-1:conflict-\d\)/u,
    );
    expect(answer.conflictId).toMatch(/^co-1:conflict-\d$/u);
  });

  it("is not asked about when another of its targets is lost anyway", async () => {
    await using s = await openScene({ conflicts: { highRisk: ["*.env"] } });
    const a = await s.child("a");
    await s.does(write(s, a, { "prod.env": "a", "notes.md": "a" }));
    requireRefused(await s.ask(write(s, OWNER, { "prod.env": "o", "notes.md": "o" })));
    expect(s.events("conflict.detected")).toMatchObject([{ resource: s.resource("notes.md") }]);
  });

  it("is about all of its contested targets at once", async () => {
    await using s = await openScene(MANUAL);
    const a = await s.child("a");
    await s.does(write(s, a, { "1.md": "a", "2.md": "a" }));
    const call = write(s, OWNER, { "1.md": "o", "2.md": "o" });
    const review = requireReview(await s.ask(call));
    expect(review.description).toMatch(/1\.md: also wanted by step-1.*2\.md: also wanted by step-1/u);
    await review.settle("approved");
    await s.runs(call, { kind: "granted" });
    expect(answersOf(s)).toEqual(["approved", "approved"]);
    expect([await s.holders("1.md"), await s.holders("2.md")]).toEqual([["co-1/@owner"], ["co-1/@owner"]]);
  });
});

describe("a call of which nobody can say what it changes", () => {
  it("is let go where the operator allows it, and recorded", async () => {
    await using s = await openScene();
    const a = await s.child("a");
    expect(await s.does(createShellCall(s, a))).toEqual({ kind: "granted" });
    expect(s.events("write.undetermined")).toEqual([
      { stepId: "step-1", tool: "exec", because: "undeclared", action: "allowed" },
    ]);
  });

  it("is refused where the operator denies it", async () => {
    await using s = await openScene({ conflicts: { unknownWrites: "deny" } });
    const a = await s.child("a");
    expect(requireRefused(await s.does(createShellCall(s, a))).sentence).toContain(
      "what exec would change cannot be told",
    );
    expect(s.events("write.undetermined")).toMatchObject([
      { stepId: "step-1", tool: "exec", because: "undeclared", action: "denied" },
    ]);
  });

  it("is asked about for an owner and refused for a child under `review`", async () => {
    await using s = await openScene({ conflicts: { unknownWrites: "review" } });
    const a = await s.child("a");
    expect((await s.does(createShellCall(s, a))).kind).toBe("refused");
    const review = requireReview(await s.ask(createShellCall(s, OWNER)));
    expect(review.title).toBe("Unchecked call of exec");
    await review.settle("nobody_to_ask");
    expect((await s.ask(createShellCall(s, OWNER))).kind).toBe("refused");
    expect(s.events("write.undetermined").map(({ action }) => action)).toEqual(["denied", "asked", "denied"]);
  });

  it("is refused with the extractor's name where an extractor failed, whatever the operator allows", async () => {
    await using s = await openScene();
    const a = await s.child("a");
    const call: ToolCall = {
      ...createNamedCall(s, a, "crm:customer/1"),
      undetermined: { because: "extractor_failed", extractor: "crm.customers" },
    };
    expect(requireRefused(await s.ask(call)).sentence).toContain('the extractor "crm.customers"');
    expect(s.events("write.undetermined")).toMatchObject([
      { because: "extractor_failed", extractor: "crm.customers", action: "denied" },
    ]);
  });

  it("is ruled on by what can be named, also where another path leads nowhere", async () => {
    const nowhere = { path: "\0", folder: "/repo" };
    for (const unknownWrites of ["allow", "review", "deny"] as const) {
      await using s = await openScene({
        conflicts: { unknownWrites },
        dependencies: {
          files: {
            locate: (path) => Promise.resolve(path.includes("\0") ? undefined : `file:/repo/${path}`),
            look: () => Promise.resolve({ kind: "absent", version: "absent" }),
            spelledName: () => Promise.resolve(undefined),
            sharedName: () => Promise.resolve(undefined),
            hasMoreEntries: () => Promise.resolve(false),
            stamp: () => Promise.resolve("absent"),
            findChanged: () => Promise.resolve({ paths: [], isWhole: true }),
          },
        },
      });
      const [a, b] = [await s.child("a"), await s.child("b")];
      await s.ask(write(s, a, { "notes.md": "a" }));
      const call = write(s, b, { "notes.md": "b" });
      const targets = [...call.targets, { at: nowhere, replaces: true }];
      expect((await s.ask({ ...call, targets })).kind, unknownWrites).toBe("refused");
    }
  });

  it("is ruled on by what can be named before people are asked about the rest", async () => {
    await using s = await openScene({ conflicts: { unknownWrites: "review" } });
    const a = await s.child("a");
    await s.does(write(s, a, { "notes.md": "a" }));
    const call: ToolCall = {
      ...write(s, OWNER, { "notes.md": "o" }),
      undetermined: { because: "unreadable" },
    };
    expect(requireRefused(await s.ask(call)).sentence).toContain("held by step-1");
  });
});
