import { describe, expect, it } from "vitest";
import type { Command, ResourceContest } from "../../src/agents/coordination/contracts/commands.ts";
import { OWNER_STEP_ID } from "../../src/agents/coordination/contracts/ids.ts";
import {
  asks,
  atWork,
  change,
  conflictId,
  contest,
  contestant,
  FOREIGN,
  holder,
  LEASE_MS,
  NOTES,
  openOf,
  payloadsOf,
  release,
  REPORT,
  request,
  saidOf,
  tokensOf,
} from "./claims-scene.ts";
import { at, complete, fail, SETTLE, spawn, timeOut, type Scene } from "./scene.ts";

const until = (ms: number) => ({ expiresAtMs: at(ms) });
/** Step 2 holds the notes with token 3, and step 1 wants them. */
const OVERLAP = contest([contestant(1, 4), holder(2, 3)]);
const HELD_BY_2 = request(2, asks(NOTES, 3));
const wanted = (rest: Partial<ResourceContest> = {}, token = 4): Command =>
  request(1, asks(NOTES, token, { contest: { ...OVERLAP, ...rest } }));
const DECLARED: Partial<ResourceContest> = {
  claims: [contestant(1, 4, { declared: true }), holder(2, 3)],
};

describe("a resource that nobody else wants", () => {
  it("is claimed, with what it was then", () => {
    const scene = atWork(1);
    expect(saidOf(scene.when(request(1, asks(NOTES, 7, { current: "sha256:1" }))))).toEqual([
      "claim.acquired",
    ]);
    expect(payloadsOf(scene.log, "claim.acquired")).toEqual([
      {
        stepId: "step-1",
        resource: NOTES,
        token: 7,
        priority: "normal",
        ...until(LEASE_MS),
        base: "sha256:1",
      },
    ]);
  });

  it("is claimed by the owner's session, while no step is open", () => {
    const scene = atWork(1, complete(1));
    expect(saidOf(scene.when(request(OWNER_STEP_ID, asks(NOTES, 1))))).toEqual(["claim.acquired"]);
  });

  it("is claimed before the host has confirmed the child", () => {
    const scene = atWork(0, spawn("a"));
    expect(saidOf(scene.when(request(1, asks(NOTES, 1))))).toEqual(["claim.acquired"]);
  });

  it("is renewed where the lease then ends later, and only then", () => {
    const scene = atWork(1, request(1, asks(NOTES, 1, until(60_000))));
    const renewed = request(1, asks(NOTES, 2, { held: 1, ...until(90_000) }));
    expect(saidOf(scene.when(renewed))).toEqual(["claim.renewed"]);
    expect(saidOf(scene.when(renewed))).toEqual(["replay"]);
    expect(saidOf(scene.when(request(1, asks(NOTES, 2, { held: 1, ...until(80_000) }))))).toEqual(["replay"]);
    expect(openOf(scene).claims.get(1)).toMatchObject({ ...until(90_000), acquiredAtMs: at(3_000) });
  });

  it("below a folder that the step holds renews that claim once, however many files there are", () => {
    const scene = atWork(1, request(1, asks("file:/repo", 1, until(60_000))));
    const files = [NOTES, REPORT].map((file) => asks(file, 1, { held: 1, ...until(90_000) }));
    expect(saidOf(scene.when(request(1, ...files)))).toEqual(["claim.renewed"]);
  });

  it("is claimed anew where the step's own claim has expired", () => {
    const scene = atWork(1, request(1, asks(NOTES, 1, until(10_000))));
    expect(saidOf(scene.when(request(1, asks(NOTES, 2)), 10_000))).toEqual([
      "claim.released",
      "claim.acquired",
    ]);
    expect(payloadsOf(scene.log, "claim.released")).toEqual([
      { stepId: "step-1", token: 1, because: "expired" },
    ]);
    expect(tokensOf(scene)).toEqual([2]);
  });

  it("named twice in one request is claimed once, also where an own claim has expired", () => {
    const scene = atWork(1, request(1, asks(NOTES, 1, until(10_000))));
    const twice = request(1, asks(NOTES, 2), asks(NOTES, 3));
    expect(saidOf(scene.when(twice, 20_000))).toEqual(["claim.released", "claim.acquired"]);
    expect(tokensOf(scene)).toEqual([2]);
  });
});

