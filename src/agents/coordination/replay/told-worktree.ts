/** Owns: which commands may have led to recorded facts about worktrees, as `told-command.ts` for all others. */
import type { AskAboutMerge, Command, FinishMerge } from "../contracts/commands.ts";
import type { StepId } from "../contracts/ids.ts";
import type { FactEvent } from "../contracts/run-event.ts";
import type { OpenCoordination } from "../ledger/state.ts";
import { NOTHING, withEarlierDecision, type Fact } from "./told-fact.ts";

type WorktreeLead = Fact<
  "worktree.opened" | "worktree.merge_begun" | "worktree.merged" | "worktree.conflicted" | "worktree.removed"
>;

/**
 * Returns the commands that may have led to a recorded fact about a worktree and those recorded with it, for deciding
 * them again.
 */
export function commandsFromWorktreeFact(
  _state: OpenCoordination,
  lead: WorktreeLead,
  facts: readonly FactEvent[],
): Command[] {
  switch (lead.type) {
    case "worktree.opened":
      return [{ type: "openWorktree", ...lead.payload }];
    case "worktree.removed":
      return [{ type: "removeWorktree", ...lead.payload }];
    case "worktree.merge_begun":
      return [{ type: "beginMerge", ...lead.payload }];
    case "worktree.merged": {
      const { stepId, attempt, files } = lead.payload;
      return [
        {
          type: "finishMerge",
          stepId,
          attempt,
          changed: listChangedResources(facts, stepId).slice(0, files),
        },
      ];
    }
    case "worktree.conflicted": {
      const changed = listChangedBeforeQuestion(facts, lead.payload.stepId);
      const question = readMergeQuestion(facts[changed.length + 1]);
      return withEarlierDecision<AskAboutMerge>({
        type: "askAboutMerge",
        ...lead.payload,
        changed,
        question,
      });
    }
  }
}

function listChangedResources(facts: readonly FactEvent[], stepId: StepId): FinishMerge["changed"] {
  return facts.flatMap((fact) =>
    fact.type === "resource.changed" && fact.payload.stepId === stepId ? [fact.payload] : [],
  );
}

function listChangedBeforeQuestion(
  [, ...after]: readonly FactEvent[],
  stepId: StepId,
): AskAboutMerge["changed"] {
  const end = after.findIndex((fact) => listChangedResources([fact], stepId).length === 0);
  return listChangedResources(end === -1 ? after : after.slice(0, end), stepId);
}

/**
 * Returns the text of the question that a fact asks. Where nobody was asked it does not matter, and a stand-in is
 * returned.
 */
function readMergeQuestion(fact: FactEvent | undefined): AskAboutMerge["question"] {
  const question = fact?.type === "coordination.escalated" ? fact.payload.question : undefined;
  return question ?? NOTHING;
}
