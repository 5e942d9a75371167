/** Owns: what an A2A agent's message or task says, as text, data and state. */
import type { Message, Part, Task } from "@a2a-js/sdk";
import type { A2aAnswer } from "../../agents/coordination/ports/outbound.ts";

/** States of the protocol's `TaskState` in which a task rests; in all others it is at work. */
const STATES: Readonly<Record<number, Exclude<A2aAnswer["state"], "message">>> = {
  3: "completed",
  4: "failed",
  5: "cancelled",
  6: "input-required",
  7: "rejected",
  8: "auth-required",
};
const NOT_OK: readonly A2aAnswer["state"][] = ["failed", "cancelled", "rejected"];
/** The agent, in the protocol's `Role`. */
const SPEAKERS: readonly number[] = [2];

/**
 * Returns the message that an A2A agent sent directly as its answer: text, data, and the task's id where it has one.
 */
export function createMessageAnswer({ parts, taskId }: Message): A2aAnswer {
  return {
    kind: "answered",
    ok: true,
    state: "message",
    ...readParts(parts),
    ...(taskId !== "" && { taskId }),
  };
}

/**
 * Returns an A2A task as its agent's answer: the state, and the parts of its artifacts and its status; `undefined`
 * while the task is at work. A task without such parts has those of the agent's last message.
 */
export function createTaskAnswer({ id, status, artifacts, history }: Task): A2aAnswer | undefined {
  const state = STATES[status?.state ?? 0];
  if (state === undefined) return undefined;
  const parts = [...artifacts.flatMap((artifact) => artifact.parts), ...(status?.message?.parts ?? [])];
  const last = history.findLast(({ role }) => SPEAKERS.includes(role));
  const words = readParts(parts.length > 0 ? parts : (last?.parts ?? []));
  return { kind: "answered", ok: !NOT_OK.includes(state), state, ...words, taskId: id };
}

/** Returns the text parts joined by newlines, and the data parts as a list. */
function readParts(parts: readonly Part[]): Pick<A2aAnswer, "text" | "data"> {
  const texts = parts.flatMap(({ content }) => (content?.$case === "text" ? [content.value] : []));
  const data = parts.flatMap(({ content }) => (content?.$case === "data" ? [content.value as unknown] : []));
  return { text: texts.join("\n"), data };
}
