import { describe, expect, it } from "vitest";
import type { Command, ResourceContest } from "../../src/agents/coordination/contracts/commands.ts";
import { OWNER_STEP_ID } from "../../src/agents/coordination/contracts/ids.ts";
import {
  createAsk,
  openAtWork,
  change,
  nameConflict,
  createContest,
  createContestant,
  FOREIGN,
  createHolder,
  LEASE_MS,
  NOTES,
  openOf,
  payloadsOf,
  release,
  REPORT,
  request,
  describeDecision,
  tokensOf,
} from "./claims-scene.ts";
import { timeAt, complete, fail, SETTLE, spawn, timeOut, type Scene } from "./scene.ts";

const createExpiry = (ms: number) => ({ expiresAtMs: timeAt(ms) });
/** Step 2 holds the notes with token 3, and step 1 wants them. */
const OVERLAP = createContest([createContestant(1, 4), createHolder(2, 3)]);
const HELD_BY_2 = request(2, createAsk(NOTES, 3));
const requestWanted = (rest: Partial<ResourceContest> = {}, token = 4): Command =>
  request(1, createAsk(NOTES, token, { contest: { ...OVERLAP, ...rest } }));
const DECLARED: Partial<ResourceContest> = {
  claims: [createContestant(1, 4, { declared: true }), createHolder(2, 3)],
};

describe("a resource that nobody else wants", () => {
  it("is claimed, with what it was then", () => {
    const scene = openAtWork(1);
    expect(describeDecision(scene.when(request(1, createAsk(NOTES, 7, { current: "sha256:1" }))))).toEqual([
      "claim.acquired",
    ]);
    expect(payloadsOf(scene.log, "claim.acquired")).toEqual([
      {
        stepId: "step-1",
        resource: NOTES,
        token: 7,
        priority: "normal",
        ...createExpiry(LEASE_MS),
        base: "sha256:1",
      },
    ]);
  });

  it("is claimed by the owner's session, while no step is open", () => {
    const scene = openAtWork(1, complete(1));
    expect(describeDecision(scene.when(request(OWNER_STEP_ID, createAsk(NOTES, 1))))).toEqual([
      "claim.acquired",
    ]);
  });

  it("is claimed before the host has confirmed the child", () => {
    const scene = openAtWork(0, spawn("a"));
    expect(describeDecision(scene.when(request(1, createAsk(NOTES, 1))))).toEqual(["claim.acquired"]);
  });

  it("is renewed where the lease then ends later, and only then", () => {
    const scene = openAtWork(1, request(1, createAsk(NOTES, 1, createExpiry(60_000))));
    const renewed = request(1, createAsk(NOTES, 2, { held: 1, ...createExpiry(90_000) }));
    expect(describeDecision(scene.when(renewed))).toEqual(["claim.renewed"]);
    expect(describeDecision(scene.when(renewed))).toEqual(["replay"]);
    expect(
      describeDecision(scene.when(request(1, createAsk(NOTES, 2, { held: 1, ...createExpiry(80_000) })))),
    ).toEqual(["replay"]);
    expect(openOf(scene).claims.get(1)).toMatchObject({
      ...createExpiry(90_000),
      acquiredAtMs: timeAt(3_000),
    });
  });

  it("below a folder that the step holds renews that claim once, however many files there are", () => {
    const scene = openAtWork(1, request(1, createAsk("file:/repo", 1, createExpiry(60_000))));
    const files = [NOTES, REPORT].map((file) => createAsk(file, 1, { held: 1, ...createExpiry(90_000) }));
    expect(describeDecision(scene.when(request(1, ...files)))).toEqual(["claim.renewed"]);
  });

  it("is claimed anew where the step's own claim has expired", () => {
    const scene = openAtWork(1, request(1, createAsk(NOTES, 1, createExpiry(10_000))));
    expect(describeDecision(scene.when(request(1, createAsk(NOTES, 2)), 10_000))).toEqual([
      "claim.released",
      "claim.acquired",
    ]);
    expect(payloadsOf(scene.log, "claim.released")).toEqual([
      { stepId: "step-1", token: 1, because: "expired" },
    ]);
    expect(tokensOf(scene)).toEqual([2]);
  });

  it("named twice in one request is claimed once, also where an own claim has expired", () => {
    const scene = openAtWork(1, request(1, createAsk(NOTES, 1, createExpiry(10_000))));
    const twice = request(1, createAsk(NOTES, 2), createAsk(NOTES, 3));
    expect(describeDecision(scene.when(twice, 20_000))).toEqual(["claim.released", "claim.acquired"]);
    expect(tokensOf(scene)).toEqual([2]);
  });
});

