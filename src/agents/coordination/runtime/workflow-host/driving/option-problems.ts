/** Owns: which options of a run are out of their range, and which inputs it lacks. */
import { WORKFLOW_BOUNDS } from "../../../contracts/workflows/workflow-bounds.ts";
import type { WorkflowSettings } from "../../../workflow/node-contract/node-type.ts";
import { listAiOptionValues } from "../../../workflow/state/model-options.ts";
import type { NodeGraph } from "../../../workflow/state/node-graph.ts";
import type { Values } from "../../../workflow/state/values.ts";

/** The numbers that an option of a run may have. */
interface OptionRange {
  readonly min: number;
  readonly max: number;
  readonly isWhole: boolean;
}

const RANGES = {
  recursionLimit: { min: 1, max: Number.MAX_SAFE_INTEGER, isWhole: true },
  maxLoopIterations: { min: 1, max: Number.MAX_SAFE_INTEGER, isWhole: true },
  runTimeoutMs: { min: 1, max: WORKFLOW_BOUNDS.runDurationMsMax, isWhole: true },
  escalationThreshold: { min: 0, max: 1, isWhole: false },
  temperature: { min: 0, max: 2, isWhole: false },
  maxTokens: { min: 1, max: Number.MAX_SAFE_INTEGER, isWhole: true },
} satisfies Readonly<Record<string, OptionRange>>;

/** The options that the protocol has below `ai` too. */
const BELOW_AI = ["temperature", "maxTokens"] as const;

/**
 * Lists, as problems in words, the run's options that are no numbers in their range. Null stands for nothing, as in
 * the overlay of a branch.
 */
export function listOptionsOutOfRange(
  { runDurationMsMax }: Pick<WorkflowSettings, "runDurationMsMax">,
  configurable: Values,
): string[] {
  const ranges = { ...RANGES, runTimeoutMs: { ...RANGES.runTimeoutMs, max: runDurationMsMax } };
  const plain = Object.entries(ranges).flatMap(([key, range]) =>
    configurable[key] === undefined || configurable[key] === null
      ? []
      : describeOutOfRange(key, configurable[key], range),
  );
  const belowAi = BELOW_AI.flatMap((key) =>
    listAiOptionValues(configurable, key).flatMap((value) =>
      describeOutOfRange(`ai.${key}`, value, RANGES[key]),
    ),
  );
  return [...plain, ...belowAi];
}

function describeOutOfRange(name: string, value: unknown, { min, max, isWhole }: OptionRange): string[] {
  const isRight =
    typeof value === "number" && value >= min && value <= max && (!isWhole || Number.isInteger(value));
  return isRight
    ? []
    : [`configurable.${name}: expected ${isWhole ? "a whole number" : "a number"} from ${min} to ${max}`];
}

/** Lists, as problems in words, the inputs that a workflow requires, has no default for and was not given. */
export function listMissingInputs({ variables }: NodeGraph, inputs: Values): string[] {
  return variables.flatMap(({ name, required, defaultValue }) =>
    required && defaultValue === undefined && !(Object.hasOwn(inputs, name) && inputs[name] !== undefined)
      ? [`inputs.${name}: the workflow requires it`]
      : [],
  );
}