describe("A2: a claim that has ended", () => {
  const again = request(1, asks(NOTES, 9, { held: 1, ...until(900_000) }));
  const cases: readonly (readonly [string, Scene, number])[] = [
    ["expired", atWork(1, request(1, asks(NOTES, 1, until(60_000)))), 60_000],
    ["was released", atWork(1, request(1, asks(NOTES, 1)), release()), 10_000],
    [
      "was preempted",
      atWork(
        2,
        request(1, asks(NOTES, 1)),
        request(
          2,
          asks(NOTES, 2, {
            contest: contest([contestant(2, 2, { declared: true }), holder(1, 1)]),
          }),
        ),
      ),
      10_000,
    ],
    ["is another step's", atWork(2, request(2, asks(NOTES, 1))), 10_000],
    ["never was", atWork(1), 10_000],
  ];

  it.each(cases)("because it %s does not carry a write", (_, scene, ms) => {
    const before = scene.state;
    expect(saidOf(scene.when(again, ms))).toEqual(["STALE_TOKEN"]);
    expect(scene.state).toBe(before);
  });

  it("carries a write until the very millisecond of its end", () => {
    const scene = atWork(1, request(1, asks(NOTES, 1, until(60_000))));
    expect(saidOf(scene.when(again, 59_999))).toEqual(["claim.renewed"]);
  });

  it("keeps the other resources of the request from being claimed", () => {
    const scene = atWork(1, request(1, asks(NOTES, 1, until(60_000))));
    const both = request(1, asks(REPORT, 2), asks(NOTES, 3, { held: 1 }));
    expect(saidOf(scene.when(both, 60_000))).toEqual(["STALE_TOKEN"]);
  });
});

describe("a step that is not at work", () => {
  it.each([
    ["completed", complete(1)],
    ["failed", fail(1)],
    ["timed out", timeOut(1)],
  ] as const)("because it %s claims nothing", (_, end) => {
    expect(saidOf(atWork(1, end).when(request(1, asks(NOTES, 1))))).toEqual(["STEP_ENDED"]);
  });

  it("because there is none claims nothing", () => {
    expect(saidOf(atWork(1).when(request(2, asks(NOTES, 1))))).toEqual(["STEP_ENDED"]);
  });

  it.each<readonly [string, Command]>([
    ["request", request(1, asks(NOTES, 1))],
    ["release", release()],
    ["change", change(1, "sha256:1")],
    ["answer", { type: "settleReview", conflictId: conflictId(1), answer: "approved" }],
  ])("because all has ended is refused its %s", (_, command) => {
    expect(saidOf(atWork(1, complete(1), SETTLE).when(command))).toEqual(["COORDINATION_ENDED"]);
  });
});

