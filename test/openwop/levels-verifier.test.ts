/** Owns: the verifier of level 6, its gate and convergence (RFC 0090), in real runs over HTTP. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findSchemaProblems } from "./levels-schemas.ts";
import {
  ASSAYER,
  causeOf,
  CRITIC,
  countMerges,
  openVerifiedWorld,
  treasureOf,
  verdictsOf,
  createScripted,
  type Config,
  type VerifiedRun,
  type VerifiedWorld,
} from "./levels-verified.ts";
import { work } from "./levels-workflows.ts";
import { chainOf, filterByType, findOnly, phasesOf, type Event } from "./levels-world.ts";

let here: VerifiedWorld;
beforeAll(async () => {
  here = await openVerifiedWorld();
});
afterAll(() => here.close());

const ESCALATED = "core.workflowChain.confidence-escalated";

describe("agent.verified", () => {
  it("L6-01 is emitted over a completed child, named by its run, caused by its end, before anything is merged", async () => {
    const { events } = await here.world.client.run("passes");
    const event = findOnly(events, "agent.verified");
    expect(event.payload["target"]).toBe(findOnly(events, "node.dispatched").payload["childRunId"]);
    expect(causeOf(events, event)?.payload["phase"]).toBe("child.completed");
    const [change = expect.fail("nothing was merged")] = filterByType(events, "variable.changed");
    const harvested = chainOf(events).at(-1);
    expect(harvested?.payload["phase"]).toBe("output.harvested");
    expect([event, change, harvested].map((each) => each?.sequence)).toEqual(
      [event, change, harvested].map((each) => each?.sequence).toSorted((a, b) => Number(a) - Number(b)),
    );
    expect(harvested && causeOf(events, harvested)?.payload["phase"]).toBe("child.completed");
  });

  it("L6-02 carries who ruled, on what, the verdict, keys and a confidence, and nothing else", async () => {
    const { events } = await here.world.client.run("sure");
    const { payload } = findOnly(events, "agent.verified");
    expect(payload).toEqual({
      ...CRITIC,
      target: findOnly(events, "node.dispatched").payload["childRunId"],
      verdict: "pass",
      confidence: 0.5,
    });
  });

  it("L6-03 has no verdicts but pass, fail and revise: a workflow with another one is refused", async () => {
    const { status, body } = await here.world.client.post(
      "/v1/host/sample/workflows",
      JSON.parse(JSON.stringify(createScripted("says-ok", "ok"))),
    );
    expect([status, body["error"]]).toEqual([400, "validation_error"]);
  });

  it("L6-04 is of somebody who did not do the work, unless the workflow allows it; then the name shows it", async () => {
    const { events } = await here.held("self");
    expect(filterByType(events, "agent.verified")).toEqual([]);
    expect(findOnly(events, "node.suspended").payload["reason"]).toBe("verification-missing");
    const allowed = await here.world.client.run("self-allowed");
    expect(findOnly(allowed.events, "agent.verified").payload["agentId"]).toBe("worker-good");
    expect(findOnly(allowed.events, "node.dispatched").payload["childWorkflowId"]).toBe("worker-good");
  });

  it("L6-05 comes from a live critic that sees the outputs and the criteria, through the model that it names", async () => {
    const before = here.model.askedBodies.length;
    const { snapshot, events } = await here.world.client.run("live");
    expect(findOnly(events, "agent.verified").payload).toMatchObject({
      agentId: ASSAYER,
      verdict: "pass",
      confidence: 0.9,
    });
    expect(treasureOf(snapshot)).toBe("gold");
    const [askedBody = expect.fail("the critic was not asked")] = here.model.askedBodies.slice(before);
    expect(findOnly(events, "provider.usage").payload).toMatchObject({ nodeId: "handing", inputTokens: 11 });
    expect(causeOf(events, findOnly(events, "agent.verified"))?.payload["phase"]).toBe("child.completed");
    expect(askedBody.model).toBe("assaying");
    expect(askedBody.messages[0]?.content).toContain("Is it gold?");
    expect(askedBody.messages[0]?.content).toContain("grounded, complete");
    expect(askedBody.messages.at(-1)?.content).toContain('{"found":"gold"}');
  });

  it("L6-06 comes from checks that no model makes, by their keys", async () => {
    const passed = await here.world.client.run("checked");
    expect(findOnly(passed.events, "agent.verified").payload).toMatchObject({
      agentId: "critic-one",
      verdict: "pass",
      criteria: ["shape", "word"],
    });
    const { events } = await here.held("checked-and-failed");
    expect(findOnly(events, "agent.verified").payload).toMatchObject({
      verdict: "fail",
      criteria: ["shape"],
    });
  });

  it("L6-07 gives the k-th completed child the k-th verdict, and a failed child none", async () => {
    const { events } = await here.held("each");
    expect(verdictsOf(events)).toEqual(["pass", "fail", "pass"]);
    expect(chainOf(events).filter(({ payload }) => payload["phase"] === "output.harvested")).toHaveLength(2);
    const failed = await here.world.client.run("child-fails");
    expect(verdictsOf(failed.events)).toEqual([]);
    expect(failed.snapshot.status).toBe("completed");
  });
});

describe("the gate", () => {
  it("L6-10 keeps the outputs of a child whose verdict is fail out of the run: no mapping, no harvest", async () => {
    const { runId, events, snapshot } = await here.held("fails");
    expect(verdictsOf(events)).toEqual(["fail"]);
    expect(phasesOf(events)).toEqual(["dispatch.began", "dispatch.succeeded", "child.completed"]);
    expect(treasureOf(snapshot)).toBeUndefined();
    await here.answer(runId, "boss", { action: "accept" });
    const after = await here.ended(runId);
    expect([treasureOf(after.snapshot), countMerges(after.events)]).toEqual([undefined, 0]);
  });

  it("L6-11 does not let a run end as a success over a failed verdict: people are asked first", async () => {
    const { runId, events } = await here.held("fails");
    expect(findOnly(events, "node.suspended").payload).toMatchObject({
      kind: "approval",
      reason: "verification-failed",
    });
    expect(filterByType(events, "runOrchestrator.decided")).toHaveLength(1);
    await here.answer(runId, "boss", { action: "accept" });
    const { snapshot, events: after } = await here.ended(runId);
    expect(snapshot.status).toBe("completed");
    expect(snapshot["convergence"]).toEqual({
      goalSatisfied: false,
      unmet: [],
      notAccepted: ["worker-good"],
    });
    expect(filterByType(after, "runOrchestrator.decided").map(({ payload }) => payload["iteration"])).toEqual(
      [1, 2],
    );
  });

  it("L6-12 fails the run where people do not let it end, or nobody does in time, or the workflow says so", async () => {
    const { runId } = await here.held("fails");
    await here.answer(runId, "boss", { action: "reject" });
    for (const id of [
      runId,
      await here.world.client.start("expires"),
      await here.world.client.start("fails-at-once"),
    ]) {
      const { snapshot, events } = await here.ended(id);
      expect([snapshot.status, snapshot.error?.code]).toEqual(["failed", "verification_failed"]);
      expect(countMerges(events)).toBe(0);
    }
  });

  it("L6-13 sends the run on where people put another decision in the place of the end", async () => {
    const { runId } = await here.held("fails-then-passes");
    await here.answer(runId, "boss", { action: "edit-accept", editedArtifactData: work(["worker-good"]) });
    const { snapshot, events } = await here.ended(runId);
    expect(snapshot.status).toBe("completed");
    expect([verdictsOf(events), treasureOf(snapshot), countMerges(events)]).toEqual([
      ["fail", "pass"],
      "gold",
      1,
    ]);
  });

  it("L6-14 is satisfied by another turn of the same actor that passes", async () => {
    const { snapshot, events } = await here.world.client.run("twice");
    expect([snapshot.status, treasureOf(snapshot)]).toEqual(["completed", "gold"]);
    expect(verdictsOf(events)).toEqual(["fail", "pass"]);
  });

  it("L6-15 gives another turn to a worker that is to revise its work, with the keys of what it did not meet", async () => {
    const { snapshot, events } = await here.world.client.run("revises");
    expect([snapshot.status, treasureOf(snapshot)]).toEqual(["completed", "gold"]);
    expect(verdictsOf(events)).toEqual(["revise", "pass"]);
    expect(phasesOf(events)).toEqual([
      ...["dispatch.began", "dispatch.succeeded", "child.completed"],
      ...["dispatch.began", "dispatch.succeeded", "child.completed", "output.harvested"],
    ]);
    const [first, second] = filterByType(events, "node.dispatched").map(({ payload }) =>
      String(payload["childRunId"]),
    );
    expect(second).not.toBe(first);
    expect((await here.world.client.snapshot(second ?? "")).inputs).toEqual({
      revisionCriteria: ["grounded"],
    });
    expect(countMerges(events)).toBe(1);
  });

  it("L6-16 keeps the handoff state machine in order with every turn of a worker", async () => {
    const { events } = await here.world.client.run("revises");
    const causes = chainOf(events).map((event) => {
      const cause = causeOf(events, event);
      return [event.payload["phase"], cause?.payload["phase"] ?? cause?.type];
    });
    const turn = [
      ["dispatch.began", "runOrchestrator.decided"],
      ["dispatch.succeeded", "dispatch.began"],
      ["child.completed", "dispatch.succeeded"],
    ];
    expect(causes).toEqual([...turn, ...turn, ["output.harvested", "child.completed"]]);
  });

  it("L6-17 bounds revisions by the loop's limit: the turn that is too many ends the run", async () => {
    const runId = await here.world.client.start("revises-for-ever", {
      configurable: { maxLoopIterations: 3 },
    });
    const { snapshot, events } = await here.ended(runId);
    expect(snapshot.error?.code).toBe("loop_limit_exceeded");
    expect(findOnly(events, "cap.breached").payload).toMatchObject({
      kind: "loop-iterations",
      limit: 3,
      observed: 4,
    });
    expect([filterByType(events, "node.dispatched").length, countMerges(events)]).toEqual([3, 0]);
  });

  it("L6-18 proceeds after a pass", async () => {
    const { snapshot, events } = await here.world.client.run("passes");
    expect([snapshot.status, treasureOf(snapshot), countMerges(events)]).toEqual(["completed", "gold", 1]);
    expect(snapshot).not.toHaveProperty("convergence");
  });

  it("L6-19 is not there where nobody asked for a verdict: absence is no failure", async () => {
    const { snapshot, events } = await here.world.client.run("unverified");
    expect([snapshot.status, treasureOf(snapshot), verdictsOf(events)]).toEqual(["completed", "gold", []]);
  });

  it("L6-20 holds what has no verdict, because its critic says nothing of use or nothing in time, for people", async () => {
    for (const [workflowId, because] of [
      ["live-words", "malformed"],
      ["live-late", "timed_out"],
    ] as const) {
      const { runId, events, snapshot } = await here.held(workflowId);
      expect(findOnly(events, "node.suspended").payload["reason"]).toBe("verification-missing");
      const { data } = findOnly(events, "interrupt.requested").payload as { data: Config };
      expect(data["description"]).toContain(because);
      expect([verdictsOf(events), treasureOf(snapshot)]).toEqual([[], undefined]);
      await here.answer(runId, "handing", { action: "accept" });
      const after = await here.ended(runId);
      expect([treasureOf(after.snapshot), countMerges(after.events)]).toEqual(["gold", 1]);
    }
  });

  it("L6-21 stands behind a sub-workflow as well: a failed verdict is the node's failure", async () => {
    const { snapshot, events } = await here.world.client.run("sub-fails");
    expect([snapshot.status, snapshot.error?.code]).toEqual(["failed", "verification_failed"]);
    expect(phasesOf(events)).toEqual(["dispatch.began", "dispatch.succeeded", "child.completed"]);
  });

  it("L6-22 stands when the host is stopped between the verdict and the answer", async () => {
    const { runId } = await here.held("doubted");
    await here.world.restart();
    await here.answer(runId, "handing", { action: "accept" });
    const { snapshot, events } = await here.ended(runId);
    expect([treasureOf(snapshot), countMerges(events), verdictsOf(events)]).toEqual(["gold", 1, ["pass"]]);
  });
});

async function forkOf(runId: string, mode: "replay" | "branch", fromSeq: number): Promise<VerifiedRun> {
  const { status, body } = await here.world.client.post(`/v1/runs/${runId}:fork`, { mode, fromSeq });
  expect(status, JSON.stringify(body)).toBe(201);
  const forkId = String(body["runId"]);
  const snapshot = await here.world.client.until(forkId, "completed", "failed", "waiting-approval");
  return { runId: forkId, snapshot, events: await here.world.client.events(forkId) };
}

const withoutRun = (events: readonly Event[]): unknown[] => events.map(({ runId: _, ...event }) => event);

describe("a fork of a verified run", () => {
  it("L6-24 in mode replay is the same log from every index, and asks no critic, no worker and no person", async () => {
    const doubted = await here.held("doubted");
    await here.answer(doubted.runId, "handing", { action: "accept" });
    const approved = await here.held("approved");
    await here.answer(approved.runId, "sub", {
      action: "edit-accept",
      editedArtifactData: { found: "brass" },
    });
    const failed = await here.held("fails");
    await here.answer(failed.runId, "boss", { action: "accept" });
    const others = await Promise.all(["revises", "live", "sub-fails"].map((id) => here.world.client.run(id)));
    const sources = await Promise.all([doubted, approved, failed].map(({ runId }) => here.ended(runId)));
    const requestCount = here.model.askedBodies.length;
    for (const { runId, events } of [...sources, ...others])
      for (let fromSeq = 0; fromSeq < events.length; fromSeq += 1) {
        const fork = await forkOf(runId, "replay", fromSeq);
        expect(withoutRun(fork.events), `${fromSeq} of ${events.length}`).toEqual(withoutRun(events));
      }
    expect(here.model.askedBodies).toHaveLength(requestCount);
  });

  it("L6-25 in mode branch merges only what its gate lets through, wherever it was cut off", async () => {
    const doubted = await here.held("doubted");
    await here.answer(doubted.runId, "handing", { action: "accept" });
    const { runId, events } = await here.ended(doubted.runId);
    const verifiedAt = findOnly(events, "agent.verified").sequence;
    const answeredAt = findOnly(events, "interrupt.resolved").sequence;
    for (let fromSeq = verifiedAt - 1; fromSeq <= answeredAt; fromSeq += 1) {
      const branch = await forkOf(runId, "branch", fromSeq);
      expect([branch.snapshot.status, countMerges(branch.events)], `from ${fromSeq}`).toEqual([
        "waiting-approval",
        0,
      ]);
      expect(verdictsOf(branch.events)).toEqual(["pass"]);
      await here.answer(branch.runId, "handing", { action: "accept" });
      const after = await here.ended(branch.runId);
      expect([treasureOf(after.snapshot), countMerges(after.events)]).toEqual(["gold", 1]);
    }
  });
});

describe("a confidence below the floor", () => {
  it("L6-30 of the critic escalates before the merge: on record first, then people are asked", async () => {
    const { runId, events, snapshot } = await here.held("doubted");
    const escalated = findOnly(events, ESCALATED);
    expect(escalated.payload).toEqual({
      confidence: 0.4,
      floor: 0.5,
      escalationKind: "escalate",
      parentRunId: runId,
      workerId: "worker-good",
    });
    expect(causeOf(events, escalated)?.type).toBe("agent.verified");
    expect(findOnly(events, "node.suspended").sequence).toBeGreaterThan(escalated.sequence);
    expect([treasureOf(snapshot), countMerges(events)]).toEqual([undefined, 0]);
  });

  it("L6-31 is merged once where it was accepted several times at once", async () => {
    const { runId } = await here.held("doubted");
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => here.world.client.resolve(runId, "handing", { action: "accept" })),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409, 409]);
    const { snapshot, events } = await here.ended(runId);
    expect([treasureOf(snapshot), countMerges(events)]).toEqual(["gold", 1]);
  });

  it("L6-32 is never merged after a rejection, or when nobody answers in time", async () => {
    const { runId } = await here.held("doubted");
    await here.answer(runId, "handing", { action: "reject" });
    for (const id of [runId, await here.world.client.start("doubt-expires")]) {
      const { snapshot, events } = await here.ended(id);
      expect([snapshot.status, treasureOf(snapshot), countMerges(events)]).toEqual([
        "completed",
        undefined,
        0,
      ]);
      expect(snapshot["convergence"]).toMatchObject({ goalSatisfied: false });
      expect(phasesOf(events)).not.toContain("output.harvested");
    }
  });

  it("L6-33 is none at the floor, nor where none is stated", async () => {
    for (const workflowId of ["sure", "passes"]) {
      const { snapshot, events } = await here.world.client.run(workflowId);
      expect([snapshot.status, filterByType(events, ESCALATED)]).toEqual(["completed", []]);
    }
  });
});

describe("convergence", () => {
  it("L6-40 of a terminate with an unmet criterion is a give-up: completed, and not reached", async () => {
    const { snapshot, events } = await here.world.client.run("gives-up");
    expect(snapshot.status).toBe("completed");
    expect(snapshot["convergence"]).toEqual({ goalSatisfied: false, unmet: ["weighed-it"], notAccepted: [] });
    const { decision } = findOnly(events, "runOrchestrator.decided").payload as { decision: Config };
    expect(findSchemaProblems("orchestrator-decision", decision)).toEqual([]);
    expect(decision["successCriteria"]).toEqual([
      { key: "found-it", met: true },
      { key: "weighed-it", met: false },
    ]);
    expect(events.at(-1)?.type).toBe("run.completed");
  });

  it("L6-41 is stated where all criteria are met, and not where nothing says so", async () => {
    const reached = await here.world.client.run("reaches-it");
    expect(reached.snapshot["convergence"]).toMatchObject({ goalSatisfied: true, unmet: [] });
    const silent = await here.world.client.run("unverified");
    expect(silent.snapshot).not.toHaveProperty("convergence");
  });

  it("L6-42 of a child that gave up is not lost on the run that called it", async () => {
    for (const workflowId of ["calls-one-that-gives-up", "leads-one-that-gives-up"]) {
      const { events } = await here.world.client.run(workflowId);
      const childRunId = findOnly(events, "node.dispatched").payload["childRunId"];
      expect(findOnly(events, "coordination.child_gave_up").payload).toEqual({
        childRunId,
        unmet: ["weighed-it"],
      });
      const outputs = filterByType(events, "node.completed").map(({ payload }) => payload["outputs"]);
      expect(outputs).toContainEqual({ childRunId, childStatus: "completed", childGoalSatisfied: false });
    }
  });
});
