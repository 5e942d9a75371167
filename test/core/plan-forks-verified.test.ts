import { describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Summary } from "../../src/agents/coordination/contracts/coordination-summary.ts";
import type { StoredProblem } from "../../src/agents/coordination/ports/ledger-store.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { hashAgain } from "../support/hash-chain.ts";
import { PLAN_ID, type PlanRun } from "./planned-world.ts";
import { FORK, fork, forkInPart, logOf, placeOf, run, runLarge } from "./plan-forks-scene.ts";

const problemsIn = async ({ it: { ledger, clock } }: PlanRun): Promise<readonly StoredProblem[]> =>
  (await verifyLedger(ledger.open(clock))).problems;

/** As somebody does who knows the hashes, and what is kept beside a log. */
function forge(
  { it: { ledger } }: PlanRun,
  id: CoordinationId,
  change: (text: string, sequence?: number) => string,
): void {
  const log = ledger.runs.get(id);
  if (!log) throw new Error(`no ${id}`);
  for (const [sequence, event] of log.events.entries()) log.events[sequence] = change(event, sequence);
  hashAgain(log);
  log.summary = JSON.parse(change(JSON.stringify(log.summary))) as Summary;
}

const placedAt = (sequence: number, source: CoordinationId = PLAN_ID) => {
  const forkedFrom = `"forkedFrom":{"coordinationId":"${source}","sequence":${sequence}`;
  return (event: string): string =>
    event.replace(/"forkedFrom":\{"coordinationId":"[^"]+","sequence":\d+/u, forkedFrom);
};

/** Where a step of the fork was admitted. */
const admissionOf = (it: PlanRun, stepId: string): number => {
  const found = logOf(it, FORK).find(
    ({ type, payload }) => type === "step.admitted" && payload.stepId === stepId,
  );
  return found?.sequence ?? -1;
};

describe("the proof of a ledger", () => {
  it("finds nothing where forks are whole, also those of forks and those that are not all admitted", async () => {
    const small = await run();
    await fork(small);
    await fork(small, { source: FORK, from: 6, coordinationId: "third" as CoordinationId });
    expect(await problemsIn(small)).toEqual([]);
    await small.close();
    const large = await runLarge((stepId) => stepId === "s0001");
    await forkInPart(large);
    const second = large.it.start();
    await second.forkPlan({ source: FORK, coordinationId: "third" as CoordinationId });
    expect(await problemsIn(large)).toEqual([]);
    await second.stop();
  });

  it("tells which result is not that of the source, and where it stands", async () => {
    const it = await run();
    const from = logOf(it, PLAN_ID).length;
    await fork(it);
    const at = admissionOf(it, "b");
    const carried = /("carried":\{"eventId":"[^"]+","output":\{"sha256":")[0-9a-f]{8}/u;
    forge(it, FORK, (event, sequence) => (sequence === at ? event.replace(carried, "$100000000") : event));
    expect(await problemsIn(it)).toEqual([
      {
        kind: "event_forged",
        message: `b has not the result that plan-1 had before ${from}`,
        runId: FORK,
        sequence: at,
      },
    ]);
    await it.coordinator.stop();
  });

  it("tells of results that the source had not yet, and of those that were left out", async () => {
    const it = await run();
    const beforeB = placeOf(it, "step.completed", "b");
    const from = logOf(it, PLAN_ID).length;
    await fork(it);
    forge(it, FORK, placedAt(beforeB));
    const early = `b has a result, but had not completed in plan-1 before ${beforeB}`;
    expect((await problemsIn(it)).map(({ message }) => message)).toEqual([early]);
    await it.coordinator.stop();

    const anew = await run();
    await fork(anew, { from: 1 });
    forge(anew, FORK, placedAt(from));
    expect((await problemsIn(anew)).map(({ message }) => message)).toEqual(
      ["a", "b"].map((stepId) => `${stepId} has not the result that plan-1 had before ${from}`),
    );
    await anew.coordinator.stop();
  });

  it("tells of a source that is not there, or is shorter", async () => {
    const it = await run();
    const { length } = logOf(it, PLAN_ID);
    await fork(it);
    const missing = { kind: "event_missing", runId: FORK, sequence: 0 };
    forge(it, FORK, placedAt(length + 1));
    expect(await problemsIn(it)).toEqual([
      { ...missing, message: `it is a fork of plan-1 from ${length + 1}, which has ${length} events` },
    ]);
    forge(it, FORK, placedAt(length, "nobody" as CoordinationId));
    expect(await problemsIn(it)).toEqual([{ ...missing, message: "its source nobody is not there" }]);
    await it.coordinator.stop();
  });

  it("tells of a source that cannot be read, of both", async () => {
    const it = await run();
    await fork(it);
    const at = placeOf(it, "step.completed", "b");
    forge(it, PLAN_ID, (event, sequence) =>
      sequence === at ? event.replace(`"step.completed"`, `"step.forgotten"`) : event,
    );
    const problems = await problemsIn(it);
    expect(problems.map(({ kind, runId }) => [kind, runId])).toEqual([
      ["fold_failed", FORK],
      ["event_unreadable", PLAN_ID],
    ]);
    expect(problems[0]?.message).toContain(`what it has from plan-1 cannot be told from there: `);
    expect(problems[0]?.message).toContain(`plan-1:${at}`);
    await it.coordinator.stop();
  });

  it("ends where forks are forged to be forks of one another", async () => {
    const it = await runLarge((stepId) => stepId === "s0001");
    await forkInPart(it);
    const third = "third" as CoordinationId;
    const second = it.it.start();
    await second.forkPlan({ source: FORK, coordinationId: third });
    await second.stop();
    const { length } = logOf(it, FORK);
    forge(it, FORK, placedAt(2, third));
    forge(it, third, placedAt(length, FORK));
    const messages = (await problemsIn(it)).map(({ message }) => message);
    expect(messages).toContainEqual(expect.stringContaining(`${third} is a fork of itself`));
  });
});
