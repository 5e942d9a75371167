/** Owns: reading what stands in the query of a request. A wrong value is refused with a sentence. */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { EpochMs } from "../../../agents/coordination/contracts/ids.ts";
import { PAGE_BOUNDS } from "./page-bounds.ts";
import type { PageRequest } from "./page-dependencies.ts";

/**
 * Returns a text from a request's query; `undefined` where it is missing or empty, and an error where it is too long.
 * @throws CoordinationError `INPUT_INVALID`
 */
export function readQueryText({ query }: PageRequest, name: string): string | undefined {
  const text = query(name);
  if (text === undefined || text === "") return undefined;
  if (text.length > PAGE_BOUNDS.queryCharsMax)
    throw new CoordinationError(
      "INPUT_INVALID",
      `${name}: expected at most ${PAGE_BOUNDS.queryCharsMax} characters`,
    );
  return text;
}

/**
 * Returns a whole number within bounds from a request's query; `undefined` where it is missing. @throws
 * CoordinationError `INPUT_INVALID`
 */
export function readQueryNumber(
  request: PageRequest,
  name: string,
  { min, max }: { readonly min: number; readonly max: number },
): number | undefined {
  const text = readQueryText(request, name);
  if (text === undefined) return undefined;
  const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new CoordinationError("INPUT_INVALID", `${name}: expected a whole number from ${min} to ${max}`);
}

/**
 * Returns a time from a request's query in Unix milliseconds; `undefined` where it is missing. @throws
 * CoordinationError `INPUT_INVALID`
 */
export function readQueryMoment(request: PageRequest, name: string): EpochMs | undefined {
  const text = readQueryText(request, name);
  if (text === undefined) return undefined;
  const atMs = Date.parse(text);
  if (Number.isNaN(atMs))
    throw new CoordinationError("INPUT_INVALID", `${name}: expected a time such as 2026-01-31T12:00:00Z`);
  return atMs as EpochMs;
}

/**
 * Returns the one of `choices` that a request's query names; `undefined` where it is missing. @throws
 * CoordinationError `INPUT_INVALID`
 */
export function readQueryChoice<T extends string>(
  request: PageRequest,
  name: string,
  choices: readonly T[],
): T | undefined {
  const text = readQueryText(request, name);
  if (text === undefined) return undefined;
  const choice = choices.find((each) => each === text);
  if (choice !== undefined) return choice;
  throw new CoordinationError("INPUT_INVALID", `${name}: expected one of ${choices.join(", ")}`);
}
