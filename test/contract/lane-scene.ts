/** Owns: lanes whose work goes on until a test ends it, and whose time is a value. */
import type { AgentId, EpochMs, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { LaneRequest, LaneRunner, LaneSlot } from "../../src/agents/coordination/ports/lane-runner.ts";
import type { StepAdmission } from "../../src/agents/coordination/ports/provider-use.ts";
import { createPQueueLanes, type LaneLimits } from "../../src/infra/lanes/p-queue-lanes.ts";
import { createFakeClock, START_MS, type FakeClock } from "../support/fake-clock.ts";

export const LIMITS: LaneLimits = { control: 2, data: 1, escalation: 1, queueMax: 8, agingMs: 60_000 };

export const request = (fields: Partial<LaneRequest> = {}): LaneRequest => ({
  lane: "data",
  priority: "normal",
  readyAtMs: START_MS as EpochMs,
  criticalPathMs: 0,
  session: "agent:main:main" as SessionKey,
  agentId: "main" as AgentId,
  ...fields,
});
export const createSession = (name: string): { readonly session: SessionKey } => ({
  session: name as SessionKey,
});
export const createAgent = (name: string): { readonly agentId: AgentId } => ({ agentId: name as AgentId });

/** Work that goes on until it is told to end. */
export interface Job {
  readonly end: () => void;
  readonly fail: (error: Error) => void;
  readonly slot: () => LaneSlot;
  readonly state: () => "waiting" | "running" | "ran" | "full" | "failed";
}

export interface Scene {
  readonly clock: FakeClock;
  readonly lanes: LaneRunner;
  /** The names of the jobs in the order in which they started. */
  readonly started: string[];
  readonly start: (name: string, fields?: Partial<LaneRequest>) => Job;
}

export function createScene(limits: Partial<LaneLimits> = {}, providers?: StepAdmission): Scene {
  const clock = createFakeClock();
  const lanes = createPQueueLanes({ ...LIMITS, ...limits }, clock, providers);
  const started: string[] = [];
  return {
    clock,
    lanes,
    started,
    start: (name, fields) => {
      const ended = Promise.withResolvers<string>();
      let state: ReturnType<Job["state"]> = "waiting";
      let slot: LaneSlot | undefined;
      const work = (givenSlot: LaneSlot): Promise<string> => {
        slot = givenSlot;
        state = "running";
        started.push(name);
        return ended.promise;
      };
      lanes.run(request(fields), work).then(
        ({ kind }) => (state = kind),
        () => (state = "failed"),
      );
      return {
        end: () => ended.resolve(name),
        fail: (error) => ended.reject(error),
        slot: () => slot!,
        state: () => state,
      };
    },
  };
}

export const listStates = (jobs: readonly Job[]): string[] => jobs.map(({ state }) => state());
