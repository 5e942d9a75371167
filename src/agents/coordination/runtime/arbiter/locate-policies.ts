/**
 * Owns: where the patterns of policies lead. A pattern that begins at the root holds for what is there and, where a link is on the
 * way to its first wildcard, for what the link leads to.
 */
import { splitRootedPattern } from "../../arbitration/matches-pattern.ts";
import type { Policies } from "../../arbitration/strategy-for.ts";
import type { ArbiterPolicy } from "../../contracts/plan.ts";
import { nameFile } from "../../contracts/resource-names.ts";
import type { ResourceFiles } from "../../ports/resource-files.ts";

/** Returns the policies with the patterns that theirs lead to, each behind its own. */
export async function locatePolicies(files: ResourceFiles, { operator, plan }: Policies): Promise<Policies> {
  const locatedOperator = await locatePolicy(files, operator);
  return plan
    ? { operator: locatedOperator, plan: await locatePolicy(files, plan) }
    : { operator: locatedOperator };
}

async function locatePolicy<T extends ArbiterPolicy>(files: ResourceFiles, policy: T): Promise<T> {
  const { overrides = [], highRisk = [] }: ArbiterPolicy = policy;
  const exceptions = overrides.map(async ({ resource, strategy }) => {
    const patterns = await listPatterns(files, resource);
    return patterns.map((pattern) => ({ resource: pattern, strategy }));
  });
  const locatedHighRisk = highRisk.map((pattern) => listPatterns(files, pattern));
  return {
    ...policy,
    overrides: (await Promise.all(exceptions)).flat(),
    highRisk: (await Promise.all(locatedHighRisk)).flat(),
  };
}

/** Lists the pattern, and the one that it leads to where that is another. */
async function listPatterns(files: ResourceFiles, pattern: string): Promise<string[]> {
  const split = splitRootedPattern(pattern);
  if (!split || (split.machine !== undefined && split.machine !== files.machine)) return [pattern];
  const resource = await files.locate(split.root, "/");
  if (resource === undefined || resource === nameFile(split.root, files.machine)) return [pattern];
  return [pattern, [resource, ...split.rest].join("/")];
}
