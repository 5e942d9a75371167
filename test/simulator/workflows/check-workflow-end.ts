/** Owns: that everything callers of the host were answered is what the logs say in the end. */
import type { WorkflowEvent } from "../../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { listBroken } from "../list-broken.ts";
import type { AnswerPromise, ControlPromise, CreatePromise, ForkPromise } from "./workflow-promises.ts";
import { CALLERS, isEnd, isUndisturbed, readOrigin, readRun, type WorkflowWorld } from "./workflow-world.ts";

export function checkWorkflowEnd(world: WorkflowWorld): string[] {
  const { promises, ledger } = world;
  return [
    ...[...ledger.runs.keys()].flatMap((runId) => checkRun(world, runId)),
    ...promises.created.flatMap((promise) => checkCreated(world, promise)),
    ...promises.controlled.flatMap((promise) => checkControlled(world, promise)),
    ...promises.forks.flatMap((promise) => checkFork(world, promise)),
    ...checkAnswers(world),
    ...checkNotes(world),
  ];
}

/** D5, and that a child is one that its parent knows. */
function checkRun(world: WorkflowWorld, runId: string): string[] {
  const events = readRun(world, runId);
  const [started] = events;
  if (started?.type !== "run.started") return [`L2: ${runId} does not begin with its start`];
  const { parent } = started.payload;
  const isChild = parent !== undefined && !readOrigin(world, runId);
  const above = isChild ? readRun(world, parent.runId) : [];
  return listBroken({
    [`D5: ${runId} goes on after its parent ${parent?.runId}`]:
      isUndisturbed(world) && isLeftBehind(events, above, parent?.nodeId),
    [`D5: ${runId} has no end`]: !events.some(isEnd),
    [`D2: ${runId} is a child of ${parent?.runId}, which does not know it`]:
      isChild && !hasBegunChild(above, runId, parent.nodeId),
  });
}

/** A child is ended with the node that began it; what is at hand then may still be done. */
const LEFT_MS = 5_000;

function isLeftBehind(
  child: readonly WorkflowEvent[],
  parent: readonly WorkflowEvent[],
  nodeId = "",
): boolean {
  const isCutOff = parent.some((event) => event.type === "node.cancelled" && event.payload.nodeId === nodeId);
  return isCutOff && readEndMs(child) > readEndMs(parent) + LEFT_MS;
}

const readEndMs = (events: readonly WorkflowEvent[]): number =>
  Date.parse(events.find(isEnd)?.timestamp ?? "");

/** A parent that was ended while it began a child need not know more of it than that its node was cancelled. */
function hasBegunChild(parent: readonly WorkflowEvent[], childRunId: string, nodeId = ""): boolean {
  return parent.some(
    (event) =>
      (event.type === "node.dispatched" && event.payload.childRunId === childRunId) ||
      (event.type === "node.cancelled" && event.payload.nodeId === nodeId),
  );
}

function checkCreated(world: WorkflowWorld, { runId, workflowId, by, answered }: CreatePromise): string[] {
  if (answered?.kind === "refused" && isUndisturbed(world)) return [`D1: ${runId} was refused`];
  if (answered?.kind !== "done") return [];
  const [started] = readRun(world, runId);
  if (started?.type !== "run.started") return [`D1: ${runId} was accepted and is not in the ledger`];
  const { owner } = started.payload;
  return listBroken({
    [`D1: ${runId} runs ${started.payload.workflowId} and not ${workflowId}`]:
      started.payload.workflowId !== workflowId,
    [`CTI-1: ${runId} is of ${owner.tenant}`]: owner.tenant !== CALLERS[by].tenant,
  });
}

