/** Owns: a supervisor that a live model plays, whose every request is kept and whose every answer the test gives. */
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import type { ChatModel } from "../../src/agents/coordination/ports/outbound.ts";
import { createEdge, createNode, createWorkflow } from "./workflow-definitions.ts";
import { waitUntilSettled } from "./fake-clock.ts";

type JsonFields = Readonly<Record<string, unknown>>;

/** The message of a request, as the model reads it. */
export interface SupervisorMessage {
  readonly turn: number;
  readonly variables: JsonFields;
  readonly workers: readonly JsonFields[];
  readonly memory?: readonly { readonly id: string; readonly content: unknown }[];
  readonly workspace?: readonly {
    readonly path: string;
    readonly version: number;
    readonly content: unknown;
  }[];
  readonly transcript: readonly {
    readonly sequence: number;
    readonly type: string;
    readonly payload: unknown;
  }[];
}

export interface LiveModel extends Pick<ChatModel, "complete"> {
  /** The messages that were asked, the oldest first. */
  readonly texts: string[];
  told(index: number): SupervisorMessage;
  /** Answers the oldest request that waits. */
  say(decision: unknown): Promise<void>;
  /** Answers the newest one. */
  sayLast(decision: unknown): Promise<void>;
  readonly waiting: number;
}

export function createLiveModel(): LiveModel {
  const texts: string[] = [];
  const waiting: ((text: string) => void)[] = [];
  return {
    texts,
    get waiting() {
      return waiting.length;
    },
    told: (index) => JSON.parse(texts.at(index) ?? "null") as SupervisorMessage,
    complete: async ({ messages, signal }) => {
      texts.push(messages.at(-1)?.content ?? "");
      const text = await new Promise<string>((resolve) => {
        waiting.push(resolve);
        signal.addEventListener("abort", () => {
          const index = waiting.indexOf(resolve);
          if (index !== -1) waiting.splice(index, 1);
        });
      });
      return { kind: "answered", text, finishReason: "stop", model: "m", provider: "p", usage: {} };
    },
    say: (decision) => answer(waiting.shift(), decision),
    sayLast: (decision) => answer(waiting.pop(), decision),
  };
}

async function answer(next: ((text: string) => void) | undefined, decision: unknown): Promise<void> {
  if (!next) throw new Error("nobody waits for an answer");
  next(typeof decision === "string" ? decision : JSON.stringify(decision));
  // Everything that follows is read from a ledger, and written there.
  for (let turn = 0; turn < 10; turn += 1) await waitUntilSettled();
}

/** The supervisor `boss` and what it lets work: `extra` nodes by their ids, each of which leads back to it. */
export function liveLoopOf(
  id: string,
  {
    supervisor = {},
    extra = [],
    ...rest
  }: {
    supervisor?: JsonFields;
    extra?: readonly JsonFields[];
    variables?: JsonFields;
    settings?: JsonFields;
  } = {},
): WorkflowDefinition {
  const ids = extra.map((each) => String(each["id"]));
  return createWorkflow(id, {
    nodes: [
      createNode("boss", "core.orchestrator.supervisor", { systemPrompt: "Decide.", ...supervisor }),
      ...(ids.length === 0 ? [createNode("handing", "core.dispatch")] : extra),
    ],
    edges:
      ids.length === 0
        ? [createEdge("boss>handing"), createEdge("handing>boss")]
        : ids.flatMap((to) => [
            createEdge(`boss>${to}`, {
              condition: { type: "equals", left: "decision.nextWorkerIds.0", right: to },
            }),
            createEdge(`${to}>boss`),
          ]),
    ...rest,
  });
}

export const goOn = (worker: string, confidence?: number): JsonFields => ({
  kind: "next-worker",
  nextWorkerIds: [worker],
  ...(confidence !== undefined && { confidence }),
});
export const over = { kind: "terminate", reason: "done" } as const;
