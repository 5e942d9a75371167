/** Owns: starting runs, for callers and for the runs that start others: what is refused, and the event that begins one. */
import { type CoordinationId, createEventId, formatTimestamp } from "../../../contracts/ids.ts";
import { WORKFLOW_BOUNDS } from "../../../contracts/workflows/workflow-bounds.ts";
import type { WorkflowNode } from "../../../contracts/workflows/workflow-definition.ts";
import {
  findPayloadProblem,
  isParentOnThisHost,
  type ParentRun,
  type WorkflowEvent,
  type WorkflowPayloads,
} from "../../../contracts/workflows/workflow-events.ts";
import {
  explainNotPlayed,
  findPlayedPart,
  findScriptedProviderRefusal,
  NOT_PLAYED,
} from "../../../workflow/node-contract/conformance-parts.ts";
import type { WorkflowSettings } from "../../../workflow/node-contract/node-type.ts";
import { evolveWorkflow } from "../../../workflow/state/evolve-workflow.ts";
import { listAiOptionValues } from "../../../workflow/state/model-options.ts";
import type { NodeGraph } from "../../../workflow/state/node-graph.ts";
import { isEndedPhase } from "../../../workflow/state/workflow-state.ts";
import { findNodeType } from "../../../workflow/nodes/node-types.ts";
import { listSchemaProblems } from "../../../plan/output-schema.ts";
import { isRecord } from "../../../std/is-record.ts";
import { listAgentPins, type AgentBook } from "../agents/agent-book.ts";
import { refuse } from "../records/refuse.ts";
import type { LoadedRun, RunBook, RunnableWorkflow } from "../records/run-book.ts";
import type { RunDriver } from "./drive-runs.ts";
import { listMissingInputs, listOptionsOutOfRange } from "./option-problems.ts";
import type { CountedRun, TenantUsage } from "../records/tenant-usage.ts";
import type { HostAnswer, Caller, CreateRun, HostRefusal } from "../records/workflow-host.ts";
import type { WorkflowHostDependencies } from "../records/workflow-dependencies.ts";

/** Decides whether this host can run a workflow. */
export type AdmissionRules = Pick<CreateDependencies, "settings" | "agentBook">;

export interface CreateDependencies extends Pick<
  WorkflowHostDependencies,
  "clock" | "settings" | "newRunId" | "contract"
> {
  readonly book: RunBook;
  readonly agentBook: Pick<AgentBook, "pin" | "problemOf" | "workflowOf">;
  readonly driver: Pick<RunDriver, "begin" | "newest" | "adoptUnknown">;
  readonly usage: TenantUsage;
}

/** A requested run, with the fields that only a host sets. */
export type NewRun = CreateRun & {
  readonly memoryScope?: string;
  readonly hasIsolatedMemory?: true;
  readonly memoryHome?: CoordinationId;
  readonly depth?: number;
  /** Begun by a run of this host, as its child. */
  readonly isChild?: boolean;
};

/**
 * Starts a run and returns it, or the refusal. A run of the tenant that has its id already was begun by an earlier
 * try: it is returned, whatever would be refused now; that of another tenant is refused.
 */
export async function createRun(
  dependencies: CreateDependencies,
  caller: Caller,
  newRun: NewRun,
): Promise<HostAnswer<LoadedRun>> {
  const { runId } = newRun;
  const existing = runId === undefined ? undefined : await findExistingRun(dependencies, caller, runId);
  if (!existing) return createNewRun(dependencies, caller, newRun);
  if (existing.kind === "done") await adoptUnlessEnded(dependencies, existing.value);
  return existing;
}

/**
 * Goes on with a run that was there already, unless it has ended. The try that wrote it may have ended before the
 * ledger showed it, with nobody who goes on with it.
 */
async function adoptUnlessEnded({ driver }: CreateDependencies, { run }: LoadedRun): Promise<void> {
  if (!isEndedPhase(run.phase)) await driver.adoptUnknown(run.runId);
}

