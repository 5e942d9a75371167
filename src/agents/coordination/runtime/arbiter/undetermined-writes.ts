/** Owns: what happens to a call that may change something which nobody can name. */
import { BOUNDS } from "../../contracts/bounds.ts";
import type { ArbiterState } from "./arbiter-state.ts";
import { createUndeterminedReviewText, describeUndeterminedRefusal } from "./conflict-sentence.ts";
import { canAskPeopleAbout, type Participant } from "./participants.ts";
import type { UndeterminedWrite, WriteAnswer, WriteCall } from "./write-call.ts";

/** A call that may change something which nobody can name. */
interface UndeterminedCall {
  readonly participant: Participant;
  readonly call: WriteCall;
  /** A path of it leads nowhere. */
  readonly isUnplaced: boolean;
}

/**
 * Records a call whose changes nobody can name, and returns its refusal or a review by people, as the operator wants.
 * `undefined`: the call goes on to be ruled on by what can be named, also where all its changes can. A review is asked
 * for once that is granted.
 */
export async function ruleOnUndetermined(
  arbiter: ArbiterState,
  { participant, call, isUnplaced }: UndeterminedCall,
): Promise<(WriteAnswer & { kind: "refused" | "review" }) | undefined> {
  const undetermined = call.undetermined ?? (isUnplaced ? UNPLACED : undefined);
  if (!undetermined) return undefined;
  const { because, extractor } = undetermined;
  const action = isAlwaysDenied(undetermined) ? "denied" : chooseAction(arbiter, participant);
  await arbiter.runs.submit(participant.runId, [
    {
      type: "recordUndetermined",
      stepId: participant.stepId,
      tool: cutName(call.tool),
      because,
      action,
      ...(extractor !== undefined && { extractor: cutName(extractor) }),
    },
  ]);
  if (action === "allowed") return undefined;
  if (action === "denied")
    return { kind: "refused", sentence: describeUndeterminedRefusal(call.tool, undetermined) };
  return {
    kind: "review",
    ...createUndeterminedReviewText(call.tool),
    timeoutMs: arbiter.conflicts.reviewMs,
    settle: (answer) => {
      if (answer === "nobody_to_ask") arbiter.unanswerable.add(participant.session);
      return Promise.resolve();
    },
  };
}

/**
 * True for an undetermined write that is denied whatever the operator allows, whose setting is about shell commands:
 * another plugin's extractor failed, or the call changes too many things.
 */
export function isAlwaysDenied({ because }: UndeterminedWrite): boolean {
  return CLOSED.has(because);
}

const CLOSED: ReadonlySet<UndeterminedWrite["because"]> = new Set(["extractor_failed", "too_many"]);
const UNPLACED: UndeterminedWrite = { because: "unreadable" };

function chooseAction(
  { conflicts, unanswerable }: ArbiterState,
  participant: Participant,
): "allowed" | "asked" | "denied" {
  if (conflicts.unknownWrites === "allow") return "allowed";
  return conflicts.unknownWrites === "review" && canAskPeopleAbout(participant, unanswerable)
    ? "asked"
    : "denied";
}

function cutName(name: string): string {
  return name.slice(0, BOUNDS.nameCharsMax);
}
