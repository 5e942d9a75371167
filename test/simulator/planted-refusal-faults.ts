/** Owns: faults in what hosts and people are answered: refusals without a reason, and acceptance without a record. */
import type { PlantedFault } from "./planted-fault.ts";

const RUNTIME = "src/agents/coordination/runtime";

export const REFUSAL_FAULTS: readonly PlantedFault[] = [
  {
    name: "valid-plan-is-refused",
    file: `${RUNTIME}/plans/submit-plan.ts`,
    find: 'if (place.kind === "nowhere") return { kind: "refused", problems: [place.problem] };',
    replace:
      'if (place.kind === "nowhere" || graph.steps.length > 2) return { kind: "refused", problems: [] };',
    breaks: "D1: a valid plan is refused",
  },
  {
    name: "spawn-of-child-is-refused",
    file: `${RUNTIME}/spawns/admit-spawn.ts`,
    find: "if ((state.cancelledBy ?? parent?.cancelledBy) !== undefined || isWorkingForNobody(state, session))",
    replace: "if (parent || state.cancelledBy !== undefined)",
    breaks: "D1: what a child spawns is refused though nothing was cancelled",
  },
  {
    name: "spawn-is-refused-before-deadline",
    file: `${RUNTIME}/spawns/admit-spawn.ts`,
    find: "const stop = plan && findStopReason({ plan, created }, atMs);",
    replace: "const stop = plan && findStopReason({ plan, created }, (atMs + 3_600_000) as EpochMs);",
    breaks: "D1: what an agent of a plan spawns is refused long before the plan's deadline",
  },
  {
    name: "denial-is-refused",
    file: "src/agents/coordination/escalation/rule-on-answer.ts",
    find: 'if (question.closed) return "closed";',
    replace: 'if (question.closed || answer === "deny") return "closed";',
    breaks: "E1: an answer to an open question is refused as if that were closed",
  },
  {
    name: "retry-is-not-waited-for",
    file: `${RUNTIME}/plans/submit-plan.ts`,
    find: "const submitted = await dependencies.runs.submit(coordinationId, [command]);",
    replace: `const submitting = dependencies.runs.submit(coordinationId, [command]);
  submitting.catch(() => undefined);
  if (command.type === "retryStep") return { kind: "accepted", coordinationId };
  const submitted = await submitting;`,
    breaks: "a retry is accepted before it is in the log",
  },
];
