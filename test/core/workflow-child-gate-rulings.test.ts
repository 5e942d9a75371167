/** Owns: what is on record once a child's outputs were read and ruled on: verdicts, merges, and questions to people. */
import { describe, expect, it } from "vitest";
import { createEventId, type CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type {
  EffectOutcome,
  Judgement,
} from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import { settleGate, type GatePlace } from "../../src/agents/coordination/workflow/nodes/child-gate.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import type {
  Handoff,
  RecordedVerdict,
} from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { createHandoff, createJudged, createView } from "./workflow-node-view-scene.ts";
import { RUN } from "./workflow-view-scene.ts";

const CHILD = "child-1" as CoordinationId;
const CHAIN = createEventId(RUN, 2);
const CHECKSUM = { checksum: "0".repeat(64), algorithm: "sha256" } as const;
const ERROR = { code: "unreadable", message: "the child is away" };

const VERIFIED: Values = { verifier: { agentId: "acme.critic" } };
const SENT_BACK: Values = { verifier: { agentId: "acme.critic", revisionsMax: 2 } };
const APPROVED: Values = { outputAttestation: { requireApproval: true } };
const ATTESTED: Values = { outputAttestation: { checksum: true } };
const VARIABLES = { result: "dry", note: "n" };
const MAPPING = { report: "result" };

interface GatedHandoff {
  readonly config?: Values;
  readonly handoff?: Partial<Handoff>;
  readonly outputMapping?: Readonly<Record<string, string>>;
}

function settle(outcome: EffectOutcome, settling: GatedHandoff = {}): readonly WorkflowDraft[] {
  const { config = VERIFIED, handoff = {}, outputMapping = MAPPING } = settling;
  const child = { phase: "ended", childRunId: CHILD, childStatus: "completed" } as const;
  const whole = createHandoff({ ...child, ...handoff });
  return settleGate(createView({ config }), whole, createPlace(outputMapping), outcome);
}

function createPlace(outputMapping: GatePlace["outputMapping"]): GatePlace {
  return { outputMapping, ordinal: "1:0", again: () => ({ kind: "wait" }) };
}

function judge(verdict: RecordedVerdict["verdict"], confidence?: number): Judgement {
  return { kind: "verdict", verdict, criteria: ["tone"], ...(confidence !== undefined && { confidence }) };
}

/** The outputs were read, and the critic answered so. */
function createRead(...judgements: readonly Judgement[]) {
  return createJudged({ variables: VARIABLES, judgements });
}

function createVerified(verdict: string, more: Values = {}) {
  const payload = { agentId: "acme.critic", verdict, criteria: ["tone"], ...more, target: CHILD };
  return { type: "agent.verified", nodeId: "a", causationId: CHAIN, payload };
}

const CHANGED = {
  type: "variable.changed",
  nodeId: "a",
  payload: { name: "report", next: "dry", nodeId: "a" },
};

function createHarvested(harvestedKeys: readonly string[], more: Values = {}) {
  const names = { workerId: "writer", parentRunId: RUN, childRunId: CHILD };
  const payload = { phase: "output.harvested", ...names, harvestedKeys, ...more };
  return { type: "core.workflowChain.event", nodeId: "a", causationId: CHAIN, payload };
}

const MERGED = [CHANGED, createHarvested(["report"])];

/** Returns the types of the drafts, and of a question why it is asked. */
function listReasons(drafts: readonly WorkflowDraft[]): string[] {
  return drafts.map(({ type, payload }) =>
    "reason" in payload ? `${type}: ${String(payload.reason)}` : type,
  );
}

describe("a verdict", () => {
  it("is on record before what passed is merged", () => {
    expect(settle(createRead(judge("pass")))).toStrictEqual([createVerified("pass"), ...MERGED]);
  });

  it.each(["fail", "revise"] as const)(
    "is all that is on record of work that is not accepted: %s",
    (verdict) => {
      expect(settle(createRead(judge(verdict)))).toStrictEqual([createVerified(verdict)]);
    },
  );

  it("is followed by a question where the work may be revised no more", () => {
    const drafts = settle(createRead(judge("revise")), { config: SENT_BACK, handoff: { revision: 2 } });
    expect(drafts[0]).toStrictEqual(createVerified("revise"));
    expect(listReasons(drafts)).toEqual([
      "agent.verified",
      "node.suspended: revisions-exhausted",
      "interrupt.requested",
    ]);
    const below = settle(createRead(judge("revise")), { config: SENT_BACK, handoff: { revision: 1 } });
    expect(below).toStrictEqual([createVerified("revise")]);
  });

  it("is not put on record again", () => {
    const verdict = { agentId: "acme.critic", verdict: "pass" } as const;
    expect(settle(createRead(judge("fail")), { handoff: { verdict } })).toStrictEqual(MERGED);
  });

  it("of a child that the log does not know names none", () => {
    const handoff = createHandoff({ phase: "ended", childStatus: "completed" });
    const view = createView({ config: VERIFIED });
    const drafts = settleGate(view, handoff, createPlace({}), createRead(judge("fail")));
    expect(drafts).toHaveProperty("0.payload.target", "");
  });
});

