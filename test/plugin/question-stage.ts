/** Owns: a running coordinator on a real ledger with questions of agents, as gateway methods and the chat command see it. */
import type { CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { EscalationsConfig } from "../../src/agents/coordination/contracts/config/gates-config.ts";
import type { LogFields, Logger } from "../../src/agents/coordination/ports/logger.ts";
import { createQuestionReads, type QuestionReads } from "../../src/plugins/reports/find-questions.ts";
import type { RunningCoordinator } from "../../src/plugins/compose.ts";
import type { UsePlans } from "../../src/plugins/openclaw/runtime-access/plan-access.ts";
import type { SharedRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import type { UseChats } from "../../src/plugins/openclaw/runtime-access/use-chats.ts";
import { OWNER, testCoordinator } from "../support/ledger-fixtures.ts";
import {
  createManualClock,
  openTestLedger,
  createTempFolder,
  TEST_EPOCH_MS,
} from "../support/temp-ledger.ts";

export interface LoggedLine {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

export function logLines(): { readonly logger: Logger; readonly lines: LoggedLine[] } {
  const lines: LoggedLine[] = [];
  const say = (level: string) => (fields: LogFields, message: string) => {
    lines.push({ level, message, fields });
  };
  const logger = { debug: say("debug"), info: say("info"), warn: say("warn"), error: say("error") };
  return { logger, lines };
}

export const NO_CHATS: UseChats = () => Promise.reject(new Error("no agent is to be called"));

export interface QuestionStage extends AsyncDisposable {
  readonly use: UsePlans;
  readonly useChats: UseChats;
  readonly logger: Logger;
  /** The log of the chat command. */
  readonly lines: readonly LoggedLine[];
  /** Has an agent ask, in the coordination of its session; answers the id of the question. */
  ask(
    question: string,
    by?: SessionKey,
    options?: {
      readonly kind?: "approval";
      readonly answerMs?: number;
      readonly options?: readonly string[];
    },
  ): Promise<string>;
  /** Each answer as the ledger has it. */
  answers(runId: string): Promise<object[]>;
  /** Time goes on, and what is due happens. */
  pass(ms: number): Promise<void>;
}

/** Coordinations are `co-1`, `co-2` and so on, in the order in which sessions first ask. */
export async function openQuestionStage(
  escalations: Partial<EscalationsConfig> = {},
): Promise<QuestionStage> {
  const folder = createTempFolder();
  const clock = createManualClock();
  const store = await openTestLedger(folder.file("ledger.sqlite"), { clock });
  let opened = 0;
  const coordinator = testCoordinator({
    store,
    clock,
    newCoordinationId: () => `co-${(opened += 1)}` as CoordinationId,
  });
  const reads: QuestionReads = {
    ...createQuestionReads(store),
    view: (id: CoordinationId) => coordinator.view(id),
  };
  const running = { ...coordinator, reads } as unknown as RunningCoordinator;
  const runtime = {
    coordinator: () => Promise.resolve(running),
    config: { escalations: { openMax: 256, ...escalations } },
  } as unknown as SharedRuntime;
  let nowMs = TEST_EPOCH_MS;
  return {
    ...logLines(),
    use: (work) => work(running, runtime),
    useChats: NO_CHATS,
    ask: async (question, by = OWNER, { kind, answerMs, options } = {}) => {
      nowMs += 1_000;
      clock.set(nowMs);
      const openedQuestion = await coordinator.ask({
        askedBy: by,
        agentId: "main",
        kind: kind ?? "clarification",
        question,
        traceId: `trace of ${by}`,
        ...(answerMs !== undefined && { answerMs }),
        ...(options && { options }),
      });
      if (openedQuestion.kind === "refused") throw new Error(openedQuestion.reason);
      return openedQuestion.questionId;
    },
    answers: async (runId) => {
      const log = await store.read(runId as CoordinationId, { from: 0, limit: 1_000 });
      return log.filter(({ type }) => type === "escalation.answered").map(({ payload }) => payload);
    },
    pass: async (ms) => {
      nowMs += ms;
      clock.set(nowMs);
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
