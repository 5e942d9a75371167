/** Owns: how a recorded fact is read back, for the commands that may have led to it. */
import type { Command, RevisedCommand } from "../contracts/commands.ts";
import type { FactDraft, FactEvent } from "../contracts/run-event.ts";

/** A recorded fact of some types. */
export type Fact<T extends FactEvent["type"]> = FactEvent & { readonly type: T };

/** Stands for a content that does not matter. */
export const NOTHING = { sha256: "0".repeat(64), bytes: 0 } as const;

/**
 * Returns two commands, the given one and a copy that is decided as earlier releases did, because a recorded fact does
 * not say which it was.
 */
export function withEarlierDecision<C extends Command & RevisedCommand>(command: C): C[] {
  return [command, { ...command, asEarlier: true }];
}

/** Returns the same fields of a recorded fact, only typed as never `undefined`: such a field was left out. */
export function readFields<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return fields as { [K in keyof T]: Exclude<T[K], undefined> };
}

/** Returns the draft that a recorded fact was written from: its type and payload alone. */
export function restoreDraft({ type, payload }: FactEvent): FactDraft {
  return { type, payload } as FactDraft;
}
