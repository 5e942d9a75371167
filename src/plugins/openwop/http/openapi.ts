/** Owns: the OpenAPI document, from the same table that mounts the routes. */
import { z } from "zod";
import type { Route } from "./route.ts";
import { errorSchema } from "./schemas.ts";

/** Named values of the OpenAPI document. */
type OpenApiFields = Readonly<Record<string, unknown>>;

const ERROR = { $ref: "#/components/schemas/Error" };

/** Creates the OpenAPI document that describes these routes, as a plain object. */
export function createOpenApiDocument(
  routes: readonly Route[],
  info: { readonly title: string; readonly version: string },
): OpenApiFields {
  const paths: Record<string, Record<string, OpenApiFields>> = {};
  for (const route of routes) {
    const methods = (paths[route.path] ??= {});
    methods[route.method.toLowerCase()] = describeOperation(route);
  }
  return {
    openapi: "3.1.0",
    info: { ...info, description: "A host of OpenWOP v1 (https://openwop.dev)." },
    paths,
    components: {
      schemas: { Error: createJsonSchema(errorSchema, "output") },
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
    },
  };
}

function describeOperation(route: Route): OpenApiFields {
  const { operationId, summary, auth, body } = route;
  return {
    operationId,
    summary,
    security: auth === "bearer" ? [{ bearer: [] }] : [],
    parameters: describeParameters(route),
    ...(body && {
      requestBody: { content: { "application/json": { schema: createJsonSchema(body, "input") } } },
    }),
    responses: describeResponses(route),
  };
}

function describeParameters(route: Route): readonly OpenApiFields[] {
  const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const inQuery = (route.queries ?? []).map(({ name, summary, schema }) => ({
    name,
    in: "query",
    description: summary,
    schema,
  }));
  const inHeader = [
    ...(route.method === "POST" && !route.path.includes("/host/sample/") ? ["Idempotency-Key"] : []),
    ...(route.streams ? ["Last-Event-ID"] : []),
    ...(route.operationId === "createRun" ? ["traceparent", "tracestate"] : []),
  ].map((name) => ({ name, in: "header", schema: { type: "string" } }));
  return [...inPath, ...inQuery, ...inHeader];
}

function describeResponses(route: Route): OpenApiFields {
  const content: Record<string, OpenApiFields> = {
    "application/json": { schema: createJsonSchema(route.answer, "output") },
  };
  if (route.streams) content["text/event-stream"] = { schema: { type: "string" } };
  const errors = [...listSharedRefusalStatuses(route), ...(route.refusals ?? [])].map(
    (status): [string, OpenApiFields] => [
      String(status),
      { description: "Not done.", content: { "application/json": { schema: ERROR } } },
    ],
  );
  return { [String(route.status)]: { description: "Done.", content }, ...Object.fromEntries(errors) };
}

/**
 * Lists the statuses, besides its own, with which requests of a route may be refused (`serve-route.ts`). Whatever is
 * no GET may have a body and a key.
 */
function listSharedRefusalStatuses({
  method,
  path,
  auth,
  isHidden = false,
  queries,
}: Route): readonly number[] {
  const isGet = method === "GET";
  return [
    ...(!isGet || queries ? [400] : []),
    ...(auth === "bearer" && !isHidden ? [401] : []),
    ...(isHidden || path.includes("{") ? [404] : []),
    ...(isGet ? [] : [409, 413, 415]),
    429,
    500,
    ...(auth === "none" ? [] : [503]),
  ];
}

function createJsonSchema(schema: z.ZodType, io: "input" | "output"): OpenApiFields {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return rest;
}
