/** Owns: open interrupts as people and other systems see them, the tokens that stand for one, and answers to them. */
import { formatTimestamp, type CoordinationId, type EpochMs } from "../../../contracts/ids.ts";
import { WORKFLOW_BOUNDS } from "../../../contracts/workflows/workflow-bounds.ts";
import type { TokenPayload } from "../../../ports/token-signer.ts";
import {
  answerInterrupt,
  isRecordedAnswer,
  needsLogin,
  unwrapExternalEvent,
  type AnswerRequest,
} from "../../../workflow/state/answer-interrupt.ts";
import {
  readClarificationAnswers,
  readAskableQuestions,
} from "../../../workflow/state/clarification-answers.ts";
import { findUnfitDraft } from "../../../workflow/fit-for-log.ts";
import { findAskingNode, computeRunStatus } from "../../../workflow/state/run-view.ts";
import {
  isAtFork,
  isEndedPhase,
  type InterruptAnswer as RecordedAnswer,
  type Interrupt,
  type NodeRun,
  type WorkflowRun,
} from "../../../workflow/state/workflow-state.ts";
import { isRecord } from "../../../std/is-record.ts";
import { refuse } from "../records/refuse.ts";
import { refuseSettledQuestion, refuseUnaskedNode, refuseUnknownRun } from "./shared-refusals.ts";
import type { RequestDrafts } from "../driving/request-drafts.ts";
import type { RunDriver } from "../driving/drive-runs.ts";
import type { LoadedRun } from "../records/run-book.ts";
import type {
  HostAnswer,
  HostRefusal,
  OpenInterrupt,
  QuestionPlace,
  ResolvedInterrupt,
} from "../records/workflow-host.ts";
import type { WorkflowHostDependencies } from "../records/workflow-dependencies.ts";

type InterruptDependencies = Pick<
  WorkflowHostDependencies,
  "clock" | "tokens" | "baseUrl" | "contract" | "conformance"
> & {
  readonly driver: RunDriver;
};

/**
 * Returns the open question of a run that was asked first, with a signed token and the address to answer it, unless
 * that needs a login; `undefined` where none is open.
 */
export function describeOpenInterrupt(
  dependencies: InterruptDependencies,
  { run }: LoadedRun,
): OpenInterrupt | undefined {
  const node = findAskingNode(run);
  return (
    node?.interrupt && createOpenInterrupt(dependencies, run, { node, interrupt: node.interrupt }, "resolve")
  );
}

/** A node and the open question that it asks. */
interface NodeInterrupt {
  readonly node: NodeRun;
  readonly interrupt: Interrupt;
}

/** Creates what is shown of a question. Its token is signed only for answers that need no login. */
function createOpenInterrupt(
  dependencies: InterruptDependencies,
  { runId }: WorkflowRun,
  { node: { nodeId }, interrupt }: NodeInterrupt,
  intent: TokenPayload["intent"],
): OpenInterrupt {
  const { interruptId, kind, key, data, atMs, resumeSchema } = interrupt;
  const expiresAt = computeTokenExpiry(dependencies, interrupt);
  const isSigned = intent === "resolve" && !needsLogin(interrupt);
  const interruptToken = isSigned
    ? dependencies.tokens.sign({ runId, nodeId, interruptId, expiresAt, intent })
    : undefined;
  return {
    interruptId,
    runId,
    nodeId,
    kind,
    key,
    data,
    askedAt: formatTimestamp(atMs),
    ...(resumeSchema && { resumeSchema }),
    ...(interruptToken !== undefined && {
      interruptToken,
      callbackUrl: `${dependencies.baseUrl()}/v1/interrupts/${interruptToken}`,
      expiresAt: formatTimestamp(expiresAt),
    }),
  };
}

/** Returns when a token expires, which is never after the question itself. */
function computeTokenExpiry({ clock }: InterruptDependencies, { atMs, timeoutMs }: Interrupt): EpochMs {
  const expiresAt = clock.now() + WORKFLOW_BOUNDS.interruptTokenMs;
  return Math.min(expiresAt, timeoutMs ? atMs + timeoutMs : expiresAt) as EpochMs;
}

/** An answer to an open question of a node, and who gives it. */
export interface NodeAnswer extends QuestionPlace {
  readonly runId: CoordinationId;
  readonly value: unknown;
  readonly by: string;
  /** Absent: any, because a signed token was the authority, and nobody was authenticated. */
  readonly tenant?: string;
}

/**
 * Records the answer to an open question of a node. Returns the run's status, or the refusal of an answer that does
 * not fit, comes too late or is not the answerer's to give.
 */
