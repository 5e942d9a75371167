/** Owns: models, tools and verifiers outside of the hosts: what they answer follows from the seed and how often they were asked. */
import type { CheckAnswer, Verifier } from "../../../src/agents/coordination/ports/verifier.ts";
import type {
  ChatAnswer,
  ChatModel,
  ChatRequest,
  McpAnswer,
  OutboundFailure,
  ToolCaller,
} from "../../../src/agents/coordination/ports/outbound.ts";
import type { EpochMs } from "../../../src/agents/coordination/contracts/ids.ts";
import { deriveSeed, diceOf, type Dice } from "../../crash/plan-dice.ts";
import type { FakeClock } from "../../support/fake-clock.ts";
import { FOREIGN_WORKER, WORKERS } from "./make-workflows.ts";

export interface Outside {
  readonly chat: ChatModel;
  readonly tools: ToolCaller;
  readonly verifier: Verifier;
}

export interface OutsideInput {
  readonly seed: number;
  readonly clock: FakeClock;
  readonly isRough: () => boolean;
  /** Hears of each call of a tool. */
  readonly hearCall: (callId: string) => void;
}

interface OutsideState extends OutsideInput {
  asked: number;
}

const SUPERVISOR = "You are the supervisor";
const USAGE = { inputTokens: 10, outputTokens: 5 };

export function createOutside(input: OutsideInput): Outside {
  const asking: OutsideState = { ...input, asked: 0 };
  return {
    chat: { complete: (request) => answerChat(asking, request) },
    tools: {
      callMcp: ({ signal, callId }) => {
        if (callId !== undefined) asking.hearCall(callId);
        return answerTool(asking, signal);
      },
      listMcp: () => Promise.resolve({ kind: "listed", tools: [] }),
      sendA2a: () => Promise.resolve(FAILURES[0]),
    },
    verifier: { check: ({ key, signal }) => answerCheck(asking, key, signal) },
  };
}

const FAILURES: readonly [OutboundFailure, ...OutboundFailure[]] = [
  { kind: "refused", code: "rejected", message: "no", status: 400 },
  { kind: "refused", code: "unavailable", message: "later", status: 503 },
  { kind: "unknown", code: "timed_out", message: "nobody answered" },
];
const ABORTED: OutboundFailure = { kind: "unknown", code: "aborted", message: "nobody waits any more" };

async function answerChat(asking: OutsideState, request: ChatRequest): Promise<ChatAnswer | OutboundFailure> {
  const dice = throwDice(asking);
  const failure = await meetTrouble(asking, dice, request.signal);
  if (failure) return failure;
  const isSupervisor = request.system?.includes(SUPERVISOR) === true;
  const text = isSupervisor ? makeDecision(dice, asking.isRough()) : "the worker did it";
  const answer: ChatAnswer = {
    kind: "answered",
    text,
    finishReason: "stop",
    model: "m",
    provider: "p",
    usage: USAGE,
  };
  return asking.isRough() && dice.chance(0.05)
    ? { ...answer, text: "", refusal: "I would rather not", finishReason: "content-filter" }
    : answer;
}

/** Each call has dice of its own, so that what one consumes changes no other. */
function throwDice(asking: OutsideState): Dice {
  asking.asked += 1;
  return diceOf(deriveSeed(asking.seed, `outside ${asking.asked}`));
}

/** Late, never, or not at all. Whoever does not wait any more is answered at once. */
async function meetTrouble(
  { clock, isRough }: OutsideState,
  dice: Dice,
  signal: AbortSignal,
): Promise<OutboundFailure | undefined> {
  if (signal.aborted) return ABORTED;
  const manner = dice.oneOf(["prompt", "prompt", "prompt", "prompt", "late", "late", "fails", "hangs"]);
  if (manner === "prompt" || !isRough()) return undefined;
  if (manner === "fails") return dice.oneOf(FAILURES);
  const answer = Promise.withResolvers<OutboundFailure | undefined>();
  signal.addEventListener("abort", () => answer.resolve(ABORTED), { once: true });
  if (manner === "late") {
    const lastsMs = dice.oneOf([200, 3_000, 25_000]);
    const late = dice.chance(0.4) ? dice.oneOf(FAILURES) : undefined;
    clock.wakeAt((clock.now() + lastsMs) as EpochMs, () => answer.resolve(late));
  }
  return answer.promise;
}

/** A model in its right mind ends the run sooner or later; a rough one says anything. */
function makeDecision(dice: Dice, isRough: boolean): string {
  const confidence = dice.oneOf([undefined, 0.9, 0.9, isRough ? 0.2 : 0.9]);
  const stated = confidence === undefined ? {} : { confidence };
  const kind = dice.oneOf(["next", "next", "end", "ask", "malformed", "foreign"]);
  if (kind === "next" || (kind === "foreign" && !isRough)) {
    const nextWorkerIds = dice.oneOf([[WORKERS[0]], [WORKERS[1]], [...WORKERS]]);
    return JSON.stringify({ kind: "next-worker", nextWorkerIds, ...stated });
  }
  if (kind === "ask") return JSON.stringify({ kind: "ask-user", prompt: "Which one?" });
  if (kind === "malformed" && isRough) return "Let us begin with whatever comes first.";
  if (kind === "foreign")
    return JSON.stringify({ kind: "next-worker", nextWorkerIds: [FOREIGN_WORKER], confidence: 1 });
  return JSON.stringify({ kind: "terminate", reason: "done", ...stated });
}

async function answerTool(asking: OutsideState, signal: AbortSignal): Promise<McpAnswer | OutboundFailure> {
  const dice = throwDice(asking);
  const failure = await meetTrouble(asking, dice, signal);
  return failure ?? { kind: "answered", ok: !dice.chance(0.2), content: [], text: "echo" };
}

async function answerCheck(asking: OutsideState, key: string, signal: AbortSignal): Promise<CheckAnswer> {
  const dice = throwDice(asking);
  if (await meetTrouble(asking, dice, signal))
    return { kind: "none", because: "unavailable", message: "nobody there" };
  return {
    kind: "verdict",
    verdict: dice.oneOf(["pass", "pass", "revise", "fail"]),
    criteria: [key],
    confidence: dice.oneOf([0.2, 0.9, 0.9]),
    agentId: `check:${key}`,
  };
}
