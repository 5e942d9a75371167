/** Owns: the ways to have more than one voice where several people must approve, and what comes of each. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTokenSigner } from "../../src/infra/tokens/interrupt-tokens.ts";
import type { Caller } from "../../src/agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { clientOf, openWorld, TOKEN, type World } from "../openwop/levels-world.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import {
  ALICE,
  BOB,
  codeOf,
  MALLORY,
  createWorkflowScene,
  type WorkflowScene,
} from "../support/workflow-scene.ts";

type Fields = Readonly<Record<string, unknown>>;

const CAROL: Caller = { tenant: "acme", principal: "carol" };
const ACCEPT = { action: "accept" };

const createQuorumScene = (config: Fields = {}, workflowId = "w"): WorkflowScene =>
  createWorkflowScene({
    definitions: [
      createWorkflow(workflowId, {
        nodes: [createNode("gate", "core.approvalGate", { requiredApprovals: 3, ...config })],
      }),
    ],
  });

const listVotes = (scene: WorkflowScene, runId: string): unknown[] =>
  scene.payloads(runId, "approval.received").map(({ decidedBy }) => decidedBy);

describe("a quorum", () => {
  it("is not reached by people that one principal invents", async () => {
    const scene = createQuorumScene();
    const runId = await scene.run("w");
    for (const voter of ["ann", "ben", "cid", "bob", "carol"])
      expect(codeOf(await scene.answer(runId, "gate", { ...ACCEPT, voter }))).toBe("forbidden");
    expect(listVotes(scene, runId)).toEqual([]);
    for (const answer of [ACCEPT, { ...ACCEPT, decidedBy: "ben" }, { ...ACCEPT, voter: "alice" }, ACCEPT])
      expect(codeOf(await scene.answer(runId, "gate", answer))).toBe("done");
    expect(await scene.status(runId)).toBe("waiting-approval");
    expect(new Set(listVotes(scene, runId))).toEqual(new Set(["alice"]));
  });

  it.each([7, null, {}, ["alice"], "", "Alice", "alice "])(
    "does not take %j for the one who speaks",
    async (voter) => {
      const scene = createQuorumScene();
      const runId = await scene.run("w");
      expect(codeOf(await scene.answer(runId, "gate", { ...ACCEPT, voter }))).toBe("forbidden");
    },
  );

  it("is reached by as many principals, each authenticated", async () => {
    const scene = createQuorumScene();
    const runId = await scene.run("w");
    for (const caller of [ALICE, BOB, CAROL]) {
      expect(await scene.status(runId)).toBe("waiting-approval");
      await scene.answer(runId, "gate", ACCEPT, caller);
    }
    expect(await scene.status(runId)).toBe("completed");
    expect(listVotes(scene, runId)).toEqual(["alice", "bob", "carol"]);
  });

  it("is not reached by one of another tenant", async () => {
    const scene = createQuorumScene({ requiredApprovals: 2 });
    const runId = await scene.run("w");
    await scene.answer(runId, "gate", ACCEPT);
    expect(codeOf(await scene.answer(runId, "gate", ACCEPT, MALLORY))).toBe("not_found");
    expect(await scene.status(runId)).toBe("waiting-approval");
  });

  it("has no signed token, and takes none that was signed before: its holder is nobody", async () => {
    const scene = createQuorumScene({ requiredApprovals: 2 });
    const runId = await scene.run("w");
    expect((await scene.snapshot(runId))["interrupt"]).not.toHaveProperty("interruptToken");
    const token = createTokenSigner(new Uint8Array(32).fill(7)).sign({
      runId,
      nodeId: "gate",
      interruptId: "gate~1",
      intent: "resolve",
      expiresAt: scene.clock.now() + 60_000,
    });
    await scene.answer(runId, "gate", ACCEPT);
    expect(codeOf(await scene.host.resolveToken(token, ACCEPT))).toBe("forbidden");
    expect(codeOf(await scene.host.resolveToken(token, { ...ACCEPT, voter: "bob" }))).toBe("forbidden");
    expect(await scene.status(runId)).toBe("waiting-approval");
    expect(listVotes(scene, runId)).toEqual(["alice"]);
  });

  it("does not let the last one who speaks put in what the others have not seen", async () => {
    const scene = createQuorumScene({ requiredApprovals: 2, actions: ["accept", "reject", "edit-accept"] });
    const runId = await scene.run("w");
    await scene.answer(runId, "gate", ACCEPT);
    const edited = { action: "edit-accept", editedArtifactData: { amount: 1_000_000 } };
    expect(codeOf(await scene.answer(runId, "gate", edited, BOB))).toBe("validation_error");
    expect(await scene.status(runId)).toBe("waiting-approval");
  });

  it("that its list of approvers can never reach is refused before a run begins", async () => {
    for (const approversList of [
      ["alice", "bob"],
      ["alice", "alice", "alice"],
    ]) {
      const scene = createQuorumScene({ approversList });
      const created = await scene.host.create(ALICE, { workflowId: "w", inputs: {}, transport: "rest" });
      expect(codeOf(created)).toBe("validation_error");
    }
  });

  it("believes a voter of the protocol's own suite only: its workflow, behind its seams", async () => {
    const scene = createQuorumScene({}, "conformance-interrupt-quorum");
    const runId = await scene.run("conformance-interrupt-quorum");
    for (const voter of ["a", "b", "c"]) await scene.answer(runId, "gate", { ...ACCEPT, voter });
    expect(await scene.status(runId)).toBe("completed");
  });
});

describe("who approved", () => {
  it("is the principal in the log and in the outputs, whoever the answer names", async () => {
    const scene = createQuorumScene({ requiredApprovals: 1 });
    const runId = await scene.run("w");
    expect(codeOf(await scene.answer(runId, "gate", { ...ACCEPT, voter: "bob" }))).toBe("forbidden");
    await scene.answer(runId, "gate", { ...ACCEPT, decidedBy: "the-boss" });
    expect(scene.payloads(runId, "interrupt.resolved")[0]).toMatchObject({
      resolvedBy: "alice",
      resumeValue: { decidedBy: "alice" },
    });
    expect(JSON.stringify(scene.events(runId))).not.toContain("the-boss");
  });
});

describe("over HTTP, without the seams of the suite", () => {
  const SECOND = "token-of-the-second-approver";
  const AGAIN = "another-token-of-the-second-one";
  let world: World;
  beforeAll(async () => {
    const gate = createNode("gate", "core.approvalGate", {
      requiredApprovals: 2,
      rejectionPolicy: "majority",
    });
    world = await openWorld(
      [
        createWorkflow("votes", { nodes: [gate] }),
        createWorkflow("conformance-interrupt-quorum", { nodes: [gate] }),
      ],
      {
        testSeams: false,
        tokens: [
          { tenant: "first", token: TOKEN, principal: "ann" },
          { tenant: "first", token: SECOND, principal: "ben" },
          { tenant: "first", token: AGAIN, principal: "ben" },
        ],
      },
    );
  });
  afterAll(() => world.close());

  it.each(["votes", "conformance-interrupt-quorum"])(
    "one token is one voice in %s, and two of one principal are one",
    async (id) => {
      const { client } = world;
      const runId = await client.start(id);
      await client.until(runId, "waiting-approval");
      for (const voter of ["x0", "x1", "x2"])
        expect((await client.resolve(runId, "gate", { ...ACCEPT, voter })).status).toBe(403);
      const [second, again] = [clientOf(world.baseUrl, SECOND), clientOf(world.baseUrl, AGAIN)];
      expect((await second.resolve(runId, "gate", ACCEPT)).status).toBe(200);
      expect((await again.resolve(runId, "gate", ACCEPT)).status).toBe(200);
      expect((await client.snapshot(runId)).status).toBe("waiting-approval");
      expect((await client.resolve(runId, "gate", ACCEPT)).status).toBe(200);
      await client.until(runId, "completed");
    },
  );

  it("the fixture of the suite that votes for invented people is not advertised", async () => {
    const { body } = await world.client.get("/.well-known/openwop");
    expect(body["fixtures"] ?? []).not.toContain("conformance-interrupt-quorum");
  });
});
