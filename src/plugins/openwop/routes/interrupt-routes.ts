/** Owns: the routes by which people and systems answer what a run waits for. */
import { z } from "zod";
import type {
  HostAnswer,
  QuestionPlace,
  ResolvedInterrupt,
} from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { refuse } from "../http/error-map.ts";
import { formatQuestionSubject, parseQuestionSubject } from "../http/keyed-request.ts";
import {
  answerFromOutcome,
  createJsonAnswer,
  defineRoute,
  type RouteAnswer,
  type RouteRequest,
  type Route,
  type RouteDependencies,
} from "../http/route.ts";
import { interruptSchema, resolvedSchema } from "../http/schemas.ts";

/** That the value is there is looked at later than the rest: `required` is for the OpenAPI document. */
const resolveBody = z
  .looseObject({ resumeValue: z.unknown().optional() })
  .meta({ required: ["resumeValue"] });
type ResolveBody = z.output<typeof resolveBody>;

export const interruptRoutes: readonly Route[] = [
  defineRoute({
    method: "POST",
    path: "/v1/runs/{runId}/interrupts/{nodeId}",
    operationId: "resolveInterrupt",
    summary: "Answers the open interrupt of a node.",
    auth: "bearer",
    isPersonal: true,
    status: 200,
    refusals: [403, 410, 422],
    body: resolveBody,
    answer: resolvedSchema,
    nameSubject: nameAskedQuestion,
    handle: async (ask, { host }) => {
      if (!hasResumeValue(ask.body)) return refuseMissingValue();
      const question = readQuestionPlace(ask);
      const resolved = await host.resolve(ask.caller, ask.param("runId"), question, ask.body.resumeValue);
      return createResolvedAnswer(ask, resolved);
    },
  }),
  defineRoute({
    method: "GET",
    path: "/v1/interrupts/{token}",
    operationId: "inspectInterruptToken",
    summary: "What the holder of a signed token is asked.",
    auth: "token",
    status: 200,
    refusals: [409, 410],
    answer: interruptSchema,
    handle: async (ask, { host }) =>
      answerFromOutcome(await host.inspectToken(ask.param("token")), ({ kind, key, data, resumeSchema }) =>
        // Nothing else: suspend-request.schema.json is closed.
        createJsonAnswer(200, { kind, key, data, ...(resumeSchema && { resumeSchema }) }),
      ),
  }),
  defineRoute({
    method: "POST",
    path: "/v1/interrupts/{token}",
    operationId: "resolveInterruptToken",
    summary: "Answers an interrupt with a signed token.",
    auth: "token",
    status: 200,
    refusals: [403, 410, 422],
    body: resolveBody,
    answer: resolvedSchema,
    handle: resolveByToken,
  }),
];

/**
 * Names the question that the node asks when the request first comes, by the node alone where it asks none. The node
 * may ask another one by the time of the next try.
 */
async function nameAskedQuestion(ask: RouteRequest, { host }: RouteDependencies): Promise<string> {
  const nodeId = ask.param("nodeId");
  const found = await host.question(ask.caller, ask.param("runId"), { nodeId });
  if (found.kind === "refused") return formatQuestionSubject({ nodeId });
  return formatQuestionSubject({ nodeId, interruptId: found.value.interruptId });
}

function readQuestionPlace({ subject = "", param }: RouteRequest): QuestionPlace {
  return (parseQuestionSubject(subject) as QuestionPlace | undefined) ?? { nodeId: param("nodeId") };
}

async function resolveByToken(
  ask: RouteRequest<ResolveBody>,
  { host }: RouteDependencies,
): Promise<RouteAnswer> {
  const token = ask.param("token");
  if (hasResumeValue(ask.body))
    return createResolvedAnswer(ask, await host.resolveToken(token, ask.body.resumeValue));
  // Problems of the body are told to those with a good token only.
  const interrupt = await host.inspectToken(token);
  return interrupt.kind === "refused" ? interrupt : refuseMissingValue();
}

/**
 * Answers with the outcome. A request that is sent again gets the answer that the first one would have got, where its
 * answer is what settled the question.
 */
function createResolvedAnswer(
  { isRepeated }: RouteRequest,
  outcome: HostAnswer<ResolvedInterrupt>,
): RouteAnswer {
  if (isRepeated && outcome.kind === "refused" && outcome.resolved)
    return createJsonAnswer(200, outcome.resolved);
  return answerFromOutcome(outcome, (value) => createJsonAnswer(200, value));
}

function hasResumeValue(body: ResolveBody): boolean {
  return Object.hasOwn(body, "resumeValue");
}

function refuseMissingValue(): RouteAnswer {
  return refuse("validation_error", 'The answer is missing: the body is `{"resumeValue": ...}`.');
}
