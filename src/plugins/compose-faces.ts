/** Owns: putting servers of other protocols over a host of workflow runs. The code of each is loaded where it is wanted. */
import type { WorkflowDefinition } from "../agents/coordination/contracts/workflows/workflow-definition.ts";
import type { RunningWorkflows } from "./compose-workflows.ts";
import { systemClock } from "./compose-workflows.ts";
import type { ProtocolFace } from "./openwop/http/route.ts";
import type { RunAccess } from "./openwop/runs/run-access.ts";

export interface FacesWanted {
  readonly version: string;
  readonly definitions: readonly WorkflowDefinition[];
  /** Offers the workflows to MCP clients. Absent: not. */
  readonly mcp?: { readonly toolScopes: Readonly<Record<string, readonly string[]>> };
  /** Offers the workflows to A2A clients. */
  readonly a2a?: boolean;
  readonly allowedOrigins?: readonly string[];
}

/**
 * Returns the routes of the wanted further protocols (MCP, A2A) of a workflow host; `baseUrl` is known once it
 * listens. @throws CoordinationError `INPUT_INVALID` where a scope is for no tool and no workflow
 */
export async function createProtocolFaces(
  { version, definitions, mcp, a2a = false, allowedOrigins = [] }: FacesWanted,
  running: RunningWorkflows,
  baseUrl: () => string,
): Promise<ProtocolFace[]> {
  const access = createRunAccess(running, version);
  const faces: ProtocolFace[] = [];
  if (mcp) {
    const { createMcpFace } = await import("./mcp/mcp-routes.ts");
    const { assertScopesKnown } = await import("./mcp/tool-scopes.ts");
    // Whoever has a token may answer, as at the host's other routes; `toolScopes` may ask for more.
    const dependencies = { ...access, ...mcp, mayAnswer: true, allowedOrigins };
    const workflowIds = definitions.map(({ id }) => id);
    assertScopesKnown(dependencies, workflowIds);
    faces.push(createMcpFace(dependencies));
  }
  if (a2a) {
    const { createA2aFace } = await import("./a2a/a2a-routes.ts");
    faces.push(createA2aFace({ ...access, baseUrl }));
  }
  return faces;
}

/** Returns what the faces of further protocols need of a running workflow host. */
export function createRunAccess(
  { host, logger, runs, contract }: RunningWorkflows,
  version: string,
): RunAccess {
  return { host, logger, runs, contract, version, clock: systemClock };
}
