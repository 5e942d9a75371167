/** Owns: reading each event of a play once, as the program does; the same text is the same event, which nobody can change. */
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { decodeText } from "../support/memory-store.ts";

export function createDecoder(): (text: string) => RunEvent {
  const decoded = new Map<string, RunEvent>();
  return (text) => {
    const before = decoded.get(text);
    if (before) return before;
    const event = freezeDeep(decodeText(text));
    decoded.set(text, event);
    return event;
  };
}

/** A program that changed an event would change what others read. */
function freezeDeep<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  for (const each of Object.values(value)) freezeDeep(each);
  return Object.freeze(value);
}
