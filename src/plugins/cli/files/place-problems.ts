/** Owns: where in the text of a plan each of its problems stands. */
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import type { PlanProblem } from "../../../agents/coordination/plan/plan-problem.ts";

export interface PlacedProblem extends PlanProblem {
  /** From 1; absent where no place of the text stands for it. */
  readonly line?: number;
  readonly column?: number;
}

const SYNTAX_PLACE = /^line (\d+), column (\d+)$/;

/**
 * Returns the problems of a plan with the line and column of each in its text; without them where the text is too long
 * to look into, or the place is not found.
 */
export async function locateProblems(
  text: string,
  problems: readonly PlanProblem[],
): Promise<readonly PlacedProblem[]> {
  const findPlace = await createPlaceFinder(text, problems);
  return problems.map((problem) => {
    const place = parseSyntaxPlace(problem) ?? findPlace(problem.path);
    return { ...problem, ...place };
  });
}

/** A position in a file. */
interface FilePosition {
  readonly line: number;
  readonly column: number;
}

/** Parses the place that a syntax problem has in its path; `undefined` for any other problem. */
function parseSyntaxPlace({ path }: PlanProblem): FilePosition | undefined {
  const [, line, column] = SYNTAX_PLACE.exec(path) ?? [];
  return line === undefined ? undefined : { line: Number(line), column: Number(column) };
}

/**
 * Returns a function that finds the place in the text of a path, else that of the nearest thing around it; `undefined`
 * where none is found. JSON is read as YAML, which keeps the places.
 */
async function createPlaceFinder(
  text: string,
  problems: readonly PlanProblem[],
): Promise<(path: string) => FilePosition | undefined> {
  const isOfSyntax = problems.every((problem) => parseSyntaxPlace(problem) !== undefined);
  if (isOfSyntax || Buffer.byteLength(text) > BOUNDS.planYamlBytesMax) return () => undefined;
  const { LineCounter, isNode, parseDocument } = await import("yaml");
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, uniqueKeys: false, logLevel: "silent" });
  return (path) => {
    // The place of a missing field is that of the nearest thing around it.
    for (let keys = parsePathKeys(path); keys.length > 0; keys = keys.slice(0, -1)) {
      const node = document.getIn(keys, true);
      if (!isNode(node) || !node.range) continue;
      const { line, col } = lineCounter.linePos(node.range[0]);
      return { line, column: col };
    }
    return undefined;
  };
}

/** Parses a path like `steps[3].dependsOn[0]` into its keys. */
function parsePathKeys(path: string): (string | number)[] {
  return [...path.matchAll(/\[(\d+)\]|\["([^"]*)"\]|([^.[\]]+)/g)].map(([, index, quoted, name]) =>
    index === undefined ? (quoted ?? name ?? "") : Number(index),
  );
}
