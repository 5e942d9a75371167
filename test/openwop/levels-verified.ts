/** Owns: workflows whose workers a verifier rules on, a host that runs them, and a critic's model that says what it is told to. */
import { expect } from "vitest";
import { startModelServer, type ModelServer } from "./levels-model-server.ts";
import {
  end,
  createLoop,
  createNode,
  createNoop,
  pause,
  work,
  createWorkflow,
  WORKERS,
} from "./levels-workflows.ts";
import { filterByType, openWorld, type Event, type Snapshot, type World } from "./levels-world.ts";

export type Config = Readonly<Record<string, unknown>>;

export const CRITIC = { agentId: "critic-one", criteria: ["grounded", "complete"] };
const MAPPED = { outputMapping: { treasure: "found" } };
export const ASSAYER = "assayer";

export const createVerified = (
  id: string,
  verifier: Config,
  more: { plan?: readonly unknown[]; dispatch?: Config } = {},
) =>
  createLoop(id, {
    plan: more.plan ?? [work(["worker-good"]), end()],
    dispatch: { ...MAPPED, verifier: { ...CRITIC, ...verifier }, ...more.dispatch },
    variables: { treasure: undefined },
  });

export const createScripted = (id: string, ...mockVerdicts: readonly unknown[]) =>
  createVerified(id, { mockVerdicts });

export const createAttested = (id: string, outputAttestation: Config, more: Config = {}) =>
  createWorkflow(id, {
    nodes: [
      createNode("sub", "core.subWorkflow", {
        config: { workflowId: "worker-good", ...MAPPED, outputAttestation, ...more },
      }),
    ],
    variables: { treasure: undefined },
  });

/** In every value of the child that may be looked at, and in the name of one. */
export const CANARY = "canary-7f3a91";
const LEAKY = createWorkflow("worker-leaky", {
  nodes: [createNoop("only")],
  variables: {
    found: `${CANARY}-text`,
    [`${CANARY}-name`]: "x",
    nested: { deep: [{ er: `${CANARY}-deep` }] },
  },
});
const createLeaking = (id: string, verifier: Config, dispatch: Config = {}) =>
  createLoop(id, {
    plan: [work(["worker-leaky"]), end()],
    dispatch: { verifier: { ...CRITIC, ...verifier }, outputMapping: { treasure: "found" }, ...dispatch },
  });

const APPROVAL = { checksum: true, requireApproval: true };

export const DEFINITIONS = [
  ...WORKERS,
  LEAKY,
  createScripted("passes", "pass"),
  createScripted("fails", "fail"),
  createScripted("fails-then-passes", "fail", "pass"),
  createScripted("revises", { verdict: "revise", criteria: ["grounded"] }, "pass"),
  createScripted("revises-for-ever", "revise"),
  createScripted("doubted", { verdict: "pass", confidence: 0.4 }),
  createScripted("sure", { verdict: "pass", confidence: 0.5 }),
  createVerified("fails-at-once", { mockVerdicts: ["fail"], onUnresolved: "fail" }),
  createVerified("expires", { mockVerdicts: ["fail"], approvalTimeoutMs: 30 }),
  createVerified("doubt-expires", {
    mockVerdicts: [{ verdict: "pass", confidence: 0.1 }],
    approvalTimeoutMs: 30,
  }),
  createVerified(
    "each",
    { mockVerdicts: ["pass", "fail", "pass"] },
    { plan: [work(["worker-good", "worker-other", "worker-good"]), end()] },
  ),
  createVerified(
    "twice",
    { mockVerdicts: ["fail", "pass"] },
    { plan: [work(["worker-good"]), work(["worker-good"]), end()] },
  ),
  createVerified("child-fails", { mockVerdicts: ["pass"] }, { plan: [work(["worker-bad"]), end()] }),
  createVerified("self", { agentId: "worker-good", mockVerdicts: ["pass"] }),
  createVerified("self-allowed", {
    agentId: "worker-good",
    mockVerdicts: ["pass"],
    allowSelfVerification: true,
  }),
  createVerified("live", { agentId: ASSAYER, model: "assaying", systemPrompt: "Is it gold?" }),
  createVerified("live-late", { agentId: ASSAYER, systemPrompt: "late", timeoutMs: 50 }),
  createVerified("live-words", { agentId: ASSAYER, systemPrompt: "words" }),
  createVerified("checked", {
    criteria: [],
    checks: {
      shape: {
        kind: "schema",
        schema: { type: "object", properties: { found: { const: "gold" } }, required: ["found"] },
      },
      word: { kind: "pattern", pattern: "g[o]ld" },
    },
  }),
  createVerified("checked-and-failed", {
    criteria: [],
    checks: {
      shape: { kind: "schema", schema: { required: ["found", "weight"] } },
      word: { kind: "pattern", pattern: "gold" },
    },
  }),
  createLoop("unverified", {
    plan: [work(["worker-good"]), end()],
    dispatch: MAPPED,
    variables: { treasure: undefined },
  }),
  createLoop("gives-up", {
    plan: [
      {
        ...end(),
        successCriteria: [
          { key: "found-it", met: true },
          { key: "weighed-it", met: false },
        ],
      },
    ],
  }),
  createLoop("reaches-it", { plan: [{ ...end(), successCriteria: [{ key: "found-it", met: true }] }] }),
  createLoop("leads-one-that-gives-up", { plan: [work(["gives-up"]), end()] }),
  createWorkflow("calls-one-that-gives-up", {
    nodes: [createNode("sub", "core.subWorkflow", { config: { workflowId: "gives-up" } })],
  }),
  createWorkflow("sub-fails", {
    nodes: [
      createNode("sub", "core.subWorkflow", {
        config: { workflowId: "worker-good", ...MAPPED, verifier: { ...CRITIC, mockVerdicts: ["fail"] } },
      }),
    ],
  }),
  createAttested("attested", { checksum: true }),
  createAttested("approved", APPROVAL),
  createAttested("approval-expires", { ...APPROVAL, approvalTimeoutMs: 30 }),
  createAttested("absorbed", APPROVAL, { onChildFailure: "absorb" }),
  createAttested("inert", {}),
  createLoop("dispatch-approved", {
    plan: [work(["worker-good"]), end()],
    dispatch: { ...MAPPED, outputAttestation: APPROVAL },
  }),
  createWorkflow("crowned", {
    nodes: [
      pause("before", 5),
      createNode("sub", "core.subWorkflow", {
        config: {
          workflowId: "worker-leaky",
          outputMapping: { treasure: "found" },
          outputAttestation: APPROVAL,
        },
      }),
    ],
    variables: { treasure: undefined },
  }),
  createLeaking("leak-pass", { mockVerdicts: ["pass"] }),
  createLeaking("leak-fail", { mockVerdicts: ["fail"] }),
  createLeaking("leak-revise", { mockVerdicts: ["revise"], revisionsMax: 1 }),
  createLeaking("leak-doubt", { mockVerdicts: [{ verdict: "pass", confidence: 0.2 }] }),
  createLeaking("leak-live", { agentId: ASSAYER, systemPrompt: "words" }),
  createLeaking("leak-checks", {
    criteria: [],
    checks: {
      shape: { kind: "schema", schema: { required: ["weight"] } },
      word: { kind: "pattern", pattern: "canary" },
    },
  }),
  createLeaking("leak-approval", { mockVerdicts: ["pass"] }, { outputAttestation: APPROVAL }),
];

