/** Owns: the attestation of sub-runs and their approval before a merge (RFC 0063), what no verdict may hold, and the seams. */
import { hash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  createAttested,
  CANARY,
  DEFINITIONS,
  countMerges,
  openVerifiedWorld,
  treasureOf,
  verdictsOf,
  createVerified,
  type Config,
  type VerifiedWorld,
} from "./levels-verified.ts";
import { WORKERS } from "./levels-workflows.ts";
import {
  chainOf,
  clientOf,
  filterByType,
  findOnly,
  openWorld,
  phasesOf,
  type Event,
} from "./levels-world.ts";

let here: VerifiedWorld;
beforeAll(async () => {
  here = await openVerifiedWorld();
});
afterAll(() => here.close());

const ESCALATED = "core.workflowChain.confidence-escalated";

describe("the attestation of a sub-run (RFC 0063)", () => {
  const GOLD = hash("sha256", '{"found":"gold"}');
  const ATTESTATION = { checksum: GOLD, algorithm: "sha256" };

  it("L6-50 is the sha256 of the canonical outputs, told with the harvest and by the node, before the mapping", async () => {
    const { snapshot, events } = await here.world.client.run("attested");
    const harvested = chainOf(events).at(-1);
    expect(harvested?.payload).toMatchObject({ phase: "output.harvested", attestation: ATTESTATION });
    expect(findOnly(events, "variable.changed").sequence).toBeGreaterThan(harvested?.sequence ?? Infinity);
    const { outputs } = findOnly(events, "node.completed").payload as { outputs: Config };
    expect(outputs["attestation"]).toEqual(ATTESTATION);
    expect(treasureOf(snapshot)).toBe("gold");
  });

  it("L6-51 is of the child's final variables, which anybody who may read the child can hash again", async () => {
    const { events } = await here.world.client.run("attested");
    const child = await here.world.client.snapshot(
      String(findOnly(events, "node.dispatched").payload["childRunId"]),
    );
    const canonical = JSON.stringify(Object.fromEntries(Object.entries(child.variables).toSorted()));
    expect(hash("sha256", canonical)).toBe(GOLD);
  });

  it("L6-52 with approval suspends the parent before the merge, with the child's outputs as the artifact", async () => {
    const { events, snapshot } = await here.held("approved");
    const { kind, data } = findOnly(events, "interrupt.requested").payload as { kind: string; data: Config };
    expect(kind).toBe("approval");
    expect(data).toMatchObject({
      artifactData: { found: "gold" },
      attestation: ATTESTATION,
      actions: ["accept", "reject", "edit-accept"],
    });
    expect([treasureOf(snapshot), phasesOf(events).at(-1)]).toEqual([undefined, "child.completed"]);
  });

  it("L6-53 with approval merges the child's outputs unchanged on accept, once", async () => {
    const { runId } = await here.held("approved");
    await here.answer(runId, "sub", { action: "accept" });
    const { snapshot, events } = await here.ended(runId);
    expect([treasureOf(snapshot), countMerges(events)]).toEqual(["gold", 1]);
    expect(chainOf(events).at(-1)?.payload).toMatchObject({
      harvestedKeys: ["treasure"],
      attestation: ATTESTATION,
    });
  });

  it("L6-54 with approval merges what the approver put in their place, and attests to what was produced", async () => {
    const { runId } = await here.held("approved");
    const wrong = await here.world.client.resolve(runId, "sub", {
      action: "edit-accept",
      editedArtifactData: "brass",
    });
    expect(wrong.status).toBe(400);
    await here.answer(runId, "sub", { action: "edit-accept", editedArtifactData: { found: "brass" } });
    const { snapshot, events } = await here.ended(runId);
    expect([treasureOf(snapshot), countMerges(events)]).toEqual(["brass", 1]);
    expect(chainOf(events).at(-1)!.payload["attestation"]).toEqual(ATTESTATION);
    expect(findOnly(events, "node.completed").payload["outputs"]).toMatchObject({
      edited: true,
      attestation: ATTESTATION,
    });
  });

  it("L6-55 with approval merges nothing on reject: the node fails, or takes it as it takes failures", async () => {
    for (const [workflowId, status, code] of [
      ["approved", "failed", "approval_rejected"],
      ["absorbed", "completed", undefined],
    ] as const) {
      const { runId } = await here.held(workflowId);
      await here.answer(runId, "sub", { action: "reject" });
      const { snapshot, events } = await here.ended(runId);
      expect([snapshot.status, snapshot.error?.code]).toEqual([status, code]);
      expect([treasureOf(snapshot), countMerges(events)]).toEqual([undefined, 0]);
      expect(phasesOf(events)).not.toContain("output.harvested");
    }
  });

  it("L6-56 with approval fails closed: nobody's answer, and a run that is cancelled, merge nothing", async () => {
    const expired = await here.ended(await here.world.client.start("approval-expires"));
    expect(expired.snapshot.error?.code).toBe("approval_timeout");
    const { runId } = await here.held("approved");
    await here.world.client.post(`/v1/runs/${runId}/cancel`);
    const cancelled = await here.ended(runId);
    const late = await here.world.client.resolve(runId, "sub", { action: "accept" });
    expect(late.status).toBe(409);
    for (const { snapshot, events } of [expired, cancelled]) {
      expect([treasureOf(snapshot), countMerges(events)]).toEqual([undefined, 0]);
      expect(phasesOf(events)).not.toContain("output.harvested");
    }
  });

  it("L6-57 is inert where nothing of it is asked for", async () => {
    const { snapshot, events } = await here.world.client.run("inert");
    expect([snapshot.status, treasureOf(snapshot), countMerges(events)]).toEqual(["completed", "gold", 1]);
    expect(JSON.stringify(chainOf(events))).not.toContain("attestation");
  });

  it("L6-58 holds for the worker of a dispatch, too", async () => {
    const { runId } = await here.held("dispatch-approved");
    await here.answer(runId, "handing", { action: "accept" });
    const { snapshot, events } = await here.ended(runId);
    expect([snapshot.status, treasureOf(snapshot), countMerges(events)]).toEqual(["completed", "gold", 1]);
    expect(chainOf(events).at(-1)!.payload["attestation"]).toEqual(ATTESTATION);
  });

  it("L6-59 survives a stop of the host while people are asked, and what they agreed to is merged once", async () => {
    const { runId } = await here.held("crowned");
    await here.world.restart();
    await here.answer(runId, "sub", { action: "accept" });
    const { snapshot, events } = await here.ended(runId);
    expect([treasureOf(snapshot), countMerges(events)]).toEqual([`${CANARY}-text`, 1]);
  });
});

