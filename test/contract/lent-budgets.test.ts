/** Budgets that a plan shares with the plans inside of it, over the real ledger file. */
import { expect, it } from "vitest";
import type { Usage } from "../../src/agents/coordination/contracts/fact-fields.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import type { PlanSubmitted } from "../../src/agents/coordination/runtime/plans/plan-requests.ts";
import { AGENT, plan, PLAN_ID, scriptOf, step, type Fields } from "../core/planned-world.ts";
import { createWorld, type World } from "../support/fake-clock-host.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { createScriptedRunner, endDone, type ScriptedAttempt } from "../support/scripted-runner.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";

const INSIDE = "plan-2" as CoordinationId;
const LATER = ["s1", "s2", "s3", "s4"];

interface LentBudget extends AsyncDisposable {
  readonly world: World;
  /** Stops the process and lets another one take over. */
  restart(): Promise<void>;
  /** The next append to a coordination fails. */
  failNextAppendTo(coordinationId: CoordinationId): void;
  /** The process dies at its next append to a coordination: until the restart it appends nothing more. */
  dieAtAppendTo(coordinationId: CoordinationId): void;
  /** Until the restart loans have these kinds alone, as in earlier releases; without any, none is recorded. */
  lendOnly(...kinds: readonly (keyof Usage)[]): void;
  /** The agent of a step submits a plan. */
  submitAs(stepId: string, fields: Fields): Promise<PlanSubmitted>;
  events(coordinationId: CoordinationId): Promise<readonly RunEvent[]>;
  /** The steps of a plan that have begun, in their order. */
  begun(coordinationId: CoordinationId): Promise<string[]>;
  /** The loans of the plan around, in their order. */
  loans(): Promise<unknown[]>;
  /** Time goes on until it is true. */
  until(subject: string, isSo: () => Promise<boolean> | boolean): Promise<void>;
  ended(coordinationId: CoordinationId): Promise<RunEvent | undefined>;
  /** Ends `go`, and a minute goes by. */
  endGo(): Promise<void>;
}

function limitLoan(event: RunEvent, kinds: readonly (keyof Usage)[]): RunEvent {
  if (event.type !== "budget.lent") return event;
  const isKept = (kind: string): boolean => kinds.some((each) => each === kind);
  const budget = Object.fromEntries(Object.entries(event.payload.budget).filter(([kind]) => isKept(kind)));
  return { ...event, payload: { ...event.payload, budget } };
}

/** A plan whose steps `a` and `go` are at work, while the others wait for `go`. It may begin six attempts. */
async function runAround(
  scripts: Readonly<Record<string, readonly ScriptedAttempt[]>> = {},
  fields: Fields = {},
): Promise<LentBudget> {
  const folder = createTempFolder();
  const runner = createScriptedRunner(scriptOf({ a: ["work"], go: ["work"], ...scripts }));
  const world = createWorld({}, runner);
  const { clock } = world;
  const ledger = await openTestLedger(folder.file("ledger.sqlite"), { clock });
  let failing: { readonly runId: CoordinationId; readonly isDeadly: boolean } | undefined;
  let isDead = false;
  let lentKinds: readonly (keyof Usage)[] | undefined;
  const store: MemoryStore = {
    ...ledger,
    append: async (request) => {
      if (isDead) throw new Error("the process is dead");
      if (request.runId === failing?.runId) {
        isDead = failing.isDeadly;
        failing = undefined;
        throw new Error("the append failed");
      }
      const kinds = lentKinds;
      if (kinds?.length === 0 && request.events.every(({ type }) => type === "budget.lent")) return;
      const events = kinds ? request.events.map((event) => limitLoan(event, kinds)) : request.events;
      await ledger.append({ ...request, events });
    },
  };
  let coordinator = world.start(() => store);
  await coordinator.start();
  const later = LATER.map((name) => step(name, { dependsOn: ["go"] }));
  const around = plan([step("a"), step("go"), ...later], { budget: { spawns: 6 }, ...fields });
  expect(await coordinator.submitPlan({ plan: around, ownerAgent: AGENT })).toMatchObject({
    kind: "accepted",
  });
  const lent: LentBudget = {
    world,
    restart: async () => {
      await coordinator.stop();
      isDead = false;
      lentKinds = undefined;
      coordinator = world.start(() => store);
      await coordinator.start();
    },
    failNextAppendTo: (runId) => {
      failing = { runId, isDeadly: false };
    },
    dieAtAppendTo: (runId) => {
      failing = { runId, isDeadly: true };
    },
    lendOnly: (...kinds) => {
      lentKinds = kinds;
    },
    submitAs: (stepId, inner) => {
      const order = runner.orders.findLast(({ envelope }) => envelope.stepId === stepId);
      const session = order!.childSessionKey;
      const inside = { ...plan([]), ownerSession: session, coordinationId: INSIDE, ...inner };
      return coordinator.submitPlan({ plan: inside, submittedBy: session, ownerAgent: AGENT });
    },
    events: (coordinationId) => ledger.read(coordinationId, { from: 0, limit: 1_000 }),
    begun: async (coordinationId) =>
      (await lent.events(coordinationId)).flatMap((event) =>
        event.type === "step.dispatched" && !event.payload.stepId.startsWith("@")
          ? [event.payload.stepId]
          : [],
      ),
    loans: async () =>
      (await lent.events(PLAN_ID)).flatMap((event) => (event.type === "budget.lent" ? [event.payload] : [])),
    until: async (subject, isSo) => {
      await waitFor(
        async () => {
          await clock.advance(1_000);
          return isSo();
        },
        { what: subject, everyMs: 1 },
      );
    },
    ended: async (coordinationId) =>
      (await lent.events(coordinationId)).find(({ type }) => type === "coordination.terminal"),
    endGo: async () => {
      runner.end("go", endDone());
      await lent.until("the end of `go`", async () =>
        (await lent.events(PLAN_ID)).some(({ type, nodeId }) => type === "step.completed" && nodeId === "go"),
      );
      for (let second = 0; second < 60; second += 1) await clock.advance(1_000);
    },
    [Symbol.asyncDispose]: async () => {
      await coordinator.stop();
      const { problems } = await verifyLedger(ledger);
      await ledger.close();
      folder[Symbol.dispose]();
      expect(problems).toEqual([]);
    },
  };
  await lent.until("both steps at work", () => runner.runs.size === 2);
  return lent;
}

