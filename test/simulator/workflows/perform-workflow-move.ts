/** Owns: what each move of a schedule of workflow runs does to the world. */
import type { CoordinationId } from "../../../src/agents/coordination/contracts/ids.ts";
import type {
  HostAnswer,
  Caller,
  CreatedRun,
  WorkflowHost,
} from "../../../src/agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { armFault, endLife, failWrites, resumeLife } from "../process-life.ts";
import { hasStopped, pauseFor, settle } from "../simulated-processes.ts";
import { WORKFLOW_IDS } from "./make-workflows.ts";
import type { AnswerValue, CallerName, WorkflowMove } from "./workflow-moves.ts";
import type { AnswerPromise, ControlPromise } from "./workflow-promises.ts";
import {
  bootHost,
  callHost,
  CALLERS,
  isEnd,
  listQuestions,
  readRun,
  type OpenQuestion,
  type SimulatedHost,
  type WorkflowWorld,
} from "./workflow-world.ts";

type MoveOf<K extends WorkflowMove["kind"]> = Extract<WorkflowMove, { kind: K }>;
type Perform<K extends WorkflowMove["kind"]> = (
  world: WorkflowWorld,
  move: MoveOf<K>,
) => void | Promise<void>;

const PERFORMERS: { readonly [K in WorkflowMove["kind"]]: Perform<K> } = {
  wait: ({ clock }, { ms }) => clock.advance(ms),
  jump: setClockOff,
  "set clock": setClockOfHost,
  "fill storage": fillStorage,
  create: createRun,
  cancel: askForControl,
  resume: askForControl,
  hold: askForControl,
  look: lookAtRun,
  answer: answerQuestion,
  "answer at the deadline": answerAtDeadline,
  fork: forkRun,
  break: (world, { host, fault }) => armFault(pickHost(world, host).life, fault),
  kill: (world, { host, downMs }) => endLife(pickHost(world, host).life, downMs),
  restart: restartHost,
  pause: pauseHost,
};

export async function performWorkflowMove(world: WorkflowWorld, move: WorkflowMove): Promise<void> {
  const perform = PERFORMERS[move.kind] as Perform<WorkflowMove["kind"]>;
  await perform(world, move);
  await settle();
}

function pickHost({ hosts }: WorkflowWorld, index: number): SimulatedHost {
  const host = hosts[index % hosts.length];
  if (!host) throw new Error("there is no host");
  return host;
}

/** Names of no run are asked for, too. */
function pickRun({ ledger }: WorkflowWorld, index: number): string {
  return [...ledger.runs.keys()][index] ?? "run-of-nobody";
}

function setClockOff(world: WorkflowWorld, { ms }: MoveOf<"jump">): void {
  if (ms < 0) world.hasGoneBack = true;
  world.clock.jump(world.clock.now() + ms);
}

function setClockOfHost(world: WorkflowWorld, { host, offsetMs }: MoveOf<"set clock">): void {
  pickHost(world, host).clock.offsetMs = offsetMs;
  world.hasGoneBack = true;
}

function fillStorage(world: WorkflowWorld, { ms }: MoveOf<"fill storage">): void {
  world.fullUntilMs = world.clock.now() + ms;
  for (const { life } of world.hosts) failWrites(life, ms);
}

function createRun(world: WorkflowWorld, { host, workflow, request, by }: MoveOf<"create">): void {
  const { promises } = world;
  const workflowId = WORKFLOW_IDS[workflow % WORKFLOW_IDS.length] ?? WORKFLOW_IDS[0];
  const runId = nameRun(world, `create ${request} ${workflowId}`);
  const promise = { runId, workflowId, by } as (typeof promises.created)[number];
  promises.created.push(promise);
  void callHost(pickHost(world, host), async (each) => {
    promise.answered = await each.create(CALLERS[by], {
      workflowId,
      inputs: { task: `task ${request}` },
      scopeId: "scope",
      transport: "rest",
      runId,
    });
  });
}

/** As the HTTP face does for a request with an idempotency key. */
function nameRun({ promises }: WorkflowWorld, request: string): CoordinationId {
  const runId = promises.runIds.get(request) ?? (`asked-${promises.runIds.size + 1}` as CoordinationId);
  promises.runIds.set(request, runId);
  return runId;
}

function askForControl(world: WorkflowWorld, move: MoveOf<"cancel" | "resume" | "hold">): void {
  const { kind, host, run } = move;
  const by = kind === "hold" ? "alice" : move.by;
  const runId = pickRun(world, run);
  const promise: ControlPromise = { kind, runId, hadEnded: readRun(world, runId).some(isEnd) };
  if (by !== "stranger") world.promises.controlled.push(promise);
  void callHost(pickHost(world, host), async (each) => {
    const answered = await requestControl(each, { runId, caller: CALLERS[by], move });
    if (by === "stranger") checkStrangerRefused(world, `${kind} ${runId}`, answered.kind);
    promise.answered = answered;
  });
}

interface ControlRequest {
  readonly runId: string;
  readonly caller: Caller;
  readonly move: MoveOf<"cancel" | "resume" | "hold">;
}

function requestControl(
  host: WorkflowHost,
  { runId, caller, move }: ControlRequest,
): Promise<HostAnswer<CreatedRun>> {
  if (move.kind === "cancel") return host.cancel(caller, runId, {});
  if (move.kind === "resume") return host.resume(caller, runId);
  return host.pause(caller, runId, { drainPolicy: move.drainPolicy });
}

