/**
 * Owns: where the patterns of policies lead. `~` at the beginning of a pattern stands for the home folder of the user whom the
 * gateway runs as. A pattern that begins at the root holds for what is there and, where a link is on the
 * way to its first wildcard, for what the link leads to.
 *
 * The file system is asked before a call has its turn, and in bounded time, because a mount may hang. Its answers are kept for a second:
 * a link that a step makes meanwhile counts that late. A pattern that it says nothing of in time holds as it led last, else as it is
 * written.
 */
import { splitRootedPattern, type RootedPattern } from "../../arbitration/matches-pattern.ts";
import type { ConflictPolicies } from "../../arbitration/strategy-for.ts";
import { addMs, type EpochMs } from "../../contracts/ids.ts";
import type { ArbiterPolicy } from "../../contracts/plan.ts";
import { expandHome, nameFile } from "../../contracts/resource-names.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ResourceFiles } from "../../ports/resource-files.ts";
import { rememberNewest } from "../../std/remember-newest.ts";
import { createTurnsByName } from "../../std/turns-by-name.ts";
import { waitWithin } from "../../std/wait-for.ts";

const KEPT_MS = 1_000;
/** How long a call waits for the file system. */
const WAIT_MS = 500;
/** A model may have written the patterns of a plan: the file system is asked about no more of them. */
const PLAN_PATTERNS_MAX = 64;
/** Roots that are kept; others are looked up again. */
const ROOTS_MAX = 4_096;

/** Follows the links on the way of patterns. */
export interface PolicyLocator {
  /** Looks where the patterns lead. Returns when that is known, or takes too long. */
  refresh(policies: ConflictPolicies): Promise<void>;
  /** Returns the policies with the patterns that theirs lead to, each behind its own, without asking the file system. */
  locate(policies: ConflictPolicies): ConflictPolicies;
}

interface FoundRoot {
  /** The resource that the root leads to; `undefined` where it leads nowhere. */
  readonly resource: string | undefined;
  readonly atMs: EpochMs;
}

interface LookUnderWay {
  readonly ended: Promise<void>;
  readonly beganAtMs: EpochMs;
}

/**
 * Returns a locator of policies: it looks up where the roots of their file patterns lead, waiting half a second at
 * most and again after a second, and adds the patterns that these lead to.
 */
export function createPolicyLocator({
  files,
  clock,
}: {
  readonly files: ResourceFiles;
  readonly clock: Clock;
}): PolicyLocator {
  const foundRoots = new Map<string, FoundRoot>();
  const underWay = new Map<string, LookUnderWay>();
  const turns = createTurnsByName();
  const lookUp = async (root: string): Promise<void> => {
    const resource = await files.locate(root, "/");
    rememberNewest(foundRoots, root, { resource, atMs: clock.now() }, ROOTS_MAX);
  };
  const beginLook = (root: string): LookUnderWay => {
    const endLook = (): void => {
      underWay.delete(root);
    };
    const ended = turns.run(nameMount(root), () => lookUp(root)).then(endLook, endLook);
    const look = { ended, beganAtMs: clock.now() };
    underWay.set(root, look);
    return look;
  };
  return {
    refresh: async (policies) => {
      const now = clock.now();
      const looks = listPatternRoots(files, policies)
        .filter((root) => isLookUpDue(foundRoots.get(root), now))
        .map((root) => underWay.get(root) ?? beginLook(root))
        .filter(({ beganAtMs }) => now < addMs(beganAtMs, WAIT_MS));
      if (looks.length === 0) return;
      await waitWithin(clock, WAIT_MS, Promise.all(looks.map(({ ended }) => ended)), undefined);
    },
    locate: ({ operator, plan }) => {
      const follow = (pattern: string): string[] => listLocatedPatterns(files, foundRoots, pattern);
      const located = { operator: locatePolicy(follow, operator) };
      return plan ? { ...located, plan: locatePolicy(follow, plan) } : located;
    },
  };
}

/** Names the place whose roots are looked up one after another, so that a mount that hangs keeps one thread of the process. */
function nameMount(root: string): string {
  return root.split("/", 3).join("/");
}

function isLookUpDue(root: FoundRoot | undefined, now: EpochMs): boolean {
  return root === undefined || Math.abs(now - root.atMs) >= KEPT_MS;
}

/** Lists the roots of the patterns on this machine, each once. */
function listPatternRoots(files: ResourceFiles, { operator, plan }: ConflictPolicies): string[] {
  const patterns = [...listPolicyPatterns(operator), ...listPolicyPatterns(plan).slice(0, PLAN_PATTERNS_MAX)];
  const split = patterns.map((pattern) => splitLocalPattern(files, expandHome(pattern, files.home)));
  return [...new Set(split.flatMap((rooted) => rooted?.root ?? []))];
}

/** Lists the patterns of a policy, those first that leave resources to people. */
function listPolicyPatterns({ overrides = [], highRisk = [] }: ArbiterPolicy = {}): string[] {
  return [...highRisk, ...overrides.map(({ resource }) => resource)];
}

/** Returns the policy with each pattern replaced by those that `follow` gives for it. */
function locatePolicy<T extends ArbiterPolicy>(follow: (pattern: string) => string[], policy: T): T {
  const { overrides = [], highRisk = [] }: ArbiterPolicy = policy;
  return {
    ...policy,
    overrides: overrides.flatMap(({ resource, strategy }) =>
      follow(resource).map((pattern) => ({ resource: pattern, strategy })),
    ),
    highRisk: highRisk.flatMap(follow),
  };
}

/** Lists the pattern, and the one that it leads to where that is another. */
function listLocatedPatterns(
  files: ResourceFiles,
  found: ReadonlyMap<string, FoundRoot>,
  pattern: string,
): string[] {
  const plain = expandHome(pattern, files.home);
  const split = splitLocalPattern(files, plain);
  if (!split) return [plain];
  const resource = found.get(split.root)?.resource;
  if (resource === undefined || resource === nameFile(split.root, files.machine)) return [plain];
  return [plain, [resource, ...split.rest].join("/")];
}

/** Splits a pattern that begins at a root of this machine; `undefined` for all others. */
function splitLocalPattern({ machine }: ResourceFiles, pattern: string): RootedPattern | undefined {
  const split = splitRootedPattern(pattern);
  return split?.machine === undefined || split.machine === machine ? split : undefined;
}
