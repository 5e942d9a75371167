/**
 * Owns: what plugins say of the contests of one call: asking them, and keeping what they said as long as the contest stays the same.
 * Does not own: what is ruled by it (`arbitration/`).
 *
 * 1. They are asked while other calls are ruled on: a slow plugin holds up nobody else. 2. Who fails, or is late, rules for the
 * holders. 3. What is high-risk is for people, and they are not asked. 4. Their words go to the model that asked, never into the log.
 */
import {
  pluginRulingSchema,
  type AppliedStrategy,
  type Contestant,
  type PluginRuling,
} from "../../contracts/arbitration.ts";
import type { ResourceContest } from "../../contracts/commands.ts";
import { invariant } from "../../contracts/errors.ts";
import { addMs, OWNER_STEP_ID, type AgentId, type EpochMs } from "../../contracts/ids.ts";
import { isRequester } from "../../arbitration/arbitrate.ts";
import type { ContestSaid, ContestSide, PluginContest, PluginHooks } from "../environment/plugin-hooks.ts";
import type { ArbiterParts } from "./arbiter-parts.ts";
import type { Participant } from "./participants.ts";

/** All plugins and all contests of a call together; the host waits for 14 s, and other work needs some of them. */
export const PLUGINS_MS = 10_000;

/** What a plugin that names the deadline itself is given on top, so that it can be named. */
const GRACE_MS = 250;

export type Contested = Pick<ResourceContest, "cause" | "claims"> & AppliedStrategy;

export interface Said {
  /** Absent: nobody has an opinion. */
  readonly ruling?: PluginRuling;
  /** For the model of the requester: the sentence of a plugin, or why there is none. */
  readonly sentence?: string;
}

export interface PluginRulings {
  /** What was said of this very contest; `undefined` where it is still to be asked about. */
  on(participant: Participant, resource: string, contest: Contested): Said | undefined;
  /** Asks about all contests that `on` was asked for in vain. */
  ask(participant: Participant): Promise<void>;
}

type Parts = Pick<ArbiterParts, "clock" | "logger" | "runs"> & { readonly hooks?: PluginHooks };

const NOTHING: Said = {};

export function createPluginRulings(
  parts: Parts,
  { tool, beganAtMs }: { readonly tool: string; readonly beganAtMs: EpochMs },
): PluginRulings {
  const known = new Map<string, Said>();
  const unasked = new Map<string, { readonly resource: string; readonly contest: Contested }>();
  const deadlineAtMs = addMs(beganAtMs, PLUGINS_MS);
  return {
    on: (participant, resource, contest) => {
      if (contest.from === "high_risk" || !parts.hooks?.hasAny("arbitrate")) return NOTHING;
      const key = evidenceOf(participant, resource, contest);
      const said = known.get(key);
      if (!said) unasked.set(key, { resource, contest });
      return said;
    },
    ask: async (participant) => {
      const asked = [...unasked];
      unasked.clear();
      await Promise.all(
        asked.map(async ([key, { resource, contest }]) => {
          const question = await questionOf(parts, participant, { resource, contest, tool });
          known.set(key, await saidOf(parts, question, deadlineAtMs));
        }),
      );
    },
  };
}

/** How long leases run does not matter, nor which token the requester would get. */
function evidenceOf(participant: Participant, resource: string, contest: Contested): string {
  const sides = contest.claims.map((claim) => {
    const { coordinationId, stepId, priority, claimedSequence, declared, changedAtMs } = claim;
    const sequence = isOf(participant, claim) ? undefined : claimedSequence;
    return JSON.stringify([coordinationId, stepId, priority, sequence, declared, changedAtMs]);
  });
  return JSON.stringify([resource, contest.cause, contest.strategy, contest.from, sides.sort()]);
}

function isOf({ stepId }: Participant, claim: Contestant): boolean {
  return isRequester({ requester: stepId, claims: [], strategy: "owner_wins" }, claim);
}

async function questionOf(
  { runs }: Parts,
  participant: Participant,
  {
    resource,
    contest,
    tool,
  }: { readonly resource: string; readonly contest: Contested; readonly tool: string },
): Promise<PluginContest> {
  const { cause, strategy, claims } = contest;
  const { runId } = participant;
  const side = async (claim: Contestant): Promise<ContestSide> => {
    const { claimedSequence: _, ...known } = claim;
    const agentId = await agentOf(runs, { ...claim, coordinationId: claim.coordinationId ?? runId });
    return { ...known, ...(agentId && { agentId }) };
  };
  const requester = claims.find((claim) => isOf(participant, claim));
  invariant(requester !== undefined, "A1: the requester is one of the claims");
  const holders = claims.filter((claim) => claim !== requester);
  return {
    ...{ coordinationId: runId, resource, cause, strategy, tool },
    requester: await side(requester),
    holders: await Promise.all(holders.map(side)),
  };
}

async function agentOf(
  runs: Parts["runs"],
  { coordinationId, stepId }: Contestant & { readonly coordinationId: Participant["runId"] },
): Promise<AgentId | undefined> {
  const state = await runs.state(coordinationId);
  if (state.kind === "unopened") return undefined;
  return stepId === OWNER_STEP_ID ? state.created.ownerAgent : state.steps.get(stepId)?.spec.agentId;
}

async function saidOf(parts: Parts, question: PluginContest, deadlineAtMs: EpochMs): Promise<Said> {
  try {
    return read(await inTime(parts, question, deadlineAtMs));
  } catch {
    return failed(undefined, "a plugin that rules on writes failed");
  }
}

/** The host of the hooks ends them in time itself; nothing may depend on that. */
async function inTime(
  { hooks, clock }: Parts,
  question: PluginContest,
  deadlineAtMs: EpochMs,
): Promise<ContestSaid | "late" | undefined> {
  if (clock.now() >= deadlineAtMs) return "late";
  const late = Promise.withResolvers<"late">();
  const cancel = clock.wakeAt(addMs(deadlineAtMs, GRACE_MS), () => late.resolve("late"));
  try {
    return await Promise.race([hooks?.arbitrate(question, deadlineAtMs), late.promise]);
  } finally {
    cancel();
  }
}

function read(said: ContestSaid | "late" | undefined): Said {
  if (said === "late") return failed(undefined, "the plugins that rule on writes did not answer in time");
  if (!said) return NOTHING;
  if ("failed" in said) return failed(said.failed, said.message);
  const ruling = pluginRulingSchema.safeParse({ plugin: `plugin:${said.plugin}`, award: said.award });
  if (!ruling.success) return failed(undefined, "a plugin that rules on writes has no usable id");
  return { ruling: ruling.data, sentence: `the plugin ${said.plugin} ruled so: ${said.reason}` };
}

function failed(plugin: string | undefined, sentence: string): Said {
  const named = pluginRulingSchema.safeParse({ plugin: `plugin:${plugin}`, award: "holder", failed: true });
  const ruling: PluginRuling =
    plugin !== undefined && named.success ? named.data : { award: "holder", failed: true };
  return { ruling, sentence };
}