describe("a contested resource that is granted", () => {
  it("has its ruling recorded first, then the loser's claim ends, then the winner's begins", () => {
    const scene = atWork(2, HELD_BY_2);
    expect(saidOf(scene.when(wanted(DECLARED)))).toEqual([
      ...["conflict.detected", "conflict.resolved", "claim.released", "claim.acquired"],
    ]);
    expect(payloadsOf(scene.log, "conflict.resolved")).toEqual([
      {
        conflictId: conflictId(1),
        strategy: "owner_wins",
        winner: "step-1",
        losers: ["step-2"],
        rule: "ownership",
        because: "declared-owner",
      },
    ]);
    expect(payloadsOf(scene.log, "claim.released")).toEqual([
      { stepId: "step-2", token: 3, because: "preempted" },
    ]);
    expect(tokensOf(scene)).toEqual([4]);
  });

  it("leaves the claim of a step of another coordination to the log of that one", () => {
    const scene = atWork(2, HELD_BY_2);
    const foreign = holder(2, 3, { coordinationId: FOREIGN });
    const mine = contestant(1, 4, { declared: true });
    expect(saidOf(scene.when(wanted({ claims: [mine, foreign] })))).not.toContain("claim.released");
    expect(tokensOf(scene)).toEqual([3, 4]);
  });

  it("leaves those as they are that it is merged with", () => {
    const scene = atWork(2, HELD_BY_2);
    const merge = { kind: "clean" as const, base: "a", current: "b", merged: "c" };
    expect(saidOf(scene.when(wanted({ strategy: "merge_if_safe", merge })))).toEqual([
      ...["conflict.detected", "conflict.resolved", "claim.acquired"],
    ]);
    expect(tokensOf(scene)).toEqual([3, 4]);
    expect(payloadsOf(scene.log, "conflict.detected")[0]?.contest?.merge).toEqual(merge);
  });

  it("renews the winner's own claim and does not take it for a loser's", () => {
    const scene = atWork(2, request(1, asks("file:/repo", 1)), HELD_BY_2);
    const claims = [holder(1, 1), holder(2, 3)];
    const renewed = asks("file:/repo", 4, { held: 1, ...until(LEASE_MS + 1), contest: contest(claims) });
    expect(saidOf(scene.when(request(1, renewed)))).toEqual([
      ...["conflict.detected", "conflict.resolved", "claim.released", "claim.renewed"],
    ]);
    expect(tokensOf(scene)).toEqual([1]);
  });

  it("ends all claims of the loser that overlap, and no other one", () => {
    const held = [asks("file:/repo", 1), asks(NOTES, 2), asks(REPORT, 3)];
    const scene = atWork(3, request(2, ...held), request(3, asks("file:/repo/notes.md/x", 4)));
    const claims = [contestant(1, 5, { declared: true }), holder(2, 1)];
    scene.when(request(1, asks(NOTES, 5, { contest: contest(claims) })));
    expect(tokensOf(scene)).toEqual([3, 4, 5]);
  });

  it("ends a loser's claim once where it stands against several resources", () => {
    const scene = atWork(2, request(2, asks("file:/repo", 3)));
    const { claims } = DECLARED;
    const both = [asks(NOTES, 4, { contest: { ...OVERLAP, claims: claims ?? [] } })];
    both.push(asks(REPORT, 5, { contest: { ...OVERLAP, claims: claims ?? [] } }));
    expect(saidOf(scene.when(request(1, ...both)))).toEqual([
      ...["conflict.detected", "conflict.resolved", "conflict.detected", "conflict.resolved"],
      ...["claim.released", "claim.acquired", "claim.acquired"],
    ]);
  });
});

