/** Stories of a gateway that is killed with -9. One kill meets each at its worst moment, and one start lets all go on. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { WorkflowEvent } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { isEnded } from "../../src/agents/coordination/ledger/state.ts";
import { loadOpenWopSchemas } from "../core/openwop-schemas.ts";
import { openPage, startBrowser, type WatchedPage } from "../page/browser.ts";
import { startCable, type Cable } from "../page/cable.ts";
import type { CliResult } from "../support/gateway.ts";
import { renderScript } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { openApprover } from "./approver.ts";
import {
  listHostChildren,
  listStepsByChild,
  ROUNDS,
  SPAWNING_SESSIONS,
  spawnInSessions,
} from "./crash-spawns.ts";
import {
  FORK_SOURCE,
  GATED_WORKFLOW,
  HELPER,
  KILLED_FORK,
  LEFT_PLAN,
  openCrashStage,
  SLOW_REQUEST,
  type CrashStage,
} from "./crash-stage.ts";
import { beginContest, expectFilesFree, expectNextWriter } from "./crash-writes.ts";
import {
  answer,
  expectHeardOnce,
  expectKept,
  expectSound,
  factsOf,
  ownerOf,
  planOf,
  runPlan,
  secretOf,
  spawnDoubting,
  stepOf,
  waitForEnd,
  waitUntilAnnounced,
  type HeldResult,
} from "./gates-stage.ts";
import { createMentionChat, listAsksWith } from "./mention-chat.ts";
import { addressOf, APPROVAL, createOpenwopRoute } from "./openwop-route.ts";
import {
  createSourcePlan,
  expectCarried,
  findMessageToLast,
  isAbout,
  listAskedSince,
  phaseOf,
  readProgramJson,
  waitForPlan,
} from "./plan-forks-stage.ts";
import { hasEnded, stepNamed, type OpenedCoordination } from "./stage.ts";

/** The host takes longer than the page. */
const HOST_WAIT = { timeout: 60_000 };

let stage: CrashStage;
let browser: Browser;
/** Lies between the browser and the gateway, because a gateway that is started again has another port. */
let cable: Cable;
const { readPath, begin, waitUntilRun, eventsOf, waitUntilServed } = createOpenwopRoute(() => stage);
const chat = createMentionChat(() => stage);

beforeAll(async () => {
  stage = await openCrashStage();
  browser = await startBrowser();
  cable = await startCable(stage.gateway.port);
  await waitUntilServed();
});

afterAll(async () => {
  chat.close();
  await browser.close();
  await cable[Symbol.asyncDispose]();
  await stage.close();
});

/** A page of the gateway that is signed in and shows what happens. */
async function openLivePage(): Promise<WatchedPage> {
  const { address } = await stage.gateway.call("coordination.page.link");
  const watched = await openPage(
    browser,
    String(address).replace(`:${stage.gateway.port}/`, `:${cable.port}/`),
  );
  await watched.page.locator(".feed.live").waitFor(HOST_WAIT);
  return watched;
}

const SESSION = "agent:main:crash";

/** Every session whose model spawns. The first one has children before any kill. */
const SOURCES = [SESSION, ...SPAWNING_SESSIONS];

/** Leaves one child at work and one that has ended. */
async function spawnQuickAndSlow(): Promise<OpenedCoordination> {
  const spawn = [
    { label: "quick", task: renderScript({ say: "quick result" }) },
    { label: "slow", task: renderScript({ delayMs: 280_000, say: "never" }) },
  ];
  await stage.gateway.agent({ sessionKey: SESSION, message: renderScript({ spawn }, { say: "ok" }) });
  return stage.until(SESSION, (state) => stepNamed(state, "quick").phase.status === "completed");
}

async function showSession(): Promise<WatchedPage> {
  const watched = await openLivePage();
  await watched.page.getByText(SESSION).first().waitFor(HOST_WAIT);
  return watched;
}

/** Leaves a result that is held, and of which its parent has heard. */
async function holdResult(label: string): Promise<HeldResult> {
  const heldResult = await spawnDoubting(stage, label);
  await waitUntilAnnounced(stage, heldResult.child);
  return heldResult;
}

async function endForkSource(): Promise<OpenedCoordination> {
  await runPlan(stage, createSourcePlan(FORK_SOURCE));
  return waitForPlan(stage, { source: FORK_SOURCE }, hasEnded);
}

const FORK = {
  coordinationId: FORK_SOURCE,
  forkId: KILLED_FORK,
  policy: { retry: { budget: 2, backoffMs: 200 } },
};

/** Leaves a fork whose step c is at work, and returns how many requests there were before it. */
async function beginFork(): Promise<number> {
  const { length: requestCount } = stage.model.requests;
  expect(await stage.gateway.call("coordination.plan.fork", FORK)).toMatchObject({ replay: false });
  await waitForPlan(
    stage,
    { source: FORK_SOURCE, plan: KILLED_FORK },
    (running) => phaseOf(running, "c")?.status === "running",
  );
  await waitFor(() => listAskedSince(stage, requestCount).includes("c"), {
    what: "the agent at work",
    timeoutMs: 30_000,
  });
  return requestCount;
}

