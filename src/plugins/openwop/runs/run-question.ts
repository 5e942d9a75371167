/** Owns: the question of a run as programs are told it. */
import type {
  OpenInterrupt,
  RunSnapshot,
} from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A question of a run. The signed token by which anybody may answer is never shown: a model would read it. */
export interface ShownQuestion {
  readonly runId: string;
  readonly nodeId: string;
  readonly kind: string;
  readonly asked: Fields;
  /** JSON Schema of the answer, where the workflow gave one. */
  readonly answerSchema?: Fields;
}

/** `undefined` where the run asks nothing. */
export function readQuestion({ interrupt }: RunSnapshot): ShownQuestion | undefined {
  if (interrupt === undefined) return undefined;
  const { runId, nodeId, kind, data, resumeSchema } = interrupt as OpenInterrupt;
  return {
    runId,
    nodeId,
    kind,
    asked: data,
    ...(resumeSchema && { answerSchema: resumeSchema }),
  };
}