export interface VerifiedWorld {
  readonly world: World;
  readonly model: ModelServer;
  /** Until people are asked. */
  held(workflowId: string): Promise<VerifiedRun>;
  answer(runId: string, nodeId: string, value: Config): Promise<void>;
  ended(runId: string): Promise<VerifiedRun>;
  close(): Promise<void>;
}

/** A run that was held or has ended, with its snapshot and its log. */
export interface VerifiedRun {
  readonly runId: string;
  readonly snapshot: Snapshot;
  readonly events: readonly Event[];
}

export async function openVerifiedWorld(): Promise<VerifiedWorld> {
  const model: ModelServer = await startModelServer((prompt) => {
    const system = model.askedBodies.at(-1)?.messages[0]?.content ?? "";
    // An answer without a body is asked for again, until the time is over.
    if (system.includes("late")) return { body: "" };
    if (system.includes("words"))
      return { content: `It holds ${/canary\S*/.exec(prompt)?.[0] ?? "gold"}, so: pass.` };
    return { content: JSON.stringify({ verdict: "pass", criteria: CRITIC.criteria, confidence: 0.9 }) };
  });
  const world = await openWorld(DEFINITIONS, {
    model: { baseUrl: model.baseUrl, model: "common" },
    privateOrigins: [model.origin],
  });
  const { client } = world;
  return {
    world,
    model,
    held: async (workflowId) => {
      const runId = await client.start(workflowId);
      const snapshot = await client.until(runId, "waiting-approval");
      return { runId, snapshot, events: await client.events(runId) };
    },
    answer: async (runId, nodeId, value) => {
      const { status, body } = await client.resolve(runId, nodeId, value);
      expect(status, JSON.stringify(body)).toBe(200);
    },
    ended: async (runId) => {
      const snapshot = await client.until(runId, "completed", "failed", "cancelled");
      return { runId, snapshot, events: await client.events(runId) };
    },
    close: async () => {
      await world.close();
      await model.close();
    },
  };
}

export const treasureOf = ({ variables }: Snapshot): unknown => variables["treasure"];
export const verdictsOf = (events: readonly Event[]): unknown[] =>
  filterByType(events, "agent.verified").map(({ payload }) => payload["verdict"]);
export const countMerges = (events: readonly Event[]): number =>
  filterByType(events, "variable.changed").filter(({ payload }) => payload["name"] === "treasure").length;
export const causeOf = (events: readonly Event[], event: Event): Event | undefined =>
  events.find(({ eventId }) => eventId === event.causationId);
