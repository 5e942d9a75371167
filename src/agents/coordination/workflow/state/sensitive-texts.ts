/** Owns: the texts of a run that no model may see, wherever its nodes have passed them on. */
import { isRecord } from "../../std/is-record.ts";
import type { NodeGraph } from "./node-graph.ts";
import { MASK } from "./run-view.ts";
import type { WorkflowRun } from "./workflow-state.ts";

/** A shorter value would be found in texts that have nothing to do with it. */
const HIDDEN_CHARS_MIN = 8;

/**
 * Lists the texts of eight characters or more in sensitive variables of the runs, each also as JSON writes it, the
 * longest first: a node may have passed them on.
 */
export function listSensitiveTexts(runs: readonly RunWithGraph[]): readonly string[] {
  const texts = runs.flatMap(listSensitiveValues).flatMap(collectNestedTexts);
  const hidden = texts
    .filter(({ length }) => length >= HIDDEN_CHARS_MIN)
    .flatMap((text) => [text, JSON.stringify(text).slice(1, -1)]);
  return [...new Set(hidden)].toSorted((one, other) => other.length - one.length);
}

interface RunWithGraph {
  readonly run: WorkflowRun;
  readonly graph: NodeGraph;
}

/** Lists the values that sensitive variables of the run have or had. */
function listSensitiveValues({ run, graph: { variables } }: RunWithGraph): unknown[] {
  return variables
    .filter(({ sensitive }) => sensitive)
    .flatMap(({ name, defaultValue }) => [
      defaultValue,
      run.started.inputs[name],
      ...(run.replacedValues?.get(name) ?? []),
      run.variables.get(name),
    ]);
}

function collectNestedTexts(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(collectNestedTexts);
}

/** Returns the text with each of the hidden texts in it masked. */
export function maskTexts(text: string, hidden: readonly string[]): string {
  return hidden.reduce((clean, value) => clean.replaceAll(value, MASK), text);
}

/** Returns a copy of a nested value with every text and key in it cleaned. */
export function cleanNestedTexts(value: unknown, clean: (text: string) => string): unknown {
  if (typeof value === "string") return clean(value);
  if (Array.isArray(value)) return value.map((each) => cleanNestedTexts(each, clean));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [clean(key), cleanNestedTexts(each, clean)]),
  );
}
