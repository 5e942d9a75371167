/** Mutants of the files of `dispatch` that decide on claims, questions and ends, which change nothing that anybody could notice. */
import type { ExplainedMutants } from "./tally-mutants.ts";

/** Explained mutants, their files from the folder of the area on. */
export const DECIDING: readonly ExplainedMutants[] = [
  {
    file: "decide-questions.ts",
    code: "...(answerMs !== undefined && { answerMs }),",
    changes: [["answerMs !== undefined", "true"]],
    why: "A time that is undefined is absent to whoever reads it.",
  },
  {
    file: "decide-questions.ts",
    code: 'return `the question is closed already: ${closed?.resolution ?? "closed"}${by}`;',
    changes: [
      ['"closed"', '""'],
      ["closed?.resolution", "closed.resolution"],
    ],
    why: "An answer is refused as one to a closed question only where that says how it was closed.",
  },
  {
    file: "decide-questions.ts",
    code: 'if (closed?.resolution === "cancelled")',
    changes: [["closed?.resolution", "closed.resolution"]],
    why: "As above: a closed question says how it was closed.",
  },
  {
    file: "decide-questions.ts",
    code: 'return `the question takes ${(answers ?? []).join(", ")}; "answer" comes with a text, the others without`;',
    changes: [["[]", '["Stryker was here"]']],
    why: "A question that takes any answer refuses none.",
  },
  {
    file: "decide-questions.ts",
    code: "const attempt = stepId && steps.get(stepId)?.phase.attempt;",
    changes: [["steps.get(stepId)?.phase", "steps.get(stepId).phase"]],
    why: "A question names only a step that there is.",
  },
  {
    file: "decide-questions.ts",
    code: 'return typeof attempt === "number" && attempt > BOUNDS.retryBudgetMax;',
    changes: [['typeof attempt === "number"', "true"]],
    why: "What is no number is greater than none.",
  },
  {
    file: "decide-questions.ts",
    code: "if (!stepId) return [];",
    changes: [["!stepId", "false"]],
    why: "Nothing is retried without a step, and a step that is not there does not wait.",
  },
  {
    file: "decide-questions.ts",
    code: 'const isDoubted = question.cause === "confidence" && state.steps.get(stepId)?.phase.status === "waiting";',
    changes: [
      [
        'question.cause === "confidence" && state.steps.get(stepId)?.phase.status === "waiting"',
        'question.cause === "confidence" || state.steps.get(stepId)?.phase.status === "waiting"',
      ],
      ['question.cause === "confidence"', "true"],
      ['state.steps.get(stepId)?.phase.status === "waiting"', "true"],
      ["state.steps.get(stepId)?.phase", "state.steps.get(stepId).phase"],
    ],
    why: "A step that waits for its first attempt is asked about only where it is doubted, and such a doubt ends with the waiting.",
  },
  {
    file: "decide-questions.ts",
    code: "if (!step || step.phase.escalationId !== question.escalationId) return [];",
    changes: [
      ["[]", '["Stryker was here"]'],
      ["!step || step.phase.escalationId !== question.escalationId", "false"],
      [
        "!step || step.phase.escalationId !== question.escalationId",
        "!step && step.phase.escalationId !== question.escalationId",
      ],
      ["step.phase.escalationId !== question.escalationId", "false"],
    ],
    why: "A question about a held result is closed in the append that ends the holding.",
  },
  {
    file: "decide-questions.ts",
    code: 'if (resolution === "answered" && answer?.text)',
    changes: [
      ['resolution === "answered" && answer?.text', 'resolution === "answered" || answer?.text'],
      ['resolution === "answered"', "true"],
      ["answer?.text", "answer.text"],
    ],
    why: "An answer has a text where it is `answer`, and only there.",
  },
  {
    file: "worktree-effects.ts",
    code: "if (state.worktrees.isEmpty()) return [];",
    changes: [["state.worktrees.isEmpty()", "false"]],
    why: "It only saves making empty lists.",
  },
  {
    file: "worktree-effects.ts",
    code: "const phase = steps.get(stepId)?.phase;",
    changes: [["steps.get(stepId)?.phase", "steps.get(stepId).phase"]],
    why: "Where there is a worktree there is its step.",
  },
  {
    file: "worktree-effects.ts",
    code: "if (phase?.attempt === attempt && IN_USE.has(phase.status)) return false;",
    changes: [["phase?.attempt", "phase.attempt"]],
    why: "Where there is a worktree there is its step.",
  },
  {
    file: "worktree-effects.ts",
    code: "return !plan?.strays.some((stray) => stray.stepId === stepId && stray.attempt === attempt);",
    changes: [["plan?.strays", "plan.strays"]],
    why: "Only steps of plans have worktrees.",
  },
  {
    file: "worktree-effects.ts",
    code: 'if (worktree.merge) return worktree.merge.status === "begun";',
    changes: [["worktree.merge", "false"]],
    why: "A merge begins where the result is to count, and what could not be merged waits for people.",
  },
  {
    file: "worktree-effects.ts",
    code: "const resolution = escalations.get(escalationId)?.closed?.resolution;",
    changes: [["escalations.get(escalationId)?.closed", "escalations.get(escalationId).closed"]],
    why: "A step names only questions that there are.",
  },
  {
    file: "release-claims.ts",
    code: ".flatMap((conflictId) => findConflict(state, conflictId) ?? [])",
    changes: [["[]", '["Stryker was here"]']],
    why: "Where there is a review there is its conflict.",
  },
  {
    file: "release-claims.ts",
    code: ".filter(({ contest }) => contest !== undefined && isOfStep(contest.requester));",
    changes: [["contest !== undefined", "true"]],
    why: "What people review was recorded with its contest.",
  },
  {
    file: "release-claims.ts",
    code: "const mayHold = stepId === undefined || state.claimCounts.has(stepId);",
    changes: [["stepId === undefined || state.claimCounts.has(stepId)", "true"]],
    why: "It only saves looking for claims that there are not.",
  },
  {
    file: "decide-words.ts",
    code: "{ shortened = [] }: Step,",
    changes: [["[]", '["Stryker was here"]']],
    why: "It is no text, and one more is below the bound.",
  },
  {
    file: "decide-budget.ts",
    code: 'const depth = wish.stopped === "spawn" ? 1 + countSpawnLevels(state, wish.stepId) : 0;',
    changes: [['wish.stopped === "spawn"', "true"]],
    why: "The depth is looked at for spawns alone.",
  },
  {
    file: "decide-budget.ts",
    code: ": []),",
    changes: [["[]", '["Stryker was here"]']],
    why: "It has no bound, so nothing reaches it.",
  },
  {
    file: "ask-people.ts",
    code: "const { questions = { answerMs: ANSWER_MS } } = state.created;",
    changes: [["{ answerMs: ANSWER_MS }", "{}"]],
    why: "The time for an answer has the same default of its own.",
  },
  {
    file: "ask-people.ts",
    code: "return deadlineAtMs !== undefined && deadlineAtMs < answerByMs ? deadlineAtMs : answerByMs;",
    changes: [
      ["deadlineAtMs !== undefined", "true"],
      ["deadlineAtMs < answerByMs", "deadlineAtMs <= answerByMs"],
    ],
    why: "No time is less than another, and of two that are the same either may be taken.",
  },
  {
    file: "effects/gate-effects.ts",
    code: "const attempt = state.steps.get(stepId)?.phase.attempt ?? 0;",
    changes: [["state.steps.get(stepId)?.phase", "state.steps.get(stepId).phase"]],
    why: "Only steps that are there are held.",
  },
  {
    file: "conflict-questions.ts",
    code: "({ conflict, question }) => conflict.contest?.requester === stepId && !question.closed,",
    changes: [["conflict.contest?.requester", "conflict.contest.requester"]],
    why: "What people are asked about was recorded with its contest.",
  },
  {
    file: "conflict-questions.ts",
    code: "if (state.reviews.isEmpty()) return [];",
    changes: [["state.reviews.isEmpty()", "false"]],
    why: "It only saves looking at the conflicts.",
  },
  {
    file: "conflict-questions.ts",
    code: "return conflict.resource === resource && conflict.contest?.requester === stepId && acquiredAtMs <= atMs;",
    changes: [["conflict.contest?.requester", "conflict.contest.requester"]],
    why: "What people are asked about was recorded with its contest.",
  },
  {
    file: "conflict-questions.ts",
    code: "if (changedAtMs !== undefined && changedAtMs > atMs) return false;",
    changes: [["changedAtMs !== undefined", "true"]],
    why: "A time that is not there is later than no other.",
  },
  {
    file: "conflict-questions.ts",
    code: "(change) => change?.stepId === conflict.contest?.requester && (change?.atMs ?? 0) >= atMs,",
    changes: [
      ["conflict.contest?.requester", "conflict.contest.requester"],
      ["change?.atMs", "change.atMs"],
    ],
    why: "What people are asked about was recorded with its contest, and a change of the requester is there.",
  },
];
