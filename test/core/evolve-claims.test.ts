import { describe, expect, it } from "vitest";
import type { Contestant } from "../../src/agents/coordination/contracts/arbitration.ts";
import type { ClaimChange } from "../../src/agents/coordination/contracts/claim-entry.ts";
import { OWNER_STEP_ID } from "../../src/agents/coordination/contracts/ids.ts";
import { isClaimCovering, isFileResource } from "../../src/agents/coordination/contracts/resource-names.ts";
import { isFact, type FactDraft } from "../../src/agents/coordination/contracts/run-event.ts";
import { listClaimChanges } from "../../src/agents/coordination/ledger/claim-changes.ts";
import { formatHoldingKey } from "../../src/agents/coordination/ledger/state.ts";
import { CONFLICTS_NAME } from "../../src/agents/coordination/contracts/coordination-summary.ts";
import { nameChangeReference, listEventReferences } from "../../src/agents/coordination/ledger/summary.ts";
import {
  createAsk,
  openAtWork,
  change,
  nameConflict,
  createContest,
  createContestant,
  createHolder,
  NOTES,
  openOf,
  REPORT,
  request,
} from "./claims-scene.ts";
import { timeAt, stepId, type Scene } from "./scene.ts";

const createAcquired = (step: number, token: number, resource = NOTES): FactDraft => ({
  type: "claim.acquired",
  payload: { stepId: stepId(step), resource, token, priority: "normal", expiresAtMs: timeAt(60_000) },
});
const createRenewed = (step: number, token: number, expiresAtMs = timeAt(90_000)): FactDraft => ({
  type: "claim.renewed",
  payload: { stepId: stepId(step), token, expiresAtMs },
});
const createReleased = (step: number, token: number): FactDraft => ({
  type: "claim.released",
  payload: { stepId: stepId(step), token, because: "operator" },
});
const SIDES: Contestant[] = [createContestant(1, 4), createHolder(2, 3)];
const createDetected = (number = 1): FactDraft => ({
  type: "conflict.detected",
  payload: { conflictId: nameConflict(number), resource: NOTES, claims: SIDES },
});
const createResolved = (number = 1): FactDraft => ({
  type: "conflict.resolved",
  payload: { conflictId: nameConflict(number), strategy: "owner_wins", losers: [stepId(1)], because: "x" },
});
const listHoldings = (scene: Scene): unknown => openOf(scene).holdings.toJS();

describe("the claims of a coordination", () => {
  it("are kept by their tokens, with what the step holds of each resource", () => {
    const scene = openAtWork(2);
    scene.happened([createAcquired(1, 3), createAcquired(2, 5), createAcquired(1, 8, REPORT)], 10_000);
    expect(openOf(scene).claims.keySeq().toArray()).toEqual([3, 5, 8]);
    expect(openOf(scene).claims.get(3)).toMatchObject({
      acquiredAtMs: timeAt(10_000),
      expiresAtMs: timeAt(60_000),
    });
    expect(listHoldings(scene)).toEqual({
      [formatHoldingKey(stepId(1), NOTES)]: 3,
      [formatHoldingKey(stepId(2), NOTES)]: 5,
      [formatHoldingKey(stepId(1), REPORT)]: 8,
    });
  });

  it("keep their place and their time when they are renewed", () => {
    const scene = openAtWork(2);
    scene.happened([createAcquired(1, 3), createAcquired(2, 5)], 10_000);
    scene.happened([createRenewed(1, 3)], 20_000);
    expect(openOf(scene).claims.keySeq().toArray()).toEqual([3, 5]);
    expect(openOf(scene).claims.get(3)).toMatchObject({
      acquiredAtMs: timeAt(10_000),
      expiresAtMs: timeAt(90_000),
    });
  });

  it("go when they are released, and only the newest one takes what the step holds with it", () => {
    const scene = openAtWork(1);
    scene.happened([createAcquired(1, 3), createAcquired(1, 4)]);
    scene.happened([createReleased(1, 3)]);
    expect(listHoldings(scene)).toEqual({ [formatHoldingKey(stepId(1), NOTES)]: 4 });
    scene.happened([createReleased(1, 4)]);
    expect(listHoldings(scene)).toEqual({});
    expect(openOf(scene).claims.size).toBe(0);
  });

  it("may be the owner's", () => {
    const scene = openAtWork(0);
    scene.happened([
      {
        ...createAcquired(1, 3),
        payload: { ...createAcquired(1, 3).payload, stepId: OWNER_STEP_ID },
      } as FactDraft,
    ]);
    expect(openOf(scene).claims.get(3)?.stepId).toBe(OWNER_STEP_ID);
  });
});

