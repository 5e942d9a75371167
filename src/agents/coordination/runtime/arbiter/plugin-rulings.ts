/**
 * Owns: the plugins' rulings on the contests of one call: asking for them, and keeping them as long as the contest stays the same.
 * Does not own: what is ruled by them (`arbitration/`).
 *
 * 1. They are asked while other calls are ruled on: a slow plugin holds up nobody else. 2. Who fails, or is late, rules for the
 * holders. 3. High-risk resources are for people, and plugins are not asked. 4. Their words go to the model that asked, never into the log.
 */
import {
  pluginRulingSchema,
  type AppliedStrategy,
  type Contestant,
  type PluginRuling,
} from "../../contracts/arbitration.ts";
import type { ResourceContest } from "../../contracts/commands.ts";
import { assertInvariant } from "../../contracts/errors.ts";
import { addMs, OWNER_STEP_ID, type AgentId, type EpochMs } from "../../contracts/ids.ts";
import { isRequester } from "../../arbitration/arbitrate.ts";
import type { ContestAnswer, ContestSide, PluginContest, PluginHooks } from "../environment/plugin-hooks.ts";
import { waitWithin } from "../../std/wait-for.ts";
import { ignoreDamage } from "../log/ignore-damage.ts";
import type { ArbiterDependencies } from "./arbiter-dependencies.ts";
import { listClaimedLinks } from "./locate-targets.ts";
import type { Participant } from "./participants.ts";

/** The end of a call's time, which all plugins and all contests together leave to what is recorded of their rulings. */
const RECORDING_MS = 2_000;

/** Extra time for the host of the hooks, which ends a late plugin at the deadline and names it. */
const GRACE_MS = 250;

/** A contest that is not ruled on yet, and the strategy that applies to it. */
export type UnruledContest = Pick<PluginContest, "cause"> & Pick<ResourceContest, "claims"> & AppliedStrategy;

export interface PluginOpinion {
  /** Absent: nobody has an opinion. */
  readonly ruling?: PluginRuling;
  /** For the model of the requester: the sentence of a plugin, or why there is none. */
  readonly sentence?: string;
}

export interface PluginRulings {
  /** Returns the ruling on this very contest; `undefined` where plugins are still to be asked. */
  findOpinion(
    participant: Participant,
    target: NamedTarget,
    contest: UnruledContest,
  ): PluginOpinion | undefined;
  /** Asks about all contests that `on` was asked for in vain. */
  ask(participant: Participant): Promise<void>;
}

type NamedTarget = Pick<PluginContest, "resource" | "names">;

type PluginRulingDependencies = Pick<ArbiterDependencies, "clock" | "files" | "logger" | "runs"> & {
  readonly hooks?: PluginHooks;
};

const NO_OPINION: PluginOpinion = {};

/**
 * Returns the memory of what plugins say on the contests of one call: it notes contests without an opinion, asks the
 * plugins about these at once, and keeps an opinion as long as its contest stays the same.
 */
export function createPluginRulings(
  dependencies: PluginRulingDependencies,
  { tool, answerByMs }: { readonly tool: string; readonly answerByMs: EpochMs },
): PluginRulings {
  const answers = new Map<string, PluginOpinion>();
  const unasked = new Map<string, { readonly target: NamedTarget; readonly contest: UnruledContest }>();
  const deadlineAtMs = addMs(answerByMs, -RECORDING_MS);
  return {
    findOpinion: (participant, target, contest) => {
      if (contest.from === "high_risk" || !dependencies.hooks?.hasAny("arbitrate")) return NO_OPINION;
      const key = createContestKey(participant, target.resource, contest);
      const answer = answers.get(key);
      if (!answer) unasked.set(key, { target, contest });
      return answer;
    },
    ask: async (participant) => {
      const contests = [...unasked];
      unasked.clear();
      await Promise.all(
        contests.map(async ([key, { target, contest }]) => {
          const question = await createPluginContest(dependencies, participant, { target, contest, tool });
          answers.set(key, await askPlugins(dependencies, question, deadlineAtMs));
        }),
      );
    },
  };
}

/**
 * Returns the key under which the ruling on a contest is kept. The length of leases and the token that the requester
 * would get do not count.
 */
function createContestKey(participant: Participant, resource: string, contest: UnruledContest): string {
  const sides = contest.claims.map((claim) => {
    const { coordinationId, stepId, priority, claimedSequence, declared, changedAtMs } = claim;
    const sequence = isClaimOfRequester(participant, claim) ? undefined : claimedSequence;
    return JSON.stringify([coordinationId, stepId, priority, sequence, declared, changedAtMs]);
  });
  return JSON.stringify([resource, contest.cause, contest.strategy, contest.from, sides.sort()]);
}