/** Begins a run if nothing refuses it. Returns the one that was begun by the same id meanwhile, if there is one. */
async function createNewRun(
  dependencies: CreateDependencies,
  caller: Caller,
  newRun: NewRun,
): Promise<HostAnswer<LoadedRun>> {
  const workflow = await findRequestedWorkflow(dependencies, caller, newRun);
  if ("kind" in workflow) return workflow;
  const refusal = await findCreateRefusal(dependencies, workflow, newRun);
  if (refusal) return refusal;
  const { graph } = workflow;
  const runId = newRun.runId ?? dependencies.newRunId();
  const loadedRun = await correctParentClaim(dependencies, caller, newRun);
  const agents = await dependencies.agentBook.pin(graph);
  const first = createStartedEvent(dependencies, { runId, caller, graph, agents, asked: loadedRun });
  const problem = findPayloadProblem(first.type, first.payload);
  if (problem !== undefined) return refuse("validation_error", `the request cannot be recorded: ${problem}`);
  const counted = countNewRun(dependencies, caller, { newRun, runId });
  if (counted.kind === "refused") return counted;
  const begun = await beginCountedRun(counted, async () => {
    await dependencies.book.store(workflow);
    return dependencies.driver.begin(first, { run: evolveWorkflow(undefined, first), graph });
  });
  if (begun) return { kind: "done", value: begun };
  return (await findExistingRun(dependencies, caller, runId)) ?? refuseTakenRunId(runId);
}

async function findCreateRefusal(
  dependencies: CreateDependencies,
  workflow: RunnableWorkflow,
  newRun: NewRun,
): Promise<HostRefusal | undefined> {
  return (
    findWorkflowRefusal(dependencies, workflow) ??
    refuseIfNestedTooDeep(newRun) ??
    (await findOptionRefusal(dependencies, workflow, newRun))
  );
}

/** Counts a run for the quotas of its tenant, or refuses it where one of them is reached. */
function countNewRun(
  { usage }: CreateDependencies,
  { tenant }: Caller,
  { newRun, runId }: { readonly newRun: NewRun; readonly runId: CoordinationId },
): HostRefusal | CountedRun {
  const { isChild = false, parent } = newRun;
  const from = isChild ? parent?.runId : undefined;
  return usage.begin(runId, { tenant, isRequest: !isChild, ...(from !== undefined && { from }) });
}

/**
 * Begins a run that was counted, and takes the count back where it does not begin. One that is there by that id is
 * counted when it is appended to.
 */
async function beginCountedRun<T>(
  { forget }: CountedRun,
  begin: () => Promise<T | undefined>,
): Promise<T | undefined> {
  let begun: T | undefined;
  try {
    begun = await begin();
    return begun;
  } finally {
    if (begun === undefined) forget();
  }
}

/** Returns the workflow that is asked for, by its id or as that of an agent; refuses one that is not here. */
async function findRequestedWorkflow(
  { book, agentBook }: CreateDependencies,
  { tenant }: Caller,
  { workflowId, agent }: NewRun,
): Promise<RunnableWorkflow | HostRefusal> {
  if (!agent)
    return (
      (await book.workflow(tenant, workflowId)) ??
      refuse("workflow_not_found", `there is no workflow ${workflowId}`)
    );
  const problem = agentBook.problemOf(agent);
  if (problem !== undefined) return refuse("validation_error", problem);
  const { agentId } = agent;
  return agentBook.workflowOf(agentId) ?? refuse("workflow_not_found", `there is no agent ${agentId}`);
}

/** Returns the run by this id, refuses another tenant's; `undefined` where there is none. */
async function findExistingRun(
  { driver }: CreateDependencies,
  { tenant }: Caller,
  runId: CoordinationId,
): Promise<HostAnswer<LoadedRun> | undefined> {
  const existing = await driver.newest(runId);
  if (!existing) return undefined;
  return existing.run.started.owner.tenant === tenant
    ? { kind: "done", value: existing }
    : refuseTakenRunId(runId);
}

function refuseTakenRunId(runId: CoordinationId): HostRefusal {
  return refuse("run_already_active", `there is a run ${runId} already`);
}

