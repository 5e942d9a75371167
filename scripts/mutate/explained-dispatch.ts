/** Mutants of `dispatch` that change nothing which anybody could notice, each with the reason. */
import type { Explained } from "./tally-mutants.ts";

/** Explained mutants, their files from the folder of the area on. */
export const DISPATCH: readonly Explained[] = [
  {
    file: "next-try.ts",
    code: 'const isCancelled = cancelledBy !== undefined || (command.type === "failStep" && command.cancelled);',
    changes: [['command.type === "failStep"', "true"]],
    why: "A time-out says nothing of a cancellation.",
  },
  {
    file: "next-try.ts",
    code: 'const { seed = "", deadlineAtMs } = created.plan ?? {};',
    changes: [['""', '"Stryker was here!"']],
    why: "Each plan has a seed.",
  },
  {
    file: "next-try.ts",
    code: 'const retryAfterMs = command.type === "failStep" ? (command.retryAfterMs ?? 0) : 0;',
    changes: [['command.type === "failStep"', "true"]],
    why: "A time-out says nothing of a time to wait.",
  },
  {
    file: "next-try.ts",
    code: "return deadlineAtMs !== undefined && atMs >= deadlineAtMs;",
    changes: [["deadlineAtMs !== undefined", "true"]],
    why: "No time is as late as none.",
  },
  {
    file: "next-try.ts",
    code: "const budget = spec.planned?.budget;",
    changes: [["spec.planned?.budget", "spec.planned.budget"]],
    why: "What is no step of a plan has had its last attempt.",
  },
  {
    file: "next-try.ts",
    code: 'if (budget.wallMs !== undefined && nextAtMs >= addMs(begunAtMs, budget.wallMs)) return "wallMs";',
    changes: [["budget.wallMs !== undefined", "true"]],
    why: "No time is as late as none.",
  },
  {
    file: "next-try.ts",
    code: 'const usage = spentFromUsage(command.type === "failStep" ? command.usage : undefined);',
    changes: [['command.type === "failStep"', "true"]],
    why: "A time-out says nothing of usage.",
  },
  {
    file: "late-outcome.ts",
    code: "const lateOutcomes = step.late ?? [];",
    changes: [["[]", '["Stryker was here"]']],
    why: "It is no outcome, and one more is below the bound.",
  },
  {
    file: "effects/rule-on-observation.ts",
    code: "default:",
    changes: [
      ['default: return assertNever(seen, "observation");', "default:"],
      ['default: return assertNever(outcome, "child outcome");', "default:"],
    ],
    why: "The compiler holds the switches to be complete.",
  },
  {
    file: "effects/rule-on-observation.ts",
    code: 'return assertNever(seen, "observation");',
    changes: [['"observation"', '""']],
    why: "The compiler holds the switch to be complete.",
  },
  {
    file: "effects/rule-on-observation.ts",
    code: 'return assertNever(outcome, "child outcome");',
    changes: [['"child outcome"', '""']],
    why: "The compiler holds the switch to be complete.",
  },
  {
    file: "plan-rules.ts",
    code: "const deadlineAtMs = created.plan?.deadlineAtMs;",
    changes: [["created.plan?.deadlineAtMs", "created.plan.deadlineAtMs"]],
    why: "The types do not say that what runs a plan was opened with one.",
  },
  {
    file: "plan-rules.ts",
    code: 'return deadlineAtMs !== undefined && now >= deadlineAtMs ? "deadline" : undefined;',
    changes: [["deadlineAtMs !== undefined", "true"]],
    why: "No time is as late as none.",
  },
  {
    file: "plan-rules.ts",
    code: "const budget = state.created.plan?.budget;",
    changes: [["state.created.plan?.budget", "state.created.plan.budget"]],
    why: "The types do not say that what runs a plan was opened with one.",
  },
  {
    file: "plan-rules.ts",
    code: 'if (budget.wallMs !== undefined && now - allowedFromMs >= budget.wallMs) return "wallMs";',
    changes: [["budget.wallMs !== undefined", "true"]],
    why: "No time is as long as none.",
  },
  {
    file: "plan-rules.ts",
    code: "stepId !== DELIVERY_STEP_ID && steps.get(stepId)?.spec.planned !== undefined;",
    changes: [["steps.get(stepId)?.spec", "steps.get(stepId).spec"]],
    why: "What waits, and what only time moves on, is among the steps.",
  },
  {
    file: "plan-rules.ts",
    code: 'plan.timed.some((stepId) => isWork(stepId) && steps.get(stepId)?.phase.status === "backoff")',
    changes: [["steps.get(stepId)?.phase", "steps.get(stepId).phase"]],
    why: "What only time moves on is among the steps.",
  },
  {
    file: "plan-rules.ts",
    code: "return plan.admitted === created.plan?.steps && isDone;",
    changes: [["created.plan?.steps", "created.plan.steps"]],
    why: "The types do not say that what runs a plan was opened with one.",
  },
  {
    file: "decide-held.ts",
    code: "const OPEN_GATE: Gate = { threshold: 0 };",
    changes: [["{ threshold: 0 }", "{}"]],
    why: "Nothing asks for the confidence of a result that no gate holds.",
  },
  {
    file: "decide-held.ts",
    code: "findings: [],",
    changes: [["[]", '["Stryker was here"]']],
    why: "It is no verdict, and its confidence is not stated.",
  },
  {
    file: "decide-held.ts",
    code: 'if (replaced?.answered?.text) return { released: "replaced", output: replaced.answered.text };',
    changes: [["replaced?.answered?.text", "replaced?.answered.text"]],
    why: "A question that was closed as answered has its answer.",
  },
  {
    file: "decide-held.ts",
    code: 'if (!isPlanned(state) || error.code === "withheld") return [{ type: "step.failed", payload: failed }];',
    changes: [["!isPlanned(state)", "false"]],
    why: "For a spawn that is no step of a plan nothing is chosen. The compiler needs it.",
  },
  {
    file: "decide-claims.ts",
    code: "([first]) => first ?? [],",
    changes: [["[]", '["Stryker was here"]']],
    why: "Each group has a first one.",
  },
  {
    file: "decide-claims.ts",
    code: "first ? draftClaim(state, stepId, { ...first.request, now }) : [],",
    changes: [["[]", '["Stryker was here"]']],
    why: "Each group has a first one.",
  },
  {
    file: "decide-claims.ts",
    code: 'if (!isContested(request) || ruling?.kind !== "granted") return [];',
    changes: [
      ['ruling?.kind !== "granted"', "false"],
      ["ruling?.kind", "ruling.kind"],
    ],
    why: "A contested request has a ruling, and it is granted where all are. The compiler needs it.",
  },
  {
    file: "decide-claims.ts",
    code: "if (reasons.size === 0) continue;",
    changes: [["reasons.size === 0", "false"]],
    why: "Without a reason no claim ends. It only saves looking at the claims.",
  },
  {
    file: "decide-claims.ts",
    code: "{ delegated = [] }: ResourceRequest,",
    changes: [["[]", '["Stryker was here"]']],
    why: "No step is called that.",
  },
  {
    file: "decide-claims.ts",
    code: 'const losers = ruling?.kind === "granted" ? ruling.losers.filter(isOwn) : [];',
    changes: [["[]", '["Stryker was here"]']],
    why: "It is no contestant, so that no claim is its.",
  },
  {
    file: "decide-claims.ts",
    code: 'isContested(request) && (ruling?.kind === "refused" || ruling?.kind === "review")',
    changes: [["ruling?.kind", "ruling.kind"]],
    why: "A contested request has a ruling.",
  },
  {
    file: "decide-claims.ts",
    code: "claimToken !== undefined && hasLiveClaim(state, { held: claimToken, stepId: requester, now });",
    changes: [["claimToken !== undefined", "true"]],
    why: "No claim is without a token.",
  },
  {
    file: "settle-plan.ts",
    code: "if (state.created.plan?.successCriteria && !state.successCriteria)",
    changes: [["state.created.plan?.successCriteria", "state.created.plan.successCriteria"]],
    why: "The types do not say that what runs a plan was opened with one.",
  },
  {
    file: "settle-plan.ts",
    code: 'if (plan.admitted < (created.plan?.steps ?? 0)) return "not all steps are admitted";',
    changes: [["created.plan?.steps", "created.plan.steps"]],
    why: "The types do not say that what runs a plan was opened with one.",
  },
  {
    file: "settle-plan.ts",
    code: 'const isLost = phase.status === "failed" && phase.error?.code === "child_lost";',
    changes: [
      ['phase.status === "failed"', "true"],
      ["phase.error?.code", "phase.error.code"],
    ],
    why: "A delivery that failed has its error, and no other one has an error of that kind.",
  },
];
