/** Plans of subagents whose words are held: they end with a spawn that is cancelled or rejected, and go on with one that completes. */
import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { createWorld, type World } from "../support/fake-clock-host.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { createScriptedRunner } from "../support/scripted-runner.ts";
import {
  createGatesWith,
  createRuling,
  createScriptedVerifier,
  listEvents,
  spawnChild,
  waitForever,
  waitUntilQuiet,
  type Answers,
} from "./gates-world.ts";
import { AGENT, plan, scriptOf, step } from "./planned-world.ts";

const SPAWN = { coordinationId: "co-1" as CoordinationId, stepId: "step-1" as StepId };
const NESTED = "nested" as CoordinationId;

interface HeldSpawn {
  readonly world: World;
  readonly coordinator: Coordinator;
}

/** A spawn whose child submitted a plan with the step `n`, which works on, and whose last words are checked. */
async function holdSpawn(answers: Answers, wrap?: (store: MemoryStore) => MemoryStore): Promise<HeldSpawn> {
  const world = createWorld({}, createScriptedRunner(scriptOf({ n: ["work"] })), {
    gates: createGatesWith(["lint"]),
    ...createScriptedVerifier(answers),
  });
  const coordinator = world.start(wrap);
  await coordinator.start();
  const child = await spawnChild(world, coordinator);
  const submitted = await coordinator.submitPlan({
    plan: plan([step("n", { timeoutMs: 36_000_000 })], {
      coordinationId: NESTED,
      ownerSession: child.session,
    }),
    submittedBy: child.session,
    ownerAgent: AGENT,
  });
  expect(submitted).toMatchObject({ kind: "accepted" });
  await child.says("done");
  await child.ends();
  await waitUntilQuiet(world);
  expect(listEvents(world, "result.held").map(({ runId }) => runId)).toEqual(["co-1"]);
  return { world, coordinator };
}

const listCancelRequests = (world: World) =>
  listEvents(world, "coordination.cancel_requested")
    .filter(({ runId }) => runId === NESTED)
    .map(({ payload }) => payload.by);

describe("the plan of a subagent whose result is held", () => {
  it.each([{ coordinationId: SPAWN.coordinationId }, SPAWN])(
    "is cancelled when people cancel %j",
    async (cancelled) => {
      const { world, coordinator } = await holdSpawn(waitForever);
      expect(world.plans.cancelled).toEqual([]);
      await coordinator.cancel({ ...cancelled, by: "operator" });
      await waitUntilQuiet(world);
      expect(listCancelRequests(world)).toEqual(["parent"]);
      expect(world.plans.cancelled).toContain("nested:n:1");
      await coordinator.stop();
    },
  );

  it("is cancelled when a check fails", async () => {
    const ruling = Promise.withResolvers<ReturnType<typeof createRuling>>();
    const { world, coordinator } = await holdSpawn(() => ruling.promise);
    ruling.resolve(createRuling("fail"));
    await waitUntilQuiet(world);
    expect(listCancelRequests(world)).toEqual(["parent"]);
    await coordinator.stop();
  });

  it("is cancelled when people deny", async () => {
    const { world, coordinator } = await holdSpawn(() => ({
      kind: "none",
      because: "unavailable",
      message: "the linter is not there",
    }));
    const [question] = listEvents(world, "coordination.escalated");
    await coordinator.answer({
      questionId: `${SPAWN.coordinationId}:${question?.payload.escalationId}`,
      answer: "deny",
      by: { kind: "operator" },
      through: "cli",
    });
    await waitUntilQuiet(world);
    expect(listCancelRequests(world)).toEqual(["parent"]);
    await coordinator.stop();
  });

  it("goes on when a check passes", async () => {
    const ruling = Promise.withResolvers<ReturnType<typeof createRuling>>();
    const { world, coordinator } = await holdSpawn(() => ruling.promise);
    ruling.resolve(createRuling("pass"));
    await waitUntilQuiet(world);
    expect(listEvents(world, "step.completed").map(({ runId }) => runId)).toEqual(["co-1"]);
    await world.clock.advance(world.settings.sweepMs * 2);
    expect(listCancelRequests(world)).toEqual([]);
    await coordinator.stop();
  });

  it("is cancelled by the next process where this one came to nothing", async () => {
    let isBroken = false;
    const { world, coordinator } = await holdSpawn(waitForever, (store) => ({
      ...store,
      append: (request) =>
        isBroken && request.runId === NESTED
          ? Promise.reject(new CoordinationError("LEDGER_UNAVAILABLE", "the disk is away"))
          : store.append(request),
    }));
    isBroken = true;
    await coordinator.cancel({ coordinationId: SPAWN.coordinationId, by: "operator" });
    await waitUntilQuiet(world);
    await coordinator.stop();
    expect(listCancelRequests(world)).toEqual([]);
    const next = world.start();
    await next.start();
    await waitUntilQuiet(world);
    expect(listCancelRequests(world)).toEqual(["parent"]);
    await next.stop();
  });
});
