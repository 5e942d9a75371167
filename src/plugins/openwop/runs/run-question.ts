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
import { readSnapshotUnlessDamaged } from "./run-access.ts";

/** Named values of a question, unchecked. */
type QuestionFields = Readonly<Record<string, unknown>>;

/** A question of a run. The signed token by which anybody may answer is never shown: a model would read it. */
export interface ShownQuestion {
  readonly runId: string;
  readonly nodeId: string;
  readonly interruptId: string;
  readonly kind: string;
  readonly asked: QuestionFields;
  /** ISO 8601. */
  readonly askedAt: string;
  /** JSON Schema of the answer, where the workflow gave one. */
  readonly answerSchema?: QuestionFields;
}

/** The names of a question, by which an answer may say that it is for that one. */
export const QUESTION_NAMES = ["runId", "nodeId", "interruptId"] as const;
/** Names a question by some of its names, or by none. */
export type QuestionName = Readonly<Partial<Record<(typeof QUESTION_NAMES)[number], string>>>;

/** Returns the question in a run's snapshot that the run itself asks; `undefined` where it asks nothing. */
export function findOwnQuestion({ interrupt }: RunSnapshot): ShownQuestion | undefined {
  return interrupt === undefined ? undefined : createShownQuestion(interrupt as OpenInterrupt);
}

function createShownQuestion(interrupt: OpenInterrupt): ShownQuestion {
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

/** A run as far as it has children. */
interface RunWithChildren {
  readonly childRuns?: readonly ChildRun[];
}

interface ChildRun extends RunWithChildren {
  readonly runId: string;
  readonly status: WorkflowStatus;
  readonly isAsking?: true;
}

/** So many runs that wait for one another are looked through. */
const DEPTH_MAX = 16;

/**
 * Returns the question that a run asks, or else that of the first run below it that asks somebody something;
 * `undefined` where there is none, or a log on the way is damaged.
 */
export async function findShownQuestion(
  host: Pick<WorkflowHost, "snapshot">,
  caller: Caller,
  snapshot: RunSnapshot,
): Promise<ShownQuestion | undefined> {
  let run: RunSnapshot | undefined = snapshot;
  for (let depth = 0; run && depth <= DEPTH_MAX; depth += 1) {
    const question = findOwnQuestion(run);
    if (question) return question;
    const { childRuns = [] } = run as RunWithChildren;
    const child = childRuns.find(isAskingSomebody);
    // A log that cannot be read is no reason to show nothing of the run above.
    const childSnapshot = child && (await readSnapshotUnlessDamaged(host, caller, child.runId));
    run = childSnapshot?.kind === "done" ? childSnapshot.value : undefined;
  }
  return undefined;
}

/**
 * Returns the open question of that name, asked by the run or by any run that it waits for; without a name the one
 * that is shown. `undefined` where none has the name.
 */
export async function findNamedQuestion(
  host: Pick<WorkflowHost, "snapshot" | "question">,
  caller: Caller,
  snapshot: RunSnapshot,
  name: QuestionName,
): Promise<ShownQuestion | undefined> {
  const shown = await findShownQuestion(host, caller, snapshot);
  if (shown && isNamedBy(shown, name)) return shown;
  const { runId = snapshot.runId } = name;
  if (!isRunWithin(snapshot, runId)) return undefined;
  const question = await readOpenQuestion(host, caller, { ...name, runId });
  return question && isNamedBy(question, name) ? question : undefined;
}

/**
 * Lists the open questions that the run itself asks, the question that it asked first before the others; empty where
 * it asks nothing.
 */
export async function listRunQuestions(
  host: Pick<WorkflowHost, "question">,
  caller: Caller,
  snapshot: RunSnapshot,
): Promise<ShownQuestion[]> {
  const first = findOwnQuestion(snapshot);
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
  const found = await readSnapshotUnlessDamaged(host, caller, runId);
  if (found?.kind !== "done") return undefined;
  if (interruptId === undefined) return findOwnQuestion(found.value);
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
  return found.kind === "done" ? createShownQuestion(found.value) : undefined;
}

function listSuspendedNodes({ nodeStates = {} }: RunSnapshot): string[] {
  return Object.entries(nodeStates as Readonly<Record<string, { readonly status: string }>>)
    .filter(([, { status }]) => status === "suspended")
    .map(([nodeId]) => nodeId);
}

/** True where each name that is given is the question's. */
function isNamedBy(question: ShownQuestion, name: QuestionName): boolean {
  return QUESTION_NAMES.every((field) => (name[field] ?? question[field]) === question[field]);
}

/** True where the wanted run is this one, or one that it began, directly or not. */
function isRunWithin(
  { runId, childRuns = [] }: RunWithChildren & { readonly runId: string },
  wanted: string,
): boolean {
  return runId === wanted || childRuns.some((child) => isRunWithin(child, wanted));
}
