/** Owns: choices that follow from a seed. */
import { createRandom } from "../support/random.ts";

export interface Dice {
  chance(probability: number): boolean;
  /** From `from` to `to`, both included. */
  int(from: number, to: number): number;
  oneOf<const T extends readonly [unknown, ...unknown[]]>(items: T): T[number];
}

export function diceOf(seed: number): Dice {
  const next = createRandom(seed);
  const drawInteger = (from: number, to: number): number => from + Math.floor(next() * (to - from + 1));
  return {
    chance: (probability) => next() < probability,
    int: drawInteger,
    oneOf: (items) => items[drawInteger(0, items.length - 1)],
  };
}

/** FNV-1a: dice for a name, whatever was thrown before. */
export function deriveSeed(seed: number, name: string): number {
  let mixed = 0x811c9dc5 ^ seed;
  for (let index = 0; index < name.length; index += 1)
    mixed = Math.imul(mixed ^ name.charCodeAt(index), 0x01000193);
  return mixed >>> 0;
}
