/** Owns: what a live model is asked as a supervisor, and how its answer is read. What it wrote is a proposal: the schema decides. */
import { decisionSchema, type OrchestratorDecision } from "../../contracts/workflow-events.ts";
import type { EffectOutcome, NodeEffect, NodeView } from "../node-type.ts";
import { isRecord, variablesOf, type Values } from "../values.ts";

const MAX_TOKENS = 2_000;
const STATE_CHARS_MAX = 20_000;

const RULES = `You are the supervisor of a run. Decide what happens next, as one JSON object and nothing else:
{"kind":"next-worker","nextWorkerIds":["<worker>"],"confidence":0.0 to 1.0}
or {"kind":"ask-user","prompt":"<question>"}
or {"kind":"terminate","reason":"<why>","confidence":0.0 to 1.0}.`;

export function askSupervisor(view: NodeView): NodeEffect {
  const { config, agent } = view.node.node;
  const text = (key: string): string | undefined => {
    const value = config[key];
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const model = text("model") ?? modelOf(view.run.started.configurable);
  return {
    kind: "ask_model",
    id: `${view.own.nodeId}:${view.own.executions}:decide`,
    nodeId: view.own.nodeId,
    request: {
      ...(agent && { agentId: agent.agentId }),
      ...(model !== undefined && { model }),
      system: [text("systemPrompt") ?? text("prompt") ?? "", RULES, workersOf(config)].join("\n\n").trim(),
      messages: [{ role: "user", content: situation(view) }],
      maxTokens: MAX_TOKENS,
    },
  };
}

function modelOf(configurable: Values | undefined): string | undefined {
  const model = configurable?.["model"];
  return typeof model === "string" ? model : undefined;
}

function workersOf(config: Values): string {
  const workers = config["workers"];
  return Array.isArray(workers) ? `Workers: ${workers.map(String).join(", ")}` : "";
}

/** What the supervisor may know: variables, and how its workers ended. */
function situation({ run, graph }: NodeView): string {
  const workers = [...run.nodes.values()].flatMap(({ handoff }) =>
    handoff ? [{ worker: handoff.workerId, status: handoff.childStatus ?? handoff.phase }] : [],
  );
  const state = { turn: run.orchestrator.decided + 1, variables: variablesOf(run, graph), workers };
  return JSON.stringify(state).slice(0, STATE_CHARS_MAX);
}

export function readDecision({
  object,
  text,
}: EffectOutcome & { kind: "model_answered" }): OrchestratorDecision | undefined {
  const found = isRecord(object) ? object : jsonIn(text);
  const parsed = decisionSchema.safeParse(found);
  return parsed.success ? parsed.data : undefined;
}

/** The object in an answer that may stand in a fence or between words. */
export function jsonIn(text: string): unknown {
  const from = text.indexOf("{");
  const to = text.lastIndexOf("}");
  if (from === -1 || to <= from) return undefined;
  try {
    return JSON.parse(text.slice(from, to + 1));
  } catch {
    return undefined;
  }
}
