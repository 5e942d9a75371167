/** Owns: asking LangGraph JS for the figures of a plan. It is installed in a folder of its own, or left out. */
import { isInstalled } from "./peers.ts";
import { runForJson } from "./run-for-json.ts";

export interface LangGraphPlans {
  readonly shape: "chain" | "loop" | "tasks" | "wide" | "sends";
  readonly steps: number;
  readonly runs: number;
  readonly warmups: number;
  readonly maxConcurrency?: number;
}

export interface LangGraphFigures {
  readonly completed: true;
  readonly stepsPerSecond: number;
  readonly medianMs: number;
  readonly stepWaitMs: { readonly p50: number; readonly p99: number };
  readonly cpuMicrosPerStep: number;
  readonly bytesPerStep: number;
  readonly versions: Readonly<Record<string, string>>;
}

/** It was stopped, or its process died. */
export interface LangGraphFailure {
  readonly completed: false;
  readonly reason: string;
}

const RUN_PLAN = new URL("langgraph/run-plan.mjs", import.meta.url);
const TIMEOUT_MS = 300_000;

/** Every super-step is on disk before the next one begins, and every commit survives a power cut, as ours do. */
const DURABLE = { durability: "sync", synchronous: "full", timeoutMs: TIMEOUT_MS };

/** `undefined` where LangGraph is not installed. */
export function runLangGraph(
  plans: LangGraphPlans,
): Promise<LangGraphFigures | LangGraphFailure | undefined> {
  if (!isInstalled("langgraph")) return Promise.resolve(undefined);
  return runForJson(RUN_PLAN, [JSON.stringify({ ...DURABLE, ...plans })]);
}
