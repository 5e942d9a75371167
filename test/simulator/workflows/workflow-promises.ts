/** Owns: what callers of the host were answered, which the logs must bear out in the end. */
import type { CoordinationId } from "../../../src/agents/coordination/contracts/ids.ts";
import type { HostAnswer } from "../../../src/agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import type { AnswerValue, CallerName } from "./workflow-moves.ts";

interface HostPromise {
  readonly runId: string;
  /** Absent while nobody has answered, and where the process died. */
  answered?: HostAnswer<object>;
}

export interface CreatePromise extends HostPromise {
  readonly workflowId: string;
  readonly by: CallerName;
}

export interface ControlPromise extends HostPromise {
  readonly kind: "cancel" | "hold" | "resume";
  /** How the log was when it was asked for. */
  readonly hadEnded: boolean;
}

export interface AnswerPromise extends HostPromise {
  readonly nodeId: string;
  /** The one that was open when it was answered: a node may have asked again since. */
  interruptId: string;
  readonly value: AnswerValue;
  readonly by: CallerName;
}

export interface ForkPromise extends HostPromise {
  readonly sourceRunId: string;
  readonly fromSeq: number;
}

export interface WorkflowPromises {
  readonly created: CreatePromise[];
  readonly controlled: ControlPromise[];
  readonly answers: AnswerPromise[];
  readonly forks: ForkPromise[];
  /** Ids by request, so that the same request again is about the same run. */
  readonly runIds: Map<string, CoordinationId>;
}

export function createWorkflowPromises(): WorkflowPromises {
  return { created: [], controlled: [], answers: [], forks: [], runIds: new Map() };
}