describe("no verdict holds anything of what was verified (verifier-no-content-leak)", () => {
  const CONTENT_FREE = [
    "agent.verified",
    ESCALATED,
    "core.workflowChain.event",
    "node.suspended",
    "node.dispatched",
  ];

  it("L6-60 in any event of any run, but where it is merged or shown to the people who rule on it", async () => {
    const ids = DEFINITIONS.map(({ id }) => id).filter((id) => id.startsWith("leak-"));
    expect(ids.length).toBeGreaterThan(6);
    for (const workflowId of ids) {
      const runId = await here.world.client.start(workflowId);
      await here.world.client.until(runId, "completed", "waiting-approval");
      const events = await here.world.client.events(runId);
      const mayHold = (event: Event): unknown =>
        event.type === "interrupt.requested"
          ? { ...event.payload, data: { ...(event.payload["data"] as Config), artifactData: null } }
          : event.payload;
      for (const event of events.filter(({ type }) => type !== "variable.changed"))
        expect(JSON.stringify(mayHold(event)), `${workflowId}: ${event.type}`).not.toContain(CANARY);
      for (const event of filterByType(events, ...CONTENT_FREE))
        expect(JSON.stringify(event)).not.toContain(CANARY);
      if (
        filterByType(events, "output.harvested").length === 0 &&
        !phasesOf(events).includes("output.harvested")
      )
        expect(countMerges(events), workflowId).toBe(0);
    }
  });
});

