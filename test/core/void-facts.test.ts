/** Nothing follows from a fact that fails to reach the ledger, also where the same is decided again at once. */
import { describe, expect, it } from "vitest";
import { judgePlan } from "../../src/agents/coordination/runtime/held-results/judge-plan.ts";
import { awaitAnswer } from "../../src/agents/coordination/runtime/questions/await-answer.ts";
import { createQuestionWaits } from "../../src/agents/coordination/runtime/questions/question-waits.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { createWorld } from "../support/fake-clock-host.ts";
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
      { runs: log, clock, waits: createQuestionWaits(clock), watch: () => undefined } as never,
      { questionId: `${RUN}:escalation-1`, waitMs: 0, signal: undefined },
    );
    await waitUntilSettled();
    fail();
    await expect(answered).rejects.toMatchObject({ code: "LEDGER_FULL" });
    expect(await waiting).toEqual({ kind: "open" });
  });
});