function checkControlled(
  world: WorkflowWorld,
  { kind, runId, hadEnded, answered }: ControlPromise,
): string[] {
  if (answered?.kind !== "done" || hadEnded) return [];
  const events = readRun(world, runId);
  const end = events.find(isEnd)?.type;
  const { status } = answered.value as { readonly status?: string };
  const hasPaused = events.some(
    ({ type }) => type === "run.paused" || type === "coordination.pause_requested",
  );
  const hasResumed = events.some(({ type }) => type === "run.resumed");
  return listBroken({
    [`H4: ${runId} was cancelled and has ${end}`]:
      kind === "cancel" && (status === "cancelled" || isUndisturbed(world)) && end !== "run.cancelled",
    [`H4: ${runId} was told to pause and did not`]: kind === "hold" && !hasPaused,
    [`H4: ${runId} was told to go on and did not`]: kind === "resume" && !hasResumed,
  });
}

function checkFork(world: WorkflowWorld, { runId, sourceRunId, fromSeq, answered }: ForkPromise): string[] {
  if (answered?.kind !== "done") return [];
  const origin = readOrigin(world, runId);
  if (!origin) return [`D1: the fork ${runId} was accepted and is none`];
  const copies = readRun(world, runId).slice(0, origin.mode === "branch" ? fromSeq : 0);
  const sources = readRun(world, sourceRunId);
  const strange = copies.findIndex((event, index) => !isCopy(event, sources[index]));
  return listBroken({
    [`D1: ${runId} is a fork of ${origin.sourceRunId} and not of ${sourceRunId}`]:
      origin.sourceRunId !== sourceRunId,
    [`D1: event ${strange} of the fork ${runId} is not that of its source`]: strange >= 0,
  });
}

function isCopy(event: WorkflowEvent, source: WorkflowEvent | undefined): boolean {
  return (
    source !== undefined &&
    event.type === source.type &&
    event.timestamp === source.timestamp &&
    JSON.stringify(event.payload) === JSON.stringify(source.payload)
  );
}

/** E2: an answer that was accepted is the one in the log, and no other was accepted beside it. */
function checkAnswers(world: WorkflowWorld): string[] {
  const accepted = world.promises.answers.filter(({ answered }) => answered?.kind === "done");
  const problems = accepted.flatMap((promise) => checkAnswer(world, promise));
  for (const [interruptId, answers] of Map.groupBy(accepted, keyOf)) {
    const values = new Set(answers.map(({ value }) => value));
    if (values.size > 1) problems.push(`E2: ${interruptId} was accepted with ${[...values].join(" and ")}`);
  }
  return problems;
}

const keyOf = ({ runId, interruptId }: AnswerPromise): string => `${runId}/${interruptId}`;

function checkAnswer(world: WorkflowWorld, { runId, interruptId, value, by }: AnswerPromise): string[] {
  const found = readRun(world, runId).filter(
    (event) => event.type === "interrupt.resolved" && event.payload.interruptId === interruptId,
  );
  const [resolved] = found;
  if (resolved?.type !== "interrupt.resolved" || found.length > 1)
    return [`E2: the answer of ${by} to ${interruptId} of ${runId} is there ${found.length} times`];
  const recorded = JSON.stringify(resolved.payload.resumeValue);
  const isOther = value !== "nonsense" && /accept|blue/u.test(recorded) !== (value === "yes");
  return isOther ? [`E2: ${interruptId} was answered ${value} and has ${recorded}`] : [];
}

/** A note that the log tells of is there, and once in each memory: a fork has a copy in its own. */
function checkNotes({ ledger }: WorkflowWorld): string[] {
  const written = [...ledger.runs.keys()].flatMap((runId) =>
    readRun({ ledger }, runId).flatMap((event) =>
      event.type === "memory.written" ? [event.payload.memoryId] : [],
    ),
  );
  return written.flatMap((memoryId) => {
    const notes = ledger.entries.filter(({ entry }) => entry.id === memoryId);
    const places = new Set(notes.map(({ at: { tenant, scope } }) => `${tenant} ${scope}`));
    return listBroken({
      [`D2: the note ${memoryId} is not there`]: notes.length === 0,
      [`D2: the note ${memoryId} is there ${notes.length} times`]: places.size < notes.length,
    });
  });
}
