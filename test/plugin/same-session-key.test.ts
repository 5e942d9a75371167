/** Owns: that tools and the chat command take a session of the same key in another gateway for another session. */
import { describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { createPlanTools } from "../../src/plugins/openclaw/plans/plan-tools.ts";
import { findOnlyOpenQuestion, type QuestionReads } from "../../src/plugins/reports/find-questions.ts";
import { createStubPlans, SESSION, START, stepView, viewOf } from "./stub-plans.ts";

const RUNS = [{ runId: "co-a", gateway: "a" }, { runId: "co-b", gateway: "b" }, { runId: "co-old" }] as const;

const question = { escalationId: "escalation-1", askedAtMs: START, deadlineAtMs: START } as never;

const viewRun = (id: CoordinationId) => {
  const run = RUNS.find(({ runId }) => runId === id);
  const { runId: _, ...home } = run ?? { runId: "" };
  const view = viewOf([stepView("step-1")], { coordinationId: id, escalations: [question], ...home });
  return Promise.resolve(run && view);
};

const listRuns = () =>
  Promise.resolve(
    RUNS.map(({ runId, ...home }) => ({
      runId,
      summary: { status: "running", ownerSession: SESSION, createdAtMs: START, steps: {}, ...home },
    })) as never,
  );

async function listIn(gateway: string | undefined): Promise<readonly string[]> {
  const reads = { view: viewRun, list: listRuns, ...(gateway !== undefined && { gateway }) };
  const tools = createPlanTools(createStubPlans({ reads }).use, () => true);
  const answer = await tools("coordination_status", { sessionKey: SESSION }, {});
  return (answer["coordinations"] as { coordinationId: string }[]).map(
    ({ coordinationId }) => coordinationId,
  );
}

describe("a session, where several gateways share a ledger", () => {
  it("is shown what its own gateway opened, and what was opened before the ledger was shared", async () => {
    expect(await listIn("a")).toEqual(["co-a", "co-old"]);
    expect(await listIn("b")).toEqual(["co-b", "co-old"]);
    expect(await listIn(undefined)).toEqual(["co-a", "co-b", "co-old"]);
  });

  it.each(["coordination_status", "coordination_result"] as const)(
    "is told by %s nothing of another gateway's coordination",
    async (tool) => {
      const reads = { view: viewRun, list: listRuns, gateway: "a" };
      const tools = createPlanTools(createStubPlans({ reads }).use, () => true);
      const readIn = async (coordinationId: string): Promise<string> => {
        const params = { coordinationId, ...(tool === "coordination_result" && { stepId: "step-1" }) };
        return JSON.stringify(await tools(tool, { sessionKey: SESSION }, params));
      };
      expect(await readIn("co-a")).not.toContain("this session");
      expect(await readIn("co-b")).toContain("this session");
    },
  );

  it("answers the only question of its own gateway", async () => {
    const reads: QuestionReads = {
      view: viewRun,
      list: listRuns,
      findUnproven: () => Promise.resolve(undefined),
      get: () => Promise.resolve(undefined),
      holders: () => Promise.resolve(["co-b", "co-a"] as CoordinationId[]),
      pruned: {
        find: () => Promise.resolve(undefined),
        listBindings: () => Promise.resolve([]),
        counts: () => Promise.resolve({ runs: 0, events: 0, claims: 0 }),
      },
    };
    expect(await findOnlyOpenQuestion({ ...reads, gateway: "a" }, SESSION)).toMatchObject({
      kind: "found",
      found: { view: { coordinationId: "co-a" } },
    });
    expect(await findOnlyOpenQuestion(reads, SESSION)).toMatchObject({ kind: "ambiguous" });
  });
});