const listNames = (...names: readonly string[]): { readonly steps: Fields[] } => ({
  steps: names.map((name) => step(name)),
});

it("begins no more attempts than its budget allows, those of the plan inside included", async () => {
  await using around = await runAround();
  expect(await around.submitAs("a", listNames("n1", "n2", "n3", "n4"))).toMatchObject({ kind: "accepted" });
  around.world.plans.end("go", endDone());
  await around.until("the end of the plan inside", async () => Boolean(await around.ended(INSIDE)));
  around.world.plans.end("a", endDone());
  await around.until("the end", async () => Boolean(await around.ended(PLAN_ID)));
  const begun = [...(await around.begun(PLAN_ID)), ...(await around.begun(INSIDE))];
  expect(begun).toEqual(["a", "go", "n1", "n2", "n3", "n4"]);
});

it("lets its own steps wait for a plan inside that states no budget, and begins them when that has ended", async () => {
  await using around = await runAround({ n1: ["work"] });
  await around.submitAs("a", listNames("n1"));
  expect(await around.loans()).toEqual([{ stepId: "a", attempt: 1, to: INSIDE, budget: { spawns: 4 } }]);
  await around.endGo();
  expect(await around.begun(PLAN_ID)).toEqual(["a", "go"]);
  expect((await around.events(PLAN_ID)).some(({ type }) => type === "coordination.escalated")).toBe(false);
  around.world.plans.end("n1", endDone());
  await around.until("its own steps at work", async () => (await around.begun(PLAN_ID)).length === 5);
  expect((await around.loans()).at(-1)).toMatchObject({ budget: { spawns: 1 } });
  around.world.plans.end("a", endDone());
  await around.until("the end", async () => Boolean(await around.ended(PLAN_ID)));
  expect(await around.begun(PLAN_ID)).toEqual(["a", "go", "s1", "s2", "s3"]);
});

it("begins them when the work of the plan inside is over, while its agent is told how it ended", async () => {
  await using around = await runAround({ "@delivery": ["work", endDone()] });
  await around.submitAs("a", listNames("n1"));
  await around.endGo();
  expect(await around.ended(INSIDE)).toBeUndefined();
  expect(await around.begun(PLAN_ID)).toEqual(["a", "go", "s1", "s2", "s3"]);
  around.world.plans.end("@delivery", endDone());
  around.world.plans.end("a", endDone());
  await around.until("the end", async () => Boolean(await around.ended(PLAN_ID)));
});

it("begins them when the attempt is over whose plan was cut off", async () => {
  await using around = await runAround({ n1: ["work"] });
  await around.submitAs("a", listNames("n1"));
  around.world.plans.end("go", endDone());
  around.world.plans.end("a", { outcome: "failed", message: "it went wrong" });
  await around.until("the end", async () => Boolean(await around.ended(PLAN_ID)));
  expect(around.world.plans.cancelled).toContain(`${INSIDE}:n1:1`);
  expect(await around.begun(PLAN_ID)).toEqual(["a", "go", "s1", "s2", "s3"]);
});

it("loses nothing to a crash between the loan and the opening of the plan inside", async () => {
  await using around = await runAround();
  around.dieAtAppendTo(INSIDE);
  await expect(around.submitAs("a", listNames("n1"))).rejects.toThrow("the append failed");
  await around.restart();
  await around.endGo();
  expect(await around.loans()).toHaveLength(1);
  expect(await around.begun(PLAN_ID)).toEqual(["a", "go"]);
  expect(await around.submitAs("a", listNames("n1"))).toMatchObject({ kind: "accepted" });
  await around.until("the end of the plan inside", async () => Boolean(await around.ended(INSIDE)));
  await around.until("its own steps at work", async () => (await around.begun(PLAN_ID)).length === 5);
  expect((await around.loans()).map((loan) => (loan as { budget: unknown }).budget)).toEqual([
    { spawns: 4 },
    { spawns: 1 },
  ]);
});

