import { describe, expect, it } from "vitest";
import { DELIVERY_STEP_ID } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { KnownCoordination } from "../../src/agents/coordination/ledger/state.ts";
import {
  nameTraceReference,
  listEventReferences,
  summarizeCoordination,
} from "../../src/agents/coordination/ledger/summary.ts";
import { nameChild, OWNER, RUN, stepId } from "./scene.ts";

const listReferences = (type: string, payload: object): string[] =>
  listEventReferences({ type, payload } as unknown as RunEvent).map(({ name, stepId: step }) =>
    step === undefined ? name : `${name} of ${step}`,
  );

const STEP = { stepId: stepId(1) };
const TRACED = { origin: "observed", ownerSession: OWNER, trace: { traceId: "t-1" } };
const PARENT = { coordinationId: RUN, stepId: stepId(4) };

describe("an event refers to", () => {
  it.each<[string, string, object, readonly string[]]>([
    ["a trace of a session", "coordination.created", TRACED, [`trace:t-1:${OWNER}`]],
    [
      "a trace of a session at a gateway",
      "coordination.created",
      { ...TRACED, gateway: "office" },
      [`trace@office:t-1:${OWNER}`],
    ],
    [
      "a trace and the step that it is nested in",
      "coordination.created",
      { ...TRACED, parent: PARENT },
      [`trace:t-1:${OWNER}`, `nested:${RUN}:step-4`],
    ],
    ["no trace where it is a plan", "coordination.created", { ...TRACED, origin: "planned" }, []],
    ["no trace where there is none", "coordination.created", { ...TRACED, trace: {} }, []],
    [
      "the step alone that a plan is nested in",
      "coordination.created",
      { ...TRACED, origin: "planned", parent: PARENT },
      [`nested:${RUN}:step-4`],
    ],
    [
      "who changed a resource",
      "resource.changed",
      { ...STEP, resource: "file:/a" },
      ["changed:file:/a of step-1"],
    ],
    ["a conflict", "conflict.detected", { contest: { requester: stepId(2) } }, ["conflicts of step-2"]],
    ["no conflict of a release that did not name its requester", "conflict.detected", {}, []],
    ["a difference", "child.differed", STEP, ["mismatches of step-1"]],
    ["a question", "coordination.escalated", { answers: {} }, ["questions"]],
    ["no question of a release that took no answers", "coordination.escalated", {}, []],
    ["a refused call", "privilege.refused", STEP, ["refused_calls of step-1"]],
    [
      "the child that a dispatch names",
      "step.dispatched",
      { ...STEP, targetSession: nameChild("a") },
      [`child:${nameChild("a")} of step-1`],
    ],
    ["no child where a dispatch names none", "step.dispatched", STEP, []],
    [
      "the child that was acknowledged",
      "step.acknowledged",
      { ...STEP, via: "hook", childSessionKey: nameChild("a") },
      [`child:${nameChild("a")} of step-1`],
    ],
    [
      "no child that a runner acknowledges, which its dispatch had named",
      "step.acknowledged",
      { ...STEP, via: "runner", childSessionKey: nameChild("a") },
      [],
    ],
    [
      "no child where the owner is told",
      "step.dispatched",
      { stepId: DELIVERY_STEP_ID, targetSession: nameChild("a") },
      [],
    ],
    ["nothing else", "step.completed", STEP, []],
  ])("%s", (_, type, payload, expected) => {
    expect(listReferences(type, payload)).toEqual(expected);
  });
});

describe("the name of a trace", () => {
  it("has the gateway where several share a ledger", () => {
    expect(nameTraceReference({ session: OWNER, gateway: undefined }, "t")).toBe(`trace:t:${OWNER}`);
    expect(nameTraceReference({ session: OWNER, gateway: "g" }, "t")).toBe(`trace@g:t:${OWNER}`);
  });
});

describe("a summary", () => {
  interface Counts {
    readonly open?: number;
    readonly failed?: number;
    readonly timedOut?: number;
    readonly delivery?: string;
    readonly tokens?: number;
    readonly costMicroUsd?: number;
    readonly created?: object;
    readonly rest?: object;
  }

  /** Three steps, and the one that tells the owner where there is a status for it. */
  function createState(counts: Counts): KnownCoordination {
    const { open = 0, failed = 0, timedOut = 0, delivery, tokens = 0, costMicroUsd = 0 } = counts;
    const steps = new Map<string, unknown>([1, 2, 3].map((step) => [stepId(step), {}]));
    if (delivery !== undefined) steps.set(DELIVERY_STEP_ID, { phase: { status: delivery } });
    return {
      kind: "open",
      created: { ownerSession: OWNER, objective: "o", ...counts.created },
      createdAtMs: 5,
      steps,
      openSteps: { size: open },
      endedSteps: { failed, timed_out: timedOut },
      bill: { sum: { tokens, costMicroUsd } },
      ...counts.rest,
    } as unknown as KnownCoordination;
  }

  const countSteps = (counts: Counts) => Object.values(summarizeCoordination(createState(counts)).steps);

  it("has no more fields than there is to say", () => {
    expect(summarizeCoordination(createState({}))).toStrictEqual({
      status: "running",
      ownerSession: OWNER,
      objective: "o",
      createdAtMs: 5,
      steps: { total: 3, open: 0, failed: 0 },
    });
  });

  it("has the usage, the fork and the gateway where there are any", () => {
    const created = { forkedFrom: { runId: "co-0" }, gateway: "office" };
    const state = createState({
      tokens: 7,
      costMicroUsd: 9,
      created,
      rest: { kind: "ended", status: "failed" },
    });
    expect(summarizeCoordination(state)).toMatchObject({
      status: "failed",
      usage: { tokens: 7, costMicroUsd: 9 },
      forkedFrom: { runId: "co-0" },
      gateway: "office",
    });
    expect(summarizeCoordination(createState({ costMicroUsd: 1 })).usage).toEqual({
      tokens: 0,
      costMicroUsd: 1,
    });
    expect(summarizeCoordination(createState({ tokens: 1 })).usage).toEqual({ tokens: 1, costMicroUsd: 0 });
  });

  it("counts all, the open and the failed steps, those that timed out among them", () => {
    expect(countSteps({ open: 1, failed: 1, timedOut: 1 })).toEqual([3, 1, 2]);
  });

  it.each([
    ["dispatched", { open: 2, failed: 1, timedOut: 1 }, [3, 1, 2]],
    ["completed", { open: 1, failed: 1, timedOut: 1 }, [3, 1, 2]],
    ["failed", { open: 1, failed: 2, timedOut: 0 }, [3, 1, 1]],
    ["timed_out", { open: 1, failed: 1, timedOut: 1 }, [3, 1, 1]],
  ])("does not count that the owner is told, %s", (delivery, counts, expected) => {
    expect(countSteps({ ...counts, delivery })).toEqual(expected);
  });
});
