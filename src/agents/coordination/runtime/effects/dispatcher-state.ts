/** Owns: the collaborators and the memory of the dispatcher of coordinations. */
import type { OpenCoordination } from "../../ledger/state.ts";
import type { SpawnGate } from "../spawns/spawn-gate.ts";
import type { DispatcherMemory } from "./dispatcher-memory.ts";
import type { DrivenDependencies } from "./driven-here.ts";
import type { FailureLog } from "./log-failures.ts";
import type { EffectDependencies } from "./performer-dependencies.ts";

/** The collaborators of a dispatcher. */
export interface DispatcherDependencies
  extends
    Omit<EffectDependencies, "stopping" | "lookAt" | "giveBack" | "lookAfter" | "halt">,
    DrivenDependencies {
  readonly gate: SpawnGate;
  /** Hears at every sweep of each coordination that is open here, whoever opened it. */
  readonly onOpen: (state: OpenCoordination) => void;
}

/** A dispatcher: its collaborators and its memory. */
export interface DispatcherState {
  readonly dependencies: DispatcherDependencies;
  readonly memory: DispatcherMemory;
  readonly effectDependencies: EffectDependencies;
  readonly failures: FailureLog;
}