function checkStrangerRefused(world: WorkflowWorld, about: string, kind: "done" | "refused"): void {
  if (kind === "done") world.problems.push(`CTI-1: another tenant may ${about}`);
}

/** A snapshot tells what the log tells, at the latest when nothing is under way any more. */
async function lookAtRun(world: WorkflowWorld, { host, run, by }: MoveOf<"look">): Promise<void> {
  const runId = pickRun(world, run);
  const at = pickHost(world, host);
  const hadEnded = readRun(world, runId).find(isEnd)?.type;
  const looking = callHost(at, async (each) => {
    const snapshot = await each.snapshot(CALLERS[by], runId);
    if (by === "stranger") checkStrangerRefused(world, `look at ${runId}`, snapshot.kind);
    else if (snapshot.kind === "done" && hadEnded && `run.${snapshot.value.status}` !== hadEnded)
      world.problems.push(`${runId} is ${snapshot.value.status} after ${hadEnded}`);
    const page = await each.events(CALLERS[by], runId, { from: 0, limit: 1_000 });
    if (by === "stranger") checkStrangerRefused(world, `read ${runId}`, page.kind);
    else if (page.kind === "done" && hadEnded && !page.value.isComplete)
      world.problems.push(`${runId} has ended and its events are not complete`);
  });
  await Promise.race([looking, settle()]);
}

/** A clarification is answered by words, anything else by yes or no. */
function formatAnswer(kind: string, value: AnswerValue): unknown {
  if (value === "nonsense") return { neither: "this", nor: ["that"] };
  if (kind === "clarification") return { answers: { q1: value === "yes" ? "blue" : "red" } };
  return { action: value === "yes" ? "accept" : "reject" };
}

function answerQuestion(world: WorkflowWorld, move: MoveOf<"answer">): void {
  const questions = listQuestions(world);
  const question = questions[move.question % Math.max(1, questions.length)];
  if (!question) return;
  giveAnswer(world, pickHost(world, move.host), { question, value: move.value, by: move.by });
  if (!move.isContradicted) return;
  const value = move.value === "yes" ? "no" : "yes";
  giveAnswer(world, pickHost(world, move.host + 1), { question, value, by: "bob" });
}

/** The worst moment: just before or after the end of the question's time. */
function answerAtDeadline(
  world: WorkflowWorld,
  { host, question: index, afterMs }: MoveOf<"answer at the deadline">,
): void {
  const timed = listQuestions(world).filter(({ deadlineAtMs }) => deadlineAtMs !== undefined);
  const question = timed[index % Math.max(1, timed.length)];
  const nowMs = world.clock.now();
  const waitMs = (question?.deadlineAtMs ?? 0) + afterMs - nowMs;
  if (!question || waitMs <= 0) return;
  // A clock that jumps past the deadline wakes nobody before the answer is there.
  world.clock.jump(nowMs + waitMs);
  giveAnswer(world, pickHost(world, host), { question, value: "yes", by: "alice" });
}

export interface GivenAnswer {
  readonly question: OpenQuestion;
  readonly value: AnswerValue;
  readonly by: CallerName;
}

export function giveAnswer(
  world: WorkflowWorld,
  at: SimulatedHost,
  { question, value, by }: GivenAnswer,
): void {
  const { runId, nodeId, interruptId, kind } = question;
  const promise: AnswerPromise = { runId, nodeId, interruptId, value, by };
  if (by !== "stranger") world.promises.answers.push(promise);
  void callHost(at, async (each) => {
    const answered = await each.resolve(CALLERS[by], runId, { nodeId }, formatAnswer(kind, value));
    if (by === "stranger") checkStrangerRefused(world, `answer ${interruptId}`, answered.kind);
    promise.answered = answered;
    if (answered.kind === "done") promise.interruptId = answered.value.interruptId;
  });
}

function forkRun(world: WorkflowWorld, { host, run, mode, share, request }: MoveOf<"fork">): void {
  const sourceRunId = pickRun(world, run);
  const { length } = readRun(world, sourceRunId);
  const fromSeq = Math.floor((length * share) / 100);
  const runId = nameRun(world, `fork ${request} ${sourceRunId} ${mode} ${fromSeq}`);
  const promise = { runId, sourceRunId, fromSeq } as WorkflowWorld["promises"]["forks"][number];
  world.promises.forks.push(promise);
  void callHost(pickHost(world, host), async (each) => {
    promise.answered = await each.fork(CALLERS.alice, { sourceRunId, mode, fromSeq, runId });
  });
}

/** An orderly end, and a new process. */
async function restartHost(world: WorkflowWorld, { host, downMs }: MoveOf<"restart">): Promise<void> {
  const { life, host: each } = pickHost(world, host);
  if (life.state !== "on") return;
  const isStopped = await hasStopped(each.stop());
  if (!isStopped && !life.isDisturbed) world.problems.push("stop() waits for something");
  endLife(life, downMs);
}

function pauseHost(world: WorkflowWorld, { host, ms }: MoveOf<"pause">): void {
  pauseFor(pickHost(world, host).life, ms);
}

/** Ends every fault, and starts whatever does not run. */
export async function endTroubles(world: WorkflowWorld): Promise<void> {
  world.isCalm = true;
  world.fullUntilMs = 0;
  for (const each of world.hosts) {
    each.life.faults = [];
    resumeLife(each.life);
    await settle();
    if (each.life.state === "dead") bootHost(world, each);
    await settle();
  }
}
