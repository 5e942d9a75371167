/** Owns: the JSON in a model's answer, which may stand in a fence or between words. */
import { stripJsonFence } from "../../std/foreign-text.ts";
import { parseJsonOrNothing } from "../../std/parse-json.ts";

const BRACKETS = [
  ["{", "}"],
  ["[", "]"],
] as const;

/**
 * Returns the JSON value in a text: that of the whole text, or else the longer one of its object and its list;
 * `undefined` where there is none.
 */
export function findJson(text: string): unknown {
  return listJsonCandidates(text)[0];
}

/**
 * Lists the JSON values that can be parsed from a text: the whole text, then the object and the list in it, the longer
 * one first; empty where there are none.
 */
export function listJsonCandidates(text: string): unknown[] {
  const between = BRACKETS.map(([open, close]) =>
    text.slice(text.indexOf(open), text.lastIndexOf(close) + 1),
  ).toSorted((one, other) => other.length - one.length);
  return [...new Set([stripJsonFence(text), ...between])]
    .map(parseJsonOrNothing)
    .filter((value) => value !== undefined);
}
