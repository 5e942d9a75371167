import { hash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { formatCanonicalJson } from "../../src/agents/coordination/std/canonical-json.ts";
import {
  createNode,
  TERMINATE,
  createSupervised,
  createWorker,
  createWorkflow,
} from "../support/workflow-definitions.ts";
import { checkLog } from "../support/workflow-plays.ts";
import { ALICE, codeOf, createWorkflowScene } from "../support/workflow-scene.ts";
import {
  BEGINS,
  CRITIC,
  ENDS,
  createLooped,
  filterByType,
  createScene,
  tellStory,
  type JsonFields,
} from "./verified-scene.ts";

describe("an attestation of what a sub-workflow produced", () => {
  const createAttested = (outputAttestation: JsonFields, more: JsonFields = {}) =>
    createWorkflow("parent", {
      nodes: [
        createNode("sub", "core.subWorkflow", {
          workflowId: "digger",
          outputMapping: { got: "result" },
          outputAttestation,
          ...more,
        }),
      ],
      variables: { got: undefined },
    });
  const CHECKSUM = hash("sha256", '{"result":"gold"}');
  const CHAIN = ["dispatch.began", "dispatch.succeeded", "child.completed"];

  test("is told before the outputs are merged, and again by the node", async () => {
    const at = createScene(createAttested({ checksum: true }));
    const runId = await at.run("parent");
    expect(tellStory(at, runId)).toEqual([...CHAIN, "output.harvested", "got=gold", "run.completed"]);
    const attestation = { checksum: CHECKSUM, algorithm: "sha256" };
    expect(at.payloads(runId, "core.workflowChain.event").at(-1)).toMatchObject({
      harvestedKeys: ["got"],
      attestation,
    });
    expect(at.payloads(runId, "node.completed")[0]?.outputs).toMatchObject({ attestation, merged: true });
    checkLog(at.events(runId));
  });

  test.each<[JsonFields, string[], JsonFields]>([
    [{ action: "accept" }, ["output.harvested", "got=gold", "run.completed"], { merged: true }],
    [
      { action: "edit-accept", editedArtifactData: { result: "brass" } },
      ["output.harvested", "got=brass", "run.completed"],
      { merged: true, edited: true },
    ],
    [
      { action: "edit-accept", editedArtifactData: {} },
      ["output.harvested", "run.completed"],
      { merged: true, edited: true },
    ],
  ])("with approval is merged as people say: %j", async (answer, messages, outputs) => {
    const at = createScene(createAttested({ checksum: true, requireApproval: true }));
    const runId = await at.run("parent");
    expect(tellStory(at, runId)).toEqual([...CHAIN, "asks approval-required"]);
    expect(at.payloads(runId, "interrupt.requested")[0]).toMatchObject({
      kind: "approval",
      data: { artifactData: { result: "gold" }, attestation: { checksum: CHECKSUM } },
    });
    await at.answer(runId, "sub", answer);
    expect(tellStory(at, runId).slice(CHAIN.length + 2)).toEqual(messages);
    const attestation = { checksum: CHECKSUM, algorithm: "sha256" };
    expect(at.payloads(runId, "node.completed")[0]?.outputs).toMatchObject({ ...outputs, attestation });
  });

  test.each([
    ["reject", undefined, "approval_rejected"],
    ["timeout", undefined, "approval_timeout"],
    ["reject", "absorb", undefined],
  ])("with approval is never merged after a %s (%s)", async (how, onChildFailure, code) => {
    const at = createScene(
      createAttested({ requireApproval: true, approvalTimeoutMs: 1_000 }, { onChildFailure }),
    );
    const runId = await at.run("parent");
    if (how === "reject") await at.answer(runId, "sub", { action: "reject" });
    else await at.clock.advance(1_001);
    const { variables, error, status, convergence } = await at.snapshot(runId);
    expect(variables).not.toHaveProperty("got");
    expect(tellStory(at, runId)).not.toContain("output.harvested");
    if (code === undefined) {
      expect(status).toBe("completed");
      expect(convergence).toMatchObject({ goalSatisfied: false });
      expect(at.payloads(runId, "node.completed")[0]?.outputs).toMatchObject({ merged: false });
    } else expect(error).toMatchObject({ code });
  });

  test("with approval is not merged when the run is cancelled, whatever is answered then", async () => {
    const at = createScene(createAttested({ requireApproval: true }));
    const runId = await at.run("parent");
    await at.host.cancel({ tenant: "acme", principal: "alice" }, runId, {});
    expect(codeOf(await at.answer(runId, "sub", { action: "accept" }))).toBe("interrupt_already_resolved");
    expect(tellStory(at, runId)).not.toContain("output.harvested");
  });

  test("is over sensitive variables as the child's snapshot shows them", async () => {
    const digger = createWorker("digger", { result: "gold", pin: "1234" });
    const variables = digger.variables.map((each) => ({ ...each, sensitive: each.name === "pin" }));
    const at = createWorkflowScene({
      definitions: [createAttested({ checksum: true }), { ...digger, variables }],
    });
    const runId = await at.run("parent");
    const childRunId = filterByType(at, runId, "node.dispatched").payload.childRunId;
    const { variables: shown } = await at.snapshot(childRunId);
    expect(shown).toEqual({ result: "gold", pin: expect.not.stringContaining("1234") as string });
    const checksum = at.payloads(runId, "core.workflowChain.event").at(-1)?.attestation?.checksum;
    expect(checksum).toBe(hash("sha256", formatCanonicalJson(shown)));
  });

  test("is the same for every order of the same outputs", async () => {
    const sums = await Promise.all(
      [
        { a: 1, 10: "x", 9: { d: [1.0, "é"], c: null } },
        { 9: { c: null, d: [1, "é"] }, 10: "x", a: 1 },
      ].map(async (variables) => {
        const at = createWorkflowScene({
          definitions: [createAttested({ checksum: true }), createWorker("digger", variables)],
        });
        const runId = await at.run("parent");
        return at.payloads(runId, "core.workflowChain.event").at(-1)?.attestation?.checksum;
      }),
    );
    expect(sums[0]).toBe(hash("sha256", '{"10":"x","9":{"c":null,"d":[1,"é"]},"a":1}'));
    expect(sums[1]).toBe(sums[0]);
  });

  test.each([
    [{ checksum: true, algorithm: "md5" }, {}],
    [{ requireApproval: "yes" }, {}],
    [{ requireApproval: true }, { waitForCompletion: false }],
  ])("that is not understood is refused before anything begins: %j %j", async (outputAttestation, more) => {
    const at = createScene(createAttested(outputAttestation, more));
    const refused = await at.host.create(
      { tenant: "acme", principal: "alice" },
      { workflowId: "parent", inputs: {}, transport: "rest" },
    );
    expect(codeOf(refused)).toBe("validation_error");
  });

  test("beside a verifier comes behind its verdict: what fails is not even asked about", async () => {
    const createGateScene = (mockVerdicts: readonly string[]) =>
      createScene(
        createAttested({ checksum: true, requireApproval: true }, { verifier: { ...CRITIC, mockVerdicts } }),
      );
    const failed = createGateScene(["fail"]);
    const one = await failed.run("parent");
    expect(tellStory(failed, one)).toEqual([...CHAIN, "verified fail", "run.failed"]);
    expect(await failed.snapshot(one)).toMatchObject({ error: { code: "verification_failed" } });
    const passed = createGateScene(["pass"]);
    const two = await passed.run("parent");
    expect(tellStory(passed, two).slice(-2)).toEqual(["verified pass", "asks approval-required"]);
  });

  test.each([
    [["report:write", "data:delete"], ["report:write"]],
    [undefined, []],
  ])(
    "bounds what the child may do to the scopes that it names, of those the parent has: %j",
    async (scopes, left) => {
      const at = createScene(createAttested({ principalScope: ["report:write", "report:read"] }));
      const runId = await at.run("parent", {}, { ...ALICE, ...(scopes && { scopes }) });
      const childRunId = filterByType(at, runId, "node.dispatched").payload.childRunId;
      expect(filterByType(at, childRunId, "run.started").payload.scopes).toEqual(left);
    },
  );

  test("stays with the worker of a dispatch, as well", async () => {
    const at = createScene(
      createLooped(
        { mockVerdicts: ["pass"] },
        { dispatch: { outputAttestation: { checksum: true, requireApproval: true } } },
      ),
    );
    const runId = await at.run("loop");
    await at.answer(runId, "dispatch", { action: "accept" });
    expect(tellStory(at, runId).slice(BEGINS.length)).toEqual([
      ...["verified pass", "asks approval-required", "answered", "output.harvested", "got=gold", ...ENDS],
    ]);
  });
});

describe("a terminate with criteria", () => {
  const createEndingScene = (successCriteria: readonly JsonFields[]) =>
    createSupervised("loop", [{ ...TERMINATE, successCriteria }]);

  test.each([
    [[{ key: "answered", met: true }], { goalSatisfied: true, unmet: [], notAccepted: [] }],
    [
      [
        { key: "answered", met: true },
        { key: "tested", met: false },
      ],
      { goalSatisfied: false, unmet: ["tested"], notAccepted: [] },
    ],
    [[], undefined],
  ])("says whether the run reached its goal: %j", async (criteria, convergence) => {
    const at = createScene(createEndingScene(criteria));
    const runId = await at.run("loop");
    const snapshot = await at.snapshot(runId);
    expect(snapshot.status).toBe("completed");
    expect(snapshot["convergence"]).toEqual(convergence);
    expect(filterByType(at, runId, "run.completed").payload).not.toHaveProperty("convergence");
  });
});
