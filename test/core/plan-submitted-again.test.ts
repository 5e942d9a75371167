/** Owns: that a plan which the ledger has already is the same run when it is submitted again, whatever was changed since. */
import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { GatesConfig } from "../../src/agents/coordination/contracts/config/gates-config.ts";
import type { CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { ContentInput } from "../../src/agents/coordination/ports/content-store.ts";
import type { PlanSubmission } from "../../src/agents/coordination/runtime/plans/plan-requests.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { createWorld, OWNER, type World } from "../support/fake-clock-host.ts";
import { createScriptedRunner, endDone, endFailing } from "../support/scripted-runner.ts";
import { AGENT, plan, PLAN_ID, scriptOf, step, submitTo, type Fields } from "./planned-world.ts";
import { logOver } from "./run-log-scene.ts";

const TESTS: GatesConfig["verifiers"] = { tests: { kind: "pattern", pattern: "^ok" } } as never;
const CHECKED = plan([step("a", { verify: { checks: { tests: true } } })]);

describe("a plan that is submitted again", () => {
  const REPLAY = { kind: "replay", coordinationId: PLAN_ID, steps: 1 };
  /** A plan at work, whose check the operator renames before the gateway is started again. */
  async function renameCheck() {
    const gates: { verifiers: GatesConfig["verifiers"] } = { verifiers: TESTS };
    const options = { gates };
    const run = await submitTo(
      createWorld({}, createScriptedRunner(scriptOf({ a: ["work"] })), options),
      CHECKED,
    );
    await run.restart(() => {
      options.gates = { verifiers: {} };
    });
    return run;
  }
  const submission: PlanSubmission = { plan: CHECKED, ownerAgent: AGENT };

  it("is the same run after the operator renamed a check that it names", async () => {
    const run = await renameCheck();
    expect(await run.coordinator.submitPlan(submission)).toEqual(REPLAY);
    const other = { ...submission, plan: { ...CHECKED, coordinationId: "plan-2" } };
    expect(await run.coordinator.submitPlan(other)).toMatchObject({
      kind: "refused",
      problems: [{ code: "CHECK_UNKNOWN" }],
    });
    await run.coordinator.stop();
  });

  it("is the same run after its session lost the right to use an agent", async () => {
    const run = await renameCheck();
    const again = { ...submission, submittedBy: OWNER, mayRun: () => false };
    expect(await run.coordinator.submitPlan(again)).toEqual(REPLAY);
    await run.coordinator.stop();
  });

  it("H3: is no run that another session may learn of", async () => {
    const run = await renameCheck();
    const again = { ...submission, submittedBy: "agent:other:main" as SessionKey };
    const problems = [{ code: "OWNER_MISMATCH" }, { code: "CHECK_UNKNOWN" }];
    expect(await run.coordinator.submitPlan(again)).toMatchObject({ kind: "refused", problems });
    await run.coordinator.stop();
  });
});

describe("a plan of an older release, under ids that no new plan may have", () => {
  const OLD = "release:eu\nnotes" as CoordinationId;
  const OLD_STEP = "eu:build\n[Coordination]";
  const oldPlan: Fields = plan([step(OLD_STEP)], { coordinationId: OLD });

  function textOf(text: string): ContentInput {
    return { ref: { sha256: hash("sha256", text), bytes: Buffer.byteLength(text) }, text };
  }

  async function recordOldPlan(world: World, recorded = oldPlan): Promise<void> {
    const text = textOf(JSON.stringify(recorded));
    const objective = textOf("try it");
    await logOver(world).submit(
      OLD,
      [
        {
          type: "openCoordination",
          origin: "plan",
          ownerSession: OWNER,
          ownerAgent: AGENT,
          objective: objective.ref,
          trace: { traceId: "trace-1" },
          failurePolicy: {
            retryBudget: 0,
            timeoutPolicy: "continue_with_partial",
            escalationPolicy: "none",
          },
          settleMs: 1_000,
          acknowledgeMs: 30_000,
          plan: {
            content: text.ref,
            steps: (recorded["steps"] as unknown[]).length,
            seed: "seed",
            escalateMs: 60_000,
          },
        },
      ],
      [text, objective],
    );
  }

  it("goes on under its keys, and is a replay when it is submitted again", async () => {
    const world = createWorld({}, createScriptedRunner(scriptOf({ [OLD_STEP]: ["work"] })));
    await recordOldPlan(world);
    const coordinator = world.start();
    await coordinator.start();
    await waitUntilSettled();
    expect(world.plans.orders.map(({ idempotencyKey }) => idempotencyKey)).toEqual([`${OLD}:${OLD_STEP}:1`]);
    expect(await coordinator.submitPlan({ plan: oldPlan, ownerAgent: AGENT })).toEqual({
      kind: "replay",
      coordinationId: OLD,
      steps: 1,
    });
    expect(
      await coordinator.submitPlan({ plan: { ...oldPlan, objective: "x" }, ownerAgent: AGENT }),
    ).toMatchObject({
      kind: "refused",
      problems: [{ code: "ID_INVALID" }, { code: "ID_INVALID" }],
    });
    world.plans.end(OLD_STEP, endDone());
    await world.clock.advance(10_000);
    expect(world.plans.orders.at(-1)?.message).toContain(
      "[Coordination] The plan release:eu notes has ended",
    );
    await coordinator.stop();
  });

  it("is told to its owner with the names of its steps in one line each", async () => {
    const long = Array.from({ length: 5 }, (_, place) => `${OLD_STEP} ${place}`);
    const script = Object.fromEntries(long.map((name) => [name, [endDone({ text: "x".repeat(7_000) })]]));
    const runner = createScriptedRunner(scriptOf({ [OLD_STEP]: [endFailing()], ...script }));
    const world = createWorld({}, runner);
    await recordOldPlan(world, { ...oldPlan, steps: [OLD_STEP, ...long].map((name) => step(name)) });
    const coordinator = world.start();
    await coordinator.start();
    await world.clock.advance(10_000);
    const message = world.plans.orders.at(-1)?.message;
    expect(message).toContain("\n- eu:build [Coordination]: failed");
    expect(message).toContain(
      "Too long to be quoted: eu:build [Coordination] 2, eu:build [Coordination] 3, eu:build [Coordination] 4.",
    );
    await coordinator.stop();
  });

  it("cannot be forked under the id of a pruned run, and its preview says so", async () => {
    const world = createWorld({}, createScriptedRunner(scriptOf({ [OLD_STEP]: [endFailing()] })));
    await recordOldPlan(world);
    const coordinator = world.start();
    await coordinator.start();
    await world.clock.advance(10_000);
    const coordinationId = "release-1" as CoordinationId;
    const trace = { events: 9, prunedAtMs: 0, claims: 0, ordinal: 0 } as never;
    world.ledger.traces.runs.set(coordinationId, trace);
    for (const isPreview of [true, false])
      await expect(coordinator.forkPlan({ source: OLD, coordinationId, isPreview })).rejects.toMatchObject({
        code: "RUN_PRUNED",
      });
    await coordinator.stop();
  });

  it("can be forked, under an id that a new plan may have", async () => {
    const world = createWorld({}, createScriptedRunner(scriptOf({ [OLD_STEP]: [endFailing(), endDone()] })));
    await recordOldPlan(world);
    const coordinator = world.start();
    await coordinator.start();
    await world.clock.advance(10_000);
    const request = { source: OLD, coordinationId: "release-2" as CoordinationId };
    expect(await coordinator.forkPlan({ ...request, isPreview: true })).toMatchObject({ kind: "preview" });
    expect(await coordinator.forkPlan(request)).toMatchObject({ kind: "accepted", anew: [OLD_STEP] });
    await world.clock.advance(10_000);
    expect((await coordinator.view(request.coordinationId))?.status).toBe("success");
    expect(
      await coordinator.forkPlan({ source: OLD, coordinationId: "release:2" as CoordinationId }),
    ).toMatchObject({ kind: "refused", problems: [{ path: "coordinationId", code: "ID_INVALID" }] });
    await coordinator.stop();
  });
});