function refuseIfNestedTooDeep(newRun: NewRun): HostRefusal | undefined {
  const { nestingMax } = WORKFLOW_BOUNDS;
  return countEnclosingRuns(newRun) > nestingMax
    ? refuse("validation_error", `runs are nested deeper than ${nestingMax}`)
    : undefined;
}

/**
 * Returns the refusal of a workflow that this host cannot run, before anything begins, such as one with a node of a
 * type that it does not know; `undefined` where it can.
 */
export function findWorkflowRefusal(
  { settings, agentBook }: AdmissionRules,
  { graph, definition }: RunnableWorkflow,
): HostRefusal | undefined {
  for (const { node } of graph.nodes.values()) {
    const { typeId, id } = node;
    const details = { requiredCapability: typeId, offendingTypeId: typeId, nodeId: id };
    const playedPart = settings.play ? undefined : findPlayedPart(node);
    if (playedPart !== undefined) return refuse(NOT_PLAYED, explainNotPlayed(node, playedPart), details);
    if (!findNodeType(typeId, settings))
      return refuse(
        "capability_required",
        `node ${id} is of the type ${typeId}, which this host does not run`,
        details,
      );
  }
  const unknown = listAgentPins(graph).flatMap((pin) => agentBook.problemOf(pin) ?? []);
  const problems = [
    ...listNodeProblems(graph, settings),
    ...unknown,
    ...listSchemaProblems(definition.configurableSchema, "configurableSchema"),
  ];
  return problems.length > 0 ? refuse("validation_error", problems.join("; "), { problems }) : undefined;
}

function listNodeProblems(graph: NodeGraph, settings: WorkflowSettings): string[] {
  return [...graph.nodes.values()].flatMap((node) => [
    ...(findNodeType(node.node.typeId, settings)?.check?.(node, graph, settings) ?? []),
    ...(settings.play?.check(node) ?? []),
    ...listMaskedOutputProblems(node.node),
  ]);
}

/** Lists the outputs that a node wants masked, as problems: nodes behind it read them from the log. */
function listMaskedOutputProblems({ id, outputSensitivity }: WorkflowNode): string[] {
  if (!isRecord(outputSensitivity)) return [];
  return Object.entries(outputSensitivity).flatMap(([port, isSensitive]) =>
    isSensitive === true
      ? [`node ${id} wants its output ${port} masked (outputSensitivity), and this host masks no outputs`]
      : [],
  );
}

/**
 * Returns the refusal of a run's options and inputs that are out of range, missing or not of the workflow's schema;
 * `undefined` where they fit.
 */
export async function findOptionRefusal(
  dependencies: Pick<CreateDependencies, "settings" | "contract">,
  { definition, graph }: RunnableWorkflow,
  { configurable = {}, inputs }: Pick<CreateRun, "configurable" | "inputs">,
): Promise<HostRefusal | undefined> {
  const refusal = findUnkeptOptionRefusal(configurable);
  if (refusal) return refusal;
  const problems = [
    ...listOptionsOutOfRange(dependencies.settings, configurable),
    ...listMissingInputs(graph, inputs),
  ];
  if (definition.configurableSchema) {
    const contract = await dependencies.contract();
    const schemaProblems = contract.check(definition.configurableSchema, configurable);
    problems.push(...schemaProblems.map(({ path, message }) => `configurable.${path}: ${message}`));
  }
  return problems.length > 0 ? refuse("validation_error", problems.join("; "), { problems }) : undefined;
}

/**
 * Returns the refusal of options that would be ignored otherwise; `undefined` where there are none. Null leaves an
 * option out, so that a branch can be without its source's.
 */
