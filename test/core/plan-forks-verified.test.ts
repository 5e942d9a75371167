import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Summary } from "../../src/agents/coordination/contracts/coordination-summary.ts";
import type { StoredProblem } from "../../src/agents/coordination/ports/ledger-store.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { hashAgain } from "../support/hash-chain.ts";
import { PLAN_ID, type PlanRun } from "./planned-world.ts";
import { FORK, fork, forkInPart, logOf, placeOf, run, runLarge } from "./plan-forks-scene.ts";

const findProblems = async ({ world: { ledger, clock } }: PlanRun): Promise<readonly StoredProblem[]> =>
  (await verifyLedger(ledger.open(clock))).problems;

/** As somebody does who knows the hashes, and what is kept beside a log. */
function forge(
  { world: { ledger } }: PlanRun,
  id: CoordinationId,
  change: (text: string, sequence?: number) => string,
): void {
  const log = ledger.runs.get(id);
  if (!log) throw new Error(`no ${id}`);
  for (const [sequence, event] of log.events.entries()) log.events[sequence] = change(event, sequence);
  hashAgain(log);
  log.summary = JSON.parse(change(JSON.stringify(log.summary))) as Summary;
}

const createPlaceAt = (sequence: number, source: CoordinationId = PLAN_ID) => {
  const forkedFrom = `"forkedFrom":{"coordinationId":"${source}","sequence":${sequence}`;
  return (event: string): string =>
    event.replace(/"forkedFrom":\{"coordinationId":"[^"]+","sequence":\d+/u, forkedFrom);
};

/** Where a step of the fork was admitted. */
const admissionOf = (planRun: PlanRun, stepId: string): number => {
  const found = logOf(planRun, FORK).find(
    ({ type, payload }) => type === "step.admitted" && payload.stepId === stepId,
  );
  return found?.sequence ?? -1;
};

describe("the proof of a ledger", () => {
  it("finds nothing where forks are whole, also those of forks and those that are not all admitted", async () => {
    const small = await run();
    await fork(small);
    await fork(small, { source: FORK, from: 6, coordinationId: "third" as CoordinationId });
    expect(await findProblems(small)).toEqual([]);
    await small.close();
    const large = await runLarge((stepId) => stepId === "s0001");
    await forkInPart(large);
    const second = large.world.start();
    await second.forkPlan({ source: FORK, coordinationId: "third" as CoordinationId });
    expect(await findProblems(large)).toEqual([]);
    await second.stop();
  });

  it("is no proof where the source of a fork cannot be read for a moment", async () => {
    const planRun = await run();
    await fork(planRun);
    await planRun.close();
    const { ledger, clock } = planRun.world;
    const store = ledger.open(clock);
    let hasFailed = false;
    const read: typeof store.read = (runId, range) => {
      if (hasFailed || runId !== PLAN_ID) return store.read(runId, range);
      hasFailed = true;
      return Promise.reject(new CoordinationError("LEDGER_BUSY", "locked"));
    };
    await expect(verifyLedger({ ...store, read })).rejects.toMatchObject({ code: "LEDGER_BUSY" });
  });

  it("tells which result is not that of the source, and where it stands", async () => {
    const planRun = await run();
    const from = logOf(planRun, PLAN_ID).length;
    await fork(planRun);
    const at = admissionOf(planRun, "b");
    const carried = /("carried":\{"eventId":"[^"]+","output":\{"sha256":")[0-9a-f]{8}/u;
    forge(planRun, FORK, (event, sequence) =>
      sequence === at ? event.replace(carried, "$100000000") : event,
    );
    expect(await findProblems(planRun)).toEqual([
      {
        kind: "event_forged",
        message: `b has not the result that plan-1 had before ${from}`,
        runId: FORK,
        sequence: at,
      },
    ]);
    await planRun.coordinator.stop();
  });

  it("tells of results that the source had not yet, and of those that were left out", async () => {
    const planRun = await run();
    const beforeB = placeOf(planRun, "step.completed", "b");
    const from = logOf(planRun, PLAN_ID).length;
    await fork(planRun);
    forge(planRun, FORK, createPlaceAt(beforeB));
    const early = `b has a result, but had not completed in plan-1 before ${beforeB}`;
    expect((await findProblems(planRun)).map(({ message }) => message)).toEqual([early]);
    await planRun.coordinator.stop();

    const anew = await run();
    await fork(anew, { from: 1 });
    forge(anew, FORK, createPlaceAt(from));
    expect((await findProblems(anew)).map(({ message }) => message)).toEqual(
      ["a", "b"].map((stepId) => `${stepId} has not the result that plan-1 had before ${from}`),
    );
    await anew.coordinator.stop();
  });

  it("tells of a source that is not there, or is shorter", async () => {
    const planRun = await run();
    const { length } = logOf(planRun, PLAN_ID);
    await fork(planRun);
    const missing = { kind: "event_missing", runId: FORK, sequence: 0 };
    forge(planRun, FORK, createPlaceAt(length + 1));
    expect(await findProblems(planRun)).toEqual([
      { ...missing, message: `it is a fork of plan-1 from ${length + 1}, which has ${length} events` },
    ]);
    forge(planRun, FORK, createPlaceAt(length, "nobody" as CoordinationId));
    expect(await findProblems(planRun)).toEqual([{ ...missing, message: "its source nobody is not there" }]);
    await planRun.coordinator.stop();
  });

  it("tells of a source that cannot be read, of both", async () => {
    const planRun = await run();
    await fork(planRun);
    const at = placeOf(planRun, "step.completed", "b");
    forge(planRun, PLAN_ID, (event, sequence) =>
      sequence === at ? event.replace(`"step.completed"`, `"step.forgotten"`) : event,
    );
    const problems = await findProblems(planRun);
    expect(problems.map(({ kind, runId }) => [kind, runId])).toEqual([
      ["fold_failed", FORK],
      ["event_unreadable", PLAN_ID],
    ]);
    expect(problems[0]?.message).toContain(`what it has from plan-1 cannot be told from there: `);
    expect(problems[0]?.message).toContain(`plan-1:${at}`);
    await planRun.coordinator.stop();
  });

  it("ends where forks are forged to be forks of one another", async () => {
    const planRun = await runLarge((stepId) => stepId === "s0001");
    await forkInPart(planRun);
    const third = "third" as CoordinationId;
    const second = planRun.world.start();
    await second.forkPlan({ source: FORK, coordinationId: third });
    await second.stop();
    const { length } = logOf(planRun, FORK);
    forge(planRun, FORK, createPlaceAt(2, third));
    forge(planRun, third, createPlaceAt(length, FORK));
    const messages = (await findProblems(planRun)).map(({ message }) => message);
    expect(messages).toContainEqual(expect.stringContaining(`${third} is a fork of itself`));
  });
});
