/** Owns: taking a workflow into the host for one tenant, or saying why not. */
import { describeProblems } from "../../../contracts/validation.ts";
import { readWorkflowDefinition } from "../../../contracts/workflows/workflow-definition.ts";
import { DISPATCH } from "../../../workflow/state/graph.ts";
import { isSubWorkflowType } from "../../../workflow/nodes/node-types.ts";
import { isRecord } from "../../../std/is-record.ts";
import { expandDefinition } from "./abbreviated-definition.ts";
import { findWorkflowRefusal, type AdmissionRules } from "../driving/create-run.ts";
import { refuse } from "../records/refuse.ts";
import type { RunBook } from "../records/run-book.ts";
import type { HostAnswer, Caller, HostRefusal, WorkflowSeams } from "../records/workflow-host.ts";

export interface RegisterDependencies extends AdmissionRules {
  readonly book: RunBook;
  /** Tells which capabilities a test has taken away. */
  readonly seams?: WorkflowSeams;
}

/**
 * Checks a workflow's definition and stores it for one tenant. Returns its id, or the refusal of one that this host
 * cannot take.
 */
export async function registerWorkflow(
  { book, settings, agentBook, seams }: RegisterDependencies,
  { tenant }: Caller,
  value: unknown,
): Promise<HostAnswer<{ readonly workflowId: string }>> {
  const wholeDefinition = expandDefinition(value);
  // Before the rest is looked at: a client that lacks the capability learns that, and not what else is wrong.
  const missing = refuseMissingCapability(wholeDefinition, seams);
  if (missing) return missing;
  const parsed = readWorkflowDefinition(wholeDefinition);
  if (!parsed.ok) return refuse("validation_error", describeProblems(parsed.problems));
  const { nodes } = parsed.value;
  const malformedNodeIndex = nodes.findIndex(({ id }) => !id.isWellFormed());
  // Such an id is stored as another text, and the log of a run would no longer match its hashes.
  if (malformedNodeIndex >= 0)
    return refuse(
      "validation_error",
      `nodes[${malformedNodeIndex}].id is no Unicode text: it has half of a surrogate pair`,
    );
  const { workflow, problems } = book.compile(parsed.value);
  if (!workflow) return refuse("validation_error", problems.join("; "), { problems });
  const refusal = findWorkflowRefusal({ settings, agentBook }, workflow);
  if (refusal) return refusal;
  await book.store(workflow, tenant);
  return { kind: "done", value: { workflowId: parsed.value.id } };
}

const CAPABILITIES: readonly (readonly [capability: string, needs: (typeId: unknown) => boolean])[] = [
  ["agents.dispatchMapping", (typeId) => typeId === DISPATCH],
  ["subWorkflow.inputMapping", (typeId) => typeof typeId === "string" && isSubWorkflowType(typeId)],
];

/** Refuses a workflow with nodes that need a capability which a test has switched off. */
function refuseMissingCapability(
  definition: unknown,
  seams: RegisterDependencies["seams"],
): HostRefusal | undefined {
  const nodes = isRecord(definition) && Array.isArray(definition["nodes"]) ? definition["nodes"] : [];
  const types = nodes.filter(isRecord).map(({ typeId }) => typeId);
  const [missing] = CAPABILITIES.find(([name, needs]) => seams?.isOff(name) && types.some(needs)) ?? [];
  return missing === undefined
    ? undefined
    : refuse("validation_error", `the workflow needs ${missing}, which this host does not offer now`, {
        requiredCapability: missing,
      });
}