/** Leaves a plan of three steps in the middle of the second. */
async function beginPlan(): Promise<void> {
  const steps = [
    stepOf("one", renderScript({ say: '{"v":1}' })),
    stepOf("two", renderScript({ say: '{"v":2}', delayMs: 3_000 }), {
      dependsOn: ["one"],
      // A first turn after a start can outlast its time where the machine is busy: more tries than one kill needs.
      retry: { budget: 5, backoffMs: 200 },
      // The host finds a child that a kill took with it only a minute later.
      timeoutMs: 20_000,
    }),
    stepOf("three", renderScript({ say: '{"v":3}' }), {
      dependsOn: ["two"],
      input: { v: "{{steps.two.outputs.v}}" },
    }),
  ];
  const failurePolicy = {
    retryBudget: 5,
    timeoutPolicy: "continue_with_partial",
    escalationPolicy: "none",
  };
  await runPlan(stage, planOf(LEFT_PLAN, steps, { failurePolicy }));
  await stage.until(ownerOf(LEFT_PLAN), (state) => phaseOf(state, "two")?.status === "running");
  await waitFor(() => stage.model.requests.some(({ body }) => isAbout(body, LEFT_PLAN, "two")), {
    what: "the agent of the second step at work",
    timeoutMs: 30_000,
  });
}

/** Returns what a command of the host prints about coordination. Each refuses to work until all of the gateway's start is done. */
async function runCommand(...args: readonly string[]): Promise<unknown> {
  const runOnce = async (): Promise<CliResult | undefined> => {
    const result = await stage.gateway.openclaw(["coordination", ...args, "--json"]);
    return result.stderr.includes("owns state-lifecycle") ? undefined : result;
  };
  const { code, stdout, stderr } = await waitFor(runOnce, {
    what: `the host to let ${args.join(" ")} begin`,
    timeoutMs: 120_000,
    everyMs: 1_000,
  });
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  return JSON.parse(stdout);
}

/** Leaves a workflow that waits for people, and returns its run. */
async function beginGatedRun(): Promise<string> {
  const runId = await begin(GATED_WORKFLOW);
  await waitUntilRun(runId, "waiting-approval");
  return runId;
}

/** Leaves an agent of a manifest at work, and returns the key of the message. */
async function callHelper(): Promise<string> {
  const key = await chat.send("killed", `@helper ${SLOW_REQUEST}`);
  await waitFor(() => listAsksWith(stage, SLOW_REQUEST).length > 0, {
    what: "the model to be asked",
    timeoutMs: 30_000,
    everyMs: 20,
  });
  return key;
}

