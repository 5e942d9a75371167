/**
 * A process dies before or after each call of a port, or the call fails, in all that a child does beside its work: the host and the
 * child then do it again in the next process. Worktrees are swept in `test/core/plan-worktrees.test.ts`.
 */
import { describe, expect, it } from "vitest";
import type { CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { ChildRequest } from "../../src/agents/coordination/contracts/fact-fields.ts";
import type { Privilege } from "../../src/agents/coordination/contracts/privilege.ts";
import { createProviderLanes } from "../../src/agents/coordination/runtime/providers/provider-lanes.ts";
import { replayCoordination } from "../../src/agents/coordination/runtime/replay-coordination.ts";
import { createUsageBook, type UsageBook } from "../../src/agents/coordination/runtime/usage/usage-book.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { createPQueueLanes } from "../../src/infra/lanes/p-queue-lanes.ts";
import { listEvents, waitUntilQuiet } from "../core/gates-world.ts";
import { AGENT, plan, PLAN_ID, step } from "../core/planned-world.ts";
import { createWorld, OWNER, spawnOf, type World } from "../support/fake-clock-host.ts";
import type { GivenGates } from "../support/gate-dependencies.ts";
import { quietLogger } from "../support/ledger-fixtures.ts";
import { writeLongText } from "../support/long-text.ts";
import { createScriptedRunner, endDone } from "../support/scripted-runner.ts";
import { FAULTS, startProcess, type Calls, type Fault, type Process } from "./sweep-process.ts";

const RUN_ID = "co-1" as CoordinationId;
const DOWN_MS = 7_000;
/** Whoever hears nothing asks again so often. */
const TRIES_MAX = 4;

type Outside = NonNullable<Parameters<typeof startProcess>[3]>;

interface Stage {
  readonly world: World;
  readonly session: SessionKey;
  readonly fault: Fault | undefined;
  /** How many processes there were. */
  readonly lives: () => number;
  /** The usage that the process counts which lives now. */
  readonly book: () => UsageBook;
  /** Asks the process that lives, and the next one where it heard nothing. */
  readonly ask: <T>(work: (process: Process) => Promise<T>) => Promise<T>;
  /** Asks once: who asked died with the process. */
  readonly askOnce: <T>(work: (process: Process) => Promise<T>) => Promise<T | undefined>;
}

interface Path {
  readonly gates?: GivenGates;
  readonly requested?: ChildRequest;
  readonly outside?: (world: World, lives: number) => Outside;
  readonly play: (stage: Stage) => Promise<void>;
  /** Checks what must be true after the child has ended. */
  readonly check: (stage: Stage) => Promise<void> | void;
}

async function admitChild({ coordinator }: Process, world: World, requested?: ChildRequest) {
  const spawn = spawnOf({ task: "t" });
  const admission = await coordinator.admitSpawn({
    ...spawn,
    spawn: { ...spawn.spawn, ...(requested && { requested }) },
  });
  if (admission.kind === "refused") throw new Error(admission.reason);
  const { coordinationId, stepId } = admission.envelope;
  const child = world.host.spawn(spawn);
  await coordinator.confirmSpawn({ coordinationId, stepId, sourceSession: OWNER, toolCallId: "t" }, child);
  return child.childSessionKey;
}

/** Plays a path with a fault at one call of what it does, and returns at which calls there can be one. */
async function playPath(path: Path, fault?: Fault): Promise<{ first: number; last: number }> {
  const world = createWorld(
    {},
    createScriptedRunner(() => endDone()),
    path.gates,
  );
  const calls: Calls = { count: 0 };
  let lives = 0;
  let book = createUsageBook("none");
  const boot = async (): Promise<Process> => {
    lives += 1;
    book = createUsageBook(`meter-${lives}`);
    const outside = { usage: book, ...path.outside?.(world, lives) };
    const next = startProcess(world, calls, fault, outside);
    const started = await Promise.race([next.coordinator.start(), next.died]);
    return started === "died" ? revive() : next;
  };
  const revive = async (): Promise<Process> => {
    await world.clock.advance(DOWN_MS);
    return boot();
  };
  let process = await boot();
  const session = await admitChild(process, world, path.requested);
  const first = calls.count + 1;
  const askOnce: Stage["askOnce"] = async (work) => {
    const asker = process;
    const answer = await Promise.race([work(asker).catch(() => undefined), asker.died.then(() => undefined)]);
    if (process.isDead()) process = await revive();
    return answer;
  };
  const ask: Stage["ask"] = async (work) => {
    for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
      const answer = await askOnce(async (asker) => ({ value: await work(asker) }));
      if (answer) return answer.value;
    }
    return expect.fail("nobody answered");
  };
  const stage: Stage = { world, session, fault, lives: () => lives, book: () => book, ask, askOnce };
  await path.play(stage);
  for (const { childSessionKey } of world.host.children.values()) {
    world.host.end(childSessionKey, { outcome: "completed" });
    await ask(({ coordinator }) => coordinator.endChild(childSessionKey, { outcome: "completed" }));
  }
  await waitUntilQuiet(world);
  const last = calls.count;
  if (process.isDead()) process = await revive();
  await path.check(stage);
  const store = world.ledger.open(world.clock);
  expect((await verifyLedger(store)).problems).toEqual([]);
  for (const { runId } of await store.list({ limit: 10 }))
    expect((await replayCoordination(store, runId)).difference).toBeUndefined();
  await process.coordinator.stop();
  return { first, last };
}

