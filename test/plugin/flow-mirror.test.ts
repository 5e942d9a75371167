/** Races and faults that the real host cannot be made to show; test/e2e/host-runs.test.ts has the rest. */
import { describe, expect, it } from "vitest";
import { createFlowMirror, type FlowSnapshot } from "../../src/plugins/openclaw/runners/flow-mirror.ts";
import type { HostRuntime } from "../../src/plugins/openclaw/host/host-runs.ts";
import { createFakeClock, waitUntilSettled } from "../support/fake-clock.ts";

interface Flow {
  flowId: string;
  controllerId: string;
  revision: number;
  status: string;
  goal: string;
  currentStep?: string;
  stateJson?: unknown;
  cancelRequestedAt?: number;
  blockedSummary?: string;
}

type Patch = Partial<Flow> & { flowId: string; expectedRevision: number };

/** The host's flows of one session, with its compare-and-set and with its readiness to change any flow. */
function createScene() {
  const flows: Flow[] = [];
  const host = {
    flows,
    writes: 0,
    failing: false,
    /** An act of somebody else between our look and our write. */
    between: undefined as (() => void) | undefined,
    /** The effect of the operator's `openclaw tasks flow cancel`. */
    cancel: (flow: Flow | undefined) => {
      if (!flow) throw new Error("no such flow");
      Object.assign(flow, { status: "cancelled", cancelRequestedAt: 1, revision: flow.revision + 2 });
    },
  };
  const check = (): void => {
    if (host.failing) throw new Error("the host is broken");
  };
  const change = (status: string) => (patch: Patch) => {
    check();
    host.between?.();
    host.between = undefined;
    const { flowId, expectedRevision, ...rest } = patch;
    const flow = flows.find((candidate) => candidate.flowId === flowId);
    if (flow?.revision !== expectedRevision) {
      return Promise.resolve({ applied: false, code: "revision_conflict" });
    }
    host.writes += 1;
    Object.assign(flow, rest, { status, revision: flow.revision + 1 });
    return Promise.resolve({ applied: true, flow: { ...flow } });
  };
  const bound = {
    list: async () => {
      check();
      return Promise.resolve(flows.map((flow) => ({ ...flow })));
    },
    get: async (flowId: string) => {
      check();
      const flow = flows.find((candidate) => candidate.flowId === flowId);
      return Promise.resolve(flow && { ...flow });
    },
    createManaged: async (flow: Omit<Flow, "flowId" | "revision">) => {
      check();
      host.writes += 1;
      const created = { ...flow, flowId: `flow-${flows.length}`, revision: 0 };
      flows.push(created);
      return Promise.resolve({ ...created });
    },
    resume: change("running"),
    finish: change("succeeded"),
    fail: change("failed"),
  };
  const cancel = ({ flowId }: { flowId: string }) => {
    check();
    host.cancel(flows.find((flow) => flow.flowId === flowId));
    return Promise.resolve({ found: true, cancelled: true });
  };
  const runtime = {
    config: { current: () => ({}) },
    tasks: {
      managedFlows: { bindSession: () => ({ cancel }) },
      async: { managedFlows: { bindSession: () => bound } },
    },
  };
  const clock = createFakeClock();
  const warnings: string[] = [];
  const cancels: string[] = [];
  const refused = { cancel: false };
  const logger = {
    debug: () => undefined,
    info: () => undefined,
    error: () => undefined,
    warn: (_fields: object, message: string) => {
      warnings.push(message);
    },
  };
  const mirror = createFlowMirror({
    runtime: runtime as unknown as HostRuntime,
    clock,
    logger,
    cancel: (coordinationId) => {
      cancels.push(coordinationId);
      return refused.cancel ? Promise.reject(new Error("not now")) : Promise.resolve();
    },
  });
  const show = (more: Partial<FlowSnapshot> = {}): void => mirror.show({ ...SNAPSHOT, ...more });
  return { host, clock, mirror, show, warnings, cancels, refused };
}

const SNAPSHOT = {
  coordinationId: "co-1",
  ownerSession: "agent:main:main",
  objective: "find it",
  status: "running",
  stepsTotal: 4,
  stepsEnded: 0,
  running: ["a"],
} as unknown as FlowSnapshot;