export async function recordQuestionAnswer(
  dependencies: InterruptDependencies,
  answerRequest: NodeAnswer,
): Promise<HostAnswer<ResolvedInterrupt>> {
  const { runId, nodeId, value, tenant } = answerRequest;
  const { driver, clock } = dependencies;
  const loadedRun = await driver.newest(runId);
  if (!loadedRun || (tenant !== undefined && loadedRun.run.started.owner.tenant !== tenant))
    return refuseUnknownRun(runId);
  const checked = findOpenInterrupt(loadedRun.run, answerRequest, clock.now());
  const wrong = await refuseUnfitAnswer(dependencies, checked, value);
  if (wrong) return wrong;
  const isChecked = !("kind" in checked);
  // Until the answer has its turn, its node may ask another question: the answer is none to that one.
  const question = isChecked
    ? { ...answerRequest, interruptId: checked.interrupt.interruptId }
    : answerRequest;
  const outcome = await driver.ask(runId, ({ run }): RequestDrafts<HostRefusal | "unchecked"> => {
    const isOpen = !("kind" in findOpenInterrupt(run, question, clock.now()));
    return isOpen && !isChecked ? { refused: "unchecked" } : draftAnswer(dependencies, run, question);
  });
  if (!outcome) return refuseUnknownRun(runId);
  // Events of others have led to the question since.
  if (outcome.refused === "unchecked") return recordQuestionAnswer(dependencies, answerRequest);
  if (outcome.refused) return outcome.refused;
  const { interruptId = "" } = question;
  const status = computeRunStatus(outcome.loadedRun.run);
  return { kind: "done", value: { runId, nodeId, interruptId, status } };
}

/** Drafts what follows from an answer to an open question, or returns why it does not count. */
function draftAnswer(
  { clock, conformance }: InterruptDependencies,
  run: WorkflowRun,
  answerRequest: NodeAnswer,
): RequestDrafts<HostRefusal> {
  const { value, by, tenant } = answerRequest;
  const place = findOpenInterrupt(run, answerRequest, clock.now());
  const believesVoter = conformance?.believesVoter(run) ?? false;
  const speaking = { value, by, isTokenHolder: tenant === undefined, believesVoter };
  if ("kind" in place) return { refused: addSettledOutcome(place, run, { ...answerRequest, ...speaking }) };
  const answered = answerInterrupt({ ...place, ...speaking });
  if (!answered.ok) return { refused: refuse(answered.code, answered.message) };
  const unfit = findUnfitDraft(answered.drafts);
  return unfit
    ? { refused: refuse("validation_error", `the answer cannot be recorded: ${unfit.problem}`) }
    : { drafts: answered.drafts };
}

/** Finds the open interrupt of a node; refuses a node that did not ask, and a question that is settled. */
function findOpenInterrupt(
  run: WorkflowRun,
  { nodeId, interruptId }: QuestionPlace,
  now: EpochMs,
): NodeInterrupt | HostRefusal {
  const node = run.nodes.get(nodeId);
  if (!node || (node.interrupts === 0 && !node.interrupt)) return refuseUnaskedNode(nodeId);
  const { interrupt } = node;
  if (
    !interrupt ||
    isEndedPhase(run.phase) ||
    (interruptId !== undefined && interrupt.interruptId !== interruptId) ||
    isQuestionExpired(run, interrupt, now)
  )
    return refuseSettledQuestion(nodeId);
  if (!interrupt.isAsked)
    return refuse("unavailable", `the branch has not asked the question of node ${nodeId} yet; try again`);
  return { node, interrupt };
}

/** An answer to a question that is settled, perhaps by the same answer. */
type RepeatedAnswer = QuestionPlace & Omit<AnswerRequest, "node" | "interrupt">;

/** Adds to the refusal of a repeated answer what that answer came to, where it settled the question. */
function addSettledOutcome(refusal: HostRefusal, run: WorkflowRun, spoken: RepeatedAnswer): HostRefusal {
  const { nodeId, interruptId } = spoken;
  const node = run.nodes.get(nodeId);
  const recorded = node && findRecordedAnswer(node, interruptId);
  if (!node || !recorded || !isRecordedAnswer(recorded, { ...spoken, node })) return refusal;
  const { runId } = run;
  return {
    ...refusal,
    resolved: { runId, nodeId, interruptId: recorded.interruptId, status: computeRunStatus(run) },
  };
}

/** Finds the recorded answer to a question; without its id, the newest one since the node was started, which may ask again soon. */
function findRecordedAnswer(
  { answers, earlierAnswers = [] }: NodeRun,
  interruptId?: string,
): RecordedAnswer | undefined {
  if (interruptId === undefined) return answers.at(-1);
  return [...earlierAnswers, ...answers].find((each) => each.interruptId === interruptId);
}

/**
 * True where the time to answer is over, also where no timer fired, as on a machine that slept. The time of a fork's
 * question begins anew with its first own event.
 */
function isQuestionExpired(run: WorkflowRun, { atMs, timeoutMs = 0 }: Interrupt, now: EpochMs): boolean {
  return timeoutMs > 0 && now >= atMs + timeoutMs && !isAtFork(run);
}

