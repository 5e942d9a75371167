/** Owns: a loop whose worker a verifier rules on, a critic that says what a test wants, and what became of it. */
import { expect } from "vitest";
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import type { WorkflowEvent } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type { ChatAnswer } from "../../src/agents/coordination/ports/outbound.ts";
import {
  sendNextWorker,
  createSupervised,
  TERMINATE,
  createWorker,
} from "../support/workflow-definitions.ts";
import { createWorkflowScene, type SceneOptions, type WorkflowScene } from "../support/workflow-scene.ts";

/** Fields of a node, of a workflow or of an answer, as a test gives them. */
export type JsonFields = Readonly<Record<string, unknown>>;

export const CRITIC = { agentId: "critic-one", criteria: ["grounded", "complete"] };

export function createLooped(
  verifier: JsonFields,
  more: { readonly plan?: readonly unknown[]; readonly dispatch?: JsonFields } = {},
) {
  const { plan = [sendNextWorker("digger"), TERMINATE], dispatch = {} } = more;
  return createSupervised("loop", plan, {
    dispatch: { outputMapping: { got: "result" }, verifier: { ...CRITIC, ...verifier }, ...dispatch },
    variables: { got: undefined },
  });
}

export const DIGGER = createWorker("digger", { result: "gold" });

export function createScene(
  definition: WorkflowDefinition,
  options: Partial<SceneOptions> = {},
): WorkflowScene {
  return createWorkflowScene({
    definitions: [definition, DIGGER, createWorker("other", { result: "silver" })],
    ...options,
  });
}

/** The fate of the workers, without ids. */
export function tellStory(at: WorkflowScene, runId: string): string[] {
  return at.events(runId).flatMap((event) => {
    switch (event.type) {
      case "core.workflowChain.event":
        return [event.payload.phase];
      case "agent.verified":
        return [`verified ${event.payload.verdict}`];
      case "variable.changed":
        return [`${event.payload.name}=${String(event.payload.next)}`];
      case "core.workflowChain.confidence-escalated":
        return ["confidence-escalated"];
      case "node.suspended":
        return [`asks ${event.payload.reason ?? ""}`];
      case "interrupt.resolved":
        return ["answered"];
      case "runOrchestrator.decided":
        return [`decided ${event.payload.iteration} ${event.payload.decision.kind}`];
      case "cap.breached":
        return [`${event.payload.kind} ${event.payload.observed} over ${event.payload.limit}`];
      default:
        return event.type.startsWith("run.") && event.type !== "run.started" ? [event.type] : [];
    }
  });
}

export const BEGINS = ["decided 1 next-worker", "dispatch.began", "dispatch.succeeded", "child.completed"];
export const AGAIN = ["dispatch.began", "dispatch.succeeded", "child.completed"];
export const ENDS = ["decided 2 terminate", "run.completed"];
export const MERGED = ["got=gold", "output.harvested"];

export const filterByType = <T extends WorkflowEvent["type"]>(at: WorkflowScene, runId: string, type: T) => {
  const found = at.events(runId).filter((event) => event.type === type);
  expect(found).toHaveLength(1);
  return found[0] as Extract<WorkflowEvent, { type: T }>;
};

export const createChatAnswer = (text: string, more: Partial<ChatAnswer> = {}): ChatAnswer => ({
  kind: "answered",
  text,
  finishReason: "stop",
  model: "m",
  provider: "p",
  usage: {},
  ...more,
});
export const verdictOf = (verdict: string, criteria: readonly string[], confidence = 0.9): string =>
  JSON.stringify({ verdict, criteria, confidence });
