/** Steps that say `isolate: worktree`, run by a real coordinator over worktrees in memory. */
import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { replayCoordination } from "../../src/agents/coordination/runtime/replay-coordination.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { createWorld } from "../support/fake-clock-host.ts";
import { createFakeWorktrees, type FakeWorktrees } from "../support/fake-worktrees.ts";
import { createScriptedRunner, endDone, endFailing } from "../support/scripted-runner.ts";
import { BASE, createIsolated, expectNothingLeft, runIsolated, type IsolatedRun } from "./isolated-run.ts";
import {
  AGENT,
  createRetries,
  plan,
  PLAN_ID,
  step,
  submitTo,
  type Fields,
  type PlanRun,
} from "./planned-world.ts";

/** The plan is cancelled while git makes the worktree of its one step. */
async function cancelWhileMade(fake: FakeWorktrees): Promise<IsolatedRun> {
  const made = Promise.withResolvers<undefined>();
  const worktrees: FakeWorktrees = {
    ...fake,
    open: async (...toOpen) => {
      await made.promise;
      return fake.open(...toOpen);
    },
  };
  const run = await runIsolated({}, plan([createIsolated("a")]), { worktrees });
  await run.coordinator.cancel({ coordinationId: PLAN_ID, by: "operator" });
  await run.advance(20_000);
  made.resolve(undefined);
  await run.advance(1_000);
  return run;
}

const typesOf = (run: PlanRun): string[] =>
  run.world.ledger
    .events()
    .flat()
    .map(({ type }: RunEvent) => type)
    .filter((type) => type.startsWith("worktree."));

describe("isolated steps", () => {
  it("work alone, and what both did to one file is merged", async () => {
    const run = await runIsolated(
      {
        a: { "a.txt": BASE.replace("first", "FIRST") },
        b: { "a.txt": BASE.replace("last", "LAST"), "c.txt": "c\n" },
      },
      plan([createIsolated("a"), createIsolated("b")]),
    );
    expect((await run.view()).status).toBe("success");
    expect(Object.fromEntries(run.worktrees.folder)).toEqual({
      "a.txt": "FIRST\n\n\nLAST\n",
      "b.txt": "b\n",
      "c.txt": "c\n",
    });
    const changed = run.events("resource.changed").map(({ payload }) => [payload.stepId, payload.resource]);
    expect(changed).toHaveLength(3);
    expectNothingLeft(run);
    await run.close();
  });

  it("count once what they did is merged, and not before", async () => {
    const run = await runIsolated(
      { a: { "a.txt": "new\n" } },
      plan([createIsolated("a"), step("b", { dependsOn: ["a"] })]),
    );
    expect((await run.view()).status).toBe("success");
    const order = run.appends
      .flat()
      .filter((type) => /^worktree|^step\.(?:completed|dispatched)/u.test(type));
    expect(order.slice(0, 6)).toEqual([
      "step.dispatched",
      "worktree.opened",
      "worktree.merge_begun",
      "worktree.merged",
      "step.completed",
      "worktree.removed",
    ]);
    await run.close();
  });

  it("are told apart by their attempts, and a failed one leaves nothing", async () => {
    const run = await runIsolated(
      { a: { "a.txt": "new\n" } },
      plan([createIsolated("a", createRetries(1))]),
      {
        scripts: { a: [endFailing(), endDone()] },
      },
    );
    await run.advance(5_000);
    expect((await run.view()).status).toBe("success");
    const folders = run.ordersOf("a").map(({ folder }) => folder);
    expect(new Set(folders).size).toBe(2);
    expect(typesOf(run)).toEqual([
      ...["worktree.opened", "worktree.removed"],
      ...["worktree.opened", "worktree.merge_begun", "worktree.merged", "worktree.removed"],
    ]);
    expectNothingLeft(run);
    await run.close();
  });

  it("that time out or are cancelled are not merged, and leave nothing", async () => {
    const run = await runIsolated(
      { a: { "a.txt": "late\n" }, b: { "b.txt": "late\n" } },
      plan([createIsolated("a", { timeoutMs: 2_000 }), createIsolated("b")]),
      { scripts: { a: ["work"], b: ["work"] } },
    );
    expect(run.worktrees.trees.size).toBe(2);
    await run.advance(3_000);
    expect(run.worktrees.trees.size).toBe(1);
    await run.coordinator.cancel({ coordinationId: PLAN_ID, by: "operator" });
    await run.advance(3_000);
    expect(await run.fates()).toMatchObject({ a: "timed_out", b: "cancelled" });
    expect(Object.fromEntries(run.worktrees.folder)).toEqual({ "a.txt": BASE, "b.txt": "b\n" });
    expectNothingLeft(run);
    await run.close();
  });

  it("that are cancelled while their worktree is made leave nothing, and start no agent", async () => {
    const run = await cancelWhileMade(createFakeWorktrees({}));
    expect(run.ordersOf("a")).toEqual([]);
    expect(await run.fates()).toMatchObject({ a: "cancelled" });
    expectNothingLeft(run);
    await run.close();
  });

  it("that are cancelled while their worktree is made say when it cannot be removed", async () => {
    const fake = createFakeWorktrees({});
    const run = await cancelWhileMade({
      ...fake,
      remove: (name) => Promise.resolve(fake.trees.has(name) ? `${name} could not be removed` : undefined),
    });
    const warnings = run.world.logged.filter(({ level }) => level === "warn");
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^a-1-[0-9a-f]{16} could not be removed$/u),
    ]);
    expect(run.events("worktree.removed")).toMatchObject([{ payload: { outcome: "left" } }]);
    await run.close();
  });

  it("wait for their checks, and what people withhold is not merged", async () => {
    const gates = {
      verifier: () => Promise.resolve({ check: () => Promise.reject(new Error("no answer")) }),
    };
    const checks = { verify: { checks: { shape: { kind: "schema", schema: { type: "object" } } } } };
    const run = await runIsolated(
      { a: { "a.txt": "new\n" }, b: { "b.txt": "new\n" } },
      plan([createIsolated("a", checks), createIsolated("b", checks)]),
      { gates },
    );
    expect(await run.fates()).toMatchObject({ a: "held", b: "held" });
    expect(run.worktrees.folder.get("a.txt")).toBe(BASE);
    for (const { payload } of run.events("coordination.escalated"))
      await answer(run, payload.escalationId, payload.stepId === "a" ? "approve" : "deny");
    await run.advance(1_000);
    expect(Object.fromEntries(run.worktrees.folder)).toEqual({ "a.txt": "new\n", "b.txt": "b\n" });
    expect(run.events("step.completed").find(({ nodeId }) => nodeId === "a")?.payload.released).toBe(
      "approved",
    );
    expectNothingLeft(run);
    await run.close();
  });
});

