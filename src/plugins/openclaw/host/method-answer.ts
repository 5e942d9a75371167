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

export function answer(payload: object): MethodAnswer {
  return { ok: true, payload };
}

export type Refusal = Extract<MethodAnswer, { readonly ok: false }>;

export function createRefusedAnswer(code: string, message: string, details?: object): Refusal {
  return { ok: false, error: { code, message, ...(details && { details }) } };
}

/** Acts on params that are what the method takes; else the answer names what is wrong with them. */
export function read<S extends z.ZodType, T>(
  input: { readonly schema: S; readonly params: unknown; readonly bounds: ValueBounds },
  act: (value: z.output<S>) => Promise<T>,
): Promise<T | MethodAnswer> {
  const parsed = parseBounded(input.schema, input.params, input.bounds);
  return parsed.ok
    ? act(parsed.value)
    : Promise.resolve(createRefusedAnswer("INPUT_INVALID", describeProblems(parsed.problems)));
}
