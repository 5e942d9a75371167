/** Owns: questions to people by the log alone: which answers may count, until when, and what followed from them (E1 to E3, G2, G3). */
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { EventCheck } from "./check-log.ts";
import { isDisturbed } from "./check-steps.ts";
import { listBroken } from "./list-broken.ts";
import type { FactOf, PayloadOf } from "./journal.ts";
import type { World } from "./world.ts";

interface QuestionModel {
  readonly runId: string;
  readonly subject: PayloadOf<"coordination.escalated">;
  deadlineAtMs: number;
  isForwarded: boolean;
  counted?: PayloadOf<"escalation.answered">;
  closed?: PayloadOf<"escalation.closed">["resolution"];
  /** When it became known what became of a notice. */
  readonly notified: Map<number, number>;
  notices: readonly { readonly channel: string; readonly atMs: number }[];
}

interface Books {
  readonly world: World;
  readonly questions: Map<string, QuestionModel>;
  /** Questions that must be answered before a step begins: of the step, or of the whole plan (G2). */
  readonly doubted: Map<string, Set<string>>;
  readonly approved: Set<string>;
  readonly ended: Set<string>;
  /** The deadlines of plans. */
  readonly deadlines: Map<string, number>;
  /** The sessions whose plans they are, and of the plans around them. */
  readonly planOwners: Map<string, readonly string[]>;
  readonly tellings: Set<string>;
}

const timeOf = ({ timestamp }: RunEvent): number => Date.parse(timestamp);
/** A question is closed by a timer. */
const PATIENCE_MS = 30_000;
/** A notice goes out at once, unless one before it is under way. */
const NOTICE_PATIENCE_MS = 10_000;
/** One that is under way holds up the next one for that long at most. */
const NOTICE_TURN_MS = 30_000;
const SLOW_MS = 1_000;

export function createQuestionCheck(world: World): EventCheck {
  const books: Books = {
    world,
    questions: new Map(),
    doubted: new Map(),
    approved: new Set(),
    ended: new Set(),
    deadlines: new Map(),
    planOwners: new Map(),
    tellings: new Set(),
  };
  return { see: (event) => seeEvent(books, event), rest: () => checkOverdue(books) };
}

const keyOf = (runId: string, escalationId: string): string => `${runId}:${escalationId}`;

function seeEvent(books: Books, event: RunEvent): string[] {
  switch (event.type) {
    case "coordination.created":
      return noteCreated(books, event);
    case "step.admitted":
      return event.payload.decision ? addDoubt(books, `${event.runId}/${event.payload.stepId}`) : [];
    case "step.dispatched":
      return checkBegin(books, event);
    case "coordination.escalated":
      return ask(books, event);
    case "escalation.forwarded":
      return forward(books, event);
    case "escalation.answered":
      return checkAnswer(books, event);
    case "escalation.notified":
      return checkNotice(books, event);
    case "escalation.closed":
      return close(books, event);
    case "session.told":
      return tell(books, event);
    case "coordination.terminal":
      books.ended.add(event.runId);
      return checkAllClosed(books, event.runId);
    default:
      return [];
  }
}

function noteCreated(books: Books, { runId, payload }: FactOf<"coordination.created">): string[] {
  const { plan, ownerSession, parent } = payload;
  const around = books.planOwners.get(parent?.coordinationId ?? "") ?? [];
  books.deadlines.set(runId, plan?.deadlineAtMs ?? Infinity);
  if (plan) books.planOwners.set(runId, [ownerSession, ...around]);
  return plan?.decision ? addDoubt(books, `${runId}/`) : [];
}

function addDoubt(books: Books, name: string): string[] {
  books.doubted.set(name, new Set());
  return [];
}

/** G2: what is doubted begins only when people approved. */
function checkBegin(books: Books, { runId, payload }: FactOf<"step.dispatched">): string[] {
  if (payload.stepId.startsWith("@")) return [];
  const names = [`${runId}/`, `${runId}/${payload.stepId}`].filter((name) => books.doubted.has(name));
  return names
    .filter((name) => !books.approved.has(name))
    .map((name) => `G2: ${payload.stepId} begins although ${name} is doubted`);
}

function ask(books: Books, event: FactOf<"coordination.escalated">): string[] {
  const { runId, payload } = event;
  const key = keyOf(runId, payload.escalationId);
  const isTwice = books.questions.has(key);
  books.questions.set(key, {
    runId,
    subject: payload,
    deadlineAtMs: payload.deadlineAtMs,
    isForwarded: false,
    notified: new Map(),
    notices: payload.notices ?? [],
  });
  return listBroken({
    [`E2: ${key} is open after the deadline of its plan`]:
      payload.deadlineAtMs > Math.max(books.deadlines.get(runId) ?? Infinity, timeOf(event)),
    [`E1: ${key} is asked twice`]: isTwice,
    [`E2: ${key} has no time`]: hasNoTime(books, event),
  });
}