describe("A2: a log is damaged in which", () => {
  it.each<readonly [string, readonly FactDraft[]]>([
    ["a token comes twice", [createAcquired(1, 3), createAcquired(2, 3)]],
    ["a later claim has a smaller token", [createAcquired(1, 3), createAcquired(2, 2)]],
    [
      "a token comes again after its release",
      [createAcquired(1, 3), createReleased(1, 3), createAcquired(2, 3)],
    ],
    [
      "a later claim has a smaller token than one that was released",
      [createAcquired(1, 3), createReleased(1, 3), createAcquired(2, 2)],
    ],
    ["a claim is renewed that never was", [createRenewed(1, 3)]],
    [
      "a claim is renewed that was released",
      [createAcquired(1, 3), createReleased(1, 3), createRenewed(1, 3)],
    ],
    ["a claim is renewed by another step", [createAcquired(1, 3), createRenewed(2, 3)]],
    ["a claim is released twice", [createAcquired(1, 3), createReleased(1, 3), createReleased(1, 3)]],
    ["a claim is released as another step's", [createAcquired(1, 3), createReleased(2, 3)]],
    ["a step claims that was never admitted", [createAcquired(7, 3)]],
  ])("%s", (_, facts) => {
    const scene = openAtWork(2);
    expect(() => {
      scene.happened(facts);
    }).toThrow(/co-1:\d+$/u);
  });
});

describe("A3: a log is damaged in which", () => {
  it.each<readonly [string, readonly FactDraft[]]>([
    ["a conflict is detected twice", [createDetected(), createDetected()]],
    [
      "a conflict is detected again after its resolution",
      [createDetected(), createResolved(), createDetected()],
    ],
    ["a conflict is resolved twice", [createDetected(), createResolved(), createResolved()]],
    ["a conflict is resolved that never was", [createDetected(), createResolved(2)]],
  ])("%s", (_, facts) => {
    const scene = openAtWork(2);
    expect(() => {
      scene.happened(facts);
    }).toThrow(/A3/u);
  });
});

describe("conflicts", () => {
  it("of a ledger of 0.1.0, without a contest, fold as they did", () => {
    const scene = openAtWork(2);
    scene.happened([createDetected(), createDetected(2), createResolved(2)]);
    expect(
      openOf(scene).conflicts.map(({ conflictId: id, resolution }) => [id, resolution?.because]),
    ).toEqual([
      [nameConflict(1), undefined],
      [nameConflict(2), "x"],
    ]);
    expect(openOf(scene).reviews.size).toBe(0);
  });

  it("know the event that detected them, which is the cause of their resolution", () => {
    const scene = openAtWork(2);
    scene.happened([createDetected(), createDetected(2), createResolved()]);
    const [first] = openOf(scene).conflicts;
    expect(scene.log.findLast(isFact)?.causationId).toBe(first?.detectedEventId);
    expect(scene.log.find(({ type }) => type === "conflict.detected")?.eventId).toBe(first?.detectedEventId);
  });
});

describe("changes", () => {
  it("are kept by resource: the newest one, and the newest of another step before it", () => {
    const scene = openAtWork(2);
    scene.when(change(1, "a"), 10_000);
    scene.when(change(2, "b", { token: 7 }), 20_000);
    scene.when(change(1, "c", { resource: REPORT }), 30_000);
    expect(openOf(scene).changes.toJS()).toEqual({
      [NOTES]: {
        stepId: "step-2",
        version: "b",
        token: 7,
        atMs: timeAt(20_000),
        other: { stepId: "step-1", version: "a", token: 1, atMs: timeAt(10_000) },
      },
      [REPORT]: { stepId: "step-1", version: "c", token: 1, atMs: timeAt(30_000) },
    });
  });

  it("of one step in a row keep the newest of another step before them", () => {
    const scene = openAtWork(2);
    scene.when(change(1, "a"), 10_000);
    scene.when(change(2, "b"), 20_000);
    scene.when(change(2, "c"), 30_000);
    expect(openOf(scene).changes.get(NOTES)).toMatchObject({
      version: "c",
      other: { stepId: stepId(1), version: "a" },
    });
  });

  it("without a claim have no token", () => {
    const scene = openAtWork(1);
    const payload = { stepId: stepId(1), resource: NOTES, version: "a", tool: "exec" };
    scene.happened([{ type: "resource.changed", payload }], 10_000);
    expect(openOf(scene).changes.get(NOTES)).toStrictEqual({
      stepId: stepId(1),
      version: "a",
      atMs: timeAt(10_000),
    });
  });

  it("that cannot be told change nothing of the state but what every event does", () => {
    const scene = openAtWork(1, request(1, createAsk(NOTES, 1)));
    const { claims, changes, conflicts, steps } = openOf(scene);
    const unknown = { stepId: stepId(1), tool: "exec", because: "unreadable", action: "denied" } as const;
    scene.happened([{ type: "write.undetermined", payload: unknown }]);
    const after = openOf(scene);
    expect([after.claims, after.changes, after.conflicts, after.steps]).toEqual([
      claims,
      changes,
      conflicts,
      steps,
    ]);
  });
});

