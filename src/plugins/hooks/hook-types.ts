/** Owns: what hooks of plugin authors are given and what they answer. Plain types, so that an author needs no others. */
import type { RunEvent } from "../../agents/coordination/contracts/run-event.ts";

/** The part that hooks need of the plugin API that OpenClaw gives to `register(api)`. */
export interface CoordinationHooksApi {
  readonly id: string;
  readonly logger: { error(message: string): void };
  readonly lifecycle?: HooksLifecycle | undefined;
}

/** The part of the host's plugin API that tells of a plugin's end. */
export interface HooksLifecycle {
  registerRuntimeLifecycle?(registration: {
    id: string;
    cleanup(context: { reason: string }): void;
    dispose(): void;
  }): unknown;
  readonly signal?: AbortSignal | undefined;
  onDispose?(dispose: () => void): unknown;
}

/** The context of every hook, beside the question itself. */
export interface HookContext {
  /** Aborted when the answer does not count any more. */
  readonly signal: AbortSignal;
  /** In milliseconds since 1970. */
  readonly deadlineAtMs: number;
}

/** The context of an observer, beside the event. */
export interface ObserverContext extends HookContext {
  /** Events that were dropped since the last one, because the observer was too slow. */
  readonly dropped: number;
}

/** Settings of one hook. */
export interface HookSettings {
  /** Plugins with a higher one are asked first; 0 where absent. Equals in the order of their ids. */
  readonly priority?: number | undefined;
  /** How long one call may take, in milliseconds. */
  readonly budgetMs?: number | undefined;
}

type Later<T> = T | Promise<T>;

/** The return value of functions that answer nothing. */
// oxlint-disable-next-line typescript/no-invalid-void-type -- `undefined` alone refuses `(question) => console.log(question)`
type Nothing = void | undefined;

/** One of those who want a resource. */
export interface ContestSide {
  readonly stepId: string;
  /** Present for a step of another coordination. */
  readonly coordinationId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly priority: "low" | "normal" | "high" | "critical";
  /** Its plan names the resource as the step's own. */
  readonly declared?: boolean | undefined;
  /** Until when its claim counts; absent for who holds none. */
  readonly expiresAtMs?: number | undefined;
  /** It changed the resource after the requester last saw it. */
  readonly changedAtMs?: number | undefined;
}

/** A write that another step stands against, before the operator's strategy rules. */
export interface HookContest {
  readonly coordinationId: string;
  /**
   * `file:<real path>` (`file:@<machine>:<real path>` where machines share a ledger and no folders), `hardlink:<device>-<inode>` where
   * the sides write one file by names that are hard links, `session:<key>`, `queue:<name>`, or a name of a plugin author.
   */
  readonly resource: string;
  /**
   * Its own name; of a `hardlink:` the `file:` names that the call writes, and those under which its holders claim it. A rule by paths
   * looks at `resource` and at all of these.
   */
  readonly names?: readonly string[] | undefined;
  readonly cause: "overlap" | "stale_base";
  /** The strategy that rules where no hook does. */
  readonly strategy: "owner_wins" | "priority_wins" | "merge_if_safe" | "manual_review";
  readonly requester: ContestSide;
  /** Who stands against it, at least one. */
  readonly holders: readonly ContestSide[];
  readonly tool?: string | undefined;
}

/** The answer of an `arbitrate` hook. */
export interface ArbitrateAnswer {
  /** `holder`: the call is refused. `requester`: it happens, and the holders' claims end. */
  readonly award: "requester" | "holder";
  /** One sentence for the agent and for people. */
  readonly reason: string;
}

/** A held result. */
export interface HookResult {
  readonly coordinationId: string;
  readonly stepId: string;
  readonly attempt: number;
  /** The event that a verdict is about. */
  readonly target: string;
  readonly agentId: string;
  readonly childSessionKey?: string | undefined;
  /** The folder in which the work was done, as an absolute path. Absent: where the agent works otherwise. */
  readonly folder?: string | undefined;
  /** The agent's task, where its text is kept. */
  readonly task?: string | undefined;
  /** The agent's last words, or its outputs as JSON. */
  readonly text: string;
  readonly outputs?: Readonly<Record<string, unknown>> | undefined;
  /** From 0 to 1, as the agent stated it. */
  readonly confidence?: number | undefined;
}

/** The answer of a `verify` hook. */
export interface VerifyAnswer {
  /** `revise` gives the result back to its agent, with the criteria. */
  readonly verdict: "pass" | "fail" | "revise";
  /** Keys of what was looked at; of a verdict that is no pass, of what was not met. */
  readonly criteria?: readonly string[] | undefined;
  /** From 0 to 1: how sure the verifier is. */
  readonly confidence?: number | undefined;
  /** The result that the verdict is about, where the verifier says so: a verdict about another one does not count. */
  readonly target?: string | undefined;
}

interface DecisionBase {
  /** Who would do the work, or whose plan it is. */
  readonly agentId: string;
  /** Whose model decided. */
  readonly sourceSession: string;
  readonly coordinationId?: string | undefined;
  /** From 0 to 1, as whoever decided stated it. */
  readonly confidence?: number | undefined;
}

/** A spawn that is about to be admitted. */
export interface SpawnDecision extends DecisionBase {
  readonly kind: "spawn";
  readonly runner?: string | undefined;
  /** How many spawns it lies below the owner. */
  readonly depth?: number | undefined;
}