describe("the picture of a plan", () => {
  it("is written at most once a second, with the newest state", async () => {
    const { host, clock, show } = createScene();
    show();
    await clock.advance(0);
    expect(host.flows).toMatchObject([{ currentStep: "0 of 4 steps ended; running: a" }]);
    for (const stepsEnded of [1, 2, 3]) {
      show({ stepsEnded });
      await clock.advance(300);
    }
    expect(host.writes).toBe(1);
    await clock.advance(100);
    expect(host.writes).toBe(2);
    expect(host.flows).toMatchObject([{ currentStep: "3 of 4 steps ended; running: a" }]);
  });

  it("is not written again when it shows nothing new, and names a few steps of many", async () => {
    const { host, clock, show } = createScene();
    const running = ["a", "b", "c", "d", "e", "f", "g"];
    show({ running });
    await clock.advance(0);
    show({ running });
    await clock.advance(1_000);
    expect(host.writes).toBe(1);
    expect(host.flows).toMatchObject([
      { currentStep: "0 of 4 steps ended; running: a, b, c, d, e and 2 more" },
    ]);
  });

  it.each([
    ["success", "succeeded", {}],
    ["partial", "succeeded", {}],
    ["failed", "failed", { blockedSummary: "the plan ended as failed" }],
    ["escalated", "failed", { blockedSummary: "the plan ended as escalated" }],
    ["cancelled", "cancelled", {}],
  ] as const)(
    "of a plan that ended as %s ends as %s and is looked at no more",
    async (status, flow, more) => {
      const { host, clock, show, cancels } = createScene();
      show();
      await clock.advance(0);
      show({ status, running: [] });
      await clock.advance(1_000);
      expect(host.flows).toMatchObject([{ status: flow, ...more }]);
      expect(clock.pending).toBe(0);
      expect(cancels).toEqual([]);
    },
  );

  it("is written in full when the mirror stops, and never after that", async () => {
    const { host, clock, mirror, show } = createScene();
    show();
    await clock.advance(0);
    show({ status: "success", stepsEnded: 4, running: [] });
    await mirror.stop();
    expect(host.flows).toMatchObject([{ status: "succeeded", currentStep: "4 of 4 steps ended" }]);
    show({ coordinationId: "co-2" as FlowSnapshot["coordinationId"] });
    await clock.advance(10_000);
    expect(host.flows).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });
});

