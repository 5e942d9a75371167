/** Leases and tokens against a simple model, under clocks that jump over their ends. `ARBITER_RUNS` sets how many plays. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PRIORITIES } from "../../src/agents/coordination/contracts/envelope.ts";
import type { WriteAnswer } from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { listActiveClaims, PATHS, request, SLOTS, type Model, type Slot } from "./arbiter-model.ts";
import { write, type ToolCall } from "./arbiter-calls.ts";
import { openScene, type Fields, type Scene } from "./arbiter-scene.ts";

const RUNS = Number(process.env["ARBITER_RUNS"] ?? 60);
const GENERATIONS = 6;

type Strategy = "owner_wins" | "priority_wins";

type Action =
  /** `isLeft`: the call is under way until `end`. */
  | { readonly kind: "request"; readonly slot: Slot; readonly path: string; readonly isLeft: boolean }
  | { readonly kind: "end"; readonly which: number }
  | { readonly kind: "next"; readonly slot: Slot }
  | { readonly kind: "pass"; readonly ms: number; readonly asleep: boolean }
  | { readonly kind: "release"; readonly which: number };

const actions: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("request" as const),
      slot: fc.constantFrom(...SLOTS),
      path: fc.constantFrom(...PATHS),
      isLeft: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("end" as const), which: fc.nat(9) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("next" as const), slot: fc.constantFrom(...SLOTS) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("pass" as const),
      ms: fc.constantFrom(1, 29_000, 31_000, 59_999, 60_000, 90_000, 1_000_000),
      asleep: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("release" as const), which: fc.nat(9) }) },
);

interface Play {
  readonly s: Scene;
  readonly model: Model;
  readonly strategy: Strategy;
  readonly left: { readonly call: ToolCall; readonly slot: Slot }[];
  readonly generation: Record<Slot, number>;
}

const stepOf = (slot: Slot, generation: number): string => `${slot}-${generation}`;

async function begin(strategy: Strategy): Promise<Play> {
  const s = await openScene({
    conflicts: { strategy },
    settings: { stepTimeoutMs: 100 * 3_600_000, sweepMs: 3_600_000 },
  });
  const steps = SLOTS.flatMap((slot) =>
    Array.from({ length: GENERATIONS }, (_, index): Fields => ({
      stepId: stepOf(slot, index),
      priority: slot,
      ...(index > 0 && { dependsOn: [stepOf(slot, index - 1)] }),
    })),
  );
  await s.plan(steps);
  const generation = { low: 0, normal: 0, high: 0 };
  return { s, strategy, model: { claims: [], lastToken: 0 }, left: [], generation };
}

async function act(play: Play, action: Action): Promise<void> {
  const { s, model, left } = play;
  switch (action.kind) {
    case "request":
      return ask(play, action);
    case "end": {
      const [ended] = left.splice(action.which % Math.max(left.length, 1), 1);
      if (ended) await s.coordinator.arbiter.callEnded(ended.call.callKey);
      return;
    }
    case "next":
      return startNextGeneration(play, action.slot);
    case "pass":
      if (action.asleep) s.clock.jump(s.clock.now() + action.ms);
      else await s.clock.advance(action.ms);
      return;
    case "release": {
      const claim = model.claims[action.which];
      if (!claim) return;
      await s.coordinator.arbiter.release(claim.token);
      model.claims = model.claims.filter((other) => other !== claim);
    }
  }
}

async function ask(play: Play, { slot, path, isLeft }: Action & { kind: "request" }): Promise<void> {
  const { s, model, strategy, left } = play;
  const call = write(s, s.sessionOf(stepOf(slot, play.generation[slot])), { [path]: "x" });
  const wouldBe: Model = { claims: model.claims.map((claim) => ({ ...claim })), lastToken: model.lastToken };
  const verdict = request(wouldBe, strategy, { slot, path, now: s.clock.now() });
  const mayWait = left.some((other) => other.slot !== slot);
  const asking = s.ask(call);
  const answer = mayWait ? await withTime(s, asking) : await asking;
  // Somebody is writing it still: nothing is claimed.
  if (answer.kind === "refused" && answer.sentence.includes("is being changed just now")) {
    expect(mayWait).toBe(true);
    return;
  }
  expect(answer.kind, JSON.stringify([slot, path, model])).toBe(verdict);
  Object.assign(model, wouldBe);
  if (answer.kind !== "granted") return;
  if (isLeft) left.push({ call, slot });
  else await s.coordinator.arbiter.callEnded(call.callKey);
}

async function withTime(s: Scene, asking: Promise<WriteAnswer>): Promise<WriteAnswer> {
  const first = await Promise.race([asking, waitUntilSettled()]);
  // The lease that is waited for does not end meanwhile.
  if (first === undefined) await s.clock.advance(2_000);
  return asking;
}

async function startNextGeneration(play: Play, slot: Slot): Promise<void> {
  const { s, model, left, generation } = play;
  if (generation[slot] >= GENERATIONS - 1) return;
  await end(s, stepOf(slot, generation[slot]));
  generation[slot] += 1;
  model.claims = model.claims.filter((claim) => claim.slot !== slot);
  for (const call of left.filter((other) => other.slot === slot)) left.splice(left.indexOf(call), 1);
}

async function end(s: Scene, stepId: string): Promise<void> {
  s.plans.end(stepId, { outcome: "completed", reply: "{}" });
  for (let turn = 0; turn < 6; turn += 1) await waitUntilSettled();
  await s.clock.advance(100);
}

async function check({ s, model }: Play): Promise<void> {
  const now = s.clock.now();
  const stored = (await s.store.claims({ after: 0, limit: 1_000 })).filter(
    (claim) => claim.expiresAtMs > now,
  );
  const shown = stored.map(({ token, resource, stepId, expiresAtMs }) => [
    token,
    resource,
    stepId.split("-")[0],
    expiresAtMs,
  ]);
  const message = listActiveClaims(model, now).map(({ token, path, slot, expiresAtMs }) => [
    token,
    s.resource(path),
    slot,
    expiresAtMs,
  ]);
  expect(shown).toEqual(message);
  // Everything is in everything else here: all that counts is of one step.
  expect(new Set(stored.map(({ stepId }) => stepId)).size).toBeLessThanOrEqual(1);
}

async function finish({ s, generation }: Play): Promise<void> {
  for (const slot of SLOTS)
    for (let index = generation[slot]; index < GENERATIONS; index += 1) await end(s, stepOf(slot, index));
  expect(await s.store.claims({ after: 0, limit: 1_000 })).toEqual([]);
  const tokens = s.events("claim.acquired").map(({ token }) => token);
  expect(tokens).toEqual(tokens.map((_, index) => index + 1));
  const detected = s.events("conflict.detected").map(({ conflictId }) => conflictId);
  const resolved = s.events("conflict.resolved").map(({ conflictId }) => conflictId);
  expect(resolved.toSorted()).toEqual(detected.toSorted());
  expect(new Set(detected).size).toBe(detected.length);
}

describe("leases and tokens", () => {
  it("of the model know every priority of the plan", () => {
    for (const slot of SLOTS) expect(PRIORITIES).toContain(slot);
  });

  it.each(["owner_wins", "priority_wins"] as const)("are as the model says (%s)", async (strategy) => {
    await fc.assert(
      fc.asyncProperty(fc.array(actions, { minLength: 10, maxLength: 40 }), async (script) => {
        const play = await begin(strategy);
        await using _ = play.s;
        for (const action of script) {
          await act(play, action);
          await check(play);
        }
        await finish(play);
      }),
      { numRuns: RUNS },
    );
  });
});
