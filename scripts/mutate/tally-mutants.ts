/** Counts how the mutants of an area ended, and sets those apart whose survival is explained. */

/** A mutant and its end. Lines count from one. */
export interface Mutant {
  readonly file: string;
  readonly line: number;
  readonly mutator: string;
  /** The source line on which it begins, trimmed. */
  readonly code: string;
  readonly original: string;
  readonly replacement: string;
  readonly status: string;
}

/** Mutants of one source line that no test can kill, because they change nothing that anybody could notice. */
export interface ExplainedMutants {
  readonly file: string;
  /** The source line on which they begin, trimmed. */
  readonly code: string;
  /** Pairs of the original and its replacement. */
  readonly changes: readonly (readonly [original: string, replacement: string])[];
  readonly why: string;
}

/** A mutant that no test killed and nobody explained. */
export type Survivor = Omit<Mutant, "status"> & { readonly isCovered: boolean };

/** How the mutants ended. */
export interface Tally {
  readonly mutants: number;
  readonly killed: number;
  readonly timedOut: number;
  /** Without those that are explained. */
  readonly survived: number;
  /** No test runs them; without those that are explained. */
  readonly uncovered: number;
  readonly explained: number;
  /** They could not be run, and count for nothing. */
  readonly failed: number;
  /** Percent of the mutants that ran or had no coverage: those killed or timed out. */
  readonly score: number;
  readonly survivors: readonly Survivor[];
}

/** Tallies mutants; an explained one is no survivor, but lowers the score like one. */
export function tallyMutants(mutants: readonly Mutant[], explained: readonly ExplainedMutants[]): Tally {
  const countStatus = (status: string): number => mutants.filter((each) => each.status === status).length;
  const alive = mutants.filter(({ status }) => status === "Survived" || status === "NoCoverage");
  const survivors = alive
    .filter((mutant) => !explained.some((each) => isExplainedBy(mutant, each)))
    .map(({ status, ...mutant }) => ({ ...mutant, isCovered: status === "Survived" }));
  const [killed, timedOut] = [countStatus("Killed"), countStatus("Timeout")];
  const counted = killed + timedOut + alive.length;
  const uncovered = survivors.filter(({ isCovered }) => !isCovered).length;
  return {
    mutants: mutants.length,
    killed,
    timedOut,
    survived: survivors.length - uncovered,
    uncovered,
    explained: alive.length - survivors.length,
    failed: mutants.length - counted,
    score: counted === 0 ? 100 : Math.floor(((killed + timedOut) / counted) * 1_000) / 10,
    survivors,
  };
}

function isExplainedBy(mutant: Mutant, { file, code, changes }: ExplainedMutants): boolean {
  return (
    mutant.file === file &&
    mutant.code === code &&
    changes.some(
      ([original, replacement]) =>
        original === joinLines(mutant.original) && replacement === joinLines(mutant.replacement),
    )
  );
}

/** Formats a tally for people: the figures, then each survivor with its place. */
export function formatTally(tally: Tally): string {
  const { mutants, killed, survived, timedOut, uncovered, explained, failed, score, survivors } = tally;
  const figures =
    `${mutants} mutants, ${killed} killed, ${survived} survived, ${timedOut} timed out, ` +
    `${uncovered} without coverage, ${explained} explained, ${failed} could not be run: score ${score} %`;
  return [figures, ...survivors.map(formatSurvivor)].join("\n");
}

function formatSurvivor({ file, line, mutator, original, replacement, isCovered }: Survivor): string {
  return [
    `${file}:${line} ${mutator}${isCovered ? "" : " (without coverage)"}`,
    `  - ${joinLines(original)}`,
    `  + ${joinLines(replacement)}`,
  ].join("\n");
}

function joinLines(source: string): string {
  return source.replaceAll(/\s+/gu, " ").trim();
}