/** A question about a plan whose deadline has passed is over at once; all others leave people time. */
function hasNoTime({ deadlines }: Books, event: FactOf<"coordination.escalated">): boolean {
  const { answers, deadlineAtMs } = event.payload;
  const isOver = answers !== undefined && deadlineAtMs <= timeOf(event);
  return isOver && deadlineAtMs !== deadlines.get(event.runId);
}

function forward(books: Books, event: FactOf<"escalation.forwarded">): string[] {
  const question = books.questions.get(keyOf(event.runId, event.payload.escalationId));
  if (!question || question.closed || question.isForwarded) return ["E2: forwarded, and not open"];
  const isAskedOfPeople = books.world.promises.askers.has(question.subject.askedBy ?? "");
  const isEarly = timeOf(event) < question.deadlineAtMs && !isAskedOfPeople && !books.world.hasGoneBack;
  question.isForwarded = true;
  question.deadlineAtMs = event.payload.deadlineAtMs;
  question.notices = event.payload.notices ?? question.notices;
  return [
    ...(isEarly ? ["E2: forwarded before its deadline"] : []),
    ...(question.subject.askedOf ? [] : ["E2: forwarded, and people were asked first"]),
  ];
}

function checkAnswer(books: Books, event: FactOf<"escalation.answered">): string[] {
  const { payload, runId } = event;
  const key = keyOf(runId, payload.escalationId);
  const question = books.questions.get(key);
  if (!question) return [`E1: ${key} was never asked`];
  const problems = listObjections(books, question, event);
  const { refused } = payload;
  if (refused === undefined) {
    if (question.counted) return [`E1: two answers to ${key} count`];
    question.counted = payload;
    return problems.map((why) => `E1: an answer to ${key} counts: ${why}`);
  }
  const isTrue = problems.includes(refused) || refused === "not_an_answer";
  return isTrue ? [] : [`E1: an answer to ${key} is refused as ${refused}`];
}

/** Everything for which the answer must not count. */
function listObjections(
  { planOwners }: Books,
  { subject, closed, deadlineAtMs, isForwarded }: QuestionModel,
  event: FactOf<"escalation.answered">,
): string[] {
  const { by, answer } = event.payload;
  const isOfAgent = by.kind === "agent";
  const sessions = [subject.askedBy, ...(isOfAgent ? [] : (planOwners.get(event.runId) ?? []))];
  const isConcerned = by.session !== undefined && sessions.includes(by.session);
  const isStranger = by.session !== subject.askedOf;
  return listBroken({
    closed: closed !== undefined,
    expired: timeOf(event) >= deadlineAtMs || (isOfAgent && isForwarded),
    same_session: subject.requireDifferentApprover === true && isConcerned,
    not_allowed: isOfAgent && isStranger,
    not_an_answer: !(subject.answers ?? ["approve", "deny"]).includes(answer) || hasWrongText(event.payload),
  });
}

/** A refused answer is recorded without its text. */
function hasWrongText({ refused, text, answer }: PayloadOf<"escalation.answered">): boolean {
  return refused === undefined && (text !== undefined) !== (answer === "answer");
}

function checkNotice(books: Books, event: FactOf<"escalation.notified">): string[] {
  const question = books.questions.get(keyOf(event.runId, event.payload.escalationId));
  if (!question) return ["E2: a notice of no question"];
  const { notice, channel } = event.payload;
  const isTwice = question.notified.has(notice);
  question.notified.set(notice, timeOf(event));
  const planned = question.notices[notice];
  return listBroken({
    [`E2: the notice ${notice} is there twice`]: isTwice,
    [`E2: the notice ${notice} was never to be given`]: planned === undefined || planned.channel !== channel,
    [`E2: the notice ${notice} comes too early`]:
      planned !== undefined && planned.atMs > timeOf(event) && !books.world.hasGoneBack,
  });
}

const RESOLUTIONS: Readonly<Record<string, readonly string[]>> = {
  approve: ["approved", "retried", "continued"],
  deny: ["denied"],
  answer: ["answered", "approved", "retried"],
};

