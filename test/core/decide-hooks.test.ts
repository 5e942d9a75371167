import { describe, expect, it } from "vitest";
import type { AgentId, EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  DecisionAnswer,
  PluginDecision,
  PluginHooks,
} from "../../src/agents/coordination/runtime/environment/plugin-hooks.ts";
import type { PlanSubmitted } from "../../src/agents/coordination/runtime/plans/plan-requests.ts";
import { OWNER } from "../support/fake-clock-host.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { openScene, type Scene } from "./arbiter-scene.ts";
import { plan, step, type Fields } from "./plan-scene.ts";

type Say = (decision: PluginDecision) => DecisionAnswer | undefined | Promise<DecisionAnswer | undefined>;

interface DecisionScene {
  readonly s: Scene;
  readonly decisions: { readonly decision: PluginDecision; readonly deadlineAtMs: EpochMs }[];
  readonly submit: (fields?: Fields, rest?: object) => Promise<PlanSubmitted>;
}

async function submitDecidedPlan(say: Say): Promise<DecisionScene> {
  const decisions: DecisionScene["decisions"] = [];
  const hooks: PluginHooks = {
    hasAny: () => true,
    arbitrate: () => Promise.resolve(undefined),
    decide: async (decision, deadlineAtMs) => {
      decisions.push({ decision, deadlineAtMs });
      return say(decision);
    },
  };
  const s = await openScene({ dependencies: { hooks } });
  return { s, decisions, submit: (fields, rest) => submit(s, fields, rest) };
}

async function submit(s: Scene, fields: Fields = {}, rest: object = {}): Promise<PlanSubmitted> {
  const steps = [step("a"), step("b", ["a"], { agent: "Writer" }), step("c")];
  const submitted = await s.coordinator.submitPlan({
    plan: plan(steps, { coordinationId: "plan-1", ...fields }),
    ownerAgent: "main" as AgentId,
    ...rest,
  });
  for (let turn = 0; turn < 10; turn += 1) await waitUntilSettled();
  return submitted;
}

const createAllow = (confidence?: number): DecisionAnswer => ({
  action: "allow",
  ...(confidence !== undefined && { confidence }),
});
const doubtOf = (s: Scene): unknown => s.events("coordination.created")[0]?.plan?.decision;

describe("a plan that plugins decide about", () => {
  it("is asked about once, before anything of it is recorded, without its content", async () => {
    const {
      s,
      decisions,
      submit: send,
    } = await submitDecidedPlan(() => {
      expect(s.events("coordination.created")).toEqual([]);
      return createAllow();
    });
    await using _ = s;
    expect(await send({ confidence: 0.9 })).toMatchObject({ kind: "accepted" });
    const agents = decisions.flatMap(({ decision }) => (decision.kind === "plan" ? decision.agents : []));
    expect(agents).toHaveLength(2);
    expect(decisions).toEqual([
      {
        decision: {
          kind: "plan",
          agentId: "main",
          sourceSession: OWNER,
          coordinationId: "plan-1",
          steps: 3,
          agents,
          confidence: 0.9,
        },
        deadlineAtMs: s.clock.now() + 10_000,
      },
    ]);
    expect(s.plans.orders.map(({ envelope }) => envelope.stepId)).toEqual(["a", "c"]);
    expect(await send({ confidence: 0.9 })).toMatchObject({ kind: "replay" });
    expect(decisions).toHaveLength(1);
  });

  it.each([
    ["a model's", { submittedBy: OWNER }],
    ["an operator's", {}],
  ])("is refused in the plugin's words, %s too, and nothing of it is recorded", async (_whose, rest) => {
    const reason = "the plugin guard denied it: At most 2 steps.";
    const { s, submit: send } = await submitDecidedPlan(() => ({ action: "deny", reason }));
    await using _ = s;
    expect(await send({}, rest)).toEqual({
      kind: "refused",
      problems: [{ path: "(root)", code: "DENIED_BY_PLUGIN", message: reason }],
    });
    expect(s.events("coordination.created")).toEqual([]);
  });

  it("is not asked about where it cannot be accepted anyway", async () => {
    const { s, decisions, submit: send } = await submitDecidedPlan(() => createAllow());
    await using _ = s;
    expect(await send({ steps: [] })).toMatchObject({ kind: "refused" });
    const foreign = { submittedBy: "agent:main:other" };
    expect(await send({}, foreign)).toMatchObject({ problems: [{ code: "OWNER_MISMATCH" }] });
    expect(decisions).toEqual([]);
  });

  it("is held for people where a plugin is less sure than the floor, and none of it begins", async () => {
    const { s, submit: send } = await submitDecidedPlan(() => createAllow(0.4));
    await using _ = s;
    expect(await send({ confidence: 0.9 })).toMatchObject({ kind: "accepted" });
    expect(doubtOf(s)).toEqual({ confidence: 4_000, floor: 5_000 });
    expect(s.events("coordination.escalated")).toMatchObject([{ cause: "confidence" }]);
    expect(s.plans.orders).toEqual([]);
  });

  it.each([
    ["the plan's, where that is less", 0.3, 0.4, { confidence: 3_000, floor: 5_000 }],
    ["the plan's, where plugins state none", 0.3, undefined, { confidence: 3_000, floor: 5_000 }],
    ["the plugin's, where the plan states none", undefined, 0.4, { confidence: 4_000, floor: 5_000 }],
    ["no doubt, where it is the floor", 0.9, 0.5, undefined],
    ["no doubt, where nobody states one", undefined, undefined, undefined],
  ])("is as sure as %s", async (_name, planned, statedShare, doubt) => {
    const { s, submit: send } = await submitDecidedPlan(() => createAllow(statedShare));
    await using _ = s;
    await send(planned === undefined ? {} : { confidence: planned });
    expect(doubtOf(s)).toEqual(doubt);
  });

  it("goes on as without plugins where none has an opinion, or none has such a hook", async () => {
    const { s, submit: send } = await submitDecidedPlan(() => undefined);
    await using _ = s;
    expect(await send()).toMatchObject({ kind: "accepted" });
    const never: PluginHooks = {
      hasAny: (kind) => kind === "arbitrate",
      arbitrate: () => Promise.reject(new Error("not asked")),
      decide: () => Promise.reject(new Error("not asked")),
    };
    await using other = await openScene({ dependencies: { hooks: never } });
    expect(await submit(other)).toMatchObject({ kind: "accepted" });
  });

  it("is denied where the plugins' host breaks", async () => {
    const { s, submit: send } = await submitDecidedPlan(() => Promise.reject(new Error("secret")));
    await using _ = s;
    expect(await send()).toEqual({
      kind: "refused",
      problems: [
        {
          path: "(root)",
          code: "DENIED_BY_PLUGIN",
          message: "a plugin that decides about plans failed",
        },
      ],
    });
  });

  it("is denied where they never answer", async () => {
    const { s } = await submitDecidedPlan(() => new Promise(() => undefined));
    await using _ = s;
    const submitted = s.coordinator.submitPlan({
      plan: plan([step("a")], { coordinationId: "plan-1" }),
      ownerAgent: "main" as AgentId,
    });
    await s.clock.advance(15_000);
    expect(await submitted).toMatchObject({ problems: [{ code: "DENIED_BY_PLUGIN" }] });
    expect(s.events("coordination.created")).toEqual([]);
  });
});