const countEvents = ({ world }: Stage, type: Parameters<typeof listEvents>[1]): number =>
  listEvents(world, type).length;

/** A child of which the host says another model than was asked. */
const createTruthPath = (onMismatch: "record" | "hold"): Path => ({
  gates: { truth: { onMismatch } },
  requested: { model: "acme/large" },
  play: ({ ask, session }) =>
    ask(async ({ coordinator: { childWatch } }) => {
      const watched = (await childWatch.find(session)) ?? expect.fail("nobody watches the child");
      await childWatch.observe(watched, { ran: { model: "acme/small" }, toolNames: ["read", "write"] });
    }),
  check: (stage) => {
    expect([countEvents(stage, "child.observed"), countEvents(stage, "child.differed")]).toEqual([1, 1]);
    const isHeld = onMismatch === "hold";
    expect(countEvents(stage, "step.completed")).toBe(isHeld ? 0 : 1);
    expect(listEvents(stage.world, "coordination.escalated").map(({ payload }) => payload.cause)).toEqual(
      isHeld ? ["mismatch"] : [],
    );
  },
});

const LONG = writeLongText({ chars: 100_000, head: "BEGIN", middle: "MIDDLE", tail: "END" });
const READ_ONLY: Privilege = { tools: { allow: ["read"] } };
const CLOSED_MS = 5_000;
const USED = {
  model: "acme/large",
  inputTokens: 100,
  outputTokens: 50,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costNanoUsd: 1_000,
};

const CHAT: Path = {
  play: ({ ask, session }) =>
    ask(({ coordinator }) =>
      coordinator.childWords.recordSuppressed(session, {
        through: "message",
        channel: "chat",
        chars: 7,
        media: 0,
      }),
    ),
  check: (stage) => {
    // One that was kept back and recorded in the last moment is kept back again when it is said again.
    const count = countEvents(stage, "message.suppressed");
    expect(count).toBeGreaterThanOrEqual(1);
    expect(count).toBeLessThanOrEqual(stage.lives());
  },
};

const RESULT_PAGES: Path = {
  play: ({ ask, session }) =>
    ask(({ coordinator }) => coordinator.childWords.keepWhole(session, LONG, 16_000)),
  check: ({ world }) => {
    const texts = listEvents(world, "result.shortened").map(({ payload: { text } }) => text.sha256);
    expect(texts).toHaveLength(1);
    expect(world.ledger.contents.get(texts[0] ?? "")?.text).toBe(LONG);
  },
};

const PROGRESS: Path = {
  play: async ({ ask, session }) => {
    const answer = await ask(({ coordinator }) =>
      coordinator.progress(session, { percent: 40, line: "reading" }),
    );
    expect(["recorded", "too_soon"]).toContain(answer.kind);
    const view = await ask(({ coordinator }) => coordinator.view(RUN_ID));
    expect(view?.steps[0]?.progress).toMatchObject({ percent: 40 });
  },
  check: (stage) => {
    // The child may tell it again as soon as it may tell the next one.
    expect(countEvents(stage, "step.progressed")).toBeLessThanOrEqual(stage.lives());
    expect(countEvents(stage, "step.completed")).toBe(1);
  },
};

