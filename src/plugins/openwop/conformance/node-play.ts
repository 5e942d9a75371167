/** Owns: what the suite's workflows script within nodes. Pure: replays are given it too. */
import { PLAYED_PROVIDER } from "../../../agents/coordination/workflow/node-contract/conformance-parts.ts";
import type { NodePlay } from "../../../agents/coordination/workflow/node-contract/node-type.ts";
import { a2aInvoke, toolOrPrompt } from "../../../agents/coordination/workflow/nodes/tool-nodes.ts";
import { hold, requiresMissing, sideEffect } from "./conformance-nodes.ts";
import { mockAgent } from "./mock-agent.ts";
import { findPendingDecision, playTurn } from "./supervisor-script.ts";
import { hasVerdictScript, listScriptProblems, playVerdict } from "./verdict-script.ts";

export const NODE_PLAY: NodePlay = {
  nodeTypes: {
    "core.conformance.mcp-invoke": toolOrPrompt,
    "core.conformance.a2a-invoke": a2aInvoke,
    "core.conformance.mock-agent": mockAgent,
    "core.conformance.hold": hold,
    "core.conformance.side-effect": sideEffect,
    "conformance.requiresMissing": requiresMissing,
  },
  check: listScriptProblems,
  isModelPlayed: ({ node }) => node.config["provider"] === PLAYED_PROVIDER,
  isVerdictPlayed: hasVerdictScript,
  playVerdict,
  playTurn,
  findDoubtedDecision: findPendingDecision,
};