describe("what is kept beside the log", () => {
  const scene = openAtWork(2, request(1, createAsk(NOTES, 3, { expiresAtMs: timeAt(60_000) })));
  scene.when(request(1, createAsk(NOTES, 4, { held: 3, expiresAtMs: timeAt(90_000) })));
  scene.when(change(1, "a", { token: 3 }));
  scene.when(
    request(2, createAsk(NOTES, 4, { contest: createContest([createContestant(2, 4), createHolder(1, 3)]) })),
  );
  scene.when({ type: "releaseClaims", because: "operator" });

  it("of claims follows from their events alone", () => {
    const changes: ClaimChange[] = scene.log.flatMap(listClaimChanges);
    expect(changes).toEqual([
      {
        kind: "acquired",
        token: 3,
        resource: NOTES,
        stepId: "step-1",
        priority: "normal",
        acquiredAtMs: timeAt(5_000),
        expiresAtMs: timeAt(60_000),
      },
      { kind: "renewed", token: 3, expiresAtMs: timeAt(90_000) },
      { kind: "released", token: 3 },
    ]);
  });

  it("names who changed a resource last, and that there were conflicts", () => {
    const names = scene.log
      .flatMap(listEventReferences)
      .filter(({ name }) => !/^(?:trace|child):/u.test(name));
    expect(names).toEqual([
      { name: nameChangeReference(NOTES), stepId: "step-1" },
      { name: CONFLICTS_NAME, stepId: "step-2" },
    ]);
  });

  it("names no conflict of a ledger of 0.1.0", () => {
    const old = openAtWork(2);
    old.happened([createDetected()]);
    expect(old.log.flatMap(listEventReferences).map(({ name }) => name)).not.toContain(CONFLICTS_NAME);
  });
});

describe("the causes of these facts", () => {
  it("are the step's own course, or the opening where it is the owner's", () => {
    const scene = openAtWork(
      1,
      request(1, createAsk(NOTES, 1)),
      request(OWNER_STEP_ID, createAsk(REPORT, 2)),
      change(1, "a"),
    );
    const started = scene.log.find(({ type }) => type === "step.acknowledged")?.eventId;
    const causes = scene.log
      .filter(({ type }) => type === "claim.acquired" || type === "resource.changed")
      .map(({ causationId }) => causationId);
    expect(causes).toEqual([started, "co-1:0", started]);
  });

  it("of an end is the fact before it", () => {
    const scene = openAtWork(1, request(1, createAsk(NOTES, 1), createAsk(REPORT, 2)));
    scene.when({ type: "releaseClaims", because: "operator" });
    const [first, second] = scene.log.slice(-2);
    expect(first?.causationId).toBe(scene.log.at(-3)?.eventId);
    expect(second?.causationId).toBe(first?.eventId);
  });

  it("the node of an event is its step", () => {
    const scene = openAtWork(
      1,
      request(1, createAsk(NOTES, 1)),
      request(OWNER_STEP_ID, createAsk(REPORT, 2)),
    );
    expect(scene.log.slice(-2).map(({ nodeId }) => nodeId)).toEqual(["step-1", OWNER_STEP_ID]);
  });
});

describe("a claim on one resource", () => {
  it.each([
    ["file:/repo", "file:/repo/notes.md"],
    ["file:/repo", "file:/repo/deep/er/notes.md"],
    ["file:/repo", "file:/repo"],
    ["file:/", "file:/repo"],
    ["queue:build", "queue:build"],
  ])("%s holds for %s", (pattern, resource) => {
    expect(isClaimCovering(pattern, resource)).toBe(true);
  });

  it.each([
    ["file:/repo", "file:/workshop"],
    ["file:/repo/notes.md", "file:/repo"],
    ["queue:build", "queue:build/fast"],
    ["session:agent:main", "session:agent:main:main"],
    ["file:/repo", "queue:/repo/a"],
  ])("%s does not hold for %s", (pattern, resource) => {
    expect(isClaimCovering(pattern, resource)).toBe(false);
  });

  it("is one on a file by its name", () => {
    expect(["file:/a", "queue:file:/a", "files:/a"].map(isFileResource)).toEqual([true, false, false]);
  });
});
