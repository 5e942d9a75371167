/**
 * Owns: nodes that call a tool over MCP, or another agent over A2A. The call is in the log before it is made; what comes
 * back is untrusted, and no authority.
 */
import { formatCanonicalJson } from "../../std/canonical-json.ts";
import type { WorkflowDraft } from "../../contracts/workflows/workflow-events.ts";
import {
  readNodeAgentId,
  withNodeId,
  type EffectOutcome,
  type NodeEffect,
  type NodeStep,
  type NodeType,
  type NodeView,
} from "../node-contract/node-type.ts";
import { draftSuspension } from "../node-contract/suspension.ts";
import { readPeerUrl } from "./child-run.ts";
import { draftNodeCompleted, draftNodeFailed } from "./ends.ts";
import { readNodeInputs, readVariable, type Values } from "../state/values.ts";
import { resolvePeerAddress } from "../../std/foreign-text.ts";
import { isRecord } from "../../std/is-record.ts";
import { callPrompt, listOutputSchemaProblems } from "./model-nodes.ts";

/** The tool that a node calls, the inputs of the call, and the effect that makes it. */
interface ToolTarget {
  readonly name: string;
  readonly inputs: Values;
  readonly effect: NodeEffect;
}

/** The outcome of a call that a tool answered. */
type ToolAnsweredOutcome = EffectOutcome & { kind: "tool_answered" };

/**
 * Creates a node type that records a call of `target`, then makes it. The function `answered` drafts what an answer
 * means.
 */
function createCallingNode(
  target: (view: NodeView) => ToolTarget | { readonly missing: string },
  answered: (view: NodeView, outcome: ToolAnsweredOutcome) => readonly WorkflowDraft[],
): NodeType {
  return {
    step: (view) => {
      const ended = stepAfterRemoteQuestion(view);
      if (ended) return ended;
      const callTarget = target(view);
      if ("missing" in callTarget)
        return { kind: "fail", error: { code: "not_configured", message: callTarget.missing } };
      if (view.nodeRun.openCall) return { kind: "act", effect: callTarget.effect };
      const payload = {
        ...createCallFields(view, callTarget.name),
        inputs: callTarget.inputs,
        transport: nameTransport(callTarget.effect),
        principal: view.run.started.owner.principal,
        ...createArgsHash(view, callTarget.inputs),
      };
      return { kind: "record", drafts: [withNodeId(view, { type: "agent.toolCalled", payload } as const)] };
    },
    settle: (view, _effect, outcome) => {
      const settledTarget = target(view);
      const name = "missing" in settledTarget ? "unknown" : settledTarget.name;
      if (outcome.kind === "tool_answered")
        return [draftToolReturn(view, name, outcome), ...answered(view, outcome)];
      if (outcome.kind !== "failed") return [];
      return [draftToolReturn(view, name, outcome), draftNodeFailed(view, outcome.error)];
    },
  };
}

/** Returns the hash by which a call is known where its arguments are not seen; empty without sha256 (RFC 0064). */
function createArgsHash({ settings }: NodeView, inputs: Values): { readonly argsHash?: string } {
  const argsHash = settings.sha256?.(formatCanonicalJson(inputs));
  return argsHash === undefined ? {} : { argsHash };
}

/**
 * Waits for the answer that a remote agent asked people for, and ends the node with it. It is `undefined` where none
 * was asked for; the call is not made again.
 */
function stepAfterRemoteQuestion({ nodeRun }: NodeView): NodeStep | undefined {
  const answer = nodeRun.answers.at(-1);
  if (answer)
    return { kind: "complete", outputs: { answers: isRecord(answer.resumeValue) ? answer.resumeValue : {} } };
  return nodeRun.interrupt ? { kind: "wait" } : undefined;
}

const mcpTool = createCallingNode(
  (view) => {
    const { config } = view.node.node;
    const mcp = isRecord(config["mcp"]) ? config["mcp"] : {};
    const tool = typeof mcp["tool"] === "string" ? mcp["tool"] : "";
    if (tool === "") return { missing: "the node names no tool (config.mcp.tool)" };
    const address = findCalledAddress(view, mcp["url"] ?? view.settings.mcpUrl, MCP_PATH);
    if (!address)
      return { missing: "no MCP server is configured (config.mcp.url, the server's default, or peerUrl)" };
    const args = readRecordedInputs(view) ?? createToolArguments(view, mcp["arguments"]);
    return {
      name: tool,
      inputs: args,
      effect: { ...createEffectBase(view), kind: "call_tool", tool, args, ...address },
    };
  },
  (view, { ok, text, content }) =>
    ok
      ? [draftNodeCompleted(view, { text, content, contentTrust: "untrusted" })]
      : [draftNodeFailed(view, { code: "tool_failed", message: "the tool says that it failed" })],
);

function createToolArguments({ run, graph, node }: NodeView, configured: unknown): Values {
  const { peerUrl: _, ...inputs } = readNodeInputs(run, graph, node);
  return { ...(isRecord(configured) ? configured : {}), ...inputs };
}