async function answer(run: PlanRun, escalationId: string, answerKind: "approve" | "deny"): Promise<void> {
  const answered = await run.coordinator.answer({
    questionId: `${PLAN_ID}:${escalationId}`,
    answer: answerKind,
    by: { kind: "operator" },
    through: "cli",
  });
  expect(answered.kind).not.toBe("refused");
}

describe("what cannot be merged", () => {
  const both = { a: { "a.txt": "mine\n" }, b: { "a.txt": "yours\n", "new.txt": "new\n" } };

  it.each([
    ["approve", "completed", "success"],
    ["deny", "failed", "partial"],
  ] as const)(
    "is for people, who %s it: nothing of it is written, and the worktree stays until then",
    async (answerKind, fate, status) => {
      const run = await runIsolated(both, plan([step("a"), createIsolated("b", { dependsOn: ["a"] })]));
      expect(await run.fates()).toMatchObject({ a: "completed", b: "held" });
      expect(run.events("worktree.conflicted")[0]?.payload.files).toEqual([
        { path: "a.txt", because: "both_changed" },
      ]);
      expect(Object.fromEntries(run.worktrees.folder)).toEqual({ "a.txt": "mine\n", "b.txt": "b\n" });
      expect(run.worktrees.trees.size).toBe(1);
      const question = run.events("coordination.escalated")[0]!.payload;
      expect(question).toMatchObject({ cause: "merge", stepId: "b", answers: ["approve", "deny"] });
      const words = run.world.ledger.contents.get(question.question!.sha256);
      expect(JSON.stringify(words)).toContain("on branch coordination/b-1-");
      expect(JSON.stringify(words)).toContain("a.txt");
      await run.restart();
      expect(run.worktrees.trees.size).toBe(1);
      await answer(run, question.escalationId, answerKind);
      await run.advance(1_000);
      expect(await run.fates()).toMatchObject({ b: fate });
      expect((await run.view()).status).toBe(status);
      expectNothingLeft(run);
      await run.close();
    },
  );

  it("is a file that another step declares while it is at work", async () => {
    const run = await runIsolated(
      { a: { "a.txt": "new\n" } },
      plan([createIsolated("a"), step("b", { resources: ["file:/nowhere/a.txt"] })]),
      { scripts: { b: ["work"] } },
    );
    expect(run.events("worktree.conflicted")[0]?.payload.files).toEqual([{ path: "a.txt", because: "held" }]);
    expect(run.worktrees.folder.get("a.txt")).toBe(BASE);
    await run.coordinator.cancel({ coordinationId: PLAN_ID, by: "operator" });
    await run.advance(3_000);
    expectNothingLeft(run);
    await run.close();
  });

  it("is a file that cannot be written: what was written before it stays, and is recorded as changed", async () => {
    const worktrees = createFakeWorktrees({ "a.txt": BASE, "b.txt": "b\n", "c.txt": "c\n" });
    const write = worktrees.write.bind(worktrees);
    worktrees.write = (worktree, file) =>
      file.path === "b.txt" ? Promise.resolve("not_writable") : write(worktree, file);
    const work = { a: { "a.txt": "new\n", "b.txt": "new\n", "c.txt": "new\n" } };
    const run = await runIsolated(work, plan([createIsolated("a")]), { worktrees });
    expect(run.events("worktree.conflicted")[0]?.payload.files).toEqual([
      { path: "b.txt", because: "not_writable" },
    ]);
    const files = { "a.txt": "new\n", "b.txt": "b\n", "c.txt": "new\n" };
    expect(Object.fromEntries(worktrees.folder)).toEqual(files);
    const changes = run.events("resource.changed").map(({ payload }) => payload);
    const change = { stepId: "a", tool: "worktree merge" };
    expect(changes).toMatchObject([
      { ...change, resource: "file:/nowhere/a.txt" },
      { ...change, resource: "file:/nowhere/c.txt" },
    ]);
    const question = run.events("coordination.escalated")[0]?.payload.question;
    const words = JSON.stringify(run.world.ledger.contents.get(question?.sha256 ?? ""));
    expect(words).toContain("2 other files of it are written already.");
    await run.close();
    const replayed = await replayCoordination(run.world.ledger.open(run.world.clock), PLAN_ID);
    expect(replayed.difference).toBeUndefined();
  });

  it("may be written in part where the merge was cut off and the worktree cannot be read then", async () => {
    const worktrees = createFakeWorktrees({ "a.txt": BASE, "b.txt": "b\n" });
    const write = worktrees.write.bind(worktrees);
    worktrees.write = async (worktree, file) => {
      if (file.path === "b.txt") throw new Error("the process is gone");
      return write(worktree, file);
    };
    const work = { a: { "a.txt": "new\n", "b.txt": "new\n" } };
    const run = await runIsolated(work, plan([createIsolated("a")]), { worktrees });
    expect(Object.fromEntries(worktrees.folder)).toEqual({ "a.txt": "new\n", "b.txt": "b\n" });
    await run.restart(() => {
      worktrees.compare = () => Promise.resolve({ kind: "failed", message: "the disk is gone" });
    });
    await run.advance(10_000);
    const question = run.events("coordination.escalated")[0]?.payload.question;
    const words = JSON.stringify(run.world.ledger.contents.get(question?.sha256 ?? ""));
    expect(words).toContain("the disk is gone. Some of it may be written there already.");
    await run.coordinator.stop();
  });

  it("is for people, who can have the result all the same, where git cannot compare it", async () => {
    const worktrees = createFakeWorktrees({});
    worktrees.compare = () => Promise.resolve({ kind: "failed", message: "git says: permission denied" });
    const run = await runIsolated({}, plan([createIsolated("a")]), { worktrees });
    const question = run.events("coordination.escalated")[0]?.payload.question;
    const words = JSON.stringify(run.world.ledger.contents.get(question?.sha256 ?? ""));
    expect(words).toContain("git says: permission denied. Nothing of it is written there.");
    expect(worktrees.trees.size).toBe(1);
    await run.close();
  });

  it("fails the attempt where the worktree is not there any more", async () => {
    const worktrees = createFakeWorktrees({});
    worktrees.compare = () => Promise.resolve({ kind: "absent", message: "the disk is gone" });
    const run = await runIsolated({}, plan([createIsolated("a")]), { worktrees });
    expect(run.events("step.failed")[0]?.payload.error).toEqual({
      code: "worktree_failed",
      message: "the disk is gone",
    });
    expectNothingLeft(run);
    await run.close();
  });
});

