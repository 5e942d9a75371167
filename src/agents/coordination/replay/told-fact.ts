/** Owns: how a recorded fact is read back, for the commands that may have led to it. */
import type { Command, RevisedCommand } from "../contracts/commands.ts";
import type { FactDraft, FactEvent } from "../contracts/run-event.ts";

/** A recorded fact of some types. */
export type Fact<T extends FactEvent["type"]> = FactEvent & { readonly type: T };

/** Stands for a content that does not matter. */
export const NOTHING = { sha256: "0".repeat(64), bytes: 0 } as const;

/** Returns a command as it is decided now, and as it was decided before that changed. */
export function withEarlier<C extends Command & RevisedCommand>(command: C): C[] {
  return [command, { ...command, asEarlier: true }];
}

/** Reads fields back; one that would be `undefined` is left out. */
export function readFields<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return fields as { [K in keyof T]: Exclude<T[K], undefined> };
}

/** Returns the draft that a recorded fact was written from. */
export function draftOf({ type, payload }: FactEvent): FactDraft {
  return { type, payload } as FactDraft;
}
