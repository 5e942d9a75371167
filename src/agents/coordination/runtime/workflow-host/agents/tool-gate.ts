/**
 * Owns: whether a run may call a tool now (RFC 0064), whichever node wants to. Demands on the caller fail closed: scopes
 * that nobody knows are not there. A call that is not let through has not begun.
 */
import type { BoundTool } from "../../../contracts/workflows/agent-events.ts";
import type { WorkflowPayloads } from "../../../contracts/workflows/workflow-events.ts";
import type { WorkflowRun } from "../../../workflow/state/workflow-state.ts";
import { canBeSameAddress, resolvePeerAddress } from "../../../std/foreign-text.ts";
import type { AgentHostDependencies } from "../records/agent-dependencies.ts";
import type { ToolRates } from "./tool-rates.ts";

export interface GateDependencies {
  readonly agentHost: AgentHostDependencies;
  readonly toolRates: ToolRates;
}

export interface GatedTool {
  readonly toolName: string;
  /** How this host reaches it: by the name of its server, or at the URL that a workflow states. */
  readonly tool: Pick<BoundTool, "server" | "tool"> & { readonly url?: string };
  /** True where a play has the tool's rate count as reached. */
  readonly isExhausted?: boolean;
}

/** The reason why a tool call is denied: a scope that is missing, or the tool's rate. */
export interface ToolCallDenial {
  readonly status: "forbidden" | "rate_limited";
  readonly error: NonNullable<WorkflowPayloads["agent.toolReturned"]["error"]>;
}

/**
 * Returns why a tool call is denied: the caller lacks a scope, or the tool was called too often; `undefined` for one
 * that is allowed, which counts against the tool's rate.
 */
export function countOrDenyCall(
  { agentHost, toolRates }: GateDependencies,
  { started: { scopes, owner } }: WorkflowRun,
  { toolName, tool, isExhausted = false }: GatedTool,
): ToolCallDenial | undefined {
  const servers = listServerNames(agentHost, tool);
  const names = listToolNames(toolName, tool, servers);
  const denied = findScopeDenial(listRequiredScopes(agentHost, names), scopes, toolName);
  if (denied) return denied;
  const rateKey = tool.tool === undefined ? toolName : `mcp:${servers[0] ?? ""}/${tool.tool}`;
  if (!isExhausted && toolRates.take(`${owner.tenant}\n${owner.principal}`, rateKey)) return undefined;
  const message = "the tool was called too often; try again later";
  return { status: "rate_limited", error: { code: "rate_limited", message } };
}

function listRequiredScopes({ toolScopes }: AgentHostDependencies, names: readonly string[]): string[] {
  const all = names.flatMap((name) => (Object.hasOwn(toolScopes, name) ? (toolScopes[name] ?? []) : []));
  return [...new Set(all)];
}

/**
 * Returns the denial of a tool call whose caller lacks a required scope; `undefined` where it has all. Scopes that
 * nobody knows grant nothing.
 */
export function findScopeDenial(
  requiredScopes: readonly string[],
  scopes: readonly string[] | undefined,
  toolName: string,
): ToolCallDenial | undefined {
  if (requiredScopes.every((scope) => scopes?.includes(scope))) return undefined;
  const details = { scope: "tool", toolName, requiredScopes };
  return {
    status: "forbidden",
    error: { code: "forbidden", message: "the caller may not use this tool", details },
  };
}

/** Lists every name that the host's scopes may have for a tool. Scopes that one of them requires are required. */
function listToolNames(
  toolName: string,
  { tool: name }: GatedTool["tool"],
  servers: readonly string[],
): string[] {
  if (name === undefined) return [toolName];
  const ofServers = servers.flatMap((server) => [`mcp:${server}.${name}`, `mcp:${server}/${name}`]);
  return [...new Set([toolName, name, `mcp:${name}`, ...ofServers])];
}

/**
 * Lists every name that the operator gave to a tool's server: those with its query where there are any, else those at
 * its address; for an address that nobody configured the names of each server that may be meant by it.
 */
function listServerNames(
  { mcpServers }: AgentHostDependencies,
  { server, url: statedUrl }: GatedTool["tool"],
): readonly string[] {
  const isNamed = server !== undefined && Object.hasOwn(mcpServers, server);
  const url = statedUrl ?? (isNamed ? mcpServers[server] : undefined);
  if (url === undefined) return server === undefined ? [] : [server];
  const servers = Object.entries(mcpServers);
  const same = servers.filter(
    ([, serverUrl]) => resolvePeerAddress(serverUrl, "") === resolvePeerAddress(url, ""),
  );
  const exact = same.filter(([, serverUrl]) => URL.parse(serverUrl)?.search === URL.parse(url)?.search);
  const configured = exact.length > 0 ? exact : same;
  const meant =
    configured.length > 0 ? configured : servers.filter(([, serverUrl]) => canBeSameAddress(url, serverUrl));
  return meant.map(([name]) => name);
}
