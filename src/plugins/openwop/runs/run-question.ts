/** Owns: the question that a run, or a run that it waits for, asks people, as programs are told it. */
import type { WorkflowStatus } from "../../../agents/coordination/contracts/workflows/workflow-summary.ts";
import { isAskingSomebody } from "../../../agents/coordination/runtime/workflow-host/agents/run-agent.ts";
import type {
  Caller,
  OpenInterrupt,
  QuestionPlace,
  RunSnapshot,
  WorkflowHost,
} from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { readUnlessDamaged } from "./run-access.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A question of a run. The signed token by which anybody may answer is never shown: a model would read it. */
export interface ShownQuestion {
  readonly runId: string;
  readonly nodeId: string;
  readonly interruptId: string;
  readonly kind: string;
  readonly asked: Fields;
  /** ISO 8601. */
  readonly askedAt: string;
  /** JSON Schema of the answer, where the workflow gave one. */
  readonly answerSchema?: Fields;
}

/** The names of a question, by which an answer may say that it is for that one. */
export const QUESTION_NAMES = ["runId", "nodeId", "interruptId"] as const;
/** Names a question by some of its names, or by none. */
export type QuestionName = Readonly<Partial<Record<(typeof QUESTION_NAMES)[number], string>>>;

/** `undefined` where the run asks nothing. */
export function readQuestion({ interrupt }: RunSnapshot): ShownQuestion | undefined {
  return interrupt === undefined ? undefined : showQuestion(interrupt as OpenInterrupt);
}

function showQuestion(interrupt: OpenInterrupt): ShownQuestion {
  const { runId, nodeId, interruptId, kind, data, askedAt, resumeSchema } = interrupt;
  return {
    runId,
    nodeId,
    interruptId,
    kind,
    asked: data,
    askedAt,
    ...(resumeSchema && { answerSchema: resumeSchema }),
  };
}

interface Parent {
  readonly childRuns?: readonly ChildRun[];
}

interface ChildRun extends Parent {
  readonly runId: string;
  readonly status: WorkflowStatus;
  readonly isAsking?: true;
}

/** So many runs that wait for one another are looked through. */
const DEPTH_MAX = 16;

/** Finds the question of the run, or of the first run that it waits for, directly or not, and that asks somebody something. */
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
    const child = childRuns.find(isAskingSomebody);
    // A log that cannot be read is no reason to show nothing of the run above.
    const found = child && (await readUnlessDamaged(host, caller, child.runId));
    run = found?.kind === "done" ? found.value : undefined;
  }
  return undefined;
}

/** Finds the open question that is named, of the run or of any run that it waits for; without a name the one that is shown. */
export async function findNamedQuestion(
  host: Pick<WorkflowHost, "snapshot" | "question">,
  caller: Caller,
  snapshot: RunSnapshot,
  name: QuestionName,
): Promise<ShownQuestion | undefined> {
  const shown = await findQuestion(host, caller, snapshot);
  if (shown && isNamed(shown, name)) return shown;
  const { runId = snapshot.runId } = name;
  if (!isWithin(snapshot, runId)) return undefined;
  const question = await readOpenQuestion(host, caller, { ...name, runId });
  return question && isNamed(question, name) ? question : undefined;
}

/** Lists everything that the run itself asks, the question that it asked first before the others. */
export async function listQuestions(
  host: Pick<WorkflowHost, "question">,
  caller: Caller,
  snapshot: RunSnapshot,
): Promise<ShownQuestion[]> {
  const first = readQuestion(snapshot);
  if (!first) return [];
  const questions = [first];
  for (const nodeId of listSuspendedNodes(snapshot)) {
    if (nodeId === first.nodeId) continue;
    const question = await readQuestionOfNode(host, caller, first.runId, { nodeId });
    if (question) questions.push(question);
  }
  return questions;
}

interface QuestionOfRun extends QuestionName {
  readonly runId: string;
}

/** Reads the question of the node, or the one of this id; where neither is named, the one that the run asked first. */
async function readOpenQuestion(
  host: Pick<WorkflowHost, "snapshot" | "question">,
  caller: Caller,
  { runId, nodeId, interruptId }: QuestionOfRun,
): Promise<ShownQuestion | undefined> {
  const id = interruptId === undefined ? {} : { interruptId };
  if (nodeId !== undefined) return await readQuestionOfNode(host, caller, runId, { nodeId, ...id });
  const found = await readUnlessDamaged(host, caller, runId);
  if (found?.kind !== "done") return undefined;
  if (interruptId === undefined) return readQuestion(found.value);
  for (const suspended of listSuspendedNodes(found.value)) {
    const question = await readQuestionOfNode(host, caller, runId, { nodeId: suspended, interruptId });
    if (question) return question;
  }
  return undefined;
}

async function readQuestionOfNode(
  host: Pick<WorkflowHost, "question">,
  caller: Caller,
  runId: string,
  place: QuestionPlace,
): Promise<ShownQuestion | undefined> {
  const found = await host.question(caller, runId, place);
  return found.kind === "done" ? showQuestion(found.value) : undefined;
}

function listSuspendedNodes({ nodeStates = {} }: RunSnapshot): string[] {
  return Object.entries(nodeStates as Readonly<Record<string, { readonly status: string }>>)
    .filter(([, { status }]) => status === "suspended")
    .map(([nodeId]) => nodeId);
}

function isNamed(question: ShownQuestion, name: QuestionName): boolean {
  return QUESTION_NAMES.every((field) => (name[field] ?? question[field]) === question[field]);
}

function isWithin({ runId, childRuns = [] }: Parent & { readonly runId: string }, wanted: string): boolean {
  return runId === wanted || childRuns.some((child) => isWithin(child, wanted));
}
