/** Owns: reading configuration by a schema, and the error that names everything that is wrong with it. */
import type { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { CoordinationError } from "../errors.ts";
import { describeProblems, parseBounded, type ValidationProblem } from "../validation.ts";

/** A configuration that is not valid, with each problem by itself. */
export class InvalidConfigError extends CoordinationError {
  readonly problems: readonly ValidationProblem[];

  constructor(problems: readonly ValidationProblem[], where: string) {
    super("CONFIG_INVALID", `${describeProblems(problems)}${where}`);
    this.problems = problems;
  }
}

/**
 * Returns a configuration checked by a schema, an absent one as `{}`; `where` ends the message of the error, from
 * which secrets are removed. @throws InvalidConfigError
 */
export function parseConfig<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  where = "",
): z.output<Schema> {
  const parsed = parseBounded(schema, value ?? {}, {
    charsMax: BOUNDS.configCharsMax,
    depthMax: BOUNDS.configDepthMax,
  });
  if (parsed.ok) return parsed.value;
  throw new InvalidConfigError(parsed.problems.map(removeSecrets), where);
}

const SECRETS = ["acpAgents", "verifiers", "webhooks", "openwop", "ledger", "telemetry"];

/** Returns a problem without the value that may be a secret, because problems are logged. */
function removeSecrets(problem: ValidationProblem): ValidationProblem {
  const mayHold = SECRETS.some((name) => problem.path.includes(name));
  return mayHold ? { ...problem, received: "something else" } : problem;
}