describe("kill -9 of the gateway", () => {
  let shown: WatchedPage;
  let before: OpenedCoordination;
  let source: OpenedCoordination;
  let waiting: HeldResult;
  let approved: HeldResult;
  let requestCount: number;
  let runId: string;
  let messageKey: string;

  async function expectKilled(): Promise<void> {
    expect((await stage.verify()).problems).toEqual([]);
    await shown.page.getByText("Connection lost").waitFor(HOST_WAIT);
  }

  // A start takes half a minute: one kill serves all tests, and further ones meet only spawns.
  beforeAll(async () => {
    [before, source, waiting, approved] = await Promise.all([
      spawnQuickAndSlow(),
      endForkSource(),
      holdResult("kept-at-kill"),
      holdResult("approved-at-kill"),
    ]);
    expectKept(stage, secretOf("approved-at-kill"), approved.child);
    shown = await showSession();
    for (let round = 1; round < ROUNDS; round += 1) {
      await spawnInSessions(stage, round);
      await stage.gateway.kill9();
      await expectKilled();
      await stage.restart();
    }
    // The host gives a client up that connects while it is busy: before all that is begun now.
    const approver = await openApprover(stage, "nothing");
    [requestCount, , runId, messageKey] = await Promise.all([
      beginFork(),
      beginPlan(),
      beginGatedRun(),
      callHelper(),
      beginContest(stage, approver),
    ]);
    await spawnInSessions(stage, 0);
    expect(await answer(stage, approved.questionId, "approve")).toMatchObject({ resolution: "approved" });
    await stage.killForGood();
    approver.close();
    await expectKilled();
    await stage.restart();
    cable.plugIn(stage.gateway.port);
    await waitUntilServed();
  }, 300_000 * ROUNDS);

  it("LM-88 while an agent works: the message is one run, and delivered again it is answered", async () => {
    expect(await chat.say("killed", `@helper ${SLOW_REQUEST}`, messageKey)).toBe(
      `${HELPER}: It took a while.`,
    );
    expect((await stage.verify()).problems).toEqual([]);
    // One that was cut off, and one that was let finish.
    expect(listAsksWith(stage, SLOW_REQUEST)).toHaveLength(2);
  });

  it("under an open page, which says how to get in again and keeps what it showed", async () => {
    await shown.page.getByText("The session has ended. Open the page with a new link.").waitFor(HOST_WAIT);
    expect(await shown.page.getByText(SESSION).count()).toBeGreaterThan(0);
    expect(shown.problems).toEqual([]);
    await shown.context.close();

    const again = await showSession();
    expect(again.problems).toEqual([]);
    await again.context.close();
  });

  it("while a run waits for approval: it waits after the restart, and goes on when it is approved", async () => {
    await waitUntilRun(runId, "waiting-approval");
    await readPath(`/v1/runs/${runId}/interrupts/gate`, APPROVAL);
    await waitUntilRun(runId, "completed");
    const events = await eventsOf<WorkflowEvent>(runId);
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
    const schemas = loadOpenWopSchemas();
    expect(events.flatMap((event) => schemas.problemsOfWorkflow(event))).toEqual([]);
    expect((await stage.verify()).problems).toEqual([]);
  });

  it("right after an approval: the parent is told once", async () => {
    const label = "approved-at-kill";
    await expectHeardOnce(stage, await waitForEnd(stage, label), { label, text: secretOf(label) });
  });

  it("while a fork runs: it goes on with each kept result, and no agent is asked for one", async () => {
    const fork = await waitForPlan(stage, { source: FORK_SOURCE, plan: KILLED_FORK }, hasEnded);
    expect(fork).toMatchObject({ status: "success" });
    expect(listAskedSince(stage, requestCount)).toEqual(["c", "d"]);
    expectCarried({ fork, source }, ["a", "b"]);
    expect(findMessageToLast(stage, KILLED_FORK)).toContain('"b": "found-by-b"');
    expect(await stage.gateway.call("coordination.plan.fork", FORK)).toMatchObject({ replay: true });
    await expectSound(stage, fork);
    expect(await readProgramJson(stage, "replay", KILLED_FORK)).toMatchObject({ equal: true });
  });

  it("in the middle of a plan: it goes on and tells its owner once", async () => {
    const state = await stage.until(ownerOf(LEFT_PLAN), hasEnded, 270_000);
    expect(state).toMatchObject({ status: "success" });
    expect(phaseOf(state, "one")).toMatchObject({ attempt: 1 });
    expect(phaseOf(state, "three")).toMatchObject({ attempt: 1 });
    const tellings = stage.model.requests.filter(({ text }) =>
      text.includes(`The plan ${LEFT_PLAN} has ended`),
    );
    expect(new Set(tellings.map(({ turnIndex }) => turnIndex)).size).toBe(1);
    expect((await stage.verify()).problems).toEqual([]);
  });

  it("while a result is held: the question is open after the start, and the command line releases it once", async () => {
    const label = "kept-at-kill";
    const { questionId, child } = waiting;
    expectKept(stage, secretOf(label), child);
    const printed = await runCommand("approve", questionId);
    expect(printed).toMatchObject({ ok: true, questionId, resolution: "approved" });
    const state = await waitForEnd(stage, label);
    const [answered] = await factsOf(stage, state, "escalation.answered");
    expect(answered).toMatchObject({ through: "cli", by: { kind: "operator" } });
    await expectHeardOnce(stage, state, { label, text: secretOf(label) });
    await expect(answer(stage, questionId, "approve")).rejects.toThrow("closed already");
  });

  it("with OpenWOP: the command line tells where it is served now", async () => {
    expect(await runCommand("status")).toMatchObject({ openwop: { served: true, url: addressOf(stage) } });
  });

  it("while children run: each open step gets the host's outcome after the restart, once", async () => {
    const after = await stage.until(SESSION, hasEnded, 120_000);
    expect(after).toMatchObject({ status: "partial", coordinationId: before.coordinationId });
    expect(stepNamed(after, "slow").phase).toMatchObject({ status: "failed", attempt: 1 });
    const outcomes = (await stage.events(after)).filter(({ type }) =>
      /^step\.(completed|failed|timed_out)$/u.test(type),
    );
    expect(outcomes.map(({ nodeId }) => nodeId).toSorted()).toEqual(["step-1", "step-2"]);
  });

  it("while a file is held, refused and asked about: nothing is held, and every conflict has one resolution", () =>
    expectFilesFree(stage));

  it("while a file is held: it is left to the next who wants it", () => expectNextWriter(stage));

  it("at every stage of a spawn: no step is lost, none is recorded twice, and the ledger stays sound", async () => {
    for (const session of SPAWNING_SESSIONS) {
      const state = await stage.until(session, hasEnded, 240_000);
      const calls = [...state.steps.values()].map(({ spec }) => spec.call.toolCallId);
      expect(new Set(calls).size).toBe(calls.length);
      const children = [...state.steps.values()].flatMap(({ phase }) =>
        isEnded(phase) && "child" in phase ? [phase.child.childSessionKey] : [],
      );
      expect(new Set(children).size).toBe(children.length);
    }
    const steps = await listStepsByChild(stage, SOURCES);
    const hostChildren = await listHostChildren(stage, SOURCES);
    expect(hostChildren).not.toHaveLength(0);
    // The host makes a child for nothing that is not recorded before, and no two steps share one.
    expect(hostChildren.map((child) => [child, steps.get(child)?.size])).toEqual(
      hostChildren.map((child) => [child, 1]),
    );
    expect((await stage.verify()).problems).toEqual([]);
  });
});
