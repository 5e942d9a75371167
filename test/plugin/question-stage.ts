/** Owns: a running coordinator on a real ledger with questions of agents, as gateway methods and the chat command see it. */
import type { AgentId, CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { EscalationsConfig } from "../../src/agents/coordination/contracts/config/gates-config.ts";
import type { LogFields, Logger } from "../../src/agents/coordination/ports/logger.ts";
import { createQuestionReads, type QuestionReads } from "../../src/plugins/reports/find-questions.ts";
import type { RunningCoordinator } from "../../src/plugins/compose.ts";
import type { CommandMessage } from "../../src/plugins/openclaw/chats/command-message.ts";
import { answerChatCommand } from "../../src/plugins/openclaw/questions/answer-command.ts";
import type { UsePlans } from "../../src/plugins/openclaw/runtime-access/plan-access.ts";
import type { SharedRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import type { UseChats } from "../../src/plugins/openclaw/runtime-access/use-chats.ts";
import { plan, step } from "../core/planned-world.ts";
import { OWNER, spawnRequest, testCoordinator } from "../support/ledger-fixtures.ts";
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
  /** The file of the ledger. */
  readonly ledgerPath: string;
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
  /** Has the model of a session spawn a subagent; answers its session. */
  spawn(source?: SessionKey): Promise<SessionKey>;
  /** Has a session submit a plan with a step that its planner doubts, so that people are asked; answers the id of the question. */
  submitDoubted(owner: SessionKey, coordinationId: string): Promise<string>;
  /** Each answer as the ledger has it. */
  answers(runId: string): Promise<object[]>;
  /** Time goes on, and what is due happens. */
  pass(ms: number): Promise<void>;
}

/** Has a person write `/coordination ARGS` in the chat of the owner; answers the reply. */
export function say(
  { use, logger = logLines().logger }: Pick<QuestionStage, "use"> & Partial<Pick<QuestionStage, "logger">>,
  args: string | undefined,
  from: Partial<CommandMessage> = {},
): Promise<string> {
  return answerChatCommand(
    { use, useChats: NO_CHATS, logger },
    { channel: "telegram", senderId: "42", isAuthorizedSender: true, sessionKey: OWNER, args, ...from },
  );
}

/** Coordinations are `co-1`, `co-2` and so on, in the order in which sessions first ask. */
export async function openQuestionStage(
  escalations: Partial<EscalationsConfig> = {},
): Promise<QuestionStage> {
  const folder = createTempFolder();
  const clock = createManualClock();
  const ledgerPath = folder.file("ledger.sqlite");
  const store = await openTestLedger(ledgerPath, { clock });
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
    ledgerPath,
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
    spawn: async (source = OWNER) => {
      const toolCallId = `call of ${source}`;
      const request = spawnRequest({ call: toolCallId, trace: `trace of ${source}`, source });
      const admission = await coordinator.admitSpawn(request);
      if (admission.kind === "refused") throw new Error(admission.reason);
      const { coordinationId, stepId } = admission.envelope;
      const child = `${source}:subagent:1` as SessionKey;
      await coordinator.confirmSpawn(
        { coordinationId, stepId, sourceSession: source, toolCallId },
        { childSessionKey: child, childRunId: `run of ${child}` },
      );
      return child;
    },
    submitDoubted: async (ownerSession, coordinationId) => {
      const submitted = await coordinator.submitPlan({
        plan: plan([step("a", { confidence: 0.2 })], { coordinationId, ownerSession }),
        submittedBy: ownerSession,
        ownerAgent: "main" as AgentId,
      });
      if (submitted.kind !== "accepted") throw new Error(JSON.stringify(submitted));
      return `${coordinationId}:escalation-1`;
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
