/** Runs the simulator with one fault planted, in a process of its own, because modules are loaded once. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import type { PlantedFault } from "./planted-fault.ts";

export interface PlantedResult {
  readonly name: string;
  readonly isFound: boolean;
  readonly seconds: number;
  readonly schedules: number;
  readonly problem?: string;
  readonly seed?: number;
}

const ROOT = join(import.meta.dirname, "../..");
/** A fault that makes the play hang is ended from outside, and counts as not found. */
const GRACE_MS = 30_000;

export function findPlanted(
  { name, world = "coordinations" }: PlantedFault,
  { seed, durationMs }: { readonly seed: number; readonly durationMs: number },
): PlantedResult {
  const startedAt = performance.now();
  const args = ["--import", "./test/simulator/plant-fault.ts", "test/simulator/run.ts"];
  const limits = ["--seed", String(seed), "--minutes", String(durationMs / 60_000)];
  const options = ["--json", "--no-shrink", "--world", world, ...limits];
  const { stdout } = spawnSync(process.execPath, [...args, ...options], {
    cwd: ROOT,
    env: {
      ...process.env,
      PLANTED_FAULT: name,
      // The process spends more time compiling than playing.
      NODE_COMPILE_CACHE: join(ROOT, "node_modules", ".cache", "compiled"),
    },
    encoding: "utf8",
    timeout: durationMs + GRACE_MS,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const seconds = (performance.now() - startedAt) / 1_000;
  const line = stdout.trim();
  if (!line.startsWith("{")) return { name, isFound: false, seconds, schedules: 0, problem: "no answer" };
  const answer = JSON.parse(line) as {
    readonly schedules: number;
    readonly found?: { readonly seed: number; readonly problems: readonly string[] };
  };
  const { found, schedules } = answer;
  if (!found) return { name, isFound: false, seconds, schedules };
  return { name, isFound: true, seconds, schedules, seed: found.seed, problem: found.problems[0] ?? "" };
}