describe("a ledger that fails when a merge is recorded", () => {
  it("keeps the worktree, so that its work is merged once the ledger takes it", async () => {
    const worktrees = createFakeWorktrees({ "a.txt": BASE });
    const runner = createScriptedRunner(({ folder }) => {
      worktrees.trees.get(folder?.split("/").at(-1) ?? "")?.set("a.txt", "new\n");
      return endDone();
    });
    const world = createWorld({}, runner, {}, worktrees);
    let failures = 0;
    const startFailing = () =>
      world.start((store) => ({
        ...store,
        append: (request) => {
          if (failures === 3 || !request.events.some(({ type }) => type === "worktree.merged"))
            return store.append(request);
          failures += 1;
          return Promise.reject(new CoordinationError("LEDGER_FULL", "full"));
        },
      }));
    const run = await submitTo({ ...world, start: startFailing }, plan([createIsolated("a")]));
    await run.advance(240_000);
    expect(failures).toBe(3);
    expect(await run.fates()).toMatchObject({ a: "completed" });
    expect(worktrees.folder.get("a.txt")).toBe("new\n");
    expect([...worktrees.trees.keys()]).toEqual([]);
    await run.coordinator.stop();
  });
});

describe("a worktree that cannot be made", () => {
  it("refuses the plan with where and why", async () => {
    const worktrees = createFakeWorktrees({});
    worktrees.obstacle = "the folder is in no git repository";
    const world = createWorld({}, createScriptedRunner(), {}, worktrees);
    const coordinator = world.start();
    const submitted = await coordinator.submitPlan({
      plan: plan([step("a"), createIsolated("b")]),
      ownerAgent: AGENT,
    });
    const message = "the folder is in no git repository";
    const problem = { path: "steps[1].isolate", code: "WORKTREE_UNAVAILABLE", message };
    expect(submitted).toEqual({ kind: "refused", problems: [problem] });
    await coordinator.stop();
  });

  it("fails the attempt, and starts no agent", async () => {
    const worktrees = createFakeWorktrees({});
    worktrees.open = () => Promise.resolve({ kind: "refused", message: "the disk is full" });
    const run = await runIsolated({}, plan([createIsolated("a")]), { worktrees });
    expect(run.events("step.failed")[0]?.payload.error).toEqual({
      code: "worktree_failed",
      message: "the disk is full",
    });
    expect(run.ordersOf("a")).toEqual([]);
    await run.close();
  });
});