/** Returns the arguments of a call that is in the log. Made again it is the same call, whatever variables have changed since. */
function readRecordedInputs({ nodeRun: { openCall } }: NodeView): Values | undefined {
  return isRecord(openCall?.inputs) ? openCall.inputs : undefined;
}

/** `core.ai.callPrompt` is a model's turn unless it names a tool. */
export const toolOrPrompt: NodeType = {
  check: (node) => (isRecord(node.node.config["mcp"]) ? [] : listOutputSchemaProblems(node)),
  step: (view) => (isRecord(view.node.node.config["mcp"]) ? mcpTool : callPrompt).step(view),
  settle: (view, effect, outcome) =>
    (isRecord(view.node.node.config["mcp"]) ? mcpTool : callPrompt).settle?.(view, effect, outcome) ?? [],
};

export const a2aInvoke = createCallingNode(
  (view) => {
    const { config } = view.node.node;
    const address = findCalledAddress(view, config["url"] ?? view.settings.a2aUrl);
    if (!address)
      return { missing: "no A2A agent is configured (config.url, the server's default, or peerUrl)" };
    const skill = typeof config["skill"] === "string" ? config["skill"] : "default";
    const message = readRecordedInputs(view)?.["message"] ?? chooseRemoteMessage(view) ?? skill;
    const text = typeof message === "string" ? message : JSON.stringify(message);
    return {
      name: `a2a:${skill}`,
      inputs: { message: text },
      effect: { ...createEffectBase(view), kind: "send_message", skill, message: text, ...address },
    };
  },
  (view, { ok, text, content, state }) => {
    if (state === "auth-required" || state === "input-required") return draftRemoteQuestion(view, state);
    if (state === "rejected")
      return [
        draftNodeFailed(view, { code: "rejected_by_remote", message: "the remote agent rejected the task" }),
      ];
    return ok
      ? [draftNodeCompleted(view, { text, content, contentTrust: "untrusted" })]
      : [
          draftNodeFailed(view, {
            code: "remote_agent_failed",
            message: `the remote agent's task ended as ${state ?? "failed"}`,
          }),
        ];
  },
);

function chooseRemoteMessage({ run, graph, node }: NodeView): unknown {
  const message = readNodeInputs(run, graph, node)["message"] ?? node.node.config["message"];
  return message ?? readVariable(run, graph, "text");
}

/** Where a host has its MCP server, below its root. */
const MCP_PATH = "/v1/mcp";

/**
 * Returns the address that the workflow or operator states, else that of the other host that `readPeerUrl` finds;
 * `undefined` where there is neither.
 */
function findCalledAddress(
  view: NodeView,
  url: unknown,
  path = "",
): { readonly url: string; readonly peerUrl?: string } | undefined {
  if (typeof url === "string") return { url };
  const peerUrl = readPeerUrl(view);
  if (peerUrl === undefined) return undefined;
  return { url: resolvePeerAddress(peerUrl, path) ?? `${peerUrl}${path}`, peerUrl };
}

function createEffectBase({ nodeRun: { nodeId, executions } }: NodeView): {
  readonly id: string;
  readonly nodeId: string;
} {
  return { id: `${nodeId}:${executions}:call`, nodeId };
}

function nameTransport({ kind }: NodeEffect): "mcp" | "http" {
  return kind === "call_tool" ? "mcp" : "http";
}

function createCallFields(view: NodeView, toolName: string) {
  return {
    agentId: readNodeAgentId(view),
    toolName,
    callId: `${view.nodeRun.nodeId}:${view.nodeRun.executions}`,
  };
}

function draftToolReturn(
  view: NodeView,
  name: string,
  outcome: ToolAnsweredOutcome | (EffectOutcome & { kind: "failed" }),
): WorkflowDraft {
  const causationId = view.nodeRun.openCall?.eventId;
  const isOk = outcome.kind === "tool_answered" && outcome.ok;
  const returnedDraft =
    outcome.kind === "tool_answered"
      ? { outcome: { text: outcome.text, contentTrust: "untrusted" } }
      : { error: outcome.error };
  return withNodeId(view, {
    type: "agent.toolReturned",
    ...(causationId && { causationId }),
    payload: {
      ...createCallFields(view, name),
      ...returnedDraft,
      status: isOk ? "ok" : classifyFailedCall(outcome),
      ...(outcome.durationMs !== undefined && { durationMs: outcome.durationMs }),
    },
  });
}

function classifyFailedCall(outcome: EffectOutcome): "error" | "forbidden" | "rate_limited" {
  const code = outcome.kind === "failed" ? outcome.error.code : undefined;
  return code === "forbidden" || code === "rate_limited" ? code : "error";
}

/** Drafts the question to people that the remote agent's task waits for. */
function draftRemoteQuestion(view: NodeView, state: string): readonly WorkflowDraft[] {
  const question =
    state === "auth-required"
      ? "The remote agent needs to be authorised."
      : "The remote agent asks for more.";
  const data = { questions: [{ id: "q1", question }], contextType: state };
  return draftSuspension(view, { kind: "clarification", reason: state, data });
}