describe("A2: a claim that has ended", () => {
  const again = request(1, createAsk(NOTES, 9, { held: 1, ...createExpiry(900_000) }));
  const cases: readonly (readonly [string, Scene, number])[] = [
    ["expired", openAtWork(1, request(1, createAsk(NOTES, 1, createExpiry(60_000)))), 60_000],
    ["was released", openAtWork(1, request(1, createAsk(NOTES, 1)), release()), 10_000],
    [
      "was preempted",
      openAtWork(
        2,
        request(1, createAsk(NOTES, 1)),
        request(
          2,
          createAsk(NOTES, 2, {
            contest: createContest([createContestant(2, 2, { declared: true }), createHolder(1, 1)]),
          }),
        ),
      ),
      10_000,
    ],
    ["is another step's", openAtWork(2, request(2, createAsk(NOTES, 1))), 10_000],
    ["never was", openAtWork(1), 10_000],
  ];

  it.each(cases)("because it %s does not carry a write", (_, scene, ms) => {
    const before = scene.state;
    expect(describeDecision(scene.when(again, ms))).toEqual(["STALE_TOKEN"]);
    expect(scene.state).toBe(before);
  });

  it("carries a write until the very millisecond of its end", () => {
    const scene = openAtWork(1, request(1, createAsk(NOTES, 1, createExpiry(60_000))));
    expect(describeDecision(scene.when(again, 59_999))).toEqual(["claim.renewed"]);
  });

  it("keeps the other resources of the request from being claimed", () => {
    const scene = openAtWork(1, request(1, createAsk(NOTES, 1, createExpiry(60_000))));
    const both = request(1, createAsk(REPORT, 2), createAsk(NOTES, 3, { held: 1 }));
    expect(describeDecision(scene.when(both, 60_000))).toEqual(["STALE_TOKEN"]);
  });
});

describe("a step that is not at work", () => {
  it.each([
    ["completed", complete(1)],
    ["failed", fail(1)],
    ["timed out", timeOut(1)],
  ] as const)("because it %s claims nothing", (_, end) => {
    expect(describeDecision(openAtWork(1, end).when(request(1, createAsk(NOTES, 1))))).toEqual([
      "STEP_ENDED",
    ]);
  });

  it("because there is none claims nothing", () => {
    expect(describeDecision(openAtWork(1).when(request(2, createAsk(NOTES, 1))))).toEqual(["STEP_ENDED"]);
  });

  it.each<readonly [string, Command]>([
    ["request", request(1, createAsk(NOTES, 1))],
    ["release", release()],
    ["change", change(1, "sha256:1")],
    ["answer", { type: "settleReview", conflictId: nameConflict(1), answer: "approved" }],
  ])("because all has ended is refused its %s", (_, command) => {
    expect(describeDecision(openAtWork(1, complete(1), SETTLE).when(command))).toEqual([
      "COORDINATION_ENDED",
    ]);
  });
});