describe("a contested resource that is refused", () => {
  it("has the ruling recorded with all that it follows from, and claims nothing", () => {
    const scene = atWork(2, HELD_BY_2);
    const asked = asks(NOTES, 4, { base: "a", current: "b", contest: { ...OVERLAP, from: "plan" } });
    expect(saidOf(scene.when(request(1, asked), 9_000))).toEqual(["conflict.detected", "conflict.resolved"]);
    expect(payloadsOf(scene.log, "conflict.detected")).toEqual([
      {
        conflictId: conflictId(1),
        resource: NOTES,
        claims: OVERLAP.claims,
        contest: {
          requester: "step-1",
          cause: "overlap",
          strategy: "owner_wins",
          from: "plan",
          atMs: at(9_000),
          base: "a",
          current: "b",
        },
      },
    ]);
    expect(payloadsOf(scene.log, "conflict.resolved")[0]).toMatchObject({
      winner: "step-2",
      losers: ["step-1"],
      rule: "lease",
      because: "lease-holder",
    });
    expect(tokensOf(scene)).toEqual([3]);
  });

  it.each<readonly [string, Partial<ResourceContest>]>([
    ["again", {}],
    ["with another token to come", { claims: [contestant(1, 9), holder(2, 3)] }],
    ["with the lease renewed", { claims: [contestant(1, 4), holder(2, 3, until(LEASE_MS * 2))] }],
    ["with the claims in another order", { claims: [...OVERLAP.claims].reverse() }],
  ])("D2: is recorded once where it is asked for %s", (_, rest) => {
    const scene = atWork(2, HELD_BY_2);
    scene.when(wanted());
    expect(saidOf(scene.when(wanted(rest)))).toEqual(["replay"]);
  });

  it("D2: is recorded once where several stand against it, in whatever order they are given", () => {
    const scene = atWork(3, HELD_BY_2);
    const claims = [contestant(1, 4), holder(2, 3), holder(3, 2)];
    scene.when(wanted({ claims }));
    expect(saidOf(scene.when(wanted({ claims: [...claims].reverse() })))).toEqual(["replay"]);
  });

  it.each<readonly [string, Partial<ResourceContest>]>([
    ["another claim", { claims: [contestant(1, 6), holder(2, 5)] }],
    ["one claim more", { claims: [contestant(1, 6), holder(2, 3), holder(3, 5)] }],
    [
      "a claim of another coordination",
      { claims: [contestant(1, 4), holder(2, 3, { coordinationId: FOREIGN })] },
    ],
    ["another cause", { cause: "stale_base" }],
    ["another strategy", { strategy: "priority_wins" }],
  ])("is recorded anew with %s", (_, rest) => {
    const scene = atWork(2, HELD_BY_2);
    scene.when(wanted());
    expect(saidOf(scene.when(wanted(rest)))).toEqual(["conflict.detected", "conflict.resolved"]);
  });

  it.each([{ base: "other" }, { current: "other" }])("is recorded anew with %j", (versions) => {
    const scene = atWork(2, HELD_BY_2);
    const asked = asks(NOTES, 4, { base: "a", current: "b", contest: OVERLAP });
    scene.when(request(1, asked));
    expect(saidOf(scene.when(request(1, asked)))).toEqual(["replay"]);
    expect(saidOf(scene.when(request(1, { ...asked, ...versions })))).toContain("conflict.resolved");
  });

  it("D2: is recorded once where the step of the same name in another coordination has won", () => {
    const scene = atWork(1);
    const claims = [contestant(1, 4), holder(1, 3, { coordinationId: FOREIGN })];
    scene.when(wanted({ claims }));
    expect(saidOf(scene.when(wanted({ claims })))).toEqual(["replay"]);
  });

  it("is recorded for another step, too", () => {
    const scene = atWork(3, HELD_BY_2);
    scene.when(wanted());
    const other = asks(NOTES, 4, { contest: contest([contestant(3, 4), holder(2, 3)]) });
    expect(saidOf(scene.when(request(3, other)))).toEqual(["conflict.detected", "conflict.resolved"]);
  });

  it("keeps everything else of the request from being claimed, and only it is recorded", () => {
    const scene = atWork(2, HELD_BY_2);
    const won = contest([contestant(1, 5, { declared: true }), holder(2, 3)]);
    const both = [
      asks(REPORT, 5, { contest: won }),
      asks("queue:q", 6),
      asks(NOTES, 4, { contest: OVERLAP }),
    ];
    expect(saidOf(scene.when(request(1, ...both)))).toEqual(["conflict.detected", "conflict.resolved"]);
    expect(payloadsOf(scene.log, "conflict.detected").map(({ resource }) => resource)).toEqual([NOTES]);
    expect(tokensOf(scene)).toEqual([3]);
  });

  it("by a stale base has the one that changed it as its winner", () => {
    const scene = atWork(2);
    const claims = [contestant(1, 4), contestant(2, 3, { changedAtMs: at(0) })];
    scene.when(wanted({ cause: "stale_base", claims }));
    expect(payloadsOf(scene.log, "conflict.resolved")[0]).toMatchObject({
      winner: "step-2",
      because: "changed-since",
    });
  });
});