it("ends a loan with its attempt where the plan inside was never opened", async () => {
  await using around = await runAround();
  around.dieAtAppendTo(INSIDE);
  await expect(around.submitAs("a", listNames("n1"))).rejects.toThrow("the append failed");
  await around.restart();
  around.world.plans.end("go", endDone());
  around.world.plans.end("a", endDone());
  await around.until("the end", async () => Boolean(await around.ended(PLAN_ID)));
  expect(await around.begun(PLAN_ID)).toEqual(["a", "go", ...LATER]);
});

it("gives two plans inside that are submitted in the same moment no more than all that is left", async () => {
  await using around = await runAround();
  const submitted = await Promise.all([
    around.submitAs("a", { ...listNames("n1", "n2", "n3"), budget: { spawns: 3 } }),
    around.submitAs("go", { ...listNames("m1", "m2", "m3"), coordinationId: "plan-3" }),
  ]);
  expect(submitted).toMatchObject([{ kind: "accepted" }, { kind: "accepted" }]);
  expect(await around.loans()).toMatchObject([
    { budget: { spawns: 3 } },
    { to: "plan-3", budget: { spawns: 1 } },
  ]);
  const [created] = await around.events("plan-3" as CoordinationId);
  expect(created?.payload).toMatchObject({ plan: { budget: { spawns: 1 } } });
});

it("opens a plan again for the same one without another loan, also after it has ended", async () => {
  await using around = await runAround();
  await around.submitAs("a", listNames("n1"));
  await around.until("the end of the plan inside", async () => Boolean(await around.ended(INSIDE)));
  await around.until("the rest given back", async () => (await around.loans()).length === 2);
  expect(await around.submitAs("a", listNames("n1"))).toMatchObject({ kind: "replay" });
  expect(await around.loans()).toHaveLength(2);
});

it("gives back at once what was lent to a plan inside that could not be opened", async () => {
  await using around = await runAround();
  around.failNextAppendTo(INSIDE);
  await expect(around.submitAs("a", listNames("n1"))).rejects.toThrow("the append failed");
  expect(await around.loans()).toMatchObject([{ budget: { spawns: 4 } }, { budget: { spawns: 0 } }]);
  await around.endGo();
  expect(await around.begun(PLAN_ID)).toEqual(["a", "go", ...LATER]);
});

it("gives back at once what was lent to a plan inside whose id another one takes in the same moment", async () => {
  await using around = await runAround({ n1: ["work"] });
  const submitted = await Promise.all([
    around.submitAs("a", { ...listNames("n1"), budget: { spawns: 1 } }),
    around.submitAs("go", { ...listNames("m1"), budget: { spawns: 1 } }),
  ]);
  expect(submitted).toMatchObject([
    { kind: "accepted" },
    { kind: "refused", problems: [{ code: "COORDINATION_TAKEN" }] },
  ]);
  expect(await around.loans()).toMatchObject([
    { stepId: "a", budget: { spawns: 1 } },
    { stepId: "go", budget: { spawns: 1 } },
    { stepId: "go", budget: { spawns: 0 } },
  ]);
});

it("sets aside at its start what an earlier release gave to a plan inside that is still at work", async () => {
  await using around = await runAround({ n1: ["work"] });
  around.lendOnly();
  await around.submitAs("a", { ...listNames("n1"), budget: { spawns: 3 } });
  await around.restart();
  await around.until("the loan", async () => (await around.loans()).length === 1);
  expect(await around.loans()).toEqual([{ stepId: "a", attempt: 1, to: INSIDE, budget: { spawns: 3 } }]);
  await around.submitAs("go", { ...listNames("m1"), coordinationId: "plan-3" });
  const [created] = await around.events("plan-3" as CoordinationId);
  expect(created?.payload).toMatchObject({ plan: { budget: { spawns: 1 } } });
});

it.each([
  { of: "of the step alone", fields: { budget: undefined }, lent: [], loans: [{ spawns: 2 }] },
  {
    of: "of the step beside that of the plan",
    fields: { budget: { tokens: 100 } },
    lent: ["tokens"] as const,
    loans: [{ tokens: 100 }, { spawns: 2, tokens: 100 }],
  },
])("sets aside from the budget $of what an earlier release did not", async ({ fields, lent, loans }) => {
  const steps = [step("a", { budget: { spawns: 3 } }), step("go")];
  await using around = await runAround({ n1: ["work"] }, { ...fields, steps });
  around.lendOnly(...lent);
  await around.submitAs("a", listNames("n1"));
  await around.restart();
  await around.until("the loan", async () => (await around.loans()).length === loans.length);
  const budgets = (await around.loans()).map((loan) => (loan as { budget: unknown }).budget);
  expect(budgets).toEqual(loans);
  await around.restart();
  expect(await around.loans()).toHaveLength(loans.length);
});