describe("a crash", () => {
  const work = {
    a: { "a.txt": BASE.replace("first", "FIRST"), "c.txt": "c\n" },
    b: { "a.txt": (text: string) => text.replace("last", "LAST") },
  };
  const orders = ["side by side", "one after another"] as const;
  const createPlan = (order: (typeof orders)[number]): Fields =>
    plan([createIsolated("a"), createIsolated("b", order === "side by side" ? {} : { dependsOn: ["a"] })]);
  const expected = { "a.txt": "FIRST\n\n\nLAST\n", "b.txt": "b\n", "c.txt": "c\n" };

  /** Every call of a run that no crash disturbs. */
  const CALLS_MAX = 14;

  it.each(
    Array.from({ length: CALLS_MAX }, (_, index) => index + 2).flatMap((at) =>
      orders.flatMap((order) => [
        { at, order, after: false },
        { at, order, after: true },
      ]),
    ),
  )(
    "at call $at (after it: $after) of steps $order loses nothing, writes nothing twice and leaves nothing",
    async ({ at, order, after }) => {
      const worktrees = createFakeWorktrees({ "a.txt": BASE, "b.txt": "b\n" });
      worktrees.crash = { at, after };
      const run = await runIsolated(work, createPlan(order), { worktrees });
      await run.restart(() => {
        worktrees.crash = undefined;
      });
      await run.advance(10_000);
      expect((await run.view()).status).toBe("success");
      expect(Object.fromEntries(worktrees.folder)).toEqual(expected);
      expectNothingLeft(run);
      for (const stepId of ["a", "b"]) expect(run.ordersOf(stepId)).toHaveLength(1);
      await run.coordinator.stop();
      expect((await verifyLedger(run.world.ledger.open(run.world.clock))).problems).toEqual([]);
    },
  );

  it.each(orders)("is tried at every call of steps %s", async (order) => {
    const run = await runIsolated(work, createPlan(order));
    expect(run.worktrees.calls.length).toBeLessThanOrEqual(CALLS_MAX + 1);
    await run.close();
  });
});
