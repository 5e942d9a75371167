/** Owns: what is recorded of a ruling, and what the caller is answered. Nothing is answered that is not on disk (D1). */
import { BOUNDS } from "../../contracts/bounds.ts";
import type { ClaimEntry } from "../../contracts/claim-entry.ts";
import type { Command, ResourceRequest } from "../../contracts/commands.ts";
import { CoordinationError, invariant, isCoordinationError } from "../../contracts/errors.ts";
import { addMs, type EpochMs } from "../../contracts/ids.ts";
import { isContested, openQuestion, sameConflict } from "../../dispatch/conflict-facts.ts";
import type { Coordination } from "../../ledger/state.ts";
import type { ContentInput } from "../../ports/content-store.ts";
import type { Arbitration } from "./arbiter-state.ts";
import { recordChanges } from "./record-changes.ts";
import { rulingAgain } from "./ruling-again.ts";
import { contentOf } from "./assess-call.ts";
import { type Assessed } from "./assessed-target.ts";
import {
  askedSentence,
  recordRefusedSentence,
  refusalSentence,
  reviewText,
  type OpenQuestion,
} from "./conflict-sentence.ts";
import { openQuestionOn } from "../../dispatch/conflict-questions.ts";
import { approvalOf, claimOver, endWithin } from "./claim-over.ts";
import type { Participant } from "./participants.ts";
import type { Submitted } from "../log/run-log.ts";
import type { ReviewAnswer, WriteAnswer, WriteCall } from "./write-call.ts";
import type { ChangeUnderWay, Looked } from "./writes-under-way.ts";

export interface Ruled {
  readonly participant: Participant;
  readonly call: WriteCall;
  readonly assessed: readonly Assessed[];
  readonly looks: readonly Looked[];
}

export async function grantCall(it: Arbitration, ruled: Ruled): Promise<WriteAnswer> {
  const { call, assessed } = ruled;
  await endForeignClaims(it, ruled);
  const submitted = await submitRequests(it, ruled);
  if (submitted?.kind === "refused") return notRecorded(submitted);
  await beginCall(
    it,
    ruled,
    assessed.map(({ request }) => request.token),
  );
  const merged = assessed.flatMap((one) => one.merged ?? []);
  const params = merged.length > 0 ? call.rewrite?.(merged) : undefined;
  return { kind: "granted", ...(params && { params }) };
}

/** What it will have changed is looked at when it has ended. */
async function beginCall(it: Arbitration, ruled: Ruled, tokens: readonly number[]): Promise<void> {
  const { participant, call, assessed, looks } = ruled;
  const underWay = {
    ...{ callKey: call.callKey, tool: call.tool, participant, looks, atMs: it.clock.now() },
    mayTouchAnything: call.mayTouchAnything === true,
    seenOrder: it.known.order(),
    changes: assessed.map((one, index) => changeOf(it, one, tokens[index] ?? one.request.token)),
  };
  if (!it.underWay.begin(underWay)) await recordChanges(it, underWay, { hasFailed: false });
}

function changeOf(
  { refOf }: Arbitration,
  { request, target, look, text, proposed }: Assessed,
  token: number,
): ChangeUnderWay {
  const { resource, held } = request;
  const before = look && "version" in look ? look.version : "unknown";
  return {
    ...{ resource, token, before, replaces: target.replaces, isNew: held === undefined },
    ...(text !== undefined && { text }),
    ...(proposed !== undefined && { knownAs: `sha256:${refOf(proposed).sha256}` }),
  };
}

/** The claims that other coordinations lose end in their own logs first; a crash in between leaves them ended, which harms nobody. */
async function endForeignClaims(it: Arbitration, { participant, assessed }: Ruled): Promise<void> {
  const isForeign = ({ runId }: ClaimEntry): boolean => runId !== participant.runId;
  for (const { ruling, holders, delegated, target } of assessed) {
    const losers = ruling?.kind === "granted" ? ruling.losers : [];
    const lost = holders.filter(({ runId, stepId }) =>
      losers.some(({ coordinationId, stepId: loser }) => coordinationId === runId && loser === stepId),
    );
    await endWithin(it, { claims: lost, resource: target.resource, because: "preempted" });
    await endWithin(it, {
      claims: delegated.filter(isForeign),
      resource: target.resource,
      because: "delegated",
    });
  }
}

