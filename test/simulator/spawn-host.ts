/** Owns: the host of a gateway's own sessions: children that their models spawn, with the truth about each over restarts. */
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { ChildEnding, Observation } from "../../src/agents/coordination/contracts/observation.ts";
import type { SpawnObserver, SpawnQuery } from "../../src/agents/coordination/ports/spawn-observer.ts";
import type { SpawnRequest } from "../../src/agents/coordination/runtime/spawns/admit-spawn.ts";
import type { Dice } from "../crash/plan-dice.ts";
import type { FakeClock } from "../support/fake-clock.ts";

export interface SpawnedChild {
  readonly session: SessionKey;
  readonly childRunId: string;
  readonly gateway: number;
  readonly sourceSession: SessionKey;
  readonly sha256: string;
  readonly createdAtMs: number;
  ending?: ChildEnding;
  endedAtMs?: number;
}

export interface SpawnHost extends SpawnObserver {
  spawn(request: Pick<SpawnRequest, "sourceSession" | "input">): SpawnedChild;
}

export interface SpawnHostInput {
  readonly gateway: number;
  readonly clock: FakeClock;
  /** Children of all hosts, in the order of their making. */
  readonly children: SpawnedChild[];
  /** How well the host answers. */
  readonly dice: Dice;
}

export function createSpawnHost(host: SpawnHostInput): SpawnHost {
  return {
    spawn: ({ sourceSession, input }) => {
      const number = host.children.length + 1;
      const child: SpawnedChild = {
        session: `agent:main:subagent:${number}` as SessionKey,
        childRunId: `child-run-${number}`,
        gateway: host.gateway,
        sourceSession,
        sha256: input.ref.sha256,
        createdAtMs: host.clock.now(),
      };
      host.children.push(child);
      return child;
    },
    // A host that does not know answers so; it never says anything that is not true.
    observe: (query) => Promise.resolve(host.dice.chance(0.1) ? { kind: "unknown" } : tellTruth(host, query)),
    bind: () => (host.dice.chance(0.05) ? Promise.reject(new Error("the host is busy")) : Promise.resolve()),
    stop: (query) => {
      const child = findChild(host, query);
      if (!child || child.ending) return Promise.resolve("already_ended");
      if (host.dice.chance(0.1)) return Promise.resolve("unreachable");
      child.ending = { outcome: "cancelled" };
      child.endedAtMs = host.clock.now();
      return Promise.resolve("stopped");
    },
  };
}

function findChild({ children, gateway }: SpawnHostInput, query: SpawnQuery): SpawnedChild | undefined {
  const { childSessionKey, sourceSession, input, dispatchedAtMs, taken: others } = query;
  const ofGateway = children.filter((child) => child.gateway === gateway);
  if (childSessionKey) return ofGateway.find(({ session }) => session === childSessionKey);
  return ofGateway.find(
    (child) =>
      !others.has(child.session) &&
      child.sourceSession === sourceSession &&
      child.sha256 === input.sha256 &&
      child.createdAtMs >= dispatchedAtMs,
  );
}

function tellTruth(host: SpawnHostInput, query: SpawnQuery): Observation {
  const child = findChild(host, query);
  if (!child) return { kind: "absent" };
  const { session: childSessionKey, childRunId, ending } = child;
  return ending
    ? { kind: "ended", childSessionKey, childRunId, ...ending }
    : { kind: "running", childSessionKey, childRunId };
}