function close(books: Books, event: FactOf<"escalation.closed">): string[] {
  const { resolution, escalationId } = event.payload;
  const key = keyOf(event.runId, escalationId);
  const question = books.questions.get(key);
  if (!question) return [`E1: ${key} was never asked`];
  const isTwice = question.closed !== undefined;
  question.closed = resolution;
  if (resolution === "approved" || resolution === "answered") noteApproval(books, question);
  const { counted } = question;
  const fitting = counted && RESOLUTIONS[counted.answer];
  return [
    ...listBroken({
      [`E1: ${key} is closed twice`]: isTwice,
      [`E1: ${key} is ${resolution} by nobody`]: NEEDS_ANSWER.has(resolution) && !counted,
      [`E3: ${key} is ${resolution} after ${counted?.answer}`]: fitting?.includes(resolution) === false,
    }),
    ...(resolution === "expired" ? checkExpiry(books, key, question, timeOf(event)) : []),
  ];
}

const NEEDS_ANSWER: ReadonlySet<string> = new Set(["approved", "denied", "answered"]);

function checkExpiry(books: Books, key: string, question: QuestionModel, atMs: number): string[] {
  const { world } = books;
  const { subject, counted, deadlineAtMs, isForwarded } = question;
  const isOfParent = subject.askedOf !== undefined && subject.onExpiry !== "default";
  return listBroken({
    [`E2: ${key} expired before its deadline`]: atMs < deadlineAtMs && !world.hasGoneBack,
    [`E1: ${key} expired and was answered`]: counted !== undefined,
    [`E2: ${key} expired before people were asked`]: isOfParent && !isForwarded,
    [`E2: ${key} expired and nobody was told`]:
      !isDisturbed(world) && listUntold(books, question, Math.min(atMs, deadlineAtMs)).length > 0,
  });
}

/** A plan's own question, or that of a step that has not begun, is about a decision. */
function noteApproval({ doubted, approved }: Books, { runId, subject }: QuestionModel): void {
  if (subject.cause !== "confidence") return;
  const name = `${runId}/${subject.stepId ?? ""}`;
  if (doubted.has(name) && (subject.confidence?.of ?? "decision") === "decision") approved.add(name);
}

function tell({ tellings }: Books, event: FactOf<"session.told">): string[] {
  const key = `${event.runId}/${event.payload.tellingId}`;
  const isTwice = tellings.has(key);
  tellings.add(key);
  return isTwice ? [`G3: ${key} is told twice`] : [];
}

function checkAllClosed({ questions }: Books, runId: string): string[] {
  return [...questions]
    .filter(([, question]) => question.runId === runId && question.closed === undefined)
    .map(([key]) => `E1: ${key} was never closed`);
}

/** E2: while nothing is disturbed, no question is left open after its time, and people hear of each. */
function checkOverdue(books: Books): string[] {
  const { world, questions } = books;
  if (isDisturbed(world)) return [];
  const nowMs = world.clock.now();
  return [...questions].flatMap(([key, question]) => {
    if (question.closed !== undefined) return [];
    const isLate = nowMs > question.deadlineAtMs + PATIENCE_MS;
    const untold = listUntold(books, question, nowMs).map(
      (notice) => `E2: nobody is told of ${key} (${notice})`,
    );
    return [...(isLate ? [`E2: ${key} is open after its deadline`] : []), ...untold];
  });
}

/** Notices of the question that should have been given by then, and that no channel was given. */
function listUntold({ world, questions }: Books, question: QuestionModel, atMs: number): number[] {
  const announced = new Set(world.promises.notices);
  const ofRun = [...questions.values()].filter(({ runId }) => runId === question.runId);
  const slow = ofRun.flatMap((each) =>
    listNotices(each).filter(({ id, isSlow }) => isSlow && announced.has(id)),
  );
  const patienceMs = NOTICE_PATIENCE_MS + NOTICE_TURN_MS * slow.length;
  return (
    listNotices(question)
      .filter(({ id, dueAtMs, isKnown }) => !isKnown && !announced.has(id) && atMs > dueAtMs + patienceMs)
      // No timer fires in time that a clock jumps over.
      .filter(({ dueAtMs }) => dueAtMs > (world.jumpsAtMs.at(-1) ?? -Infinity))
      .map(({ notice }) => notice)
  );
}

/** The notices of a question, with whether the log says what became of each, and whether that took long. */
function listNotices({ runId, subject: { escalationId }, notices, notified }: QuestionModel) {
  return notices.map(({ atMs }, notice) => {
    const knownAtMs = notified.get(notice);
    return {
      notice,
      dueAtMs: atMs,
      id: `${keyOf(runId, escalationId)}:${notice}`,
      isKnown: knownAtMs !== undefined,
      isSlow: knownAtMs === undefined || knownAtMs > atMs + SLOW_MS,
    };
  });
}