/** A plan that is about to be admitted. */
export interface PlanDecision extends DecisionBase {
  readonly kind: "plan";
  readonly steps: number;
  /** Who would work, each once. */
  readonly agents: readonly string[];
}

/** A decision to have work done, before any of it begins. Free of content. */
export type HookDecision = SpawnDecision | PlanDecision;

/** The answer of a `decide` hook. */
export interface DecideAnswer {
  readonly action: "allow" | "deny";
  /** One sentence for the agent and for people. */
  readonly reason?: string | undefined;
  /** From 0 to 1: below the operator's floor people are asked. The least of several plugins counts. */
  readonly confidence?: number | undefined;
}

/** An open question to people. */
export interface HookQuestion {
  readonly questionId: string;
  readonly coordinationId: string;
  readonly escalationId: string;
  readonly cause:
    | "confidence"
    | "conflict"
    | "verifier"
    | "retries_exhausted"
    | "deadline"
    | "agent"
    | "budget"
    | "mismatch"
    | "merge";
  readonly kind: "approval" | "clarification";
  /** One sentence, free of content. */
  readonly title: string;
  readonly stepId?: string | undefined;
  readonly ownerSession: string;
  readonly askedBy?: string | undefined;
  /** The question of an agent, as it wrote it: data, never an instruction. */
  readonly text?: string | undefined;
  readonly options?: readonly string[] | undefined;
  readonly answers: readonly ("approve" | "deny" | "answer")[];
  readonly deadlineAtMs: number;
  /** The answer that counts when nobody gives one. */
  readonly onExpiry: "deny" | "default";
  readonly confidence?: { readonly measured?: number | undefined; readonly floor: number } | undefined;
}

/** The answer that an `escalate` hook brings from people. */
export interface EscalateAnswer {
  readonly answer: "approve" | "deny" | "answer";
  /** The text of an `answer`. */
  readonly text?: string | undefined;
  /** Who answered, as your plugin knows them: one line, cut to 128 characters. Nobody where it is empty. */
  readonly by?: string | undefined;
}

/** The fate of an answer. The first one that may answer counts. */
export type AnswerReceipt =
  | { readonly counted: true }
  | {
      readonly counted: false;
      readonly because:
        /** Somebody answered first, or nobody needs an answer any more. */
        | "closed"
        /** The question's deadline has passed. */
        | "expired"
        /** The question takes other answers, or it is no answer. */
        | "not_an_answer"
        | "same_session"
        /** Also: your plugin is not loaded any more. */
        | "not_allowed"
        | "too_many"
        /** It could not be recorded. */
        | "failed";
    };

/** Answers the question, now or later, until its deadline. Never throws. */
export type AnswerQuestion = (answer: EscalateAnswer) => Promise<AnswerReceipt>;

/** The context of an `escalate` hook, beside the question. */
export interface EscalateContext extends HookContext {
  /** Stays the same when the same notice comes again after a crash. */
  readonly noticeId: string;
  /** 0 for the first notice of the question to your plugin; a later one is a reminder. */
  readonly notice: number;
}

/** An event that is on disk: ids, hashes and sizes, never a prompt, a task or a result. New types may be added. */
export type CoordinationEvent = RunEvent;

/** Rules on a contested write; `undefined` leaves it to others. */
export type ArbitrateHook = (
  contest: HookContest,
  context: HookContext,
) => Later<ArbitrateAnswer | undefined>;
/** Rules on a result. */
export type VerifyHook = (result: HookResult, context: HookContext) => Later<VerifyAnswer>;
/** Rules on a spawn or plan; `undefined` leaves it to others. */
export type DecideHook = (decision: HookDecision, context: HookContext) => Later<DecideAnswer | undefined>;
/** Brings a question to people, and answers now or later through `answer`. */
export type EscalateHook = (
  question: HookQuestion,
  answer: AnswerQuestion,
  context: EscalateContext,
) => Later<EscalateAnswer | Nothing>;
/** Is told of every event, ids and types only. */
export type ObserveHook = (event: CoordinationEvent, context: ObserverContext) => unknown;

/** A hook together with its settings. */
export interface WithSettings<H> extends HookSettings {
  readonly run: H;
}

/** A `verify` hook together with its settings. */
export interface VerifySettings extends WithSettings<VerifyHook> {
  /** Whose results are verified; absent: everybody's. */
  readonly agents?: readonly string[] | undefined;
}

/** Any of them, each as a function or as `{ run, priority, budgetMs }`. */
export interface CoordinationHooks {
  /** Rules on contested writes before the operator's strategy does. `undefined`: no opinion. Fails closed. */
  readonly arbitrate?: ArbitrateHook | WithSettings<ArbitrateHook> | undefined;
  /** Checks held results. Fails closed. */
  readonly verify?: VerifyHook | VerifySettings | undefined;
  /** Allows or denies spawns and plans. `undefined`: no opinion. Fails closed. */
  readonly decide?: DecideHook | WithSettings<DecideHook> | undefined;
  /** Tells people of open questions and brings their answers. Fails open: the question stays open. */
  readonly escalate?: EscalateHook | WithSettings<EscalateHook> | undefined;
  /** Is told of every event once it is on disk. Fails open. */
  readonly observe?: ObserveHook | WithSettings<ObserveHook> | undefined;
}
