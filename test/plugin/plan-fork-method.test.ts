import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { PlanForked } from "../../src/agents/coordination/runtime/plans/plan-requests.ts";
import { createPlanMethods } from "../../src/plugins/openclaw/plans/plan-methods.ts";
import { createStubPlans } from "./stub-plans.ts";

describe("coordination.plan.fork", () => {
  const createForked = (fields: Partial<Record<"kind" | "carried" | "anew", unknown>> = {}): PlanForked =>
    ({
      kind: "accepted",
      coordinationId: "co-2",
      from: { coordinationId: "co-1", sequence: 42 },
      carried: ["a", "b"],
      anew: ["c"],
      ...fields,
    }) as PlanForked;
  const createForking = (answer = createForked()) =>
    createStubPlans({ forkPlan: () => Promise.resolve(answer) });
  const fork = (params: object, stub = createForking()) =>
    createPlanMethods(stub.use)("coordination.plan.fork", { coordinationId: "co-1", ...params });
  const report = {
    coordinationId: "co-2",
    forkedFrom: { coordinationId: "co-1", sequence: 42 },
    steps: 3,
    carried: ["a", "b"],
    anew: ["c"],
    replay: false,
    preview: false,
  };

  it("without more forks behind the newest event, under an id of its own", async () => {
    const stub = createForking();
    expect(await fork({}, stub)).toEqual({ ok: true, payload: report });
    expect(stub.askedCalls).toEqual([{ subject: "forkPlan", args: [{ source: "co-1" }] }]);
  });

  it("hands over the place, the id, whether it is only a preview, and the policy as it is read", async () => {
    const stub = createForking();
    const policy = { retry: { budget: 0 }, escalations: { requireDifferentApprover: true } };
    await fork({ from: 0, forkId: "co-2", policy, preview: true }, stub);
    expect(stub.askedCalls[0]?.args).toEqual([
      {
        source: "co-1",
        from: 0,
        coordinationId: "co-2",
        isPreview: true,
        policy: { retry: { budget: 0 }, requireDifferentApprover: true },
      },
    ]);
  });

  it.each([
    ["replay", { replay: true, preview: false }],
    ["preview", { replay: false, preview: true }],
  ])("says that it is a %s", async (kind, expected) => {
    const answer = await fork({ preview: kind === "preview" }, createForking(createForked({ kind })));
    expect(answer).toEqual({ ok: true, payload: { ...report, ...expected } });
  });

  it("of a refused plan has a sentence, and all problems as details", async () => {
    const problems = [
      { path: "coordinationId", code: "COORDINATION_TAKEN", message: "there is another one" },
      { path: "steps[1]", code: "CHECK_UNKNOWN", message: "nobody knows it" },
    ];
    const stub = createForking({ kind: "refused", problems } as PlanForked);
    expect(await fork({ forkId: "co-2" }, stub)).toEqual({
      ok: false,
      error: {
        code: "PLAN_REFUSED",
        message: "coordinationId: there is another one, and 1 more",
        details: { problems },
      },
    });
  });

  it.each(["COORDINATION_NOT_FOUND", "INPUT_INVALID"] as const)(
    "tells %s with its sentence",
    async (code) => {
      const stub = createStubPlans({
        forkPlan: () => Promise.reject(new CoordinationError(code, "it is not so")),
      });
      expect(await fork({}, stub)).toEqual({ ok: false, error: { code, message: "it is not so" } });
    },
  );

  const nestLevels = (levels: number): object =>
    Array.from({ length: levels }).reduce<object>((inner) => ({ x: inner }), {});

  it.each([
    ["a policy that says nothing", { policy: {} }, "a policy says something of gates"],
    ["a policy that is none", { policy: 5 }, "policy: expected record, got number 5"],
    ["a word that no policy has", { policy: { lanes: {} } }, '"lanes"'],
    [
      "a value out of its range",
      { policy: { gates: { confidenceThreshold: 2 } } },
      "gates.confidenceThreshold: ",
    ],
    [
      "a policy that is too deep",
      { policy: { gates: nestLevels(40) } },
      /^policy\.gates(\.x)+: expected at most \d+ levels/u,
    ],
    [
      "a policy that is too large",
      { policy: { gates: { verifiers: "x".repeat(1_100_000) } } },
      /^policy\.gates\S*: expected at most \d+ characters/u,
    ],
    ["a place before the beginning", { from: -1 }, "from: expected at least 0, got number -1"],
    ["half a place", { from: 1.5 }, "from: expected int"],
    ["an id of nothing", { forkId: "" }, "forkId: expected at least 1 characters"],
    ["a preview that is a word", { preview: "yes" }, 'preview: expected boolean, got string "yes"'],
  ])("refuses %s, says where, and forks nothing", async (_, params, subject) => {
    const stub = createForking();
    expect(await fork(params, stub)).toEqual({
      ok: false,
      error: {
        code: "INPUT_INVALID",
        message: (typeof subject === "string"
          ? expect.stringContaining(subject)
          : expect.stringMatching(subject)) as string,
      },
    });
    expect(stub.askedCalls).toEqual([]);
  });
});
