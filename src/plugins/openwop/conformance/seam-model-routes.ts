/** Owns: the routes by which tests of hosts say what the mock model answers, and look at keys of requests and at side effects. */
import { z } from "zod";
import type { ProgrammedAnswer } from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { refuse } from "../http/error-map.ts";
import { HTTP_BOUNDS } from "../http/http-bounds.ts";
import { createJsonAnswer, type Route } from "../http/route.ts";
import { answerWithSeams, createSeamRoute, record } from "./seam.ts";

const text = z.string().max(HTTP_BOUNDS.bodyBytesMax);
const count = z.int().min(0);

const answerSchema = z.object({
  content: text.optional(),
  stopReason: z.enum(["end_turn", "max_tokens", "length", "stop_sequence", "safety"]).optional(),
  refusalText: text.optional(),
  inputTokens: count.optional(),
  outputTokens: count.optional(),
});
/** How an older page of the protocol writes the same. */
const envelopeSchema = z.object({ mode: z.literal("envelope"), envelope: z.unknown() });
const refusalSchema = z.object({ mode: z.literal("refusal"), refusalReason: text.optional() });

const programBody = z.object({
  nodeId: z.string().min(1).max(HTTP_BOUNDS.idCharsMax),
  program: z.array(z.union([envelopeSchema, refusalSchema, answerSchema])).max(100),
});
/** An answer that a test programs the model with. */
type ProgramEntry = z.output<typeof programBody>["program"][number];

export const modelSeamRoutes: readonly Route[] = [
  createSeamRoute({
    method: "POST",
    path: "/test/mock-ai/program",
    operationId: "seamProgramModel",
    summary: "Says what the mock model answers to a node, call by call.",
    body: programBody,
    handle: ({ caller, body: { nodeId, program } }, dependencies) =>
      answerWithSeams(dependencies, (seams) => {
        seams.programModel(caller, nodeId, program.map(readProgrammedAnswer));
        return createJsonAnswer(200, { nodeId, entries: program.length });
      }),
  }),
  createSeamRoute({
    method: "POST",
    path: "/test/llm-cache-key",
    operationId: "seamLlmCacheKey",
    summary: "The key of a request to a model.",
    body: record,
    handle: ({ body }, dependencies) =>
      answerWithSeams(dependencies, (seams) => {
        const key = seams.llmCacheKey(body);
        return key ? createJsonAnswer(200, key) : refuse("invalid_argument", NO_KEY);
      }),
  }),
  createSeamRoute({
    method: "GET",
    path: "/test/side-effects",
    operationId: "seamSideEffects",
    summary: "What nodes with a side effect did.",
    handle: ({ caller }, dependencies) =>
      answerWithSeams(dependencies, (seams) => createJsonAnswer(200, { effects: seams.sideEffects(caller) })),
  }),
];

const NO_KEY = "A request has a `provider`, a `model` and `messages`, and no text that is not Unicode.";

/** Returns what the mock model is to say, from either form in which a test may write it. */
function readProgrammedAnswer(entry: ProgramEntry): ProgrammedAnswer {
  if (!("mode" in entry)) return entry;
  return entry.mode === "refusal"
    ? { stopReason: "safety", refusalText: entry.refusalReason ?? "" }
    : { content: JSON.stringify(entry.envelope), stopReason: "end_turn" };
}
