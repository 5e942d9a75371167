/** Mutants of `workflow`, its folders `nodes` and `state` left out, that change nothing which anybody could notice, each with the reason. */
import type { ExplainedMutants } from "./tally-mutants.ts";

/** Explained mutants, their files from the folder of the area on. */
export const WORKFLOW: readonly ExplainedMutants[] = [
  {
    file: "advance-run.ts",
    code: "const advance: RunAdvance = { ...context, run, events: [], memory: [] };",
    changes: [["[]", '["Stryker was here"]']],
    why: "Drafts that are only recorded keep nothing in memory, and that list is not returned.",
  },
  {
    file: "advance-run.ts",
    code: "const view = draft.nodeId === undefined ? undefined : createNodeView(advance, draft.nodeId);",
    changes: [["draft.nodeId === undefined", "false"]],
    why: "No node has the name `undefined`, so its view is not there either.",
  },
  {
    file: "advance-run.ts",
    code: 'case "act":',
    changes: [
      ['case "act": return false;', 'case "act":'],
      ['"act"', '""'],
    ],
    why: "It is the last case, and no value counts as false.",
  },
  {
    file: "advance-run.ts",
    code: "return view ? [decideNodeStep(view)] : [];",
    changes: [["[]", '["Stryker was here"]']],
    why: "A text is no step: it has neither an effect nor a time.",
  },
  {
    file: "advance-run.ts",
    code: '...steps.flatMap((step) => (step.kind === "wait" ? [step.atMs] : [])),',
    changes: [['step.kind === "wait"', "true"]],
    why: "No other step has a time, and times that are not there are left out.",
  },
  {
    file: "go-live.ts",
    code: "const isDecided = last?.nodeId === nodeId && last.sequence > nodeRun.startedSequence;",
    changes: [["last.sequence > nodeRun.startedSequence", "last.sequence >= nodeRun.startedSequence"]],
    why: "One event is not both a decision and the start of a node.",
  },
  {
    file: "go-live.ts",
    code: 'const drafts = step.kind === "suspend" ? draftSuspension(view, step.interrupt) : [];',
    changes: [["[]", '["Stryker was here"]']],
    why: "A text is no draft of a question, and is not found among them.",
  },
  {
    file: "trace-context.ts",
    code: 'const [, traceId, spanId, flags] = TRACEPARENT.exec(text ?? "") ?? [];',
    changes: [
      ['""', '"Stryker was here!"'],
      ["[]", '["Stryker was here"]'],
    ],
    why: "Neither text is a traceparent, and the first entry of a match is not read.",
  },
  {
    file: "trace-context.ts",
    code: "if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;",
    changes: [
      [
        "traceId === undefined || spanId === undefined || flags === undefined",
        "(traceId === undefined || spanId === undefined) && flags === undefined",
      ],
      ["traceId === undefined || spanId === undefined", "false"],
      ["traceId === undefined || spanId === undefined", "traceId === undefined && spanId === undefined"],
      ["traceId === undefined", "false"],
      ["spanId === undefined", "false"],
      ["flags === undefined", "false"],
    ],
    why: "A match has all three groups, and no match has none of them.",
  },
  {
    file: "trace-context.ts",
    code: "if (traceparent === undefined || !parseTraceparent(traceparent)) return {};",
    changes: [["traceparent === undefined", "false"]],
    why: "No traceparent cannot be read either; the comparison is for the type.",
  },
  {
    file: "parent-header.ts",
    code: "const url = text === undefined ? undefined : URL.parse(text);",
    changes: [["text === undefined", "false"]],
    why: "No text is read as `undefined`, which is no URL.",
  },
  {
    file: "envelope-kind.ts",
    code: "default:",
    changes: [["default: continue;", "default:"]],
    why: "Nothing stands behind the switch in the loop.",
  },
  {
    file: "node-contract/run-end.ts",
    code: "return deadline !== undefined && ending.now >= deadline;",
    changes: [["deadline !== undefined", "true"]],
    why: "No time is as late as none.",
  },
  {
    file: "same-value-in-slices.ts",
    code: "if (!names.every((name) => Object.hasOwn(other, name) && other[name] !== undefined)) return undefined;",
    changes: [["other[name] !== undefined", "true"]],
    why: "A compared member is never undefined, so the pair with an undefined one differs anyway.",
  },
  {
    file: "run-diff.ts",
    code: "return causationId === undefined ? undefined : (places.get(causationId) ?? causationId);",
    changes: [["causationId === undefined", "false"]],
    why: "No event has the id undefined, so without a cause the result is undefined either way.",
  },
  {
    file: "node-contract/turn-inputs.ts",
    code: 'const text = texts[index] ?? "";',
    changes: [['""', '"Stryker was here!"']],
    why: "There is a text for each value.",
  },
  {
    file: "node-contract/turn-inputs.ts",
    code: "const head = { sequence, type, ...(nodeId !== undefined && { nodeId }) };",
    changes: [["nodeId !== undefined", "true"]],
    why: "JSON has no member that is undefined.",
  },
  {
    file: "node-contract/turn-inputs.ts",
    code: "return value === undefined ? safeHead : { ...safeHead, [field]: room[index]?.[1] };",
    changes: [["room[index]?.[1]", "room[index][1]"]],
    why: "There is room for each item.",
  },
  {
    file: "node-contract/turn-inputs.ts",
    code: "if (length * left > room) return Math.floor(room / left);",
    changes: [["length * left > room", "length * left >= room"]],
    why: "Where a length is just the share, the longer ones come to the same share, and where there are none all are whole.",
  },
  {
    file: "node-contract/turn-inputs.ts",
    code: 'if (type === "interrupt.requested" && isRecord(data) && data["artifactType"] === SUBRUN_ARTIFACT) {',
    changes: [
      [
        'type === "interrupt.requested" && isRecord(data)',
        'type === "interrupt.requested" || isRecord(data)',
      ],
      ['type === "interrupt.requested"', "true"],
    ],
    why: "No other event that is drafted has data with a type of artifact, and this one always has data.",
  },
  {
    file: "nodes/gate-ruling.ts",
    code: 'const verdicts = judgements.filter((judgement) => judgement.kind === "verdict");',
    changes: [
      ['judgements.filter((judgement) => judgement.kind === "verdict")', "judgements"],
      ['judgement.kind === "verdict"', "true"],
    ],
    why: "An answer that is missing has no verdict to be found by, and is ruled on before the rest is counted.",
  },
  {
    file: "nodes/gate-question.ts",
    code: "...listRulingHolds(view, ruling, gate.verifier && actor ? [actor] : []),",
    changes: [["[]", '["Stryker was here"]']],
    why: "It states no confidence, so nobody doubts it.",
  },
  {
    file: "nodes/gate-question.ts",
    code: "confidence !== undefined && confidence < confidenceFloor",
    changes: [["confidence !== undefined", "true"]],
    why: "No confidence is not below any floor.",
  },
  {
    file: "nodes/gate-question.ts",
    code: "...(timeoutMs !== undefined && { timeoutMs }),",
    changes: [["timeoutMs !== undefined", "true"]],
    why: "The suspension leaves out a time that is undefined itself.",
  },
  {
    file: "nodes/gate-question.ts",
    code: "{ variables = {}, sensitive = [] }: ChildJudgedOutcome,",
    changes: [["[]", '["Stryker was here"]']],
    why: "No variable has that name.",
  },
  {
    file: "nodes/gate-question.ts",
    code: "return JSON.stringify(all).length <= SHOWN_CHARS_MAX ? all : selectOutputs(() => false);",
    changes: [["() => false", "() => undefined"]],
    why: "Neither is true.",
  },
  {
    file: "nodes/agent-messages.ts",
    code: "const entries = isRecord(task) ? Object.entries(task) : [];",
    changes: [["[]", '["Stryker was here"]']],
    why: "Its first letter is no name that a lone text has.",
  },
  {
    file: "nodes/basic-nodes.ts",
    code: 'candidates.find((value): value is number => typeof value === "number" && Number.isFinite(value)) ?? 0;',
    changes: [['typeof value === "number"', "true"]],
    why: "Only a number is finite to Number.isFinite.",
  },
  {
    file: "nodes/model-nodes.ts",
    code: "const messages = (Array.isArray(givenMessages) ? givenMessages : [])",
    changes: [["[]", '["Stryker was here"]']],
    why: "Anything but an object is no message.",
  },
  {
    file: "nodes/dispatch.ts",
    code: "return createHandoffBeginStep(view, workerId, createWorkerHandover(view, { workerId, index }));",
    changes: [["{ workerId, index }", "{}"]],
    why: "The beginning takes of the handover only the event that it follows from.",
  },
  {
    file: "nodes/handoff.ts",
    code: 'case "harvested":',
    changes: [
      ['case "harvested": return undefined;', 'case "harvested":'],
      ['"harvested"', '""'],
    ],
    why: "Behind the last case the function returns undefined as well.",
  },
  {
    file: "same-draft.ts",
    code: "const event = at < 0 ? events[0] : (events[at] ?? events.at(-1));",
    changes: [["at < 0", "at <= 0"]],
    why: "The event at the place 0 is the first one.",
  },
];
