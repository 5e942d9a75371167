/** Owns: what a signed answer may say. Whether it counts, the coordination decides. */
import { isUtf8 } from "node:buffer";
import { z } from "zod";
import { BOUNDS } from "../../agents/coordination/contracts/bounds.ts";
import { answerKindSchema } from "../../agents/coordination/contracts/escalation.ts";
import { parseBoundedJson } from "../../agents/coordination/std/json-text-excess.ts";
import { parseBounded } from "../../agents/coordination/contracts/validation.ts";

/** The longest text, every character of it escaped, and the rest. */
export const ANSWER_BYTES_MAX = BOUNDS.answerCharsMax * 6 + 16_384;

/** Bounds of an answer's nesting and size, checked before it is parsed. */
const TEXT_BOUNDS = { depthMax: 8, valuesMax: 1_000 };

const isWellFormed = (text: string): boolean => text.isWellFormed();

const answerBodySchema = z
  .strictObject({
    type: z.literal("coordination.answer").optional(),
    questionId: z
      .string()
      .min(1)
      .max(BOUNDS.coordinationIdCharsMax + 1 + BOUNDS.idCharsMax),
    answerToken: z.string().min(1).max(BOUNDS.idCharsMax),
    answer: answerKindSchema,
    text: z.string().min(1).max(BOUNDS.answerCharsMax).refine(isWellFormed, "well-formed Unicode").optional(),
    by: z
      .strictObject({
        id: z
          .string()
          .min(1)
          .max(BOUNDS.idCharsMax)
          .regex(/^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+$/u, "a name in one line"),
      })
      .optional(),
  })
  .refine(({ answer, text }) => answer !== "answer" || text !== undefined, {
    path: ["text"],
    message: "a text, because the answer is one",
  });
export type AnswerBody = z.output<typeof answerBodySchema>;

export type ReadAnswer =
  { readonly ok: true; readonly body: AnswerBody } | { readonly ok: false; readonly message: string };

/**
 * Returns the parsed body of a signed answer to a question, or a message that says what is wrong with it and quotes no
 * value of it.
 */
export function parseAnswerBody(bytes: Uint8Array): ReadAnswer {
  const value = isUtf8(bytes) ? parseBoundedJson(new TextDecoder().decode(bytes), TEXT_BOUNDS) : undefined;
  if (value === undefined) return { ok: false, message: "The body is not JSON in UTF-8." };
  const bounds = { charsMax: ANSWER_BYTES_MAX, depthMax: 2 };
  const parsed = parseBounded(answerBodySchema, value, bounds);
  if (parsed.ok) return { ok: true, body: parsed.value };
  // The value itself is left out: a person may have written it.
  const problems = parsed.problems.map(({ path, expected }) => `${path}: expected ${expected}`);
  return { ok: false, message: `The body is no answer. ${problems.join("; ")}.` };
}