describe("a flow that others change too", () => {
  it("is looked at again when its revision moved", async () => {
    const { host, clock, show } = createScene();
    show();
    await clock.advance(0);
    host.between = () => {
      host.flows[0]!.revision += 1;
    };
    show({ stepsEnded: 1 });
    await clock.advance(1_000);
    expect(host.flows).toMatchObject([{ currentStep: "1 of 4 steps ended; running: a", revision: 2 }]);
  });

  it("is not revived by progress when it is cancelled between look and write, and the plan is cancelled", async () => {
    const { host, clock, show, cancels } = createScene();
    show();
    await clock.advance(0);
    host.between = () => host.cancel(host.flows[0]);
    show({ stepsEnded: 1 });
    await clock.advance(1_000);
    expect(host.flows).toMatchObject([{ status: "cancelled", revision: 2 }]);
    expect(cancels).toEqual(["co-1"]);
  });

  it("cancels its plan within three seconds, once", async () => {
    const { host, clock, show, cancels } = createScene();
    show();
    await clock.advance(0);
    host.cancel(host.flows[0]);
    await clock.advance(3_000);
    expect(cancels).toEqual(["co-1"]);
    show({ stepsEnded: 1 });
    await clock.advance(60_000);
    expect(cancels).toEqual(["co-1"]);
    show({ status: "cancelled" });
    await clock.advance(1_000);
    expect(host.flows).toMatchObject([{ status: "cancelled", revision: 2 }]);
    expect(clock.pending).toBe(0);
  });

  it("that is only asked to be cancelled is left alone until the plan is, and then ended", async () => {
    const { host, clock, show, cancels } = createScene();
    show();
    await clock.advance(0);
    Object.assign(host.flows[0]!, { cancelRequestedAt: 1, revision: 1 });
    show({ stepsEnded: 1 });
    await clock.advance(1_000);
    expect(cancels).toEqual(["co-1"]);
    expect(host.flows).toMatchObject([{ status: "running", revision: 1 }]);
    show({ status: "cancelled" });
    await clock.advance(1_000);
    expect(host.flows).toMatchObject([{ status: "cancelled" }]);
  });

  it("is cancelled too late for a plan that has ended", async () => {
    const { host, clock, show, cancels } = createScene();
    show();
    await clock.advance(0);
    host.cancel(host.flows[0]);
    show({ status: "success" });
    await clock.advance(1_000);
    expect(cancels).toEqual([]);
    expect(host.flows).toMatchObject([{ status: "cancelled", revision: 2 }]);
    expect(clock.pending).toBe(0);
  });

  it("that is only asked to be cancelled ends in one write when its plan ends otherwise", async () => {
    const { host, clock, show } = createScene();
    show();
    await clock.advance(0);
    Object.assign(host.flows[0]!, { cancelRequestedAt: 1, revision: 1 });
    show({ status: "success", stepsEnded: 4 });
    await clock.advance(1_000);
    expect(host.flows).toMatchObject([{ status: "succeeded", revision: 2 }]);
  });

  it("asks again to cancel a plan when that failed", async () => {
    const { host, clock, show, cancels, refused, warnings } = createScene();
    show();
    await clock.advance(0);
    refused.cancel = true;
    host.cancel(host.flows[0]);
    await clock.advance(3_000);
    refused.cancel = false;
    await clock.advance(6_000);
    expect(cancels).toEqual(["co-1", "co-1"]);
    expect(warnings).toEqual(["a plan was not cancelled with its flow: not now"]);
  });

  it("is found again among flows of others and other plans", async () => {
    const { host, clock, show } = createScene();
    const flow = { revision: 0, status: "running", goal: "", controllerId: "coordination" };
    host.flows.push(
      { ...flow, flowId: "theirs", controllerId: "another", stateJson: { coordinationId: "co-1" } },
      { ...flow, flowId: "no state" },
      { ...flow, flowId: "other plan", stateJson: { coordinationId: "co-2" } },
      { ...flow, flowId: "ours", stateJson: { coordinationId: "co-1" } },
    );
    show({ stepsEnded: 1 });
    await clock.advance(0);
    expect(host.flows.filter(({ revision }) => revision > 0)).toMatchObject([{ flowId: "ours" }]);
    expect(host.flows).toHaveLength(4);
  });
});

describe("a host whose flows cannot be written", () => {
  it("is told of once, and the newest state is written when it can be", async () => {
    const { host, clock, show, warnings } = createScene();
    host.failing = true;
    show();
    await clock.advance(20_000);
    show({ stepsEnded: 1 });
    await clock.advance(20_000);
    expect(warnings).toEqual(["the plan is not in the host's list of flows: the host is broken"]);
    host.failing = false;
    await clock.advance(3_000);
    expect(host.flows).toMatchObject([{ currentStep: "1 of 4 steps ended; running: a" }]);
  });

  it("is asked no more about a plan that ended half a minute ago", async () => {
    const { host, clock, show } = createScene();
    host.failing = true;
    show({ status: "success" });
    await clock.advance(60_000);
    expect(clock.pending).toBe(0);
    host.failing = false;
    await waitUntilSettled();
    expect(host.flows).toEqual([]);
  });

  it("is asked for half a minute about a plan that ends after a longer outage, too", async () => {
    const { host, clock, show } = createScene();
    host.failing = true;
    show();
    await clock.advance(60_000);
    show({ status: "success" });
    await clock.advance(3_000);
    host.failing = false;
    await clock.advance(6_000);
    expect(host.flows).toMatchObject([{ status: "succeeded" }]);
    expect(clock.pending).toBe(0);
  });

  it("does not keep the mirror from stopping", async () => {
    const { host, mirror, show, clock } = createScene();
    host.failing = true;
    show();
    await mirror.stop();
    expect(clock.pending).toBe(0);
  });
});