const QUESTION_TO_PARENT: Path = {
  play: async ({ ask, askOnce, session, world }) => {
    const question = { agentId: "main", kind: "clarification", question: "Which mill?" } as const;
    const request = { ...question, askedBy: session, to: "parent" } as const;
    /** The child asks, its parent answers, and the child hears it unless its process dies meanwhile. */
    const hearAnswer = async () => {
      const asking = await ask(({ coordinator }) => coordinator.ask(request));
      if (asking.kind === "refused") return expect.fail(asking.reason);
      await world.clock.advance(world.settings.sweepMs + 1_000);
      const { questionId } = asking;
      const answer = { questionId, session: OWNER, text: "The old one." };
      await ask(({ coordinator }) => coordinator.answerChild(answer));
      return askOnce(({ coordinator }) => coordinator.outcome(questionId, 0));
    };
    const heard = (await hearAnswer()) ?? (await hearAnswer());
    expect(heard).toMatchObject({
      resolution: "answered",
      text: expect.stringContaining("The old one.") as string,
    });
  },
  check: ({ world, lives, fault }) => {
    const closed = listEvents(world, "escalation.closed").map(
      ({ payload: { escalationId } }) => escalationId,
    );
    expect(listEvents(world, "coordination.escalated").map(({ payload }) => payload.escalationId)).toEqual(
      closed,
    );
    // A child that may have heard the answer asks anew: no answer counts twice.
    expect(closed.length).toBeLessThanOrEqual(fault?.kind === "fails" ? 1 : lives());
    // Each answer is recorded, also one that is given again and does not count.
    const answers = listEvents(world, "escalation.answered");
    expect(answers.filter(({ payload }) => payload.refused === undefined)).toHaveLength(closed.length);
    // Told once, however often the host was asked to tell it.
    expect([...world.plans.runs.keys()]).toEqual(closed.map((id) => `${RUN_ID}:question:${id}:told`));
  },
};

const PRIVILEGES: Path = {
  play: async ({ ask, askOnce, world, fault }) => {
    const spawnNarrowed = async (task: string): Promise<SessionKey | undefined> => {
      const spawn = spawnOf({ task });
      const request = { ...spawn, spawn: { ...spawn.spawn, askedPrivilege: READ_ONLY } };
      const admission = await askOnce(({ coordinator }) => coordinator.admitSpawn(request));
      if (admission?.kind !== "admitted") return undefined;
      const child = world.host.spawn(spawn);
      const { coordinationId, stepId } = admission.envelope;
      const claim = { coordinationId, stepId, sourceSession: OWNER, toolCallId: task };
      const confirmed = await askOnce(({ coordinator }) => coordinator.confirmSpawn(claim, child));
      // Until then the plugin refuses its calls; a process that dies forgets that, and its next one looks at its start.
      if (!confirmed && fault?.kind === "fails") await world.clock.advance(world.settings.sweepMs + 1_000);
      return child.childSessionKey;
    };
    const child =
      (await spawnNarrowed("first")) ?? (await spawnNarrowed("second")) ?? expect.fail("no child was made");
    const findParent = (session: SessionKey) => (session === child ? OWNER : undefined);
    const readBounds = () => ask(({ coordinator }) => coordinator.privileges.boundsOf(child, findParent));
    const { bounds, step: narrowed } = await readBounds();
    expect(bounds.map(({ privilege }) => privilege)).toEqual([READ_ONLY]);
    const [bound] = bounds;
    if (!bound || !narrowed) return expect.fail("the child is held to nothing");
    const refusal = { tool: "exec", rule: "tools.allow", bound } as const;
    await ask(({ coordinator }) => coordinator.privileges.record(narrowed, refusal));
    expect((await readBounds()).bounds).toEqual(bounds);
  },
  check: (stage) => {
    const count = countEvents(stage, "privilege.refused");
    // A refusal that cannot be recorded is one all the same.
    expect(count).toBeGreaterThanOrEqual(stage.fault?.kind === "fails" ? 0 : 1);
    expect(count).toBeLessThanOrEqual(stage.lives());
  },
};