/** Who lost is refused, also where that cannot be recorded. */
export async function refuseCall(it: Arbitration, ruled: Ruled): Promise<WriteAnswer> {
  const { participant } = ruled;
  const lost = lostIn(ruled);
  const submitted = await recordRefusal(it, ruled);
  if (submitted?.kind === "refused") return notRecorded(submitted);
  const state = submitted?.state ?? participant.state;
  const asked = questionsIn(state, ruled, lost);
  const [question] = asked;
  const conflictId = question
    ? question.conflictId
    : submitted && conflictIdOf(state, participant, lost.request);
  const sentence = question ? askedSentence(lost, state, asked) : refusalSentence(lost, state, conflictId);
  return conflictId === undefined ? { kind: "refused", sentence } : { kind: "refused", sentence, conflictId };
}

/** What the model is told of: what it lost, then what it can mend itself, then what is for people. */
function lostIn({ assessed }: Ruled): Assessed {
  const reviews = assessed.filter(({ ruling }) => ruling?.kind === "review");
  const lost =
    assessed.find(({ ruling }) => ruling?.kind === "refused") ??
    reviews.find(({ request }) => !request.contest?.asksPeople) ??
    reviews[0];
  invariant(lost !== undefined, "A3: a refused call has a ruling");
  return lost;
}

/** The open questions to people about what the call would change. */
function questionsIn(
  state: Coordination,
  { participant, assessed }: Ruled,
  lost: Assessed,
): (OpenQuestion & { readonly conflictId?: string | undefined })[] {
  if (state.kind !== "open" || !lost.request.contest?.asksPeople) return [];
  return assessed.flatMap(({ request: { resource } }) => {
    const question = openQuestionOn(state, participant.stepId, resource);
    if (!question) return [];
    const { escalationId, deadlineAtMs, conflictId } = question;
    return [{ questionId: `${state.coordinationId}:${escalationId}`, deadlineAtMs, conflictId }];
  });
}

async function recordRefusal(it: Arbitration, ruled: Ruled): Promise<Submitted | undefined> {
  try {
    return await submitRequests(it, ruled);
  } catch (error) {
    const { runId, stepId } = ruled.participant;
    const code = isCoordinationError(error) ? error.code : "UNKNOWN";
    it.logger.error({ runId, stepId, code }, "a refused write could not be recorded");
    return undefined;
  }
}

export async function openReview(it: Arbitration, ruled: Ruled): Promise<WriteAnswer> {
  const { participant, assessed } = ruled;
  const submitted = await submitRequests(it, ruled);
  if (submitted?.kind === "refused") return notRecorded(submitted);
  invariant(submitted !== undefined, "A3: a reviewed call has a ruling");
  const asked = assessed.filter(({ ruling }) => ruling?.kind === "review");
  const questions = new Map(
    asked.flatMap(({ request: { resource } }) => {
      const conflictId = questionIn(submitted.state, participant, resource);
      return conflictId === undefined ? [] : [[resource, conflictId] as const];
    }),
  );
  return {
    kind: "review",
    ...reviewText(asked, submitted.state),
    timeoutMs: it.conflicts.reviewMs,
    settle: (answer) => settle(it, ruled, { questions, answer }),
  };
}

interface Settling {
  /** The conflict of each resource that people are asked about. */
  readonly questions: ReadonlyMap<string, string>;
  readonly answer: ReviewAnswer;
}

