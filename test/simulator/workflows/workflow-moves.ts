/** Owns: the moves of a schedule of workflow runs. Each is plain data, so that any of them can be left away and the rest still plays. */
import type { DrainPolicy } from "../../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type { ForkMode } from "../../../src/agents/coordination/contracts/workflows/run-origin.ts";
import type { PortFault } from "../moves.ts";

/** Whose request it is: that of the tenant's two callers, or of another tenant, who must see nothing. */
/** The name of a caller of the host, which refuses all that the stranger asks for. */
export type CallerName = "alice" | "bob" | "stranger";

export type AnswerValue = "yes" | "no" | "nonsense";

export type WorkflowMove =
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "jump"; readonly ms: number }
  | {
      readonly kind: "create";
      readonly host: number;
      readonly workflow: number;
      /** Two requests with one number are one request that came twice. */
      readonly request: number;
      readonly by: CallerName;
    }
  | { readonly kind: "cancel"; readonly host: number; readonly run: number; readonly by: CallerName }
  | { readonly kind: "resume"; readonly host: number; readonly run: number; readonly by: CallerName }
  | { readonly kind: "look"; readonly host: number; readonly run: number; readonly by: CallerName }
  | { readonly kind: "hold"; readonly host: number; readonly run: number; readonly drainPolicy: DrainPolicy }
  | {
      readonly kind: "answer";
      readonly host: number;
      readonly question: number;
      readonly value: AnswerValue;
      readonly by: CallerName;
      /** Another host is told the opposite at the same time. */
      readonly isContradicted: boolean;
    }
  | {
      /** Time jumps to that long after the end of a question's time, and it is answered then. */
      readonly kind: "answer at the deadline";
      readonly host: number;
      readonly question: number;
      readonly afterMs: number;
    }
  | {
      readonly kind: "fork";
      readonly host: number;
      readonly run: number;
      readonly mode: ForkMode;
      /** How much of the source's log it takes, in hundredths. */
      readonly share: number;
      readonly request: number;
    }
  | { readonly kind: "break"; readonly host: number; readonly fault: PortFault }
  | { readonly kind: "kill"; readonly host: number; readonly downMs: number }
  | { readonly kind: "restart"; readonly host: number; readonly downMs: number }
  | { readonly kind: "pause"; readonly host: number; readonly ms: number }
  /** Nobody can write anything for that long: neither the processes that run nor those that are started meanwhile. */
  | { readonly kind: "fill storage"; readonly ms: number }
  /** The clock of the host's machine is that far ahead of the world's from now on, or behind it. */
  | { readonly kind: "set clock"; readonly host: number; readonly offsetMs: number };

export interface WorkflowSetup {
  readonly hosts: number;
  /** Whether other processes find out at once that one of them ended. */
  readonly isOneMachine: boolean;
  /** How the models and tools outside answer. */
  readonly outside: "prompt" | "rough";
}

export interface WorkflowSchedule {
  readonly seed: number;
  readonly setup: WorkflowSetup;
  readonly moves: readonly WorkflowMove[];
}
