/** Owns: questions of agents, and answers of people: in time, at the last moment, too late, twice, and from who may not. */
import { createQuestionId } from "../../src/agents/coordination/runtime/questions/question-requests.ts";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { Answerer } from "../../src/agents/coordination/contracts/escalation.ts";
import { spoilWords } from "./hostile-words.ts";
import type { FactOf } from "./journal.ts";
import type { Move } from "./moves.ts";
import { pickGateway } from "./perform-move.ts";
import { pickChild } from "./perform-spawns.ts";
import type { AnswerPromise } from "./promises.ts";
import { callGateway, countEvents, type Gateway, type World } from "./world.ts";

type AnswerMove = Extract<Move, { kind: "answer" }>;
type EscalationFact = FactOf<"coordination.escalated">;

export function askQuestion(world: World, move: Extract<Move, { kind: "ask" }>): void {
  const child = pickChild(world, move.child);
  if (!child || child.ending) return;
  if (move.of !== "parent") world.promises.askers.add(child.session);
  void callGateway(pickGateway(world, child.gateway), ({ coordinator }) =>
    coordinator.ask({
      askedBy: child.session,
      ...(move.of === "parent" && { to: "parent" as const }),
      agentId: "main",
      kind: "clarification",
      question: spoilWords(world, `what should ${child.session} do?`),
      ...(move.hasDefault && { otherwise: "nothing" }),
      answerMs: 30_000,
    }),
  );
}

/** Questions that nothing has closed, or all of them. */
function pickQuestion(world: World, index: number, isOpen: boolean): EscalationFact | undefined {
  const all = world.journal.filter("coordination.escalated");
  const closed = new Set(
    world.journal.filter("escalation.closed").map(({ runId, payload }) => `${runId}:${payload.escalationId}`),
  );
  const open = all.filter(({ runId, payload }) => !closed.has(`${runId}:${payload.escalationId}`));
  const choice = isOpen ? open : all;
  return choice[index % Math.max(1, choice.length)];
}

export function answerQuestion(world: World, move: AnswerMove): void {
  const question = pickQuestion(world, move.question, move.isOpen);
  if (!question) return;
  const gateway = pickGateway(world, move.gateway);
  giveAnswer(world, gateway, { question, move });
  if (!move.isContradicted) return;
  const answer = move.answer === "approve" ? "deny" : "approve";
  giveAnswer(world, pickGateway(world, move.gateway + 1), { question, move: { ...move, answer } });
}

const TEXTS = ['{"n":7}', "whatever you think", '{"n":"nonsense"}', ""];

function giveAnswer(
  world: World,
  gateway: Gateway,
  { question, move }: { readonly question: EscalationFact; readonly move: AnswerMove },
): void {
  const { escalationId, askedOf, askedBy } = question.payload;
  const questionId = createQuestionId(question.runId, escalationId);
  const words = TEXTS[move.text % TEXTS.length] ?? "";
  const text = move.answer === "answer" ? spoilWords(world, words) : undefined;
  const by = speakerOf(world, question, move);
  const promise: AnswerPromise = {
    questionId,
    move,
    ...(text !== undefined && { text }),
    ...(by.session && { session: by.session }),
  };
  world.promises.answers.push(promise);
  void callGateway(gateway, async ({ coordinator }) => {
    promise.answer =
      askedOf && (move.by === "owner" || move.by === "asker")
        ? await coordinator.answerChild({
            questionId,
            session: move.by === "owner" ? askedOf : (askedBy ?? askedOf),
            ...(text !== undefined && { text }),
          })
        : await coordinator.answer({
            questionId,
            answer: move.answer,
            ...(text !== undefined && { text }),
            by,
            through: move.by === "operator" ? "cli" : "chat",
          });
    promise.answeredBy = countEvents(world);
    promise.answeredAtMs = world.clock.now();
  });
}

function speakerOf({ journal }: World, { runId, payload }: EscalationFact, { by }: AnswerMove): Answerer {
  if (by === "operator") return { kind: "operator" };
  if (by === "stranger") return { kind: "agent", session: "agent:main:subagent:stranger" as SessionKey };
  if (by === "person") return { kind: "person", id: "ada" };
  const created = journal.eventsOf(runId).find(({ type }) => type === "coordination.created") as
    FactOf<"coordination.created"> | undefined;
  const session = by === "asker" ? payload.askedBy : created?.payload.ownerSession;
  return { kind: "person", id: "bob", ...(session && { session: session }) };
}

/** The worst moment: just before or after the question's deadline. */
export async function waitForDeadline(
  world: World,
  move: Extract<Move, { kind: "answer at the deadline" }>,
): Promise<void> {
  const question = pickQuestion(world, move.question, true);
  if (!question) return;
  const waitMs = question.payload.deadlineAtMs + move.afterMs - world.clock.now();
  if (waitMs <= 0 || waitMs > 10 * 60_000) return;
  const answer: AnswerMove = {
    kind: "answer",
    gateway: move.question,
    question: 0,
    isOpen: true,
    answer: "approve",
    text: 0,
    by: "operator",
    isContradicted: false,
  };
  // A clock that jumps past the deadline wakes nobody before the answer is there.
  world.clock.jump(world.clock.now() + waitMs);
  world.jumpsAtMs.push(world.clock.now());
  const gateway = pickGateway(world, move.question);
  giveAnswer(world, gateway, { question, move: answer });
  await Promise.resolve();
}