describe("seams", () => {
  const postSeam = (path: string, body: Config) => here.world.client.post(`/v1/host/sample${path}`, body);
  const isSuccess = ({ status, outcome, committed }: Config): boolean =>
    status === "completed" || outcome === "completed" || committed === true;

  it("B-90 verifier-gating: a fail blocks what a pass completes, in runs whose verdicts are theirs", async () => {
    for (const [simulateVerdict, success] of [
      ["pass", true],
      ["fail", false],
      ["revise", false],
    ] as const) {
      const { status, body } = await postSeam("/agents/verify-run", { simulateVerdict });
      expect(status).toBe(200);
      expect((body["events"] as Config[])[0]).toMatchObject({
        type: "agent.verified",
        verdict: simulateVerdict,
      });
      expect(isSuccess(body), simulateVerdict).toBe(success);
      const events = await here.world.client.events(String(body["runId"]));
      expect(verdictsOf(events)[0]).toBe(simulateVerdict);
    }
  });

  it("B-91 subrun-checksum-stable: the same outputs in another order have the same checksum", async () => {
    const one = await postSeam("/subrun/attest", {
      childOutputs: { report: "done", score: 0.9, tags: ["a", "b"] },
      outputAttestation: { checksum: true },
    });
    const two = await postSeam("/subrun/attest", {
      childOutputs: { tags: ["a", "b"], score: 0.9, report: "done" },
      outputAttestation: { checksum: true },
    });
    const checksum = hash("sha256", '{"report":"done","score":0.9,"tags":["a","b"]}');
    expect(one.body).toMatchObject({ attestation: { checksum, algorithm: "sha256" }, merged: true });
    expect(two.body["attestation"]).toEqual(one.body["attestation"]);
    expect(one.body["harvestedEvent"]).toMatchObject({
      phase: "output.harvested",
      attestation: { checksum },
    });
  });

  it("B-92 subrun-approval-gate: accept merges, reject does not", async () => {
    const base = { childOutputs: { artifact: "x" }, outputAttestation: { requireApproval: true } };
    const accepted = await postSeam("/subrun/attest", { ...base, approvalAction: "accept" });
    expect(accepted.body).toMatchObject({ merged: true, mergedValues: { artifact: "x" } });
    const rejected = await postSeam("/subrun/attest", { ...base, approvalAction: "reject" });
    expect(rejected.body).toMatchObject({ merged: false });
    expect(rejected.body).not.toHaveProperty("mergedValues");
    const edited = await postSeam("/subrun/attest", {
      ...base,
      approvalAction: "edit-accept",
      editedArtifactData: { artifact: "y" },
    });
    expect(edited.body["mergedValues"]).toEqual({ artifact: "y" });
  });

  it("B-93 subrun-approval-fail-closed: a run that ends without an answer merges nothing", async () => {
    const { body } = await postSeam("/subrun/attest", {
      childOutputs: { artifact: "unverified" },
      outputAttestation: { requireApproval: true },
    });
    expect(body).toMatchObject({ merged: false });
    expect((await here.world.client.snapshot(String(body["runId"]))).status).toBe("cancelled");
  });

  it("B-94 seams of the verifier are not there for strangers, and refuse what makes no sense", async () => {
    for (const path of ["/agents/verify-run", "/subrun/attest"]) {
      const stranger = await fetch(`${here.world.baseUrl}/v1/host/sample${path}`, {
        method: "POST",
        body: "{}",
      });
      expect(stranger.status).toBe(404);
      expect((await postSeam(path, {})).status).toBe(400);
    }
    const { status } = await postSeam("/subrun/attest", {
      childOutputs: { a: 1 },
      outputAttestation: { checksum: true, algorithm: "md5" },
    });
    expect(status).toBe(400);
  });
});

describe("a verified child on another host", () => {
  it("L6-70 is verified, attested to and merged as one of this host is; what it may do there cannot be bounded", async () => {
    const token = "the-token-of-the-other-host";
    const there = await openWorld(WORKERS, { tokens: [{ tenant: "far", token }] });
    const here = await openWorld(
      [
        createVerified(
          "far",
          { mockVerdicts: ["pass"] },
          { dispatch: { outputAttestation: { checksum: true } } },
        ),
        createAttested("far-bounded", { checksum: true, principalScope: ["report:write"] }),
      ],
      { privateOrigins: [there.baseUrl], peerTokens: { [there.baseUrl]: token } },
    );
    try {
      const inputs = { peerUrl: there.baseUrl };
      const { snapshot, events } = await here.client.run("far", { inputs });
      expect([snapshot.status, treasureOf(snapshot), verdictsOf(events)]).toEqual([
        "completed",
        "gold",
        ["pass"],
      ]);
      const childRunId = String(findOnly(events, "agent.verified").payload["target"]);
      const child = await clientOf(there.baseUrl, token).snapshot(childRunId);
      const { checksum } = chainOf(events).at(-1)!.payload["attestation"] as { checksum: string };
      expect(checksum).toBe(hash("sha256", JSON.stringify(child.variables)));
      const bounded = await here.client.run("far-bounded", { inputs });
      expect(bounded.snapshot.error?.code).toBe("principal_scope_not_enforceable");
    } finally {
      await here.close();
      await there.close();
    }
  });
});
