/** Owns: the port that checks outputs of a step, or the answer of a model, against a JSON Schema. */

/** One place where outputs break their contract. It says nothing of the outputs but where, and of what type they are. */
export interface OutputProblem {
  /** As `changes[0].title`; names that the schema does not know are `*`. */
  readonly path: string;
  /** As `expected string, got number`. */
  readonly message: string;
  /** The outputs could not be held against the schema: whether they meet it is open. */
  readonly isUnchecked?: true;
}

/** Holds the outputs of a step, or what a model answered, against a schema. */
export interface OutputContract {
  /**
   * Returns the problems of the outputs, at most a few; none where they meet the schema. The same schema and outputs
   * give the same answer. Never throws, and always ends soon: a check that would take too long is a problem too.
   */
  check(schema: Readonly<Record<string, unknown>>, outputs: unknown): readonly OutputProblem[];
}
