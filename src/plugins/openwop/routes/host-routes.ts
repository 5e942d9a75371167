/** Owns: the routes that tell what the host is: discovery, its own description, workflows, agents. */
import type { WorkflowDefinition } from "../../../agents/coordination/contracts/workflows/workflow-definition.ts";
import { listInventory } from "./agent-listing.ts";
import { refuse } from "../http/error-map.ts";
import {
  answerFromOutcome,
  createJsonAnswer,
  defineRoute,
  type RouteAnswer,
  type RouteRequest,
  type Route,
  type RouteDependencies,
} from "../http/route.ts";
import { anySchema } from "../http/schemas.ts";

const PUBLIC = "public, max-age=60";

export const hostRoutes: readonly Route[] = [
  defineRoute({
    method: "GET",
    path: "/.well-known/openwop",
    operationId: "getCapabilities",
    auth: "none",
    summary: "What this host can do.",
    status: 200,
    answer: anySchema,
    handle: serveDiscovery,
  }),
  defineRoute({
    method: "GET",
    path: "/v1/openapi.json",
    operationId: "getOpenApi",
    auth: "none",
    summary: "This document.",
    status: 200,
    answer: anySchema,
    handle: (_ask, { openapi }) => ({
      kind: "text",
      status: 200,
      text: openapi(),
      headers: { "content-type": "application/json", "cache-control": PUBLIC },
    }),
  }),
  defineRoute({
    method: "GET",
    path: "/v1/workflows/{workflowId}",
    operationId: "getWorkflow",
    auth: "bearer",
    summary: "The definition of a workflow.",
    status: 200,
    answer: anySchema,
    handle: async (ask, { host }) =>
      answerFromOutcome(await host.workflow(ask.caller, ask.param("workflowId")), (workflow) =>
        createJsonAnswer(200, removeSecretDefaults(workflow)),
      ),
  }),
  defineRoute({
    method: "GET",
    path: "/v1/agents",
    operationId: "listAgents",
    auth: "bearer",
    status: 200,
    summary: "The agents of this host.",
    answer: anySchema,
    when: ({ agentInventory }) => agentInventory,
    handle: (_ask, dependencies) => {
      const agents = listInventory(dependencies);
      return createJsonAnswer(200, { agents, total: agents.length });
    },
  }),
  defineRoute({
    method: "GET",
    path: "/v1/agents/{agentId}",
    operationId: "getAgent",
    auth: "bearer",
    status: 200,
    summary: "An agent of this host.",
    answer: anySchema,
    when: ({ agentInventory }) => agentInventory,
    handle: (ask, dependencies) => {
      const found = listInventory(dependencies).find(({ agentId }) => agentId === ask.param("agentId"));
      return found ? createJsonAnswer(200, found) : refuse("not_found", "There is no such agent.");
    },
  }),
];

/** Leaves out the defaults of sensitive variables, which may be secrets of the operator. */
function removeSecretDefaults(workflow: WorkflowDefinition): WorkflowDefinition {
  const variables = workflow.variables.map(({ defaultValue, ...variable }) =>
    variable.sensitive === true || defaultValue === undefined ? variable : { ...variable, defaultValue },
  );
  return { ...workflow, variables };
}

function serveDiscovery(ask: RouteRequest, { discovery }: RouteDependencies): RouteAnswer {
  const { text, etag } = discovery();
  const headers = { "cache-control": PUBLIC, etag, "capabilities-etag": etag };
  if (hasMatchingTag(ask.header("if-none-match"), etag))
    return { kind: "text", status: 304, text: null, headers };
  const all = { ...headers, "content-type": "application/json" };
  return { kind: "text", status: 200, text, headers: all };
}

function hasMatchingTag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  const tags = ifNoneMatch.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || tags.includes("*");
}
