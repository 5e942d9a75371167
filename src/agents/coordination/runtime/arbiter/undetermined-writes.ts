/** Owns: what happens to a call that may change something which nobody can name. */
import { BOUNDS } from "../../contracts/bounds.ts";
import type { Arbitration } from "./arbiter-state.ts";
import { createUndeterminedReview, describeUndetermined } from "./conflict-sentence.ts";
import { canBeAskedAbout, type Participant } from "./participants.ts";
import type { Undetermined, WriteAnswer, WriteCall } from "./write-call.ts";

interface Undetermining {
  readonly participant: Participant;
  readonly call: WriteCall;
  /** A path of it leads nowhere. */
  readonly isUnplaced: boolean;
}

/** `undefined`: the call goes on to be ruled on by what can be named. A review is asked for once that is granted. */
export async function ruleOnUndetermined(
  arbiter: Arbitration,
  { participant, call, isUnplaced }: Undetermining,
): Promise<(WriteAnswer & { kind: "refused" | "review" }) | undefined> {
  const undetermined = call.undetermined ?? (isUnplaced ? UNPLACED : undefined);
  if (!undetermined) return undefined;
  const { because, extractor } = undetermined;
  const action = isAlwaysClosed(undetermined) ? "denied" : actionOf(arbiter, participant);
  await arbiter.runs.submit(participant.runId, [
    {
      type: "recordUndetermined",
      stepId: participant.stepId,
      tool: cut(call.tool),
      because,
      action,
      ...(extractor !== undefined && { extractor: cut(extractor) }),
    },
  ]);
  if (action === "allowed") return undefined;
  if (action === "denied")
    return { kind: "refused", sentence: describeUndetermined(call.tool, undetermined) };
  return {
    kind: "review",
    ...createUndeterminedReview(call.tool),
    timeoutMs: arbiter.conflicts.reviewMs,
    settle: (answer) => {
      if (answer === "nobody_to_ask") arbiter.unanswerable.add(participant.session);
      return Promise.resolve();
    },
  };
}

/** True for a write that another plugin's code could not tell, or that nobody can look at: the operator's word is of shell commands. */
export function isAlwaysClosed({ because }: Undetermined): boolean {
  return CLOSED.has(because);
}

const CLOSED: ReadonlySet<Undetermined["because"]> = new Set(["extractor_failed", "too_many"]);
const UNPLACED: Undetermined = { because: "unreadable" };

function actionOf(
  { conflicts, unanswerable }: Arbitration,
  participant: Participant,
): "allowed" | "asked" | "denied" {
  if (conflicts.unknownWrites === "allow") return "allowed";
  return conflicts.unknownWrites === "review" && canBeAskedAbout(participant, unanswerable)
    ? "asked"
    : "denied";
}

function cut(name: string): string {
  return name.slice(0, BOUNDS.nameCharsMax);
}
