/**
 * Owns: what of a workflow only the play for the protocol's conformance suite can run, and how a host without it says so. The one
 * place of the product that knows the suite's names; what plays them is in `plugins/openwop/conformance`.
 */
import type { WorkflowNode } from "../../contracts/workflows/workflow-definition.ts";
import { isRecord } from "../../std/is-record.ts";
import { SUPERVISOR } from "../state/graph.ts";
import type { NodeGraph } from "../state/node-graph.ts";

/** The provider's name under which a played model and its tools are recorded. */
export const PLAYED_PROVIDER = "mock";

/** The error of what is refused, or fails, because the play is not there. */
export const NOT_PLAYED = "capability_required";

const SUITE_TYPE = /^(core\.)?conformance\./;
const SCRIPT_KEY = /^mock[A-Z]/;
const MODEL_TYPES: ReadonlySet<string> = new Set(["core.ai.structuredOutput", "core.ai.callPrompt"]);

const cachedParts = new WeakMap<WorkflowNode, string>();

/**
 * Returns the name of a node's part that only the conformance play can run, such as `config.mockDecisions`;
 * `undefined` when there is none.
 */
export function findPlayedPart(node: WorkflowNode): string | undefined {
  const cached = cachedParts.get(node) ?? namePlayedPart(node);
  cachedParts.set(node, cached);
  return cached === "" ? undefined : cached;
}

/** Names the part as `findPlayedPart` does, without its cache; an empty text when there is none. */
function namePlayedPart({ typeId, config }: WorkflowNode): string {
  if (SUITE_TYPE.test(typeId)) return `typeId ${typeId}`;
  if (MODEL_TYPES.has(typeId) && config["provider"] === PLAYED_PROVIDER)
    return `config.provider ${PLAYED_PROVIDER}`;
  const key = findScriptKey(config);
  if (key !== undefined) return `config.${key}`;
  const verifierKey = isRecord(config["verifier"]) ? findScriptKey(config["verifier"]) : undefined;
  return verifierKey === undefined ? "" : `config.verifier.${verifierKey}`;
}

/**
 * Finds the first key of a script of the conformance suite, such as `mockDecisions`; `undefined` where there is none.
 */
function findScriptKey(config: Readonly<Record<string, unknown>>): string | undefined {
  return Object.keys(config).find((key) => SCRIPT_KEY.test(key) && config[key] !== undefined);
}

/** Returns the message, in words for people, why a host without the conformance play does not run a node. */
export function explainNotPlayed({ id }: WorkflowNode, part: string): string {
  return `node ${id} has ${part}, which only a host that is tested plays: serve it with --test-seams, or take it out`;
}

interface ScriptedProvider {
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/**
 * Returns the message and details with which a run is refused whose options ask for a mock provider; `undefined` when
 * they do not. It is refused whether or not the host is tested.
 */
export function findScriptedProviderRefusal({
  mockProvider,
}: Readonly<Record<string, unknown>>): ScriptedProvider | undefined {
  if (mockProvider === undefined || mockProvider === null) return undefined;
  return {
    message:
      "this host has no mock providers for runs; leave `configurable.mockProvider` out, or set it to null in the overlay of a branch",
    details: {
      ...(isRecord(mockProvider) && { requestedProvider: mockProvider["id"] }),
      supportedProviders: [],
    },
  };
}

/** True when a supervisor node's configuration says which model it asks, or what. */
export function hasSupervisorModel({ config }: WorkflowNode): boolean {
  return ["model", "prompt", "systemPrompt"].some((key) => config[key] !== undefined);
}

/**
 * True when a graph has a node that only the conformance play can run, so that runs of it cannot be decided again
 * without the play.
 */
export function needsPlay({ nodes }: NodeGraph): boolean {
  return [...nodes.values()].some(
    ({ node }) =>
      findPlayedPart(node) !== undefined || (node.typeId === SUPERVISOR && !hasSupervisorModel(node)),
  );
}
