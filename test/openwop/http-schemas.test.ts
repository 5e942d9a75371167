/** Owns: that what the HTTP face sends is what the official schemas describe, where these lie beside this repository. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { ERROR_CODES } from "../../src/agents/coordination/contracts/errors.ts";
import { createDiscoveryDocument } from "../../src/plugins/openwop/http/advertised.ts";
import {
  COORDINATION_ERROR,
  FACE_ERROR_STATUS,
  HOST_ERROR_STATUS,
  findErrorStatus,
} from "../../src/plugins/openwop/http/error-map.ts";
import type { OpenWopDependencies } from "../../src/plugins/openwop/app.ts";
import { CONFORMANCE_SUITE } from "../../src/plugins/openwop/conformance/conformance-suite.ts";
import { HTTP_BOUNDS } from "../../src/plugins/openwop/http/http-bounds.ts";
import { ADVERTISED, BEARER, createFakeFace, createPost } from "./http-fake-host.ts";

const FOLDER = join(import.meta.dirname, "../../../shared/openwop/schemas");
const isThere = existsSync(FOLDER);
const problemsOf = isThere ? loadOfficialSchemas() : () => [];

function loadOfficialSchemas(): (name: string, value: unknown) => readonly string[] {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  (addFormats as unknown as (target: Ajv2020) => void)(ajv);
  for (const file of readdirSync(FOLDER).filter((name) => name.endsWith(".schema.json")))
    ajv.addSchema(JSON.parse(readFileSync(join(FOLDER, file), "utf8")) as object);
  return (name, value) => {
    const validate = ajv.getSchema(`https://openwop.dev/spec/v1/${name}.schema.json`);
    if (!validate) throw new Error(`there is no OpenWOP schema ${name}`);
    return validate(value) ? [] : [`${name}: ${ajv.errorsText(validate.errors)}`];
  };
}

type Operation = Readonly<{
  operationId: string;
  security: unknown[];
  parameters: { name: string; in: string }[];
  requestBody?: { content: Record<string, { schema: Record<string, unknown> }> };
  responses: Record<string, { content: Record<string, { schema: Record<string, unknown> }> }>;
}>;
interface OpenApi {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

async function openApi(dependencies: Partial<OpenWopDependencies> = {}): Promise<OpenApi> {
  const response = await createFakeFace(dependencies).app.request("/v1/openapi.json");
  return (await response.json()) as OpenApi;
}

describe("the discovery document", () => {
  const liveAgents = ["workflow-node", "run-api", "chat-mention"] as const;
  it.each([
    ["as it is", ADVERTISED],
    ["with all there is", { ...ADVERTISED, agentInventory: true, liveAgents }],
  ])("is one of the official schema %s", (_how, advertised) => {
    const { text } = createDiscoveryDocument(advertised, "https://host.test", ["conformance-noop"]);
    expect(problemsOf("capabilities", JSON.parse(text))).toEqual([]);
  });

  it("has another tag when it says something else", () => {
    const tags = [[], ["conformance-noop"]].map((ids) => createDiscoveryDocument(ADVERTISED, "h", ids).etag);
    expect(new Set(tags).size).toBe(2);
  });
});

describe("answers", () => {
  it("are what the official schemas say", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    const checks = [
      ["run-snapshot", "/v1/runs/run-1"],
      ["run-ancestry-response", "/v1/runs/run-1/ancestry"],
      ["workflow-definition", "/v1/workflows/conformance-noop"],
      ["suspend-request", "/v1/interrupts/good"],
      ["error-envelope", "/v1/runs/nope"],
      ["error-envelope", "/v1/nothing"],
      ["error-envelope", "/v1/interrupts/nope"],
      ["error-envelope", "/v1/runs/run-1/events?streamMode=nope"],
    ] as const;
    for (const [name, path] of checks) {
      const body: unknown = await (await face.app.request(path, { headers: BEARER })).json();
      expect([path, ...problemsOf(name, body)]).toEqual([path]);
    }
    const bad: unknown = await (await face.app.request("/v1/runs", createPost({}))).json();
    expect(problemsOf("error-envelope", bad)).toEqual([]);
    const { app } = createFakeFace({ advertised: { ...ADVERTISED, agentInventory: true } });
    const agents: unknown = await (await app.request("/v1/agents", { headers: BEARER })).json();
    expect(problemsOf("agent-inventory-response", agents)).toEqual([]);
  });
});

describe("the OpenAPI document", () => {
  it("describes every route once, with parameters, bodies and the shape of errors", async () => {
    const { openapi, paths } = await openApi();
    expect(openapi).toMatch(/^3\.1\./);
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.values(methods).map((operation) => ({ path, operation })),
    );
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { path, operation } of operations) {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const params = operation.parameters.filter((each) => each.in === "path").map(({ name }) => name);
      expect([path, params]).toEqual([path, named]);
      expect(operation.responses["500"]?.content["application/json"]?.schema).toEqual({
        $ref: "#/components/schemas/Error",
      });
    }
    expect(ids.toSorted()).toMatchInlineSnapshot(`
      [
        "bulkCancelRuns",
        "cancelRun",
        "createRun",
        "deleteWorkspaceFile",
        "diffRuns",
        "forkRun",
        "getCapabilities",
        "getOpenApi",
        "getRun",
        "getRunAncestry",
        "getWorkflow",
        "getWorkspaceFile",
        "inspectInterruptToken",
        "listWorkspaceFiles",
        "pauseRun",
        "pollRunEvents",
        "putWorkspaceFile",
        "resolveInterrupt",
        "resolveInterruptToken",
        "resumeRun",
        "streamRunEvents",
      ]
    `);
  });

  it("has schemas that can be used", async () => {
    const { paths } = await openApi({ suite: CONFORMANCE_SUITE.face });
    const ajv = new Ajv2020({ strict: false });
    const schemas = Object.values(paths)
      .flatMap((methods) => Object.values(methods))
      .flatMap(({ requestBody, responses }) => [
        ...Object.values(requestBody?.content ?? {}),
        ...Object.values(responses).flatMap(({ content }) => Object.values(content)),
      ])
      .map(({ schema }) => schema)
      .filter((schema) => !("$ref" in schema));
    for (const schema of schemas) expect(() => ajv.compile(schema)).not.toThrow();
    const create = paths["/v1/runs"]!["post"]!.requestBody!.content["application/json"]!.schema;
    const validate = ajv.compile(create);
    expect([{ workflowId: "a" }, {}, { workflowId: "a", more: 1 }].map((body) => validate(body))).toEqual([
      ...[true, false, false],
    ]);
    const resolve =
      paths["/v1/interrupts/{token}"]!["post"]!.requestBody!.content["application/json"]!.schema;
    expect(ajv.compile(resolve)({})).toBe(false);
  });

  it("names the refusals that a body and too many requests may meet, whatever the route", async () => {
    const { paths } = await openApi();
    const large = "x".repeat(HTTP_BOUNDS.bodyBytesMax + 1);
    const send = async (path: string, method: string, body?: string): Promise<number> => {
      const { app, host } = createFakeFace({ rateLimit: { requestsPerSecond: 1, burst: 1 } });
      host.put("run-1");
      const url = path.replace("{runId}", "run-1").replace(/\{\w+\}/g, "good");
      const request = { method: method.toUpperCase(), headers: BEARER, ...(body !== undefined && { body }) };
      const { status } = await app.request(url, request);
      return body === undefined ? (await app.request(url, request)).status : status;
    };
    for (const [path, methods] of Object.entries(paths))
      for (const [method, { operationId, responses }] of Object.entries(methods)) {
        const named = Object.keys(responses).map(Number);
        expect([operationId, named]).toEqual([operationId, expect.arrayContaining([429])]);
        expect(named).toContain(await send(path, method));
        if (method === "get") continue;
        expect([operationId, await send(path, method, large)]).toEqual([operationId, 413]);
        expect([operationId, await send(path, method, "not JSON")]).toEqual([operationId, 415]);
        expect([operationId, named]).toEqual([operationId, expect.arrayContaining([413, 415])]);
      }
  });

  it("has only routes that are there, and seams only where they are", async () => {
    const { paths } = await openApi();
    const seams = (await openApi({ suite: CONFORMANCE_SUITE.face })).paths;
    expect(Object.keys(paths).filter((path) => path.includes("/host/sample/"))).toEqual([]);
    expect(Object.keys(seams).length).toBeGreaterThan(Object.keys(paths).length);
    const face = createFakeFace({ suite: CONFORMANCE_SUITE.face });
    for (const [path, methods] of Object.entries(seams))
      for (const method of Object.keys(methods)) {
        const url = path.replace(/\{\w+\}/g, "x");
        // A seam is one to those with a token only.
        const headers = path.includes("/host/sample/") ? BEARER : {};
        const response = await face.app.request(url, { method: method.toUpperCase(), headers });
        const isMissing = [404, 405].includes(response.status) && !path.includes("token");
        const { message } = isMissing ? ((await response.json()) as { message: string }) : { message: "" };
        expect([path, method, message]).not.toEqual([path, method, "There is nothing here."]);
        expect([path, method, isMissing && headers !== BEARER]).toEqual([path, method, false]);
      }
  });
});

describe("the tables of errors", () => {
  it("have a status for every code, and none that means that all is well", () => {
    const statuses = [...Object.values(HOST_ERROR_STATUS), ...Object.values(FACE_ERROR_STATUS)];
    expect(statuses.every((status) => status >= 400 && status < 600)).toBe(true);
    expect(Object.keys(COORDINATION_ERROR).toSorted()).toEqual(Object.keys(ERROR_CODES).toSorted());
    const outcomes = Object.values(COORDINATION_ERROR).map((code) => findErrorStatus(code));
    expect([...new Set(outcomes)].toSorted()).toEqual([400, 404, 409, 500, 503]);
  });
});
