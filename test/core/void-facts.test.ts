/** Nothing follows from a fact that fails to reach the ledger, also where the same is decided again at once. */
import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import { CoordinationError, type ErrorCode } from "../../src/agents/coordination/contracts/errors.ts";
import { judgePlan } from "../../src/agents/coordination/runtime/held-results/judge-plan.ts";
import { createRunLog, type RunLog } from "../../src/agents/coordination/runtime/log/run-log.ts";
import { awaitAnswer } from "../../src/agents/coordination/runtime/questions/await-answer.ts";
import { createQuestionWaits } from "../../src/agents/coordination/runtime/questions/question-waits.ts";
import { waitUntilSettled, type FakeClock } from "../support/fake-clock.ts";
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
import { RUN } from "./scene.ts";

interface FailingLog {
  readonly log: RunLog;
  readonly clock: FakeClock;
  /** How many appends the store has taken. */
  readonly countAppends: () => number;
  /** Makes the next append wait. */
  readonly hold: () => void;
  /** Makes the append that waits fail. */
  readonly fail: (code: ErrorCode) => void;
}

async function createFailingLog(...commands: readonly Command[]): Promise<FailingLog> {
  const { ledger, clock } = createWorld();
  const store = ledger.open(clock);
  let isHolding = false;
  let appends = 0;
  let refuse: ((error: Error) => void) | undefined;
  const log = createRunLog({
    store: {
      ...store,
      append: async (request) => {
        if (isHolding) {
          isHolding = false;
          await new Promise((_, reject) => {
            refuse = reject;
          });
        }
        await store.append(request);
        appends += 1;
      },
    },
    clock,
    logger: { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
  });
  for (const command of commands)
    expect(await log.submit(RUN, [command])).toMatchObject({ kind: "accepted" });
  return {
    log,
    clock,
    countAppends: () => appends,
    hold: () => {
      isHolding = true;
    },
    fail: (code) => refuse?.(new CoordinationError(code, "it failed")),
  };
}

describe("a last outcome that loses a race and is recorded at the second try", () => {
  it("is what the plan is judged by", async () => {
    const criteria = [{ key: "clean", when: "{{steps.a.outputs.clean}}" }];
    const opening = openPlan({ steps: 1, plan: { successCriteria: criteria } });
    const { log, countAppends, hold, fail } = await createFailingLog(
      opening,
      admit(planStep("a")),
      dispatch("a"),
      startStep("a"),
    );
    const before = countAppends();
    const get = () => Promise.resolve(countAppends() > before ? '{"clean":true}' : undefined);
    hold();
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
    const { log, clock, hold, fail } = await createFailingLog(
      openPlan({ steps: 1, ...HITL }),
      admit(planStep("a")),
      dispatch("a"),
      startStep("a"),
      failStep("a"),
    );
    hold();
    const answered = log.submit(RUN, [answer(1, "approve")]);
    await waitUntilSettled();
    const waiting = awaitAnswer(
      { runs: log, clock, waits: createQuestionWaits(clock), watch: () => undefined } as never,
      { questionId: `${RUN}:escalation-1`, waitMs: 0, signal: undefined },
    );
    await waitUntilSettled();
    fail("LEDGER_FULL");
    await expect(answered).rejects.toMatchObject({ code: "LEDGER_FULL" });
    expect(await waiting).toEqual({ kind: "open" });
  });
});
