/** Owns: how many places of all lanes each session and each agent holds, for the caps, and whether its provider takes more. */
import type { LaneRequest } from "../../agents/coordination/ports/lane-runner.ts";
import { canHoldPlace, type HoldingCaps } from "../../agents/coordination/lanes/may-hold.ts";
import type { StepAdmission } from "../../agents/coordination/ports/provider-use.ts";

/** Whose work it is. */
export type LaneHolder = Pick<LaneRequest, "session" | "agentId">;

export interface HeldPlaces {
  /** Two requests with the same name are let in or held back together. */
  nameOf(holder: LaneHolder): string;
  mayHold(holder: LaneHolder): boolean;
  /** True unless the provider of the holder's agent holds back its steps. */
  isProviderOpen(holder: LaneHolder): boolean;
  /** Holds nobody back for a provider any more. */
  ignoreProviders(): void;
  take(holder: LaneHolder): void;
  /** Returns whether somebody who was held back may now be let in. */
  giveBack(holder: LaneHolder): boolean;
  /** Grows whenever `mayHold` may answer differently than before. */
  version(): number;
}

/**
 * Creates the count of the places that running requests hold, by session and by agent, none at first. `providers` say
 * of which agents steps are held back.
 */
export function createHeldPlaces(caps: HoldingCaps, providers?: StepAdmission): HeldPlaces {
  const bySession = new Map<string, number>();
  const byAgent = new Map<string, number>();
  const sessionOf = ({ session }: LaneHolder): string => (caps.perSessionMax === undefined ? "" : session);
  const agentOf = ({ agentId }: LaneHolder): string => (caps.perAgentMax === undefined ? "" : agentId);
  const hasCaps = caps.perSessionMax !== undefined || caps.perAgentMax !== undefined;
  const nameHolder = (holder: LaneHolder): string =>
    JSON.stringify([sessionOf(holder), providers ? holder.agentId : agentOf(holder)]);
  let version = 0;
  let areProvidersIgnored = false;
  const isProviderOpen = ({ agentId }: LaneHolder): boolean =>
    areProvidersIgnored || (providers?.canBeginStep(agentId) ?? true);
  const countHeld = (holder: LaneHolder) => ({
    ofSession: bySession.get(sessionOf(holder)) ?? 0,
    ofAgent: byAgent.get(agentOf(holder)) ?? 0,
  });
  const change = (holder: LaneHolder, by: 1 | -1): void => {
    const { ofSession, ofAgent } = countHeld(holder);
    setCount(bySession, sessionOf(holder), ofSession + by);
    setCount(byAgent, agentOf(holder), ofAgent + by);
  };
  return {
    nameOf: (holder) => (hasCaps || providers ? nameHolder(holder) : ""),
    mayHold: (holder) => canHoldPlace(caps, countHeld(holder)) && isProviderOpen(holder),
    isProviderOpen,
    ignoreProviders: () => {
      areProvidersIgnored = true;
      version += 1;
    },
    take: (holder) => {
      change(holder, 1);
      if (!canHoldPlace(caps, countHeld(holder))) version += 1;
    },
    giveBack: (holder) => {
      const opens = !canHoldPlace(caps, countHeld(holder));
      change(holder, -1);
      if (opens) version += 1;
      return opens;
    },
    version: () => version + (providers?.version() ?? 0),
  };
}

/** Sets a count by name; a name whose count is 0 is forgotten. */
function setCount(counts: Map<string, number>, name: string, value: number): void {
  if (value > 0) counts.set(name, value);
  else counts.delete(name);
}
