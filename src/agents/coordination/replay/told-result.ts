/** Owns: which commands may have led to recorded facts about results, as `told-command.ts` for all others. */
import type { Command, CompleteStep, RecordFinding, RecordNoVerdict } from "../contracts/commands.ts";
import type { EventId } from "../contracts/ids.ts";
import type { OpenCoordination } from "../ledger/state.ts";
import { readFields, withEarlierDecision, type Fact } from "./told-fact.ts";

type ResultLead = Fact<
  | "result.withheld"
  | "result.shortened"
  | "message.suppressed"
  | "result.held"
  | "result.verified"
  | "verification.failed"
>;

/** Returns the commands that may have led to a recorded fact about a result, for deciding it again. */
export function commandsFromResultFact({ steps }: OpenCoordination, lead: ResultLead): Command[] {
  const { stepId, attempt } = lead.payload;
  const phase = steps.get(stepId)?.phase;
  const target = phase?.status === "held" ? phase.target : ("" as EventId);
  switch (lead.type) {
    case "result.withheld":
      return [{ type: "withholdText", ...lead.payload }];
    case "result.shortened":
      return [{ type: "recordShortened", ...lead.payload }];
    case "message.suppressed":
      return [{ type: "recordSuppressed", ...lead.payload }];
    case "result.held": {
      const { verifyByMs: _, confidence, confidenceUnreadable, ...payload } = lead.payload;
      const stated = {
        ...(confidence !== undefined && { confidence }),
        ...(confidenceUnreadable && { confidenceUnreadable }),
      };
      return withEarlierDecision<CompleteStep>({
        type: "completeStep",
        ...readFields(payload),
        stated: readFields(stated),
      });
    }
    case "result.verified": {
      const { stepId: _step, attempt: _attempt, ...finding } = lead.payload;
      return withEarlierDecision<RecordFinding>({ type: "recordFinding", stepId, attempt, target, finding });
    }
    case "verification.failed":
      return withEarlierDecision<RecordNoVerdict>({ type: "recordNoVerdict", ...lead.payload, target });
  }
}
