/**
 * Owns: the texts of a run that no model may see, wherever its nodes have passed them on. A variable may have tens of thousands of
 * them: each place of a text is looked at once, however many there are.
 */
import { isRecord } from "../../std/is-record.ts";
import type { NodeGraph } from "./node-graph.ts";
import { MASK } from "./run-view.ts";
import type { WorkflowRun } from "./workflow-state.ts";

/** A shorter value would be found in texts that have nothing to do with it. */
const HIDDEN_CHARS_MIN = 8;

/** Texts that no model may see, as a tree of their characters: all of them are looked for in one walk over a text. */
export interface HiddenTexts {
  /** The node that a character leads to from another, by `createKey`; the root is 0. */
  readonly next: ReadonlyMap<number, number>;
  /** The node of the longest other beginning of a hidden text with which the characters up to a node end. */
  readonly back: readonly number[];
  /** How many characters the longest hidden text has that ends at a node; 0 where none does. */
  readonly lengths: readonly number[];
}

/**
 * Collects the texts of eight characters or more in sensitive variables of the runs, each also as JSON writes it: a
 * node may have passed them on.
 */
export function collectSensitiveTexts(runs: readonly RunWithGraph[]): HiddenTexts {
  const texts = runs.flatMap(listSensitiveValues).flatMap(collectNestedTexts);
  const hidden = texts
    .filter(({ length }) => length >= HIDDEN_CHARS_MIN)
    .flatMap((text) => [text, JSON.stringify(text).slice(1, -1)]);
  return buildTree(hidden);
}

/** Builds the tree a character of all texts at a time, so that what a node leads back to is there before it. */
function buildTree(texts: readonly string[]): HiddenTexts {
  const next = new Map<number, number>();
  const back = [0];
  const lengths = [0];
  let ends = texts.map((text) => ({ text, node: 0 }));
  for (let at = 0; ends.length > 0; at += 1) {
    for (const end of ends) {
      const code = end.text.charCodeAt(at);
      const key = createKey(end.node, code);
      let node = next.get(key);
      if (node === undefined) {
        const behind = end.node === 0 ? 0 : followCode({ next, back }, back[end.node] ?? 0, code);
        node = back.push(behind) - 1;
        lengths.push(lengths[behind] ?? 0);
        next.set(key, node);
      }
      end.node = node;
      if (at + 1 === end.text.length) lengths[node] = at + 1;
    }
    ends = ends.filter(({ text }) => text.length > at + 1);
  }
  return { next, back, lengths };
}

function createKey(node: number, code: number): number {
  return node * 0x1_00_00 + code;
}

/** Returns the node of the longest beginning of a hidden text that the characters up to a node, and one more, end with. */
function followCode({ next, back }: Pick<HiddenTexts, "next" | "back">, from: number, code: number): number {
  for (let node = from; ; node = back[node] ?? 0) {
    const found = next.get(createKey(node, code));
    if (found !== undefined || node === 0) return found ?? 0;
  }
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

/** Returns the text with each stretch masked that hidden texts cover; where these overlap, all of it as one. */
export function maskTexts(text: string, hidden: HiddenTexts): string {
  const stretches: { from: number; to: number }[] = [];
  let node = 0;
  for (let to = 1; to <= text.length; to += 1) {
    node = followCode(hidden, node, text.charCodeAt(to - 1));
    const length = hidden.lengths[node] ?? 0;
    if (length === 0) continue;
    let from = to - length;
    for (let last = stretches.at(-1); last && last.to > from; last = stretches.at(-1)) {
      from = Math.min(from, last.from);
      stretches.pop();
    }
    stretches.push({ from, to });
  }
  const shown = stretches.map(({ from }, at) => text.slice(stretches[at - 1]?.to ?? 0, from) + MASK);
  return shown.join("") + text.slice(stretches.at(-1)?.to ?? 0);
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
