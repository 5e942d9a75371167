import { describe, expect, it } from "vitest";
import type { CoordinationEnvelope } from "../../src/agents/coordination/contracts/envelope.ts";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { QuestionToSession } from "../../src/agents/coordination/runtime/questions/question-requests.ts";
import {
  coordinationStatusSchema,
  buildStatusReport,
} from "../../src/plugins/openclaw/plans/coordination-status.ts";
import { createPlanMethods } from "../../src/plugins/openclaw/plans/plan-methods.ts";
import { createPlanTools } from "../../src/plugins/openclaw/plans/plan-tools.ts";
import { createGatesWith, createRuling, createScriptedVerifier, listEvents } from "../core/gates-world.ts";
import { forgetAll, onStage } from "./gates-scene.ts";
import {
  createCompletedView,
  keepOutputs,
  SESSION,
  START,
  stepView,
  createStubPlans,
  viewOf,
  type StubPlans,
} from "./stub-plans.ts";

const call = (params: unknown, stub: StubPlans, caller: { sessionKey: string } = { sessionKey: SESSION }) =>
  createPlanTools(stub.use, () => true)("coordination_status", caller, params);

const ENVELOPE = { coordinationId: "co-1", stepId: "write" } as CoordinationEnvelope;

/** A plan whose step `write` has a sibling, with conflicts and claims of both. */
function createSiblings(child: SessionKey): StubPlans {
  const steps = [
    stepView("fetch", { status: "completed" }),
    stepView("audit", { status: "failed", error: { code: "child_failed", message: "the books are wrong" } }),
    stepView("write", { childSessionKey: child, dependsOn: ["fetch"] }),
    stepView("below", { parentStepId: "write" }),
  ];
  const createConflict = (number: number, ...stepIds: string[]): object => ({
    conflictId: `conflict-${number}`,
    resource: "/w/book",
    claims: stepIds.map((stepId) => ({ stepId })),
    contest: { requester: stepIds[0], atMs: START },
    resolution: { winner: stepIds[1], because: "lease-holder" },
  });
  const conflicts = [
    createConflict(1, "audit", "fetch-2"),
    createConflict(2, "write", "audit"),
    createConflict(3, "audit", "write"),
  ];
  const times = { acquiredAtMs: START, expiresAtMs: START };
  const claims = [
    { token: 1, stepId: "audit", resource: "/w/theirs", ...times },
    { token: 2, stepId: "write", resource: "/w/mine", ...times },
  ];
  return createStubPlans({
    envelopeForChild: (session) => Promise.resolve(session === child ? ENVELOPE : undefined),
    reads: { view: () => Promise.resolve(viewOf(steps, { conflicts, claims })) },
  });
}

