/** Owns: the settings of a host of workflows in tests. */
import type { WorkflowSettings } from "../../src/agents/coordination/workflow/node-contract/node-type.ts";

export const SETTINGS: WorkflowSettings = {
  hostId: "host-a",
  confidenceFloor: 0.5,
  escalationThreshold: 0.7,
  nodeExecutionsMax: 1_000,
  loopIterationsMax: 100,
  runDurationMsMax: 600_000,
};
