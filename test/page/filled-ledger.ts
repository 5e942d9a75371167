/** Owns: ledgers that the real core filled, with what the page's tests look at. */
import type { AgentId, CoordinationId, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import { ENDED_PLAN, recordPlans, RUNNING_PLAN } from "../cli/recorded-plan.ts";
import { recordCommands, recordQuestions } from "../cli/recorded-questions.ts";
import { recordLedger, RESEARCH } from "../cli/recorded-ledger.ts";
import { step } from "../core/plan-scene.ts";
import { contentOf, createAuthor, openingOf, OWNER } from "../support/ledger-fixtures.ts";
import { createManualClock, openTestLedger } from "../support/temp-ledger.ts";

export const SPAWNED = "co-5e5e0000-0000-4000-8000-000000000001";
export const HOSTILE = "co-bad00000-0000-4000-8000-000000000001";
export const LARGE = "co-1a49e000-0000-4000-8000-000000000001";
export const LARGE_STEPS = 10_000;
/** The gateway that opened what was spawned. */
export const GATEWAY = "office";
/** Markup, a direction override, a NUL, and a megabyte. */
export const HOSTILE_TEXT = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>\u202egnp.exe\u0000${"x".repeat(1_000_000)}`;
export { ENDED_PLAN, RUNNING_PLAN };

export async function fillLedger(path: string): Promise<void> {
  await fillFriendly(path);
  await recordHostile(path);
}

/** Nobody in it means any harm. */
export async function fillFriendly(path: string): Promise<void> {
  await recordQuestions(path);
  await recordPlans(path, [RUNNING_PLAN, ENDED_PLAN]);
  await recordLedger(path, [{ ...RESEARCH, id: SPAWNED }], { gateway: GATEWAY });
}

async function recordHostile(path: string): Promise<void> {
  const store = await openTestLedger(path, { clock: createManualClock() });
  const objective = contentOf(HOSTILE_TEXT);
  const opening = { ...openingOf("trace-hostile"), objective: objective.ref } as Command;
  await recordCommands(store, HOSTILE as CoordinationId, [
    [0, opening, [objective]],
    [10, createSpawn("hostile", { name: "<b>bold</b>\u202etxt" })],
  ]);
  await store.close();
}

function createSpawn(call: string, fields: object = {}): Command {
  return {
    type: "admitSpawn",
    runner: "subagent",
    agentId: "main" as AgentId,
    collect: false,
    sourceSession: OWNER,
    input: contentOf(`task of ${call}`).ref,
    timeoutMs: 600_000,
    call: { toolCallId: call, runId: "host-run" },
    ...fields,
  };
}

const BATCH = 500;

/** Ten thousand steps that run side by side. */
export async function fillLarge(path: string): Promise<void> {
  const store = await openTestLedger(path, { clock: createManualClock() });
  const author = createAuthor(LARGE.replace("co-", ""));
  await store.append(author.append(openingOf("trace-large")));
  for (let first = 0; first < LARGE_STEPS; first += BATCH) {
    const spawns = Array.from({ length: BATCH }, (_, index) => createSpawn(`call-${first + index}`));
    await store.append(author.append(...spawns));
  }
  await store.close();
}

export const FAILED = "plan-failed" as CoordinationId;
export const FAILED_REASON = "The bucket is empty.";

/** The agent of `collect` reported why it could not do the step, and people are asked whether it is tried once more. */
export async function recordFailedReport(path: string): Promise<void> {
  const steps = [step("collect", [], { retry: { budget: 0 } })];
  const failurePolicy = { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "hitl" };
  await recordPlans(path, [
    {
      id: FAILED,
      objective: "Collect what customers say",
      steps,
      failurePolicy,
      acts: [
        [0, "dispatch", "collect", 1],
        [100, "ack", "collect", 1],
      ],
    },
  ]);
  const report = contentOf(JSON.stringify({ reason: FAILED_REASON }));
  const attempt = { stepId: "collect" as StepId, attempt: 1 };
  const error = { code: "reported_failed" as const, message: "the agent reported that it could not do it" };
  const store = await openTestLedger(path, { clock: createManualClock() });
  await recordCommands(store, FAILED, [
    [1_000, { type: "reportStep", ...attempt, outcome: "failed", output: report.ref }, [report]],
    [2_000, { type: "failStep", ...attempt, via: "runner", error, cancelled: false }],
  ]);
  await store.close();
}

/** Opens a coordination in a ledger that is being served. */
export async function openAnother(path: string, name: string): Promise<CoordinationId> {
  const store = await openTestLedger(path, { clock: createManualClock(Date.now()) });
  const id = `co-${name}` as CoordinationId;
  const objective = contentOf(`objective ${name}`);
  const opening = { ...openingOf(`trace-${name}`), objective: objective.ref } as Command;
  await recordCommands(store, id, [[0, opening, [objective]]]);
  await store.close();
  return id;
}
