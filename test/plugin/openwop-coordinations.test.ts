/** Coordinations as runs, over a real ledger: what is asked of the host of workflow runs, and is none of them. */
import { describe, expect, it, onTestFinished } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { createCoordinationRuns } from "../../src/agents/coordination/runtime/workflow-host/coordination-runs.ts";
import { withOtherRuns } from "../../src/agents/coordination/runtime/workflow-host/records/other-runs.ts";
import { readQuestionAnswer } from "../../src/agents/coordination/runtime/workflow-host/question-answer.ts";
import type {
  Caller,
  QuestionPlace,
  WorkflowHost,
} from "../../src/agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { openWorkflowHost } from "../../src/plugins/compose-workflows.ts";
import { loadOpenWopSchemas } from "../core/openwop-schemas.ts";
import {
  createAuthor,
  openingOf,
  OWNER,
  quietLogger,
  spawnOf,
  testCoordinator,
} from "../support/ledger-fixtures.ts";
import {
  createManualClock,
  openTestLedger,
  createTempFolder,
  TEST_EPOCH_MS,
} from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";

const OURS: Caller = { tenant: "default", principal: "ops" };
const OTHERS: Caller = { tenant: "other", principal: "ops" };
const RUN = "co-1";
const QUESTION = "escalation-1";

const schemas = loadOpenWopSchemas();

const answerNoRun = () =>
  Promise.resolve({ kind: "refused", code: "not_found", message: "there is no such run" } as const);

/** Knows no run of its own. */
const EMPTY = {
  hostId: "host-1",
  snapshot: answerNoRun,
  events: answerNoRun,
  ancestry: answerNoRun,
  cancel: answerNoRun,
  pause: answerNoRun,
  resume: answerNoRun,
  question: answerNoRun,
  resolve: answerNoRun,
  watch: () => () => undefined,
} as unknown as WorkflowHost;

