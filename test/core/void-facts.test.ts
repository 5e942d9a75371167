/** Nothing follows from a fact that fails to reach the ledger, also where the same is decided again at once. */
import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { judgePlan } from "../../src/agents/coordination/runtime/held-results/judge-plan.ts";
import { awaitAnswer } from "../../src/agents/coordination/runtime/questions/await-answer.ts";
import { createQuestionWaits } from "../../src/agents/coordination/runtime/questions/question-waits.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { createWorld, type World } from "../support/fake-clock-host.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { createScriptedRunner, endDone, type ScriptedRunner } from "../support/scripted-runner.ts";
import { contentRef } from "./gates-scene.ts";
import {
  admit,
  answer,
  dispatch,
  failStep,
  finish,
  HITL,
  openPlan,
  planStep,
  startStep,
} from "./planned-scene.ts";
import { plan, PLAN_ID, step, submitTo } from "./planned-world.ts";
import { createFailingLog } from "./run-log-scene.ts";
import { RUN } from "./scene.ts";

describe("a last outcome that loses a race and is recorded at the second try", () => {
  it("is what the plan is judged by", async () => {
    const criteria = [{ key: "clean", when: "{{steps.a.outputs.clean}}" }];
    const opening = openPlan({ steps: 1, plan: { successCriteria: criteria } });
    const w = createWorld();
    const { log, fail } = createFailingLog(w);
    await log.submit(RUN, [opening, admit(planStep("a")), dispatch("a"), startStep("a")]);
    const isStored = () =>
      w.ledger
        .events()
        .flat()
        .some(({ type }) => type === "step.completed");
    const get = () => Promise.resolve(isStored() ? '{"clean":true}' : undefined);
    const ended = log.submit(RUN, [finish("a", 1, { output: contentRef("out") })]);
    await waitUntilSettled();
    const judged = judgePlan({ runs: log, content: { get } } as never, RUN);
    await waitUntilSettled();
    fail("LEDGER_CONFLICT");
    expect(await ended).toMatchObject({ kind: "accepted" });
    expect(await judged).toEqual([{ key: "clean", met: true }]);
  });
});

describe("an answer that fails to reach the ledger", () => {
  it("is not told to who waits for it", async () => {
    const w = createWorld();
    const { clock } = w;
    const { log, fail } = createFailingLog(w);
    const opening = openPlan({ steps: 1, ...HITL });
    await log.submit(RUN, [opening, admit(planStep("a")), dispatch("a"), startStep("a"), failStep("a")]);
    const answered = log.submit(RUN, [answer(1, "approve")]);
    await waitUntilSettled();
    const waiting = awaitAnswer(
      { runs: log, clock, waits: createQuestionWaits(clock), lookAt: () => undefined } as never,
      { questionId: `${RUN}:escalation-1`, waitMs: 0, signal: undefined },
    );
    await waitUntilSettled();
    fail();
    await expect(answered).rejects.toMatchObject({ code: "LEDGER_FULL" });
    expect(await waiting).toEqual({ kind: "open" });
  });
});

/** Step `a` is at work, and the append of a report of its agent waits until it fails. */
async function runReporting(runner: ScriptedRunner) {
  const failing = Promise.withResolvers<never>();
  failing.promise.catch(() => undefined);
  const failReports = (store: MemoryStore): MemoryStore => ({
    ...store,
    append: (request) =>
      request.events.some(({ type }) => type === "step.reported") ? failing.promise : store.append(request),
  });
  const plain = createWorld({}, runner);
  const start: World["start"] = (wrap = (store) => store) => plain.start((store) => failReports(wrap(store)));
  const run = await submitTo({ ...plain, start }, plan([step("a")]));
  const { childSessionKey: session } = run.ordersOf("a")[0]!;
  const report = async (): Promise<void> => {
    const answer = run.coordinator.report(session, { outcome: "completed", outputs: { n: 1 } });
    answer.catch(() => undefined);
    await waitUntilSettled();
  };
  const failReport = async (): Promise<void> => {
    failing.reject(new CoordinationError("LEDGER_FULL", "the disk is full"));
    await run.advance(1_000);
  };
  const listOutputs = () =>
    run
      .events("step.completed")
      .filter(({ nodeId }) => nodeId === "a")
      .map(({ payload }) => plain.ledger.contents.get(payload.output?.sha256 ?? "")?.text);
  return { run, report, failReport, listOutputs };
}

describe("a report that fails to reach the ledger", () => {
  it("does not count for a step whose agent has ended meanwhile", async () => {
    const runner = createScriptedRunner(() => "work");
    const { run, report, failReport, listOutputs } = await runReporting(runner);
    await report();
    runner.end("a", endDone({ n: 2 }));
    await waitUntilSettled();
    await failReport();
    expect(listOutputs()).toEqual(['{"n":2}']);
    await run.close();
  });

  it("does not count for a step whose agent had ended before it could be stopped", async () => {
    const runner = createScriptedRunner(() => "work");
    const stopping = Promise.withResolvers<"already_ended">();
    const cancel = (): Promise<"already_ended"> => stopping.promise;
    const { run, report, failReport, listOutputs } = await runReporting({ ...runner, cancel });
    await run.coordinator.cancel({ coordinationId: PLAN_ID, stepId: "a" as StepId, by: "operator" });
    await waitUntilSettled();
    runner.end("a", endDone({ n: 2 }));
    await report();
    stopping.resolve("already_ended");
    await waitUntilSettled();
    await failReport();
    expect(listOutputs()).toEqual(['{"n":2}']);
    await run.close();
  });
});
