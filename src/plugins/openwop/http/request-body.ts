/**
 * Owns: reading the body of a request: its size, its type, that it is JSON, and that it is what the route takes.
 *
 * B1 A body is read once. Without a stated length it is read only up to the bound.
 * B2 That a body is nested too deeply, or has too many values, is found in its text, before it is parsed.
 * B3 Reading, parsing and checking are turns of the event loop of their own where the body is large.
 */
import type { HonoRequest } from "hono";
import type { z } from "zod";
import { findJsonExcess } from "../../../agents/coordination/std/json-text-excess.ts";
import { parseBounded, type ValidationProblem } from "../../../agents/coordination/contracts/validation.ts";
import { giveWay } from "../../../platform/give-way.ts";
import { readBoundedText } from "../../../platform/read-bounded-text.ts";
import { refuse, type HttpRefusal } from "./error-map.ts";
import { HTTP_BOUNDS } from "./http-bounds.ts";

export type ReadBody = { readonly kind: "body"; readonly value: unknown } | HttpRefusal;

const BOUNDS = {
  charsMax: HTTP_BOUNDS.bodyBytesMax,
  depthMax: HTTP_BOUNDS.depthMax,
  valuesMax: HTTP_BOUNDS.bodyValuesMax,
};

/** The body itself is at depth 0. */
const TEXT_BOUNDS = { depthMax: HTTP_BOUNDS.depthMax + 1, valuesMax: HTTP_BOUNDS.bodyValuesMax };
const EXCESS = {
  depth: `The body is nested more than ${HTTP_BOUNDS.depthMax} levels deep.`,
  values: `The body has more than ${HTTP_BOUNDS.bodyValuesMax} values.`,
};

/**
 * Reads the JSON body of a request and returns its parsed value, an empty object for an empty body; a refusal where it
 * is too large, nested too deeply, of another type, incomplete or no JSON.
 */
export async function readJsonBody(request: HonoRequest): Promise<ReadBody> {
  const stated = request.header("content-length");
  if (stated !== undefined && Number(stated) > HTTP_BOUNDS.bodyBytesMax) return refuseTooLarge();
  const text = await readBodyText(request, stated === undefined);
  if (text === null) return refuse("validation_error", "The body did not arrive as it was announced.");
  if (text === undefined || text.length > HTTP_BOUNDS.bodyBytesMax) return refuseTooLarge();
  if (text.trim() === "") return { kind: "body", value: {} };
  if (!isJson(request.header("content-type")))
    return refuse(
      "unsupported_media_type",
      "A body is JSON, with the header `Content-Type: application/json`.",
    );
  const excess = findJsonExcess(text, TEXT_BOUNDS);
  if (excess) return refuse("validation_error", EXCESS[excess]);
  await giveWay();
  try {
    return { kind: "body", value: JSON.parse(text) };
  } catch {
    return { ...refuse("validation_error", "The body is not JSON."), isUnparsed: true };
  }
}

/**
 * Returns a request's body as the schema parses it, or a `validation_error` refusal with the problems found, up to a
 * bound.
 */
export function validateBody(schema: z.ZodType, value: unknown): ReadBody {
  const parsed = parseBounded(schema, value, BOUNDS);
  return parsed.ok
    ? { kind: "body", value: parsed.value }
    : createValidationRefusal("The body", parsed.problems);
}

/**
 * Returns the `validation_error` refusal of a subject, whose message tells the first problem and whose details have
 * all.
 */
export function createValidationRefusal(
  subject: string,
  problems: readonly ValidationProblem[],
): HttpRefusal {
  const [first] = problems;
  const why = first ? `: ${first.path}: expected ${first.expected}, got ${first.received}` : "";
  return refuse("validation_error", `${subject} does not have the expected form${why}.`, { problems });
}

function isJson(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(contentType);
}

function refuseTooLarge(): HttpRefusal {
  return refuse("payload_too_large", `A body has at most ${HTTP_BOUNDS.bodyBytesMax} bytes.`, {
    maxRequestBodyBytes: HTTP_BOUNDS.bodyBytesMax,
  });
}

/** Returns the body as text: `undefined` where it is too large, `null` where the client went away or was cut off. */
async function readBodyText(request: HonoRequest, isOpenEnded: boolean): Promise<string | null | undefined> {
  try {
    return isOpenEnded
      ? await readBoundedText(request.raw.body, HTTP_BOUNDS.bodyBytesMax)
      : await request.text();
  } catch {
    return null;
  }
}