describe("coordination_status", () => {
  const kept = keepOutputs({ points: ["fast"] });
  const child = "agent:research:subagent:1" as SessionKey;
  const view = viewOf(
    [
      createCompletedView("fetch", kept.ref, { retryBudget: 2, attempt: 2 }),
      createCompletedView("other", kept.ref),
      stepView("slow", {
        status: "backoff",
        retryBudget: 2,
        retryAtMs: START + 60_000,
        error: { code: "child_failed", message: "no luck" },
      }),
      stepView("write", { childSessionKey: child, dependsOn: ["fetch"] }),
      stepView("@delivery", { status: "waiting" }),
    ],
    { plan: { content: kept.ref, steps: 7 } },
  );
  const stub = createStubPlans({
    envelopeForChild: (session) => Promise.resolve(session === child ? ENVELOPE : undefined),
    reads: { view: (id) => Promise.resolve(id === "co-1" ? view : undefined), get: kept.get },
  });

  const siblings = createSiblings(child);

  it("tells the owner how a coordination stands, with no text of any session", async () => {
    const answer = await call({ coordinationId: "co-1" }, stub);
    expect(answer).toMatchObject({
      status: "ok",
      coordination: {
        coordinationId: "co-1",
        status: "running",
        startedAt: "2026-01-02T03:04:05.000Z",
        delivery: "waiting",
        counts: { total: 7, ended: 2, byStatus: { completed: 2, backoff: 1, running: 1 } },
        steps: [
          { stepId: "fetch", status: "completed", attempt: 2, attemptsMax: 3 },
          { stepId: "other" },
          {
            stepId: "slow",
            status: "backoff",
            nextTryAt: "2026-01-02T03:05:05.000Z",
            error: { message: "no luck" },
          },
          { stepId: "write" },
        ],
      },
    });
    expect(JSON.stringify(answer)).not.toMatch(/secret|points|sha256|subagent:1/u);
  });

  it("gives the outputs of a completed step that is asked for", async () => {
    const answer = await call({ coordinationId: "co-1", outputsOf: "fetch" }, stub);
    expect(answer["outputs"]).toEqual({ kind: "outputs", stepId: "fetch", outputs: { points: ["fast"] } });
  });

  it.each([
    ["slow", "step slow is backoff, not completed"],
    ["nowhere", 'no step "nowhere" whose outputs this session may see'],
  ])("of %s says why there are none", async (outputsOf, reason) => {
    const answer = await call({ coordinationId: "co-1", outputsOf }, stub);
    expect(answer["outputs"]).toEqual({ kind: "none", reason });
  });

  it("a child sees the coordination it works in, and the outputs of what its step depends on only (H3)", async () => {
    const as = (outputsOf: string) =>
      call({ coordinationId: "co-1", outputsOf }, stub, { sessionKey: child });
    expect((await as("fetch"))["outputs"]).toMatchObject({ kind: "outputs" });
    expect((await as("other"))["outputs"]).toMatchObject({ kind: "none" });
  });

  it("a child is told of its own step, what that spawned and what it depends on, and of no other (H3)", async () => {
    const answer = await call({ coordinationId: "co-1" }, siblings, { sessionKey: child });
    expect(answer).toMatchObject({
      coordination: {
        status: "running",
        counts: { total: 4, ended: 2, byStatus: { completed: 1, failed: 1, running: 2 } },
        steps: [{ stepId: "fetch" }, { stepId: "write" }, { stepId: "below" }],
      },
    });
    expect(answer["coordination"]).not.toHaveProperty("stepsLeftOut");
    expect(JSON.stringify(answer)).not.toMatch(/audit|the books are wrong/u);
  });

  it("a child is told of its own conflicts and claims only (H3)", async () => {
    const answer = await call({ coordinationId: "co-1" }, siblings, { sessionKey: child });
    expect(answer).toMatchObject({
      coordination: {
        conflicts: {
          total: 2,
          open: 0,
          newest: [{ conflictId: "conflict-3" }, { conflictId: "conflict-2" }],
        },
        claims: { total: 1, newest: [{ stepId: "write", resource: "/w/mine" }] },
      },
    });
    const byOwner = await call({ coordinationId: "co-1" }, siblings);
    expect(byOwner).toMatchObject({ coordination: { conflicts: { total: 3 }, claims: { total: 2 } } });
  });

  it("another session cannot tell this coordination from one that does not exist (H3)", async () => {
    const stranger = { sessionKey: "agent:main:main" };
    const ask = (coordinationId: string) => call({ coordinationId }, stub, stranger);
    expect(await ask("co-1")).toEqual({
      status: "error",
      message: 'no coordination "co-1" belongs to this session',
    });
    expect(await ask("co-9")).toEqual({
      status: "error",
      message: 'no coordination "co-9" belongs to this session',
    });
  });

  it("shortens outputs that are too long, and says how long they are for coordination_result and how to read on", async () => {
    const long = keepOutputs({ text: "x".repeat(50_000) });
    const steps = [createCompletedView("a", long.ref)];
    const big = createStubPlans({ reads: { view: () => Promise.resolve(viewOf(steps)), get: long.get } });
    const { outputs } = (await call({ coordinationId: "co-1", outputsOf: "a" }, big)) as {
      outputs?: { outputs: { text: string; _shortened: string } };
    };
    expect(outputs).toMatchObject({ kind: "shortened", chars: 50_000 });
    expect(JSON.stringify(outputs?.outputs).length).toBeLessThanOrEqual(16_000);
    expect(outputs?.outputs.text).toMatch(/^x+ \(\.\.\. \d+ characters left out \.\.\.\) x+$/u);
    expect(outputs?.outputs._shortened).toContain("shortened from 50000 characters");
    expect(outputs?.outputs._shortened).toContain("coordination_result: coordinationId co-1, stepId a");
  });

  it("gives what the agent of a failed step reported of why it could not do it", async () => {
    const { ref, get } = keepOutputs({ reason: "no access" });
    const results = [{ kind: "outputs" as const, attempt: 1, content: ref }];
    const steps = [stepView("a", { status: "failed", results })];
    const failed = createStubPlans({ reads: { view: () => Promise.resolve(viewOf(steps)), get } });
    const answer = await call({ coordinationId: "co-1", outputsOf: "a" }, failed);
    expect(answer["outputs"]).toEqual({ kind: "outputs", stepId: "a", outputs: { reason: "no access" } });
  });

  it("gives what a spawned child reported", async () => {
    forgetAll();
    const { verifier } = createScriptedVerifier(() => createRuling("pass"));
    const {
      world,
      coordinator,
      child: spawned,
    } = await onStage({ gates: createGatesWith(["lint"]), verifier });
    await coordinator.report(spawned.session, { outcome: "completed", outputs: { found: 7 } });
    await spawned.ends();
    await world.clock.advance(1_000);
    const { runId: coordinationId, payload } =
      listEvents(world, "step.completed")[0] ?? expect.fail("it is open");
    const { stepId } = payload;
    const reads = {
      view: () => coordinator.view(coordinationId),
      get: (sha256: string) => Promise.resolve(world.ledger.contents.get(sha256)?.text),
    };
    const caller = { sessionKey: "agent:main:main" };
    const answer = await call({ coordinationId, outputsOf: stepId }, createStubPlans({ reads }), caller);
    expect(answer["outputs"]).toEqual({ kind: "outputs", stepId, outputs: { found: 7 } });
    await coordinator.stop();
  });

  it("says that a plan gave up, and what was not met, as the gateway method does", async () => {
    const successCriteria = [
      { key: "all-done", met: true },
      { key: "clean", met: false },
    ];
    const ended = viewOf([stepView("a", { status: "completed" })], {
      status: "partial",
      successCriteria,
      gaveUp: true,
    });
    const gaveUp = createStubPlans({ reads: { view: () => Promise.resolve(ended) } });
    const report = { status: "partial", gaveUp: true, successCriteria };
    expect(await call({ coordinationId: "co-1" }, gaveUp)).toMatchObject({ coordination: report });
    const byMethod = createPlanMethods(gaveUp.use)("coordination.status", { coordinationId: "co-1" });
    expect(await byMethod).toMatchObject({ payload: { coordination: report } });
    const reached = { ...ended, status: "success" as const, successCriteria: successCriteria.slice(0, 1) };
    const { gaveUp: _, ...met } = reached;
    expect(coordinationStatusSchema.parse(buildStatusReport(met))).toEqual(buildStatusReport(met));
    expect(buildStatusReport(met)).not.toHaveProperty("gaveUp");
    expect(buildStatusReport(met).successCriteria).toEqual([{ key: "all-done", met: true }]);
  });

  it("says that a plan is a fork, from where, and which results it kept, as the gateway method does", async () => {
    const steps = [
      stepView("a", { status: "completed", attempt: 0, retryBudget: 2, carriedFrom: "co-0:19" }),
      stepView("b", { status: "completed", retryBudget: 2 }),
    ];
    const fork = viewOf(steps, { forkedFrom: { coordinationId: "co-0", sequence: 31 } });
    const forked = createStubPlans({ reads: { view: () => Promise.resolve(fork) } });
    const { coordination } = (await call({ coordinationId: "co-1" }, forked)) as { coordination?: object };
    expect(coordination).toMatchObject({
      forkedFrom: { coordinationId: "co-0", sequence: 31 },
      counts: { total: 2, ended: 2, byStatus: { completed: 2 }, carried: 1 },
    });
    const report = coordinationStatusSchema.parse(coordination);
    expect(report.steps).toEqual([
      { stepId: "a", status: "completed", attempt: 0, agent: "main", carriedFrom: "co-0:19" },
      { stepId: "b", status: "completed", attempt: 1, agent: "main", attemptsMax: 3 },
    ]);
    const byMethod = createPlanMethods(forked.use)("coordination.status", { coordinationId: "co-1" });
    expect(await byMethod).toMatchObject({ payload: { coordination: report } });
    const plain = buildStatusReport(viewOf(steps.slice(1)));
    expect(plain).not.toHaveProperty("forkedFrom");
    expect(plain.counts).not.toHaveProperty("carried");
  });

  it("counts the questions that people are to answer, to a child only those about steps that it sees", async () => {
    const ask = (number: number, stepId: string, fields: object = {}): object => ({
      escalationId: `escalation-${number}`,
      stepId,
      ...fields,
    });
    const escalations = [
      ask(1, "write"),
      ask(2, "audit"),
      ask(3, "write", { closed: { resolution: "approved" } }),
      ask(4, "write", { askedOf: SESSION }),
      ask(5, "audit", { askedOf: SESSION, forwardedAtMs: START }),
    ];
    const steps = [stepView("audit"), stepView("write", { childSessionKey: child })];
    const questioned = createStubPlans({
      envelopeForChild: (session) => Promise.resolve(session === child ? ENVELOPE : undefined),
      reads: { view: () => Promise.resolve(viewOf(steps, { escalations })) },
    });
    const askAs = (sessionKey: string) => call({ coordinationId: "co-1" }, questioned, { sessionKey });
    expect(await askAs(SESSION)).toMatchObject({ coordination: { openQuestions: 3 } });
    expect(await askAs(child)).toMatchObject({ coordination: { openQuestions: 1 } });
    expect(buildStatusReport(viewOf(steps))).not.toHaveProperty("openQuestions");
  });

  it("of ten thousand steps tells the fifty that need attention", async () => {
    const steps = Array.from({ length: 10_000 }, (_, index) =>
      stepView(`s${index}`, {
        status: index === 9_999 ? "blocked" : index === 5_000 ? "running" : "completed",
      }),
    );
    const large = createStubPlans({ reads: { view: () => Promise.resolve(viewOf(steps)) } });
    const answer = await call({ coordinationId: "co-1" }, large);
    const { coordination } = answer as {
      coordination?: { steps: { stepId: string }[]; stepsLeftOut: number };
    };
    expect(coordination?.stepsLeftOut).toBe(9_950);
    expect(coordination?.steps.map(({ stepId }) => stepId)).toEqual(
      expect.arrayContaining(["s5000", "s9999"]),
    );
    expect(JSON.stringify(answer).length).toBeLessThan(10_000);
  });

  it("without an id lists the newest coordinations of the session only", async () => {
    const createEntry = (runId: string, ownerSession: string) => ({
      runId,
      ordinal: 1,
      length: 1,
      summary: {
        status: "running",
        ownerSession,
        createdAtMs: START,
        steps: { total: 1, open: 1, failed: 0 },
      },
    });
    const pages = [
      Array.from({ length: 500 }, (_, index) =>
        createEntry(`co-${index}`, index === 3 ? SESSION : "agent:main:main"),
      ),
      [createEntry("co-mine", SESSION)],
    ];
    const listing = createStubPlans({
      reads: { list: ({ after }) => Promise.resolve((after ? pages[1] : pages[0]) as never) },
    });
    const answer = (await call({}, listing)) as {
      coordinations?: { coordinationId: string }[];
    };
    expect(answer.coordinations?.map(({ coordinationId }) => coordinationId)).toEqual(["co-3", "co-mine"]);
  });

  it("without an id lists what the session is asked, by its children and in what it works on", async () => {
    const createEntry = (runId: string, status: string) => ({
      runId,
      ordinal: 1,
      length: 1,
      summary: { status, ownerSession: SESSION, createdAtMs: START, steps: { total: 1, open: 1, failed: 0 } },
    });
    const entries = [
      createEntry("co-1", "running"),
      createEntry("co-2", "running"),
      createEntry("co-3", "success"),
    ];
    const openQuestion: QuestionToSession = {
      questionId: "co-1:escalation-1",
      deadlineAtMs: START,
      words: { question: "Which?" },
      isWithheld: false,
    };
    const looked: string[] = [];
    const questioned = createStubPlans({
      envelopeForChild: () => Promise.resolve(ENVELOPE),
      listQuestionsTo: (session, id) => {
        looked.push(id);
        const questions = session === SESSION && id === "co-1" ? [openQuestion] : [];
        return Promise.resolve({ questions, leftOut: 0 });
      },
      reads: { list: () => Promise.resolve(entries as never) },
    });
    expect(await call({}, questioned)).toMatchObject({
      questions: [{ questionId: "co-1:escalation-1", question: "Which?" }],
    });
    expect(looked).toEqual(["co-1", "co-2"]);
  });

  it("a child is told what it works on", async () => {
    const answer = await call(undefined, stub, { sessionKey: child });
    expect(answer).toEqual({
      status: "ok",
      coordinations: [],
      worksOn: { coordinationId: "co-1", stepId: "write" },
    });
  });

  it.each([[{ outputsOf: "a" }], [{ coordinationId: "" }], [{ id: "co-1" }], [[]]])(
    "refuses %j",
    async (params) => {
      expect((await call(params, stub)).status).toBe("error");
    },
  );
});