function isClaimOfRequester({ stepId }: Participant, claim: Contestant): boolean {
  return isRequester({ requester: stepId, claims: [], strategy: "owner_wins" }, claim);
}

async function createPluginContest(
  { runs, files }: PluginRulingDependencies,
  participant: Participant,
  {
    target: { resource, names },
    contest,
    tool,
  }: { readonly target: NamedTarget; readonly contest: UnruledContest; readonly tool: string },
): Promise<PluginContest> {
  const { cause, strategy, claims } = contest;
  const { runId } = participant;
  const describeSide = async (claim: Contestant): Promise<ContestSide> => {
    const { claimedSequence: _, ...claimFields } = claim;
    const agentId = await findAgentOfContestant(runs, {
      ...claim,
      coordinationId: claim.coordinationId ?? runId,
    });
    return { ...claimFields, ...(agentId && { agentId }) };
  };
  const requester = claims.find((claim) => isClaimOfRequester(participant, claim));
  assertInvariant(requester !== undefined, "A1: the requester is one of the claims");
  const holders = claims.filter((claim) => claim !== requester);
  const namesOfHolders = await Promise.all(
    holders.map(({ coordinationId, stepId }) =>
      listClaimedLinks({ runs, files }, resource, { runId: coordinationId ?? runId, stepId }),
    ),
  );
  return {
    coordinationId: runId,
    resource,
    names: [...new Set([...names, ...namesOfHolders.flat()])],
    cause,
    strategy,
    tool,
    requester: await describeSide(requester),
    holders: await Promise.all(holders.map(describeSide)),
  };
}

async function findAgentOfContestant(
  runs: PluginRulingDependencies["runs"],
  { coordinationId, stepId }: Contestant & { readonly coordinationId: Participant["runId"] },
): Promise<AgentId | undefined> {
  const state = await runs.state(coordinationId).catch(ignoreDamage);
  if (!state || state.kind === "unopened") return undefined;
  return stepId === OWNER_STEP_ID ? state.created.ownerAgent : state.steps.get(stepId)?.spec.agentId;
}

async function askPlugins(
  dependencies: PluginRulingDependencies,
  question: PluginContest,
  deadlineAtMs: EpochMs,
): Promise<PluginOpinion> {
  try {
    return readOpinion(await awaitPluginAnswer(dependencies, question, deadlineAtMs));
  } catch {
    return createFailedOpinion(undefined, "a plugin that rules on writes failed");
  }
}

/**
 * Waits for the plugins' answer, until shortly after the deadline. The host of the hooks ends late ones in time
 * itself, but nothing may depend on that.
 */
async function awaitPluginAnswer(
  { hooks, clock }: PluginRulingDependencies,
  question: PluginContest,
  deadlineAtMs: EpochMs,
): Promise<ContestAnswer | "late" | undefined> {
  const leftMs = deadlineAtMs - clock.now();
  if (leftMs <= 0) return "late";
  const answer = Promise.resolve(hooks?.arbitrate(question, deadlineAtMs));
  return waitWithin(clock, leftMs + GRACE_MS, answer, "late");
}

function readOpinion(answer: ContestAnswer | "late" | undefined): PluginOpinion {
  if (answer === "late")
    return createFailedOpinion(undefined, "the plugins that rule on writes did not answer in time");
  if (!answer) return NO_OPINION;
  if ("failed" in answer) return createFailedOpinion(answer.failed, answer.message);
  const ruling = pluginRulingSchema.safeParse({ plugin: `plugin:${answer.plugin}`, award: answer.award });
  if (!ruling.success)
    return createFailedOpinion(undefined, "a plugin that rules on writes has no usable id");
  return { ruling: ruling.data, sentence: `the plugin ${answer.plugin} ruled so: ${answer.reason}` };
}

/** Returns the opinion in place of plugins that failed or were late: it awards the resource to the holders. */
function createFailedOpinion(plugin: string | undefined, sentence: string): PluginOpinion {
  const named = pluginRulingSchema.safeParse({ plugin: `plugin:${plugin}`, award: "holder", failed: true });
  const ruling: PluginRuling =
    plugin !== undefined && named.success ? named.data : { award: "holder", failed: true };
  return { ruling, sentence };
}
