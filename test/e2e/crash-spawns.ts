/** Owns: sessions whose models spawn while their gateway is killed, and what the host and the ledger know of their children. */
import { setTimeout as passed } from "node:timers/promises";
import { findChildOfPhase } from "../../src/agents/coordination/ledger/state.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { renderScript } from "../support/scripted-model.ts";
import type { OpenedCoordination, Stage } from "./stage.ts";

/** So often the gateway is killed. */
export const ROUNDS = chooseCampaignSize("GATEWAY_KILLS", { short: 1, long: 10 });
/** So many sessions spawn one after the other, so that a kill meets each at another stage of its spawns. */
const SESSIONS = 6;
/** The sessions from this one on begin when the first one's children are at work, however slow the host is. */
const FIRST_LATE = 3;
const STAGGER_MS = 80;

const nameSession = (round: number, index: number): string => `agent:main:round-${round}-${index}`;

export const SPAWNING_SESSIONS = Array.from({ length: ROUNDS * SESSIONS }, (_, index) =>
  nameSession(Math.floor(index / SESSIONS), index % SESSIONS),
);

/** Ends when the last session's first spawn is recorded, and waits for no turn. */
export async function spawnInSessions(stage: Stage, round: number): Promise<void> {
  const labels = ["one", "two"];
  const spawn = labels.map((label) => ({ label, task: renderScript({ delayMs: 500, say: label }) }));
  const message = renderScript({ spawn }, { say: "ok" });
  const hasChildren = ({ steps }: OpenedCoordination): boolean =>
    [...steps.values()].filter(({ phase }) => findChildOfPhase(phase)).length === labels.length;
  for (let index = 0; index < SESSIONS; index += 1) {
    if (index === FIRST_LATE) await stage.until(nameSession(round, 0), hasChildren);
    const turn = stage.gateway.agent({ sessionKey: nameSession(round, index), message });
    turn.catch(() => undefined);
    await passed(STAGGER_MS);
  }
  await stage.until(nameSession(round, SESSIONS - 1), () => true);
}

/** Lists the children of these sessions, as the host recorded them. It lists a session's own turns, too. */
export async function listHostChildren({ gateway }: Stage, sessions: readonly string[]): Promise<string[]> {
  const { stdout } = await gateway.openclaw(["tasks", "list", "--json"]);
  const { tasks } = JSON.parse(stdout) as {
    tasks: { requesterSessionKey?: string; childSessionKey?: string }[];
  };
  return tasks.flatMap(({ requesterSessionKey = "", childSessionKey }) =>
    childSessionKey?.includes(":subagent:") && sessions.includes(requesterSessionKey)
      ? [childSessionKey]
      : [],
  );
}

/** Lists the steps that each child works on, over all coordinations of these sessions. */
export async function listStepsByChild(
  stage: Stage,
  sessions: readonly string[],
): Promise<Map<string, Set<string>>> {
  const steps = new Map<string, Set<string>>();
  for (const session of sessions)
    for (const state of await stage.of(session))
      for (const { type, runId, payload } of await stage.events(state))
        if (type === "step.acknowledged")
          steps.set(
            payload.childSessionKey,
            (steps.get(payload.childSessionKey) ?? new Set<string>()).add(`${runId}/${payload.stepId}`),
          );
  return steps;
}
