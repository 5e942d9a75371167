/** Owns: looking at a plan and its steps in a scene, and playing commands that have to be accepted. */
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { PlanProgress, Step } from "../../src/agents/coordination/ledger/state.ts";
import { openOf } from "./claims-scene.ts";
import type { Scene } from "./scene.ts";

export const NOTHING_SPENT = { spawns: 0, tokens: 0, costMicroUsd: 0 };

export const idOf = (name: string): StepId => name as StepId;
export const planOf = (scene: Scene): PlanProgress => openOf(scene).plan!;
export const stepOf = (scene: Scene, name: string): Step => openOf(scene).steps.get(idOf(name))!;

export function play(scene: Scene, ...commands: readonly Command[]): Scene {
  for (const command of commands)
    if (scene.when(command).kind !== "accepted") throw new Error(`${command.type} is not accepted`);
  return scene;
}