describe("a doubt about a child's outputs", () => {
  const DOUBT = "core.workflowChain.confidence-escalated";

  it("follows from the verdict, which comes behind what the critic's model cost", () => {
    const calls = [
      { model: "m", usage: {} },
      { model: "m", usage: {} },
    ];
    const drafts = settle({ ...createRead(judge("pass", 0.4)), calls });
    expect(drafts[0]).toStrictEqual(createVerified("pass", { confidence: 0.4 }));
    expect(drafts[1]).toMatchObject({ type: DOUBT, causationId: createEventId(RUN, 3) });
    expect(settle(createRead(judge("pass", 0.4)))[1]).toMatchObject({ causationId: createEventId(RUN, 1) });
  });

  it("follows from the end of the child where the verdict was on record before", () => {
    const verdict = { agentId: "acme.critic", verdict: "pass", confidence: 0.4 } as const;
    const [doubt, ...rest] = settle(createRead(), { handoff: { verdict } });
    expect(doubt).toMatchObject({ type: DOUBT, causationId: CHAIN });
    expect(listReasons(rest)).toEqual(["node.suspended: confidence-below-floor", "interrupt.requested"]);
  });
});

describe("a question about a child's outputs", () => {
  it("is asked where there is no verdict, and shows what would be merged", () => {
    const drafts = settle(createRead({ kind: "none", because: "timed_out" }));
    expect(listReasons(drafts)).toEqual(["node.suspended: verification-missing", "interrupt.requested"]);
    expect(drafts[1]).toMatchObject({ payload: { data: { artifactId: CHILD, artifactData: VARIABLES } } });
  });

  it("is asked where people must approve, whatever the outputs are", () => {
    expect(listReasons(settle(createRead(), { config: APPROVED, outputMapping: {} }))).toEqual([
      "node.suspended: approval-required",
      "interrupt.requested",
    ]);
  });

  it("is asked where the outputs could not be read", () => {
    const drafts = settle({ kind: "failed", error: ERROR });
    expect(listReasons(drafts)).toEqual(["node.suspended: output-unavailable", "interrupt.requested"]);
    const reason = "What it produced cannot be read any more. There is no verdict on it (unavailable).";
    expect(drafts[1]).toHaveProperty("payload.data.description", reason);
  });
});

describe("a merge that nobody has to rule on", () => {
  const IDLE: GatedHandoff = { config: { outputAttestation: {} } };

  it("is of what the parent takes, and on record", () => {
    expect(settle(createRead(), IDLE)).toStrictEqual(MERGED);
  });

  it("is none where the parent takes nothing", () => {
    expect(settle(createRead(), { ...IDLE, outputMapping: {} })).toEqual([]);
  });

  it("has its checksum told before the values, also where there are none", () => {
    const attested = { ...createRead(), attestation: CHECKSUM };
    expect(settle(attested, { config: ATTESTED })).toStrictEqual([
      createHarvested(["report"], { attestation: CHECKSUM }),
      CHANGED,
    ]);
    expect(settle(attested, { config: ATTESTED, outputMapping: {} })).toStrictEqual([
      createHarvested([], { attestation: CHECKSUM }),
    ]);
  });

  it("is none without a gate, or of another outcome", () => {
    expect(settle(createRead(judge("pass")), { config: {} })).toEqual([]);
    expect(settle({ kind: "memory_read", entries: [] })).toEqual([]);
  });
});

describe("a merge that people agreed to", () => {
  const answer = {
    interruptId: "a~1",
    kind: "approval",
    resumeValue: { action: "accept" },
    eventId: createEventId(RUN, 5),
    asked: { data: {} },
  } as const;

  it("is one whatever the critic would say now", () => {
    expect(settle(createRead(judge("fail")), { handoff: { answer } })).toStrictEqual(MERGED);
  });

  it("is one of nothing where the outputs cannot be read any more", () => {
    expect(settle({ kind: "failed", error: ERROR }, { handoff: { answer } })).toStrictEqual([
      createHarvested([]),
    ]);
  });
});