/** An agent has asked people something. */
async function createScene(kind?: "approval", options?: readonly string[]) {
  const folder = createTempFolder();
  const clock = createManualClock();
  const store = await openTestLedger(folder.file("ledger.sqlite"), { clock });
  const coordinator = testCoordinator({
    store,
    clock,
    newCoordinationId: () => RUN as CoordinationId,
  });
  const question = await coordinator.ask({
    askedBy: OWNER,
    agentId: "main",
    kind: kind ?? "clarification",
    traceId: "trace",
    question: "the words of the agent",
    ...(options && { options }),
  });
  if (question.kind === "refused") throw new Error(question.reason);
  const others = createCoordinationRuns({
    tenant: "default",
    hostId: () => "host-1",
    coordinator,
    store,
  });
  await coordinator.start();
  return {
    host: withOtherRuns(EMPTY, others),
    /** Time goes on, and what is due happens. */
    pass: async (): Promise<void> => {
      clock.set(TEST_EPOCH_MS + 60_000);
      clock.fire();
      for (let turns = 0; turns < 50; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    },
    [Symbol.asyncDispose]: async () => {
      await coordinator.stop();
      await store.close();
      folder[Symbol.dispose]();
    },
  };
}

const ALL = { from: 0, limit: 1_000 };

describe("a coordination that waits for people", () => {
  it("is a run that waits, with what is asked and without its words", async () => {
    await using at = await createScene();
    const snapshot = await at.host.snapshot(OURS, RUN);
    expect(snapshot).toMatchObject({
      kind: "done",
      value: {
        runId: RUN,
        workflowId: "openclaw.observed-coordination",
        status: "waiting-input",
        variables: {},
        inputs: {},
        currentNodeId: "orchestrator",
        interrupt: { interruptId: QUESTION, kind: "clarification", nodeId: "orchestrator" },
      },
    });
    expect(JSON.stringify(snapshot)).not.toContain("the words");
    expect(snapshot.kind === "done" && schemas.problemsOfSnapshot(snapshot.value)).toEqual([]);
  });

  it("has events from the first to the last, in parts, and is complete with its end only", async () => {
    await using at = await createScene();
    const whole = await at.host.events(OURS, RUN, ALL);
    if (whole.kind === "refused") throw new Error(whole.message);
    const { events } = whole.value;
    expect(whole.value.isComplete).toBe(false);
    expect(events.flatMap((event) => schemas.problemsOf(event as RunEvent))).toEqual([]);
    const part = await at.host.events(OURS, RUN, { from: 1, limit: 2 });
    expect(part).toMatchObject({ value: { events: events.slice(1, 3), isComplete: false } });
    await at.host.cancel(OURS, RUN, {});
    await at.pass();
    const after = await at.host.events(OURS, RUN, ALL);
    expect(after).toMatchObject({ kind: "done", value: { isComplete: true } });
    expect(await at.host.events(OURS, RUN, { from: 900, limit: 5 })).toMatchObject({
      value: { events: [], isComplete: true },
    });
  });

  it("goes on with an answer to its node, once", async () => {
    await using at = await createScene();
    const answer = { answers: { [QUESTION]: "yes, please" } };
    const wrong = await at.host.resolve(OURS, RUN, { nodeId: "orchestrator" }, { action: "perhaps" });
    expect(wrong).toMatchObject({ kind: "refused", code: "validation_error" });
    expect(await at.host.resolve(OURS, RUN, { nodeId: "step-9" }, answer)).toMatchObject({
      code: "interrupt_not_found",
    });
    const another = { nodeId: "orchestrator", interruptId: "escalation-9" };
    expect(await at.host.resolve(OURS, RUN, another, answer)).toMatchObject({
      code: "interrupt_already_resolved",
    });
    const question = { nodeId: "orchestrator", interruptId: QUESTION };
    for (const place of [question, { nodeId: "orchestrator" }])
      expect(await at.host.question(OURS, RUN, place)).toMatchObject({ kind: "done", value: question });
    expect(await at.host.question(OURS, RUN, another)).toMatchObject({ code: "interrupt_already_resolved" });
    expect(await at.host.question(OTHERS, RUN, question)).toMatchObject({ code: "not_found" });
    expect(await at.host.resolve(OURS, RUN, question, answer)).toMatchObject({
      kind: "done",
      value: { runId: RUN, interruptId: QUESTION },
    });
    expect(await at.host.resolve(OURS, RUN, { nodeId: "orchestrator" }, answer)).toMatchObject({
      code: "interrupt_already_resolved",
    });
    const log = await at.host.events(OURS, RUN, ALL);
    expect(log.kind === "done" && log.value.events).toContainEqual(
      expect.objectContaining({
        type: "escalation.answered",
        payload: expect.objectContaining({
          by: { kind: "operator", id: "openwop:default:ops" },
          through: "gateway",
        }) as unknown,
      }),
    );
  });

  it("tells an answer that is given again that it counted, and no other one", async () => {
    await using at = await createScene();
    const question = { nodeId: "orchestrator", interruptId: QUESTION };
    const answer = { answers: { [QUESTION]: "yes, please" } };
    await at.host.resolve(OURS, RUN, question, answer);
    const refusal = { kind: "refused", code: "interrupt_already_resolved" };
    const resolved = { ...question, runId: RUN };
    expect(await at.host.resolve(OURS, RUN, question, answer)).toMatchObject({ ...refusal, resolved });
    const others: readonly (readonly [Caller, QuestionPlace, unknown])[] = [
      [{ ...OURS, principal: "ann" }, question, answer],
      [OURS, question, { answers: { [QUESTION]: "no, thanks" } }],
      [OURS, question, { action: "reject" }],
      [OURS, question, { action: "perhaps" }],
      [OURS, { nodeId: "orchestrator" }, answer],
      [OURS, { ...question, interruptId: "escalation-9" }, answer],
    ];
    for (const [caller, place, value] of others) {
      const refused = await at.host.resolve(caller, RUN, place, value);
      expect(refused).toMatchObject(refusal);
      expect(refused).not.toHaveProperty("resolved");
    }
    await at.host.cancel(OURS, RUN, {});
    await at.pass();
    expect(await at.host.resolve(OURS, RUN, question, answer)).toMatchObject({
      ...refusal,
      resolved: { ...resolved, status: "cancelled" },
    });
    const log = await at.host.events(OURS, RUN, ALL);
    const events = log.kind === "done" ? log.value.events : [];
    expect(events.filter(({ type }) => type === "escalation.answered")).toHaveLength(1);
  });

  it("tells an approval, and a choice of an option, that is given again that it counted", async () => {
    for (const [kind, value] of [
      ["approval", { action: "accept" }],
      [undefined, { answers: { [QUESTION]: ' "blue" ' } }],
    ] as const) {
      await using at = await createScene(kind, ["blue", "red"]);
      const question = { nodeId: "orchestrator", interruptId: QUESTION };
      expect(await at.host.resolve(OURS, RUN, question, value)).toMatchObject({ kind: "done" });
      expect(await at.host.resolve(OURS, RUN, question, value)).toMatchObject({ resolved: question });
      expect(await at.host.resolve(OURS, RUN, question, { action: "reject" })).not.toHaveProperty("resolved");
    }
  });

  it("is cancelled, and cannot be paused", async () => {
    await using at = await createScene("approval");
    expect(await at.host.snapshot(OURS, RUN)).toMatchObject({ value: { status: "waiting-approval" } });
    const details = { runStatus: "waiting-approval" };
    expect(await at.host.pause(OURS, RUN, {})).toMatchObject({
      code: "run_not_pausable",
      message: "a coordination of agents cannot be paused",
      details,
    });
    expect(await at.host.resume(OURS, RUN)).toMatchObject({
      code: "run_not_paused",
      message: "a coordination of agents is never paused, so that it cannot be resumed",
      details,
    });
    expect(await at.host.cancel(OURS, RUN, {})).toMatchObject({ value: { status: "cancelling" } });
    await at.pass();
    expect(await at.host.cancel(OURS, RUN, {})).toMatchObject({ value: { status: "cancelled" } });
    expect(await at.host.snapshot(OURS, RUN)).toMatchObject({ value: { status: "cancelled" } });
  });

  it("is not there for callers of another tenant, whatever they ask, and nor is one that never was", async () => {
    await using at = await createScene();
    for (const [caller, runId] of [[OTHERS, RUN] as const, [OURS, "co-2"] as const]) {
      const answers = await Promise.all([
        at.host.snapshot(caller, runId),
        at.host.events(caller, runId, ALL),
        at.host.ancestry(caller, runId),
        at.host.cancel(caller, runId, {}),
        at.host.pause(caller, runId, {}),
        at.host.resolve(caller, runId, { nodeId: "orchestrator" }, { action: "accept" }),
      ]);
      expect(answers.map((answer) => "code" in answer && answer.code)).toEqual(
        answers.map(() => "not_found"),
      );
    }
    expect(await at.host.snapshot(OURS, RUN)).toMatchObject({ value: { status: "waiting-input" } });
  });
});

describe("a coordination that another gateway drives", () => {
  it("wakes who watches it here", async () => {
    const folder = createTempFolder();
    onTestFinished(() => folder[Symbol.dispose]());
    const path = folder.file("ledger.sqlite");
    const here = await openTestLedger(path);
    onTestFinished(() => here.close());
    const elsewhere = await openTestLedger(path);
    onTestFinished(() => elsewhere.close());
    const author = createAuthor("far");
    await elsewhere.append(author.append(openingOf("trace")));
    const running = await openWorkflowHost({
      ledgerPath: path,
      store: here.workflows,
      coordinations: {
        store: here,
        coordinator: testCoordinator({
          store: here,
          clock: createManualClock(),
          newCoordinationId: () => expect.fail("this gateway opens none"),
        }),
        tenant: "default",
      },
      definitions: [],
      logger: quietLogger,
      secrets: new Map(),
      privateOrigins: [],
      peerTokens: {},
      confidenceFloor: 0.5,
      escalationThreshold: 0.7,
      baseUrl: () => "http://127.0.0.1",
      readVariable: () => undefined,
    });
    onTestFinished(() => running.close());
    let wakes = 0;
    running.host.watch(author.runId, () => (wakes += 1));
    await waitFor(() => wakes === 1, { what: "the first look at the coordination" });
    await elsewhere.append(author.append(spawnOf("call-1")));
    await waitFor(() => wakes === 2, { what: "news of the coordination" });
  });
});

describe("a coordination in which a child asks its parent", () => {
  it.each([
    ["goes on while the parent has not answered", undefined, "running"],
    ["waits once the question has gone to people", TEST_EPOCH_MS, "waiting-input"],
  ])("%s", async (_what, forwardedAtMs, status) => {
    const asking = { escalationId: QUESTION, kind: "clarification", stepId: "step-1", askedOf: OWNER };
    const escalations = [{ ...asking, askedAtMs: TEST_EPOCH_MS, deadlineAtMs: TEST_EPOCH_MS, forwardedAtMs }];
    const steps = [{ stepId: "step-1", status: "running" }];
    const view = { status: "running", createdAtMs: TEST_EPOCH_MS, steps, escalations };
    const first = {
      type: "coordination.created",
      runId: RUN,
      payload: { origin: "plan", ownerAgent: "main" },
    };
    const others = createCoordinationRuns({
      tenant: "default",
      hostId: () => "host-1",
      coordinator: { view: () => Promise.resolve(view) } as never,
      store: {
        read: () => Promise.resolve([first as unknown as RunEvent]),
        entry: () => Promise.resolve(undefined),
      },
    });
    const snapshot = await withOtherRuns(EMPTY, others).snapshot(OURS, RUN);
    expect(snapshot).toMatchObject({ kind: "done", value: { status } });
    expect("interrupt" in (snapshot as { value: object }).value).toBe(status !== "running");
  });
});

describe("the ancestry of a coordination", () => {
  it.each([
    ["nothing where a session opened it", undefined, null],
    [
      "the coordination of the step whose child submitted it",
      { coordinationId: "co-0", stepId: "step-1" },
      { runId: "co-0", hostId: "host-1", cause: "core.dispatch" },
    ],
  ])("is %s", async (_what, parent, above) => {
    const first = { type: "coordination.created", runId: RUN, payload: { origin: "plan", parent } };
    const others = createCoordinationRuns({
      tenant: "default",
      hostId: () => "host-1",
      coordinator: {} as never,
      store: {
        read: () => Promise.resolve([first as unknown as RunEvent]),
        entry: () => Promise.resolve(undefined),
      },
    });
    const value = { runId: RUN, hostId: "host-1", parent: above };
    expect(await withOtherRuns(EMPTY, others).ancestry(OURS, RUN)).toEqual({ kind: "done", value });
  });
});

describe("an answer to a question", () => {
  const approval = { kind: "approval", escalationId: QUESTION } as const;
  it.each([
    [{ action: "accept" }, { answer: "approve" }],
    [{ action: "reject" }, { answer: "deny" }],
    [{ decision: "approved" }, { answer: "approve" }],
    [
      { action: "edit-accept", editedArtifactData: { a: 1 } },
      { answer: "answer", text: '{"a":1}' },
    ],
    [{ answers: { [QUESTION]: "blue" } }, { answer: "answer", text: "blue" }],
    [{ answers: [{ id: QUESTION, answer: { a: 1 } }] }, { answer: "answer", text: '{"a":1}' }],
  ])("%j counts", (value, answer) => {
    expect(readQuestionAnswer(approval, value)).toEqual(answer);
  });

  it.each([[undefined], ["accept"], [{}], [{ action: "toString" }], [{ answers: { other: "x" } }]])(
    "%j is none",
    (value) => {
      expect(readQuestionAnswer(approval, value)).toHaveProperty("refused");
    },
  );
});
