/** Owns: the form in which gateway methods answer, and how they read their params. */
import type { z } from "zod";
import {
  describeProblems,
  parseBounded,
  type ValueBounds,
} from "../../../agents/coordination/contracts/validation.ts";

export type MethodAnswer =
  | { readonly ok: true; readonly payload: object }
  | {
      readonly ok: false;
      readonly error: { readonly code: string; readonly message: string; readonly details?: object };
    };

/** Returns the answer of a gateway method that succeeded, with its payload. */
export function createOkAnswer(payload: object): MethodAnswer {
  return { ok: true, payload };
}

/** The answer of a gateway method that is refused. */
export type RefusedMethodAnswer = Extract<MethodAnswer, { readonly ok: false }>;

/**
 * Returns the answer of a gateway method that was refused, with the code and message of the error; nothing is thrown.
 */
export function createRefusedAnswer(code: string, message: string, details?: object): RefusedMethodAnswer {
  return { ok: false, error: { code, message, ...(details && { details }) } };
}

/**
 * Runs `act` on the checked params of a gateway method and returns its result; where they do not fit the schema or its
 * bounds, returns an `INPUT_INVALID` refusal without running it.
 */
export function actOnParams<S extends z.ZodType, T>(
  input: { readonly schema: S; readonly params: unknown; readonly bounds: ValueBounds },
  act: (value: z.output<S>) => Promise<T>,
): Promise<T | MethodAnswer> {
  const parsed = parseBounded(input.schema, input.params, input.bounds);
  return parsed.ok
    ? act(parsed.value)
    : Promise.resolve(createRefusedAnswer("INPUT_INVALID", describeProblems(parsed.problems)));
}