describe("a contested resource that is granted", () => {
  it("has its ruling recorded first, then the loser's claim ends, then the winner's begins", () => {
    const scene = openAtWork(2, HELD_BY_2);
    expect(describeDecision(scene.when(requestWanted(DECLARED)))).toEqual([
      ...["conflict.detected", "conflict.resolved", "claim.released", "claim.acquired"],
    ]);
    expect(payloadsOf(scene.log, "conflict.resolved")).toEqual([
      {
        conflictId: nameConflict(1),
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
    const scene = openAtWork(2, HELD_BY_2);
    const foreign = createHolder(2, 3, { coordinationId: FOREIGN });
    const mine = createContestant(1, 4, { declared: true });
    expect(describeDecision(scene.when(requestWanted({ claims: [mine, foreign] })))).not.toContain(
      "claim.released",
    );
    expect(tokensOf(scene)).toEqual([3, 4]);
  });

  it("leaves those as they are that it is merged with", () => {
    const scene = openAtWork(2, HELD_BY_2);
    const merge = { kind: "clean" as const, base: "a", current: "b", merged: "c" };
    expect(describeDecision(scene.when(requestWanted({ strategy: "merge_if_safe", merge })))).toEqual([
      ...["conflict.detected", "conflict.resolved", "claim.acquired"],
    ]);
    expect(tokensOf(scene)).toEqual([3, 4]);
    expect(payloadsOf(scene.log, "conflict.detected")[0]?.contest?.merge).toEqual(merge);
  });

  it("renews the winner's own claim and does not take it for a loser's", () => {
    const scene = openAtWork(2, request(1, createAsk("file:/repo", 1)), HELD_BY_2);
    const claims = [createHolder(1, 1), createHolder(2, 3)];
    const renewed = createAsk("file:/repo", 4, {
      held: 1,
      ...createExpiry(LEASE_MS + 1),
      contest: createContest(claims),
    });
    expect(describeDecision(scene.when(request(1, renewed)))).toEqual([
      ...["conflict.detected", "conflict.resolved", "claim.released", "claim.renewed"],
    ]);
    expect(tokensOf(scene)).toEqual([1]);
  });

  it("ends all claims of the loser that overlap, and no other one", () => {
    const heldRequests = [createAsk("file:/repo", 1), createAsk(NOTES, 2), createAsk(REPORT, 3)];
    const scene = openAtWork(
      3,
      request(2, ...heldRequests),
      request(3, createAsk("file:/repo/notes.md/x", 4)),
    );
    const claims = [createContestant(1, 5, { declared: true }), createHolder(2, 1)];
    scene.when(request(1, createAsk(NOTES, 5, { contest: createContest(claims) })));
    expect(tokensOf(scene)).toEqual([3, 4, 5]);
  });

  it("ends a loser's claim once where it stands against several resources", () => {
    const scene = openAtWork(2, request(2, createAsk("file:/repo", 3)));
    const { claims } = DECLARED;
    const both = [createAsk(NOTES, 4, { contest: { ...OVERLAP, claims: claims ?? [] } })];
    both.push(createAsk(REPORT, 5, { contest: { ...OVERLAP, claims: claims ?? [] } }));
    expect(describeDecision(scene.when(request(1, ...both)))).toEqual([
      ...["conflict.detected", "conflict.resolved", "conflict.detected", "conflict.resolved"],
      ...["claim.released", "claim.acquired", "claim.acquired"],
    ]);
  });
});

describe("a contested resource that is refused", () => {
  it("has the ruling recorded with all that it follows from, and claims nothing", () => {
    const scene = openAtWork(2, HELD_BY_2);
    const resourceRequest = createAsk(NOTES, 4, {
      base: "a",
      current: "b",
      contest: { ...OVERLAP, from: "plan" },
    });
    expect(describeDecision(scene.when(request(1, resourceRequest), 9_000))).toEqual([
      "conflict.detected",
      "conflict.resolved",
    ]);
    expect(payloadsOf(scene.log, "conflict.detected")).toEqual([
      {
        conflictId: nameConflict(1),
        resource: NOTES,
        claims: OVERLAP.claims,
        contest: {
          requester: "step-1",
          cause: "overlap",
          strategy: "owner_wins",
          from: "plan",
          atMs: timeAt(9_000),
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
    ["with another token to come", { claims: [createContestant(1, 9), createHolder(2, 3)] }],
    [
      "with the lease renewed",
      { claims: [createContestant(1, 4), createHolder(2, 3, createExpiry(LEASE_MS * 2))] },
    ],
    ["with the claims in another order", { claims: [...OVERLAP.claims].reverse() }],
  ])("D2: is recorded once where it is asked for %s", (_, rest) => {
    const scene = openAtWork(2, HELD_BY_2);
    scene.when(requestWanted());
    expect(describeDecision(scene.when(requestWanted(rest)))).toEqual(["replay"]);
  });

  it("D2: is recorded once where several stand against it, in whatever order they are given", () => {
    const scene = openAtWork(3, HELD_BY_2);
    const claims = [createContestant(1, 4), createHolder(2, 3), createHolder(3, 2)];
    scene.when(requestWanted({ claims }));
    expect(describeDecision(scene.when(requestWanted({ claims: [...claims].reverse() })))).toEqual([
      "replay",
    ]);
  });

  it.each<readonly [string, Partial<ResourceContest>]>([
    ["another claim", { claims: [createContestant(1, 6), createHolder(2, 5)] }],
    ["one claim more", { claims: [createContestant(1, 6), createHolder(2, 3), createHolder(3, 5)] }],
    [
      "a claim of another coordination",
      { claims: [createContestant(1, 4), createHolder(2, 3, { coordinationId: FOREIGN })] },
    ],
    ["another cause", { cause: "stale_base" }],
    ["another strategy", { strategy: "priority_wins" }],
  ])("is recorded anew with %s", (_, rest) => {
    const scene = openAtWork(2, HELD_BY_2);
    scene.when(requestWanted());
    expect(describeDecision(scene.when(requestWanted(rest)))).toEqual([
      "conflict.detected",
      "conflict.resolved",
    ]);
  });

  it.each([{ base: "other" }, { current: "other" }])("is recorded anew with %j", (versions) => {
    const scene = openAtWork(2, HELD_BY_2);
    const resourceRequest = createAsk(NOTES, 4, { base: "a", current: "b", contest: OVERLAP });
    scene.when(request(1, resourceRequest));
    expect(describeDecision(scene.when(request(1, resourceRequest)))).toEqual(["replay"]);
    expect(describeDecision(scene.when(request(1, { ...resourceRequest, ...versions })))).toContain(
      "conflict.resolved",
    );
  });

  it("D2: is recorded once where the step of the same name in another coordination has won", () => {
    const scene = openAtWork(1);
    const claims = [createContestant(1, 4), createHolder(1, 3, { coordinationId: FOREIGN })];
    scene.when(requestWanted({ claims }));
    expect(describeDecision(scene.when(requestWanted({ claims })))).toEqual(["replay"]);
  });

  it("is recorded for another step, too", () => {
    const scene = openAtWork(3, HELD_BY_2);
    scene.when(requestWanted());
    const other = createAsk(NOTES, 4, {
      contest: createContest([createContestant(3, 4), createHolder(2, 3)]),
    });
    expect(describeDecision(scene.when(request(3, other)))).toEqual([
      "conflict.detected",
      "conflict.resolved",
    ]);
  });

  it("keeps everything else of the request from being claimed, and only it is recorded", () => {
    const scene = openAtWork(2, HELD_BY_2);
    const won = createContest([createContestant(1, 5, { declared: true }), createHolder(2, 3)]);
    const both = [
      createAsk(REPORT, 5, { contest: won }),
      createAsk("queue:q", 6),
      createAsk(NOTES, 4, { contest: OVERLAP }),
    ];
    expect(describeDecision(scene.when(request(1, ...both)))).toEqual([
      "conflict.detected",
      "conflict.resolved",
    ]);
    expect(payloadsOf(scene.log, "conflict.detected").map(({ resource }) => resource)).toEqual([NOTES]);
    expect(tokensOf(scene)).toEqual([3]);
  });

  it("by a stale base has the one that changed it as its winner", () => {
    const scene = openAtWork(2);
    const claims = [createContestant(1, 4), createContestant(2, 3, { changedAtMs: timeAt(0) })];
    scene.when(requestWanted({ cause: "stale_base", claims }));
    expect(payloadsOf(scene.log, "conflict.resolved")[0]).toMatchObject({
      winner: "step-2",
      because: "changed-since",
    });
  });
});
