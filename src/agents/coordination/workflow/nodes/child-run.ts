/** Owns: what goes into a child run and what comes back, for every node that starts one (RFC 0022). */
import type { WorkflowDraft } from "../../contracts/workflows/workflow-events.ts";
import {
  withNodeId,
  type EffectOutcome,
  type ChildEffect,
  type NodeEffect,
  type NodeView,
} from "../node-contract/node-type.ts";
import { findLogIdentity, type WorkflowRun } from "../state/workflow-state.ts";
import { readNodeInputs, readVariable, type Values } from "../state/values.ts";
import { isRecord } from "../../std/is-record.ts";
import { draftVariableChange, type DraftOfChange } from "./ends.ts";

/** Names of one side by names of the other. */
export type NameMapping = Readonly<Record<string, string>>;

/** Returns the members of a configured mapping that map a name to a name; whatever else is in it is left out. */
export function readNameMapping(value: unknown): NameMapping {
  if (!isRecord(value)) return {};
  const entries = Object.entries(value).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  return Object.fromEntries(entries);
}

/**
 * Returns the run with the variables as they were when the node was started, or began to hand over to its newest worker.
 * A child that is begun again after a crash, or asked about later, is then the same one at the same host.
 */
function readRunAtStart({ run, nodeRun }: NodeView): WorkflowRun {
  return { ...run, variables: nodeRun.variablesAtStart };
}

/**
 * Returns the inputs of a child by a mapping `{child: parent}`, from the variables as the node began or began to hand
 * over to its newest worker. Variables that are not set are absent, never null.
 */
export function mapChildInputs(view: NodeView, mapping: NameMapping): Values {
  const run = readRunAtStart(view);
  const inputs: Record<string, unknown> = {};
  for (const [child, parent] of Object.entries(mapping)) {
    const value = readVariable(run, view.graph, parent);
    if (value !== undefined) inputs[child] = value;
  }
  return inputs;
}

/**
 * Drafts the changes of the parent's variables by a mapping `{parent: child}` of names. Variables that the child has
 * not set leave the parent's values alone.
 */
export function draftHarvestedChanges(view: NodeView, mapping: NameMapping, child: Values): DraftOfChange[] {
  return Object.entries(mapping).flatMap(([parent, name]) =>
    Object.hasOwn(child, name) && child[name] !== undefined
      ? [draftVariableChange(view, parent, child[name])]
      : [],
  );
}

/** Drafts that a child completed without meeting its success criteria; empty for one that met them (RFC 0090 §C). */
export function draftChildGaveUp(
  view: NodeView,
  childRunId: string | undefined,
  { unmet }: EffectOutcome & { kind: "child_ended" },
): WorkflowDraft[] {
  return unmet && childRunId !== undefined
    ? [withNodeId(view, { type: "coordination.child_gave_up", payload: { childRunId, unmet: [...unmet] } })]
    : [];
}

/** The fields that tell which child to begin, and with what. */
type ChildPlacement = Pick<
  ChildEffect,
  "cause" | "workflowId" | "inputs" | "ordinal" | "principalScope" | "childRunId" | "isLeftAlone"
>;

/**
 * Creates the effect that starts a child run, here or on another host, or finds it again, and waits for its end unless
 * it is left alone.
 */
export function createChildEffect(
  view: NodeView,
  { ordinal, ...place }: ChildPlacement,
): NodeEffect & { readonly kind: "run_child" } {
  const { nodeId } = view.nodeRun;
  const peerUrl = readPeerUrl(view);
  const isIsolated = view.node.node.config["memoryScopeIsolation"] === "isolated";
  return {
    kind: "run_child",
    id: `${nodeId}:${ordinal}`,
    nodeId,
    ordinal: `${nodeId}:${ordinal}`,
    ...place,
    ...(peerUrl !== undefined && { peerUrl }),
    memoryScope: isIsolated
      ? `${findLogIdentity(view.run)}:${nodeId}:${ordinal}`
      : view.run.started.memoryScope,
    ...((isIsolated || view.run.started.hasIsolatedMemory) && { hasIsolatedMemory: true }),
  };
}

/** Longer than any host's address. */
const PEER_URL_CHARS_MAX = 2_000;

/**
 * Returns the address of the other host that the child runs on; `undefined` where it runs here. A port, the
 * configuration or the run's caller may name it; nothing that came back may. One that is too long is returned as
 * empty, which is the address of no host.
 */
export function readPeerUrl(view: NodeView): string | undefined {
  const { run, graph, node } = view;
  const { peerUrl: brought } = readNodeInputs(readRunAtStart(view), graph, node);
  const stated = brought ?? node.node.config["peerUrl"] ?? run.started.inputs["peerUrl"];
  if (typeof stated !== "string" || stated === "") return undefined;
  return stated.length > PEER_URL_CHARS_MAX ? "" : stated;
}
