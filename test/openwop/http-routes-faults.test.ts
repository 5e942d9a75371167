/** Owns: that a route which reads one bad thing answers for the others, and shows no secret of a definition. */
import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import {
  workflowDefinitionSchema,
  type WorkflowDefinition,
} from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { createWorkflowScene } from "../support/workflow-scene.ts";
import { BEARER, createFakeFace, createPost } from "./http-fake-host.ts";

describe("cancelling several runs", () => {
  it("cancels the others where one cannot be read", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    face.host.put("run-2");
    const cancel = face.host.cancel.bind(face.host);
    face.host.cancel = async (caller, runId, request) => {
      if (runId === "run-1") throw new CoordinationError("EVENT_UNREADABLE", "a secret of the inside");
      return await cancel(caller, runId, request);
    };
    const answer = await face.app.request(
      "/v1/runs:bulk-cancel",
      createPost({ runIds: ["run-1", "run-2", "run-3"] }),
    );
    expect(answer.status).toBe(200);
    const error = { code: "internal_error", message: "An unexpected error occurred." };
    expect(await answer.json()).toEqual({
      results: [
        { runId: "run-1", ok: false, error },
        { runId: "run-2", ok: true, status: "cancelled" },
        { runId: "run-3", ok: false, error: { code: "not_found", message: "There is no such run." } },
      ],
    });
    expect(face.logged).toMatchObject([
      { level: "error", fields: { where: "bulkCancelRuns", code: "EVENT_UNREADABLE" } },
    ]);
  });

  it("says of one whose ledger failed that it may have been cancelled", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    face.host.fail(new CoordinationError("LEDGER_BUSY", "locked"));
    const answer = await face.app.request("/v1/runs:bulk-cancel", createPost({ runIds: ["run-1"] }));
    const message = expect.stringMatching(
      /^It is not known whether .* Look before you repeat it\.$/,
    ) as unknown;
    expect(await answer.json()).toMatchObject({
      results: [{ runId: "run-1", ok: false, error: { code: "unavailable", message } }],
    });
  });
});

describe("the definition of a workflow", () => {
  function createSecretive(): WorkflowDefinition {
    return workflowDefinitionSchema.parse({
      ...createWorkflow("w", { nodes: [createNode("only")] }),
      variables: [
        { name: "key", type: "string", defaultValue: "s3cret", sensitive: true },
        { name: "word", type: "string", defaultValue: "hello" },
      ],
    });
  }

  it("is shown without the defaults of its sensitive variables", async () => {
    const { host, clock } = createWorkflowScene({ definitions: [createSecretive()] });
    const { app } = createFakeFace({ host, clock });
    const answer = await app.request("/v1/workflows/w", { headers: BEARER });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({
      id: "w",
      variables: [
        { name: "key", type: "string", sensitive: true },
        { name: "word", defaultValue: "hello" },
      ],
    });
    expect(await (await app.request("/v1/workflows/w", { headers: BEARER })).text()).not.toContain("s3cret");
  });
});
