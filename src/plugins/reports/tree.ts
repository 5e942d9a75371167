/** Owns: a coordination as a tree: the owner, its children, theirs, and the plans that children run. Not: how it is drawn. */
import type { CoordinationView, StepView } from "../../agents/coordination/runtime/log/coordination-view.ts";
import type { UsageView } from "../../agents/coordination/runtime/log/usage-view.ts";
import { readNestedPlans } from "../../agents/coordination/runtime/log/read-nested-plans.ts";
import type { CoordinationId, EpochMs, StepId } from "../../agents/coordination/contracts/ids.ts";
import { readUnlessDamaged } from "../../agents/coordination/runtime/log/read-state.ts";
import { readGatewayField, type GatewayReport } from "./gateway-report.ts";
import type { ReportedLedger } from "./reported-ledger.ts";
import { giveWay } from "../../platform/give-way.ts";
import { nameStep } from "./step-name.ts";

export interface TreeNode {
  /** The owner's session key, or the name of a step. */
  readonly name: string;
  /** Absent for the owner. */
  readonly stepId?: StepId;
  /** The coordination whose step it is: the one of the tree, or a plan that a child runs. Absent for the owner. */
  readonly coordinationId?: CoordinationId;
  readonly sessionKey?: string;
  readonly agentId?: string;
  readonly lane?: StepView["lane"];
  readonly status: StepView["status"] | CoordinationView["status"];
  /** The use of its own model calls; absent where nothing is known of it. */
  readonly usage?: UsageView;
  /** From its dispatch until its end, or until now. */
  readonly durationMs?: number;
  /** The newest plan that its agent submitted; the steps of earlier ones are among its children, too. */
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

/** Plans that the agents of steps submitted, by the step, the oldest first. */
type NestedPlans = ReadonlyMap<StepId, readonly NestedPlan[]>;

interface NestedPlan {
  readonly view: CoordinationView;
  readonly nested: NestedPlans;
}

/** The ledger lets plans be nested no deeper. */
const NESTING_MAX = 5;

type TreeReader = Pick<ReportedLedger, "holders" | "owners" | "read">;

/**
 * Reads the tree of a coordination, with the plans that its children submitted and theirs to a bounded depth, and
 * returns it with the usage of all. @throws CoordinationError as `readStoredState`
 */
export async function readAgentTree(
  reader: TreeReader,
  view: CoordinationView,
  now: EpochMs,
): Promise<AgentTree> {
  const plan: NestedPlan = { view, nested: await readPlansBelow(reader, view, NESTING_MAX) };
  const { coordinationId, status, createdAtMs, endedAtMs, ownerSession, ownerUsage, budget, budgetStops } =
    view;
  return {
    coordinationId,
    status,
    startedAtMs: createdAtMs,
    ...(endedAtMs !== undefined && { endedAtMs }),
    usage: sumTreeUsage(plan),
    ...(budget && { budget }),
    ...(budgetStops && { budgetStops }),
    ...(await readGatewayField(reader, view)),
    tree: {
      name: ownerSession,
      sessionKey: ownerSession,
      status,
      ...(ownerUsage && { usage: ownerUsage }),
      durationMs: Math.max(0, (endedAtMs ?? now) - createdAtMs),
      children: buildSubtrees(plan, undefined, now),
    },
  };
}

/**
 * Returns a coordination's view whose usage includes that of the plans that its children submitted; the same view
 * where one of their logs cannot be read.
 */
export async function addUsageOfPlans(reader: TreeReader, view: CoordinationView): Promise<CoordinationView> {
  const nested = await readUnlessDamaged(() => readPlansBelow(reader, view, NESTING_MAX));
  return nested ? withUsageOfTree(view, { usage: sumTreeUsage({ view, nested }) }) : view;
}

/**
 * Returns a coordination's view with the usage of its whole tree in place of its own; the same view where the tree
 * used nothing.
 */
export function withUsageOfTree(
  view: CoordinationView,
  { usage }: Pick<AgentTree, "usage">,
): CoordinationView {
  return usage.tokens + usage.costMicroUsd > 0 ? { ...view, usage } : view;
}

/** Reads the plans that the agents of steps submitted, by the step, and theirs, down to so many levels. */
async function readPlansBelow(
  reader: TreeReader,
  { coordinationId, steps }: CoordinationView,
  levels: number,
): Promise<NestedPlans> {
  const nested = new Map<StepId, NestedPlan[]>();
  if (levels === 0) return nested;
  for (const { stepId } of steps) {
    await giveWay();
    const plans: NestedPlan[] = [];
    for (const view of await readNestedPlans(reader, coordinationId, stepId))
      plans.push({ view, nested: await readPlansBelow(reader, view, levels - 1) });
    if (plans.length > 0) nested.set(stepId, plans);
  }
  return nested;
}

/** Sums the use of a tree. A step's use may tell that of its agent's plans, which are summed here by themselves. */
function sumTreeUsage({ view, nested }: NestedPlan): AgentTree["usage"] {
  let { tokens, costMicroUsd } = view.usage ?? NOTHING;
  for (const step of view.steps) {
    const plans = nested.get(step.stepId);
    if (!plans) continue;
    const whole = step.usage ?? NOTHING;
    const ofStep = readOwnUsage(step, plans) ?? NOTHING;
    const ofPlans = sumPlansUsage(plans);
    tokens += ofStep.tokens + ofPlans.tokens - whole.tokens;
    costMicroUsd += ofStep.costMicroUsd + ofPlans.costMicroUsd - whole.costMicroUsd;
  }
  return { tokens, costMicroUsd };
}

function sumPlansUsage(plans: readonly NestedPlan[]): AgentTree["usage"] {
  let { tokens, costMicroUsd } = NOTHING;
  for (const used of plans.map(sumTreeUsage)) {
    tokens += used.tokens;
    costMicroUsd += used.costMicroUsd;
  }
  return { tokens, costMicroUsd };
}

const NOTHING = { tokens: 0, costMicroUsd: 0 };

/**
 * Returns what the step's own agent used, without the plans that it submitted. Its runner reports both together, when
 * an attempt ends; before that only the usage of its model calls is known.
 */
function readOwnUsage({ usage }: StepView, plans: readonly NestedPlan[]): UsageView | undefined {
  if (!usage || plans.length === 0) return usage;
  const { ofCalls = usage } = usage;
  const ofPlans = sumPlansUsage(plans);
  return {
    ...usage,
    tokens: Math.max(ofCalls.tokens, usage.tokens - ofPlans.tokens),
    costMicroUsd: Math.max(ofCalls.costMicroUsd, usage.costMicroUsd - ofPlans.costMicroUsd),
  };
}

/** Builds the nodes below a step, or below the owner, with the plans that their agents run, in order of admission. */
function buildSubtrees(plan: NestedPlan, parent: StepId | undefined, now: EpochMs): TreeNode[] {
  const byParent = Map.groupBy(plan.view.steps, ({ parentStepId }) => parentStepId);
  const listNodesUnder = (stepId: StepId | undefined): TreeNode[] =>
    (byParent.get(stepId) ?? []).map((step) => {
      const plans = plan.nested.get(step.stepId) ?? [];
      const ofPlans = plans.flatMap((submitted) => buildSubtrees(submitted, undefined, now));
      const children = [...listNodesUnder(step.stepId), ...ofPlans];
      return createTreeNode(step, { coordinationId: plan.view.coordinationId, now, plans, children });
    });
  return listNodesUnder(parent);
}

/** The coordination around a step, with the nodes below the step. */
interface NodeSurroundings {
  readonly coordinationId: CoordinationId;
  readonly now: EpochMs;
  readonly plans: readonly NestedPlan[];
  readonly children: readonly TreeNode[];
}

function createTreeNode(
  step: StepView,
  { coordinationId, now, plans, children }: NodeSurroundings,
): TreeNode {
  const { stepId, agentId, lane, status, childSessionKey, dispatchedAtMs, endedAtMs } = step;
  const usage = readOwnUsage(step, plans);
  const newest = plans.at(-1);
  return {
    name: nameStep(step),
    stepId,
    coordinationId,
    ...(childSessionKey && { sessionKey: childSessionKey }),
    agentId,
    lane,
    status,
    ...(usage && { usage }),
    ...(dispatchedAtMs !== undefined && { durationMs: Math.max(0, (endedAtMs ?? now) - dispatchedAtMs) }),
    ...(newest && { planId: newest.view.coordinationId }),
    children,
  };
}