const BUDGET: Path = {
  outside: () => ({ budget: { tokens: 250 } }),
  play: async (stage) => {
    const { ask, askOnce, session } = stage;
    let calls = 0;
    let sentence: string | undefined;
    while (sentence === undefined && calls < 10) {
      calls += 1;
      await askOnce(async ({ coordinator: { usageRecorder } }) => {
        stage.book().beginCall({ session, runId: "child-run", traceId: "trace-1" });
        const run = stage.book().addUsage(session, USED);
        if (run) usageRecorder.noted(run);
        await usageRecorder.flush(session);
      });
      sentence = (await ask(({ coordinator }) => coordinator.usageRecorder.stopChild(session, "call")))
        ?.sentence;
    }
    expect(sentence).toContain("tokens");
    // Two calls reach the bound. A call whose record died with its process is the only one beyond.
    expect(calls).toBeLessThanOrEqual(1 + stage.lives());
  },
  check: (stage) => {
    expect(countEvents(stage, "budget.reached")).toBe(1);
    const used = new Map(
      listEvents(stage.world, "usage.recorded").map(({ payload }) => [payload.meter, payload.calls]),
    );
    expect([...used.values()].reduce((sum, calls) => sum + calls, 0)).toBe(2);
  },
};

/** The first process knows that the provider is closed, and the next one knows nothing. */
const PROVIDER_LANES: Path = {
  outside: ({ clock }, lives) => {
    const rules = { retryAfterMsMax: 600_000, callDelayMs: 8_000 };
    const providers = createProviderLanes({ clock, logger: quietLogger, rules, drawFraction: () => 0.5 });
    const call = { provider: "acme", session: "agent:main:subagent:9" as SessionKey };
    providers.callBegan(call);
    if (lives === 1) providers.callRefused(call, CLOSED_MS);
    const limits = { control: 1, data: 2, escalation: 1, queueMax: 8, agingMs: 60_000 };
    return { lanes: createPQueueLanes(limits, clock, providers) };
  },
  play: async ({ ask, world, lives }) => {
    const submission = { plan: plan([step("a"), step("b")]), ownerAgent: AGENT };
    await ask(({ coordinator }) => coordinator.submitPlan(submission));
    if (lives() === 1) expect(world.plans.orders).toEqual([]);
    await world.clock.advance(CLOSED_MS);
    await ask(() => Promise.resolve(true));
    await waitUntilQuiet(world);
  },
  check: async ({ world, ask }) => {
    await world.clock.advance(world.settings.sweepMs + 1_000);
    const view = await ask(({ coordinator }) => coordinator.view(PLAN_ID));
    expect(view?.status).toBe("success");
    for (const stepId of ["a", "b"]) {
      const begun = [...world.plans.runs.values()].filter(({ order }) => order.envelope.stepId === stepId);
      expect(begun).toHaveLength(1);
    }
  },
};

describe("a process that dies at any call of a port, or meets a failing one, while a child", () => {
  it.each([
    ["runs on another model than asked, which is recorded once", createTruthPath("record")],
    ["runs on another model than asked: its result is held, by one question", createTruthPath("hold")],
    ["is kept from speaking in a chat, which is recorded", CHAT],
    ["says more than its parent is shown: all of it can be read, and is recorded once", RESULT_PAGES],
    ["tells its progress, which is shown and ends nothing", PROGRESS],
    ["asks its parent, which is told once and answers once", QUESTION_TO_PARENT],
    ["is held to read only: it is held to that in every process", PRIVILEGES],
    ["reaches a budget: it is stopped once, at most one call later", BUDGET],
    ["waits with its plan for a provider that refuses calls: its work is done once", PROVIDER_LANES],
  ])("%s", async (_, path) => {
    const { first, last } = await playPath(path);
    expect(last).toBeGreaterThan(first);
    for (let atCall = first; atCall <= last; atCall += 1)
      for (const kind of FAULTS) {
        try {
          await playPath(path, { kind, atCall });
        } catch (error) {
          throw new Error(`${kind} call ${atCall} of ${first} to ${last}`, { cause: error });
        }
      }
  });
});
