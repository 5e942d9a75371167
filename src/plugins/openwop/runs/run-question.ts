/** Owns: the question that a run, or a run that it waits for, asks people, as programs are told it. */
import type {
  Caller,
  OpenInterrupt,
  RunSnapshot,
  WorkflowHost,
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

interface Parent {
  readonly childRuns?: readonly { readonly runId: string; readonly status: string }[];
}

/** So many runs that wait for one another are looked through. */
const DEPTH_MAX = 16;

/** Finds the question of the run, or of the first run that it waits for, directly or not, and that waits for somebody. */
export async function findQuestion(
  host: Pick<WorkflowHost, "snapshot">,
  caller: Caller,
  snapshot: RunSnapshot,
): Promise<ShownQuestion | undefined> {
  let run: RunSnapshot | undefined = snapshot;
  for (let depth = 0; run && depth <= DEPTH_MAX; depth += 1) {
    const question = readQuestion(run);
    if (question) return question;
    const { childRuns = [] } = run as Parent;
    const child = childRuns.find(({ status }) => status.startsWith("waiting-"));
    const found = child && (await host.snapshot(caller, child.runId));
    run = found?.kind === "done" ? found.value : undefined;
  }
  return undefined;
}