export function findUnkeptOptionRefusal(
  configurable: NonNullable<CreateRun["configurable"]>,
): HostRefusal | undefined {
  const provider = findScriptedProviderRefusal(configurable);
  if (provider) return refuse("mock_provider_forbidden", provider.message, provider.details);
  if (listAiOptionValues(configurable, "credentialRef").length > 0)
    return refuse(
      "capability_required",
      "this host asks models with its own credentials; leave `configurable.ai.credentialRef` out, or set it to null in the overlay of a branch",
      { requiredCapability: "aiProviders.byok" },
    );
  const { promptOverrides } = configurable;
  const isKept = isRecord(promptOverrides) && Object.keys(promptOverrides).length === 0;
  if (promptOverrides === undefined || promptOverrides === null || isKept) return undefined;
  return refuse(
    "capability_required",
    "this host has no prompts with ids that a run could replace; leave `configurable.promptOverrides` out, or set it to null in the overlay of a branch",
    { requiredCapability: "prompts" },
  );
}

/** A run that is to begin, with its caller, its graph and its agents. */
interface RunToBegin {
  readonly runId: CoordinationId;
  readonly caller: Caller;
  readonly asked: NewRun;
  readonly graph: NodeGraph;
  readonly agents: Readonly<Record<string, string>>;
}

function createStartedEvent(
  dependencies: CreateDependencies,
  { runId, caller, asked: newRun, graph, agents }: RunToBegin,
): WorkflowEvent {
  const { parent, inputs, transport, memoryScope, scopeId, agent } = newRun;
  return {
    eventId: createEventId(runId, 0),
    runId,
    sequence: 0,
    type: "run.started",
    timestamp: formatTimestamp(dependencies.clock.now()),
    ...createCausation(parent),
    payload: {
      workflowId: graph.workflowId,
      inputs: { ...inputs },
      transport,
      owner: { tenant: caller.tenant, principal: caller.principal },
      definition: graph.definition,
      memoryScope: memoryScope ?? scopeId ?? runId,
      ...(caller.scopes && { scopes: [...caller.scopes] }),
      ...(agent && { agent: { agentId: agent.agentId, source: agent.source } }),
      ...(Object.keys(agents).length > 0 && { agents }),
      ...pickStatedOptions(newRun),
      ...(parent?.eventId !== undefined && !isParentOnThisHost(parent) && { causationHostId: parent.hostId }),
    },
  };
}

const STATED = [
  "hasIsolatedMemory",
  "memoryHome",
  "configurable",
  "tags",
  "metadata",
  "parent",
  "depth",
  "traceparent",
  "tracestate",
] as const;

/** Picks the options that were stated; the others are left out. */
function pickStatedOptions(newRun: NewRun): Pick<WorkflowPayloads["run.started"], (typeof STATED)[number]> {
  return Object.fromEntries(STATED.flatMap((key) => (newRun[key] === undefined ? [] : [[key, newRun[key]]])));
}

/** Returns the `causationId` of a run's first event: the event of the parent that started it, if it is known. */
function createCausation(parent: ParentRun | undefined): { readonly causationId?: WorkflowEvent["eventId"] } {
  const eventId = parent?.eventId;
  return eventId === undefined ? {} : { causationId: eventId };
}

/** Counts the runs that this one is nested in, those on other hosts included. */
function countEnclosingRuns({ depth, parent }: NewRun): number {
  return depth ?? (parent ? (parent.depth ?? 0) + 1 : 0);
}

/**
 * Corrects a parent that is said to be on another host and is on this one. It stays without its event as a cause, or
 * not at all where the caller may not know of it.
 */
async function correctParentClaim(
  { driver, settings }: CreateDependencies,
  { tenant }: Caller,
  request: NewRun,
): Promise<NewRun> {
  const depth = countEnclosingRuns(request);
  const deepRun = { ...request, ...(depth > 0 && { depth }) };
  const claimed = deepRun.parent;
  if (claimed?.wellKnownUrl === undefined || claimed.hostId !== settings.hostId) return deepRun;
  const { wellKnownUrl: _, eventId: _event, ...parent } = claimed;
  const { parent: _parent, ...alone } = deepRun;
  const run = (await driver.newest(parent.runId as CoordinationId))?.run;
  return run?.started.owner.tenant === tenant ? { ...deepRun, parent } : alone;
}
