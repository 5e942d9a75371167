/** Owns: a coordination as a tree: the owner, its children, theirs, and the plans that children run. Not: how it is drawn. */
import type { CoordinationView, StepView } from "../../agents/coordination/runtime/log/coordination-view.ts";
import type { UsageView } from "../../agents/coordination/runtime/log/usage-view.ts";
import { readNestedPlan } from "../../agents/coordination/runtime/log/coordination-view.ts";
import type { CoordinationId, EpochMs, StepId } from "../../agents/coordination/contracts/ids.ts";
import { readGateway, type GatewayReport } from "./gateway-report.ts";
import type { ReportedLedger } from "./reported-ledger.ts";
import { giveWay } from "../../platform/give-way.ts";
import { stepName } from "./step-name.ts";

export interface TreeNode {
  /** The owner's session key, or the name of a step. */
  readonly name: string;
  /** Absent for the owner. */
  readonly stepId?: StepId;
  readonly sessionKey?: string;
  readonly agentId?: string;
  readonly lane?: StepView["lane"];
  readonly status: StepView["status"] | CoordinationView["status"];
  /** The use of its own model calls; absent where nothing is known of it. */
  readonly usage?: UsageView;
  /** From its dispatch until its end, or until now. */
  readonly durationMs?: number;
  /** The plan that its agent submitted. */
  readonly planId?: CoordinationId;
  readonly children: readonly TreeNode[];
}

export interface AgentTree {
  readonly coordinationId: CoordinationId;
  readonly status: CoordinationView["status"];
  readonly startedAtMs: EpochMs;
  readonly endedAtMs?: EpochMs;
  /** The use of all sessions together, plans of children included. */
  readonly usage: { readonly tokens: number; readonly costMicroUsd: number };
  readonly budget?: NonNullable<CoordinationView["budget"]>;
  readonly budgetStops?: NonNullable<CoordinationView["budgetStops"]>;
  /** Where several gateways share the ledger. */
  readonly gateway?: GatewayReport;
  readonly tree: TreeNode;
}

/** Plans that steps of plans submit, by the step. */
type NestedPlans = ReadonlyMap<StepId, NestedPlan>;

interface NestedPlan {
  readonly view: CoordinationView;
  readonly nested: NestedPlans;
}

/** The ledger lets plans be nested no deeper. */
const NESTING_MAX = 5;

export async function readTree(
  reader: ReportedLedger,
  view: CoordinationView,
  now: EpochMs,
): Promise<AgentTree> {
  const plan: NestedPlan = { view, nested: await readNested(reader, view, NESTING_MAX) };
  const { coordinationId, status, createdAtMs, endedAtMs, ownerSession, ownerUsage, budget, budgetStops } =
    view;
  return {
    coordinationId,
    status,
    startedAtMs: createdAtMs,
    ...(endedAtMs !== undefined && { endedAtMs }),
    usage: sumUsage(plan),
    ...(budget && { budget }),
    ...(budgetStops && { budgetStops }),
    ...(await readGateway(reader, view)),
    tree: {
      name: ownerSession,
      sessionKey: ownerSession,
      status,
      ...(ownerUsage && { usage: ownerUsage }),
      durationMs: Math.max(0, (endedAtMs ?? now) - createdAtMs),
      children: childrenOf(plan, undefined, now),
    },
  };
}

async function readNested(
  reader: ReportedLedger,
  { coordinationId, steps }: CoordinationView,
  levels: number,
): Promise<NestedPlans> {
  const nested = new Map<StepId, NestedPlan>();
  if (levels === 0) return nested;
  for (const { stepId } of steps) {
    await giveWay();
    const view = await readNestedPlan(reader, coordinationId, stepId);
    if (view) nested.set(stepId, { view, nested: await readNested(reader, view, levels - 1) });
  }
  return nested;
}

/** Sums the use of a tree. A step's runner tells it with that of its agent's plan, which is summed here by itself. */
function sumUsage({ view, nested }: NestedPlan): AgentTree["usage"] {
  let { tokens, costMicroUsd } = view.usage ?? NOTHING;
  for (const { stepId, usage } of view.steps) {
    const plan = nested.get(stepId);
    if (!plan) continue;
    const more = sumUsage(plan);
    const whole = usage ?? NOTHING;
    const ofCalls = usage?.ofCalls ?? whole;
    tokens += more.tokens + ofCalls.tokens - whole.tokens;
    costMicroUsd += more.costMicroUsd + ofCalls.costMicroUsd - whole.costMicroUsd;
  }
  return { tokens, costMicroUsd };
}

const NOTHING = { tokens: 0, costMicroUsd: 0 };

/** Returns what the step's own model calls used, without the plan of its agent. */
function readOwnUsage({ usage }: StepView, submitted: NestedPlan | undefined): UsageView | undefined {
  return usage && submitted ? { ...usage, ...usage.ofCalls } : usage;
}

/** In the order of admission. */
function childrenOf(plan: NestedPlan, parent: StepId | undefined, now: EpochMs): TreeNode[] {
  const byParent = Map.groupBy(plan.view.steps, ({ parentStepId }) => parentStepId);
  const listNodesUnder = (stepId: StepId | undefined): TreeNode[] =>
    (byParent.get(stepId) ?? []).map((step) => {
      const submitted = plan.nested.get(step.stepId);
      const ofPlan = submitted ? childrenOf(submitted, undefined, now) : [];
      return nodeOf(step, { now, submitted, children: [...listNodesUnder(step.stepId), ...ofPlan] });
    });
  return listNodesUnder(parent);
}

interface Surroundings {
  readonly now: EpochMs;
  readonly submitted: NestedPlan | undefined;
  readonly children: readonly TreeNode[];
}

function nodeOf(step: StepView, { now, submitted, children }: Surroundings): TreeNode {
  const { stepId, agentId, lane, status, childSessionKey, dispatchedAtMs, endedAtMs } = step;
  const usage = readOwnUsage(step, submitted);
  return {
    name: stepName(step),
    stepId,
    ...(childSessionKey && { sessionKey: childSessionKey }),
    agentId,
    lane,
    status,
    ...(usage && { usage }),
    ...(dispatchedAtMs !== undefined && { durationMs: Math.max(0, (endedAtMs ?? now) - dispatchedAtMs) }),
    ...(submitted && { planId: submitted.view.coordinationId }),
    children,
  };
}
