/** Owns: the shape of a result, and the arithmetic of comparing two ways of doing a thing in one run. */

export interface BenchRow {
  readonly name: string;
  /** The two things that were compared, so that the figure can be doubted properly. */
  readonly compares: string;
  readonly value: number;
  readonly unit: string;
  /** Absent: reported, not judged. */
  readonly target?: { readonly is: "at least" | "at most"; readonly value: number };
  /** The figures behind the ratio. */
  readonly detail?: Readonly<Record<string, number>>;
}

export interface BenchOptions {
  /** A small run that shows the harness works; its figures are not the product's. */
  readonly quick: boolean;
}

/** The lowest and the highest of the rounds. */
export function spreadOf(values: readonly number[]): { lowest: number; highest: number } {
  return { lowest: round(Math.min(...values)), highest: round(Math.max(...values)) };
}

export function isMet({ value, target }: BenchRow): boolean {
  if (!target) return true;
  return target.is === "at least" ? value >= target.value : value <= target.value;
}

export function findMedian(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const upper = sorted[Math.floor(middle)] ?? Number.NaN;
  return Number.isInteger(middle) ? ((sorted[middle - 1] ?? upper) + upper) / 2 : upper;
}

/** Runs each side once per round, in turn, so that both see the same machine. Returns milliseconds per side. */
export async function alternate(
  rounds: number,
  sides: readonly (() => Promise<number> | number)[],
): Promise<number[][]> {
  const times: number[][] = sides.map(() => []);
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, side] of sides.entries()) times[index]?.push(await side());
  }
  return times;
}

export async function timeWork(work: () => Promise<void> | void): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

export function round(value: number, digits = 3): number {
  return Number(value.toPrecision(digits));
}