/** An approved call happens at once, so it is under way from here. */
function settle(it: Arbitration, ruled: Ruled, { questions, answer }: Settling): Promise<void> {
  const { participant, assessed } = ruled;
  if (answer === "nobody_to_ask") it.unanswerable.add(participant.session);
  if (answer !== "approved")
    return it.inTurn(async () => {
      const closing = [...questions.values()].map((conflictId): Command => ({
        type: "settleReview",
        conflictId,
        answer,
      }));
      await it.runs.submit(participant.runId, closing);
    });
  return it.inTurn(async () => {
    const now = it.clock.now();
    const expiresAtMs = addMs(now, it.conflicts.leaseMs);
    const tokens: number[] = [];
    for (const { request } of assessed) {
      const conflictId = questions.get(request.resource);
      const approved = { request, conflictId, expiresAtMs, now };
      tokens.push(await rulingAgain(() => claimNow(it, ruled, approved)));
    }
    await beginCall(it, ruled, tokens);
  });
}

interface Approved {
  readonly request: ResourceRequest;
  /** Absent where nobody stood against it. */
  readonly conflictId: string | undefined;
  readonly expiresAtMs: EpochMs;
  readonly now: EpochMs;
}

async function claimNow(it: Arbitration, { participant }: Ruled, approved: Approved): Promise<number> {
  const { request, conflictId, expiresAtMs, now } = approved;
  const { runId, stepId } = participant;
  const { claim, held } = await claimOver(it, participant, { resource: request.resource, expiresAtMs, now });
  const { contest: _, held: _held, ...rest } = request;
  const uncontested = { ...rest, ...claim, ...(held && { held: held.token }) };
  const question = conflictId !== undefined && approvalOf(conflictId, claim);
  const answered = question && (await it.runs.submit(runId, [question]));
  // Nobody stood against it, or the question was closed before the answer came.
  const submitted =
    answered && answered.kind !== "replay"
      ? answered
      : await it.runs.submit(runId, [{ type: "requestResources", stepId, requests: [uncontested] }]);
  if (submitted.kind === "refused") notRecorded(submitted);
  return claim.token;
}

/** The step has ended, or too much is claimed; a claim that ended just now is ruled on again. */
function notRecorded({ code, reason }: Submitted & { kind: "refused" }): WriteAnswer {
  if (code === "STALE_TOKEN") throw new CoordinationError("CLAIM_CONFLICT", reason);
  return { kind: "refused", sentence: recordRefusedSentence(reason) };
}

/** `undefined` where there is nothing to record. */
async function submitRequests(
  it: Arbitration,
  { participant, assessed }: Ruled,
): Promise<Submitted | undefined> {
  if (assessed.length === 0) return undefined;
  const requests = assessed.map(({ request }) => request);
  const isGranted = assessed.every(({ ruling }) => ruling === undefined || ruling.kind === "granted");
  const contents = isGranted ? contentsOf(it, assessed) : [];
  const { runId, stepId } = participant;
  return it.runs.submit(runId, [{ type: "requestResources", stepId, requests }], contents);
}

/** What each side made of a file is the base of later merges; beyond so many bytes of one call nothing is kept. */
function contentsOf(it: Arbitration, assessed: readonly Assessed[]): ContentInput[] {
  const contents = assessed.flatMap(({ content, proposed }) => [
    ...(content ? [content] : []),
    ...(proposed === undefined ? [] : [contentOf(it, proposed)]),
  ]);
  const bytes = contents.reduce((sum, { ref }) => sum + ref.bytes, 0);
  return bytes <= BOUNDS.mergeBytesPerCallMax ? contents : [];
}

function conflictIdOf(
  state: Coordination,
  { stepId }: Participant,
  request: ResourceRequest,
): string | undefined {
  if (state.kind !== "open" || !isContested(request)) return undefined;
  return sameConflict(state, stepId, request)?.conflictId;
}

function questionIn(state: Coordination, { stepId }: Participant, resource: string): string | undefined {
  return state.kind === "open" ? openQuestion(state, stepId, resource)?.conflictId : undefined;
}
