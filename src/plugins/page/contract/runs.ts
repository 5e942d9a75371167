/** Owns: the listing of work, one coordination or workflow run, and its events, as they go over the wire. */
import type { CompiledStep } from "../../../agents/coordination/plan/step-graph.ts";
import type { ShowReport } from "../../reports/show-report.ts";
import type { CoordinationReport, WorkflowReport } from "../../reports/run-report.ts";
import type { Timeline } from "../../reports/timeline.ts";
import type { AgentTree } from "../../reports/tree.ts";

/** `plan`: a coordination that a plan opened; `coordination`: one that spawns opened; `run`: a workflow run. */
export type RunKind = "coordination" | "plan" | "run";

/** The query of `GET ./api/runs`, all optional. */
export interface RunsQuery {
  /** In the id, the objective, the owner or the name of the workflow; letter case does not count. */
  readonly text?: string;
  readonly agent?: string;
  readonly session?: string;
  /** `running`, `ended`, or a status such as `failed`. */
  readonly state?: string;
  readonly kind?: RunKind;
  /** ISO 8601. */
  readonly since?: string;
  /** ISO 8601. */
  readonly until?: string;
  /** 50 unless it is said, 200 at most. */
  readonly limit?: string;
  readonly cursor?: string;
}

export interface RunsPage {
  readonly runs: readonly ListedRun[];
  /** Absent: there is nothing more. */
  readonly nextCursor?: string;
  /** The search stopped after so many, with more to look through: go on with `nextCursor`. */
  readonly lookedAt?: number;
}

export type ListedRun = ListedCoordination | ListedWorkflow;

/** As `list --json`, with what the page needs besides; of a long objective only the first 1,000 characters. */
export interface ListedCoordination extends CoordinationReport {
  readonly kind: "coordination" | "plan";
  readonly id: string;
  /** Absent while it runs. */
  readonly endedAtMs?: number;
  /** Open ones. */
  readonly questions: number;
  readonly conflicts: number;
}

/** As `runs --json`, with what the page needs besides. */
export interface ListedWorkflow extends WorkflowReport {
  readonly kind: "run";
  readonly id: string;
  readonly createdAtMs: number;
}

/** `GET ./api/runs/{id}`. */
export type RunDetail = CoordinationDetail | WorkflowDetail;

export interface CoordinationDetail {
  readonly kind: "coordination" | "plan";
  readonly id: string;
  /** As `show --json`. */
  readonly view: ShowReport;
  /** As `timeline --json`. */
  readonly timeline: Timeline;
  /** As `tree --json`. */
  readonly tree: AgentTree;
  /** Only for a plan whose text is still kept. */
  readonly plan?: PlanShape;
  /** The sequence of the newest event: what is behind it is older. */
  readonly sequence: number;
  /** When the server read it, by the server's clock. */
  readonly atMs: number;
}

export interface WorkflowDetail {
  readonly kind: "run";
  readonly id: string;
  readonly view: ListedWorkflow;
  readonly hasEnded: boolean;
  readonly sequence: number;
  readonly atMs: number;
}

/** The steps of a plan as its graph is drawn, whether they were admitted or not. */
export interface PlanShape {
  readonly steps: readonly PlannedStep[];
  readonly criticalPath: readonly string[];
}

export interface PlannedStep {
  readonly stepId: string;
  readonly agent: string;
  readonly lane: CompiledStep["lane"];
  readonly dependsOn: readonly string[];
  readonly fanIn: CompiledStep["fanIn"];
  readonly timeoutMs: number;
}

export interface EventsPage {
  /** In the order of the log. */
  readonly events: readonly LoggedEvent[];
  /** The value of `after` for what follows; absent: nothing does. */
  readonly next?: number;
}

export type LoggedEvent = ReadableEvent | DamagedEvent;

/** As `events --json`. `causationId` names the event that caused it: `<runId>:<sequence>`. */
export interface ReadableEvent {
  readonly eventId: string;
  readonly runId: string;
  readonly sequence: number;
  readonly type: string;
  readonly timestamp: string;
  readonly nodeId?: string;
  readonly causationId?: string;
  readonly payload: object;
}

/** The log cannot be read from here on, or was changed here. */
export interface DamagedEvent {
  readonly sequence: number;
  readonly damage: string;
}

/** `GET ./api/runs/{id}/steps/{stepId}/result`, with the right `results`. */
export interface StepResult {
  readonly stepId: string;
  /** `null` once it is no longer kept. */
  readonly text: string | null;
  readonly sha256: string;
  readonly bytes: number;
  /** It is not ruled on yet. */
  readonly isHeld: boolean;
  /** Only the beginning is here. */
  readonly isCut: boolean;
}
