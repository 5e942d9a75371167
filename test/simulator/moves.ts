/** Owns: the moves that a schedule is made of. Each is plain data, so that any of them can be left away and the rest still plays. */
import type { AnswerKind } from "../../src/agents/coordination/contracts/escalation.ts";
import type { ChildEnding } from "../../src/agents/coordination/contracts/observation.ts";
import type { ReviewAnswer } from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import type { HostileStyle } from "./hostile-words.ts";

/** Kinds of port calls, so that a fault can be aimed at the rare ones. */
export const GROUPS = ["any", "append", "read", "owners", "runner"] as const;
export type Group = (typeof GROUPS)[number];

export interface PortFault {
  readonly kind:
    | "dies before"
    | "dies after"
    /** The call fails, once or until `lastsMs` have passed. */
    | "fails"
    /** The append finds that another one came first, and is decided again. */
    | "loses a race"
    /** The call did its work, and its answer comes after `lastsMs`. */
    | "answers late"
    /** The call did its work, and answers that it failed. */
    | "fails after";
  readonly group: Group;
  /** Which call of the group from now on. */
  readonly atCall: number;
  readonly lastsMs: number;
  /** How long the process is down then. */
  readonly downMs: number;
}

export type SpawnFate =
  | "makes a child"
  | "makes a child and keeps silent"
  | "makes a child and says that it failed"
  | "refuses"
  | "forgets";

/** Whose word an answer is. */
export type Speaker = "operator" | "person" | "asker" | "owner" | "stranger";

/** The one subject of a small schedule. */
export type Focus = "checks" | "retries" | "limits" | "questions" | "claims" | "crowds";

export type Move =
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "jump"; readonly ms: number }
  | {
      readonly kind: "submit";
      readonly gateway: number;
      readonly plan: number;
      readonly as: "first" | "again" | "other";
    }
  | {
      readonly kind: "spawn";
      readonly gateway: number;
      readonly call: number;
      readonly task: number;
      readonly trace: number;
      /** The child whose model spawns, where there is one; absent: the owner's model. */
      readonly parent?: number;
      /** The agent at work in a plan that spawns instead, where there is one; else nobody does. */
      readonly agentOfPlan?: number;
      readonly agent: "main" | "checked" | "careful";
      readonly fate: SpawnFate;
    }
  | {
      readonly kind: "end";
      readonly child: number;
      readonly ending: ChildEnding;
      /** How often a hook tells of the end; 0: only the host's records do. */
      readonly heard: 0 | 1 | 2;
    }
  | { readonly kind: "speak"; readonly child: number; readonly confidence: number }
  | {
      readonly kind: "ask";
      readonly child: number;
      readonly of: "people" | "parent";
      readonly hasDefault: boolean;
    }
  | {
      readonly kind: "answer";
      readonly gateway: number;
      readonly question: number;
      readonly isOpen: boolean;
      readonly answer: AnswerKind;
      readonly text: number;
      readonly by: Speaker;
      /** Another channel answers at the same time. */
      readonly isContradicted: boolean;
    }
  | { readonly kind: "answer at the deadline"; readonly question: number; readonly afterMs: number }
  | {
      readonly kind: "cancel" | "retry";
      readonly gateway: number;
      readonly run: number;
      readonly step?: number;
    }
  | {
      readonly kind: "write";
      readonly session: number;
      readonly files: readonly number[];
      readonly hasRead: boolean;
      readonly review: ReviewAnswer;
      readonly takesMs: number;
    }
  | {
      readonly kind: "fork";
      readonly gateway: number;
      /** The plan to fork, which may be a fork itself. */
      readonly run: number;
      /** The id of the fork: there are few, so that some are asked for again, of the same source or another one. */
      readonly fork: number;
      /** The place in the log of the source, in thousandths of its length; absent: behind its newest event. */
      readonly permille?: number;
      readonly isPreview: boolean;
    }
  /** The agent of a step that is at work submits a plan. */
  | {
      readonly kind: "nest";
      readonly agent: number;
      readonly plan: number;
      readonly steps: number;
      /** Its budget; absent: it states none. */
      readonly spawns?: number;
    }
  | { readonly kind: "end turn"; readonly gateway: number }
  | { readonly kind: "late report"; readonly gateway: number; readonly attempt: number }
  | { readonly kind: "break"; readonly gateway: number; readonly fault: PortFault }
  | { readonly kind: "kill" | "restart"; readonly gateway: number; readonly downMs: number }
  /** The next process of the gateway has another configuration. */
  | {
      readonly kind: "reconfigure";
      readonly gateway: number;
      readonly downMs: number;
      /** A reload keeps what outlives the plugin's parts; a crash has no orderly end. */
      readonly by: "reload" | "restart" | "crash";
      /** Whatever is not named stays as it is. */
      readonly changes: Partial<Configuration>;
    }
  | { readonly kind: "pause"; readonly gateway: number; readonly ms: number }
  /** The clock of the gateway's machine is that far ahead of the world's from now on, or behind it. */
  | { readonly kind: "set clock"; readonly gateway: number; readonly offsetMs: number }
  /** Whatever agents and people say from now on has hostile words in it. */
  | { readonly kind: "speak hostile"; readonly style: HostileStyle }
  /** Nobody can write anything for that long: neither the processes that run nor those that are started meanwhile. */
  | { readonly kind: "fill storage"; readonly ms: number }
  /** A process of the gateway removes the runs that ended a day ago. */
  | {
      readonly kind: "prune";
      readonly gateway: number;
      /** How long each of its calls takes, in which others work. */
      readonly callMs: number;
      readonly isDryRun: boolean;
    };

/** Settings of the operator, which may change between two processes of a gateway. */
export interface Configuration {
  readonly lanes: { readonly concurrency: number; readonly queueMax: number; readonly perAgentMax?: number };
  readonly conflicts: {
    readonly strategy: "owner_wins" | "priority_wins" | "merge_if_safe" | "manual_review";
    readonly onConflict: "refuse" | "wait";
  };
  readonly requireDifferentApprover: boolean;
  /** Holds the results of agents that are checked or careful. */
  readonly isGated: boolean;
  /** Absent: those of `simulated-gateway.ts`. */
  readonly gates?: {
    readonly confidenceThreshold: number;
    readonly criticThreshold: number;
    readonly revisionsMax: number;
    readonly verifyMs: number;
    /** The operator defines the check `lint`, which plans use. */
    readonly hasLint: boolean;
  };
  /** When people are told of a question, after it was asked. Absent: as in `simulated-gateway.ts`. */
  readonly noticesAfterMs?: readonly number[];
  /** Absent: those of `simulated-gateway.ts`. */
  readonly limits?: {
    readonly stepTimeoutMs: number;
    readonly escalateMs: number;
    readonly acknowledgeMs: number;
    readonly settleMs: number;
    readonly parentCharsMax: number;
    readonly claimLeaseMs: number;
    readonly reviewMs: number;
    readonly waitMs: number;
  };
  /** How many spawns a coordination of spawns may have; absent: any number. */
  readonly spawnsMax?: number;
}

export interface Setup extends Configuration {
  readonly gateways: number;
  /** Whether other processes find out at once that one of them ended. */
  readonly isOneMachine: boolean;
  readonly focus?: Focus;
  /** The budget of spawns of each plan of an owner, which it shares with the plans of its agents. */
  readonly sharedSpawns?: number;
  /** Steps of plans work in worktrees. */
  readonly hasWorktrees?: true;
}

export interface Schedule {
  readonly seed: number;
  readonly setup: Setup;
  readonly moves: readonly Move[];
}