/** Refuses an answer that the schema of the gate or one of its questions does not take. Nothing is recorded before. */
async function refuseUnfitAnswer(
  { contract }: InterruptDependencies,
  place: NodeInterrupt | HostRefusal,
  value: unknown,
): Promise<HostRefusal | undefined> {
  // A question that is settled is refused as that, with what the answer came to.
  if ("kind" in place) return undefined;
  const { interrupt } = place;
  const schema = interrupt.resumeSchema;
  const broken = await refuseUnfitClarification({ contract }, interrupt, value);
  if (broken || !schema) return broken;
  if (!isRecord(value)) return refuse("validation_error", "the answer must be an object");
  const recordedValue = interrupt.kind === "external-event" ? unwrapExternalEvent(value) : value;
  const problems = (await contract()).check(schema, recordedValue);
  if (problems.length === 0) return undefined;
  const details = problems.map(({ path, message }) => `${path}: ${message}`);
  return refuse("validation_error", details.join("; "), { problems: details });
}

/**
 * Returns the refusal of a clarification's answers where one does not fit its question's schema; `undefined` for other
 * kinds, and for answers that cannot be read.
 */
async function refuseUnfitClarification(
  { contract }: Pick<InterruptDependencies, "contract">,
  { kind, data: { questions } }: Interrupt,
  value: unknown,
): Promise<HostRefusal | undefined> {
  const read = kind === "clarification" ? readClarificationAnswers(questions, value) : undefined;
  if (!read?.ok) return undefined;
  const details: string[] = [];
  for (const { id, schema } of readAskableQuestions(questions)) {
    if (!schema) continue;
    const [problem] = (await contract()).check(schema, read.answers[id]);
    if (problem)
      details.push(
        `the answer to ${id} is none that it takes: ${describeChoices(schema) ?? problem.message}`,
      );
  }
  return details.length > 0
    ? refuse("validation_error", details.join("; "), { problems: details })
    : undefined;
}

const CHOICES_CHARS_MAX = 500;

function describeChoices({ enum: choices }: Readonly<Record<string, unknown>>): string | undefined {
  if (!Array.isArray(choices)) return undefined;
  return `give exactly one of ${choices.map((choice) => JSON.stringify(choice)).join(", ")}`.slice(
    0,
    CHOICES_CHARS_MAX,
  );
}

/** The payload of an interrupt token, or the refusal of the token. */
type OpenedToken = { readonly payload: TokenPayload } | HostRefusal;

/** Returns the payload of a token; refuses one that was not signed here or has expired. */
function openToken({ tokens, clock }: InterruptDependencies, token: string): OpenedToken {
  const payload = tokens.read(token);
  if (!payload) return refuse("interrupt_not_found", "there is no such interrupt");
  return clock.now() > payload.expiresAt
    ? refuse("interrupt_expired", "the time to answer with this token is over")
    : { payload };
}

interface QuestionOfTenant extends QuestionPlace {
  readonly runId: CoordinationId;
  readonly tenant: string;
}

/**
 * Returns the named question of a run where it is open, without a token; a refusal where it is not, or the run is
 * another tenant's.
 */
export async function findOpenQuestion(
  dependencies: InterruptDependencies,
  { runId, tenant, ...place }: QuestionOfTenant,
): Promise<HostAnswer<OpenInterrupt>> {
  const loadedRun = await dependencies.driver.newest(runId);
  return loadedRun?.run.started.owner.tenant === tenant
    ? inspectQuestion(dependencies, loadedRun, place)
    : refuseUnknownRun(runId);
}

function inspectQuestion(
  dependencies: InterruptDependencies,
  { run }: LoadedRun,
  question: QuestionPlace,
): HostAnswer<OpenInterrupt> {
  const place = findOpenInterrupt(run, question, dependencies.clock.now());
  return "kind" in place
    ? place
    : { kind: "done", value: createOpenInterrupt(dependencies, run, place, "inspect") };
}

/**
 * Returns the question that a signed token stands for, without a token to answer it; a refusal where the token is not
 * valid or the question is not there.
 */
export async function inspectToken(
  dependencies: InterruptDependencies,
  token: string,
): Promise<HostAnswer<OpenInterrupt>> {
  const opened = openToken(dependencies, token);
  if ("kind" in opened) return opened;
  const { runId, nodeId, interruptId } = opened.payload;
  const loadedRun = await dependencies.driver.newest(runId as CoordinationId);
  return loadedRun
    ? inspectQuestion(dependencies, loadedRun, { nodeId, interruptId })
    : refuse("interrupt_not_found", "there is no such interrupt");
}

/**
 * Records the answer to the question that a signed token stands for. Returns the run's status, or the refusal of the
 * answer, or of a token that may only show the question.
 */
export async function resolveToken(
  dependencies: InterruptDependencies,
  token: string,
  value: unknown,
): Promise<HostAnswer<ResolvedInterrupt>> {
  const opened = openToken(dependencies, token);
  if ("kind" in opened) return opened;
  const { runId, nodeId, interruptId, intent } = opened.payload;
  if (intent !== "resolve")
    return refuse("interrupt_inspect_only", "this token may show the question, and may not answer it");
  return recordQuestionAnswer(dependencies, {
    runId: runId as CoordinationId,
    nodeId,
    interruptId,
    value,
    by: `token:${interruptId}`,
  });
}
