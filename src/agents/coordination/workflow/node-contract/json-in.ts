/** Owns: the JSON in a model's answer, which may stand in a fence or between words. */
import { readUnfenced } from "../../std/foreign-text.ts";
import { parseJsonOrNothing } from "../../std/parse-json.ts";

const BRACKETS = [
  ["{", "}"],
  ["[", "]"],
] as const;

/** Finds the JSON in a text: the whole text, or else the longest object or list in it; `undefined` where there is none. */
export function findJson(text: string): unknown {
  return listJson(text)[0];
}

/** Lists the JSON that a text may stand for: the whole text, then the object and the list in it, the longer one first. */
export function listJson(text: string): unknown[] {
  const between = BRACKETS.map(([open, close]) =>
    text.slice(text.indexOf(open), text.lastIndexOf(close) + 1),
  ).toSorted((one, other) => other.length - one.length);
  return [...new Set([readUnfenced(text), ...between])]
    .map(parseJsonOrNothing)
    .filter((value) => value !== undefined);
}
