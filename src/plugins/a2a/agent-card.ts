/**
 * Owns: the agent card: who this host is, where it is asked, and its workflows as skills. The card has the fields of both
 * revisions of the protocol, because clients read the fields of their own only.
 */
import type { WorkflowDefinition } from "../../agents/coordination/contracts/workflows/workflow-definition.ts";
import { createInputSchema, describeWorkflow } from "../openwop/runs/workflow-inputs.ts";
import { A2A_PATH, type A2aParts } from "./a2a-parts.ts";

export const PROTOCOL_VERSIONS = { current: "1.0", legacy: "0.3" } as const;
const BINDING = "JSONRPC";
const MEDIA_TYPES = ["application/json", "text/plain"];

export type CardJson = Readonly<Record<string, unknown>>;

/** A card, also as the text that is sent to whoever asks. */
export interface WrittenCard {
  readonly card: CardJson;
  readonly text: string;
}

/**
 * Returns a function that gives the host's A2A agent card, as a value and as JSON; it is made anew only when the
 * host's workflows have changed.
 */
export function createCardSource(dependencies: A2aParts): () => Promise<WrittenCard> {
  let kept: (WrittenCard & { readonly workflowIds: readonly string[] }) | undefined;
  return async () => {
    const workflowIds = dependencies.host.workflowIds();
    if (kept?.workflowIds === workflowIds) return kept;
    const card = await createAgentCard(dependencies);
    kept = { workflowIds, card, text: JSON.stringify(card) };
    return kept;
  };
}

async function createAgentCard(dependencies: A2aParts): Promise<CardJson> {
  const url = `${dependencies.baseUrl()}${A2A_PATH}`;
  const definitions = await listPublicWorkflows(dependencies);
  return {
    name: "openclaw-coordination",
    description: "Runs workflows, and asks people where a workflow wants that. Each workflow is a skill.",
    version: dependencies.version,
    supportedInterfaces: Object.values(PROTOCOL_VERSIONS).map((protocolVersion) => ({
      url,
      protocolBinding: BINDING,
      protocolVersion,
      tenant: "",
    })),
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false, extensions: [] },
    securitySchemes: {
      bearer: { httpAuthSecurityScheme: { scheme: "Bearer" }, type: "http", scheme: "Bearer" },
    },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    defaultInputModes: MEDIA_TYPES,
    defaultOutputModes: ["application/json"],
    skills: definitions.map(createSkill),
    // Revision 0.3.
    protocolVersion: `${PROTOCOL_VERSIONS.legacy}.0`,
    url,
    preferredTransport: BINDING,
    security: [{ bearer: [] }],
  };
}

/** Returns the definitions of the workflows that every tenant may run, in the order of their ids. */
export async function listPublicWorkflows({ host }: A2aParts): Promise<WorkflowDefinition[]> {
  const definitions: WorkflowDefinition[] = [];
  for (const id of host.workflowIds().toSorted()) {
    const found = await host.workflow(NOBODY, id);
    if (found.kind === "done") definitions.push(found.value);
  }
  return definitions;
}

/** The card is public: it shows what no tenant registered for itself. */
const NOBODY = { tenant: "@card", principal: "card" };

function createSkill(definition: WorkflowDefinition) {
  const { id, name } = definition;
  const inputs = `Inputs, as one data part: ${JSON.stringify(createInputSchema(definition))}`;
  return {
    id,
    name,
    description: `${describeWorkflow(definition)} ${inputs}`,
    tags: ["workflow"],
    examples: [],
    inputModes: MEDIA_TYPES,
    outputModes: ["application/json"],
    securityRequirements: [],
  };
}
