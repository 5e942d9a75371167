/** Owns: playing a schedule to its end, with all checks after every move, and the end that all promises must come to. */
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { checkEnd } from "./check-end.ts";
import { createDueCheck } from "./check-due.ts";
import { createLogCheck } from "./check-log.ts";
import type { Move, Schedule } from "./moves.ts";
import { endTroubles, performMove } from "./perform-move.ts";
import { hasStopped, playMoves, settle } from "./simulated-processes.ts";
import type { Finding } from "./simulation.ts";
import { bootGateway, createWorld, type World } from "./world.ts";

/** The world after a schedule, and the finding where there is one. */
export interface PlayResult {
  readonly finding?: Finding;
  readonly world: World;
}

/** A run that goes on for longer than that hangs: three deliveries, one after another, with six tries of 10 minutes each, take longest. */
const LONG_MS = 4 * 3_600_000;
const PACE_MS = 15_000;
/** After the end, for what comes too late. */
const AFTERMATH_MS = 40_000;

export async function playSchedule(schedule: Schedule): Promise<PlayResult> {
  const world = createWorld(schedule);
  const checkLog = createLogCheck(world);
  const checkDue = createDueCheck(world);
  const check = (): void => {
    checkLog();
    world.problems.push(...checkDue());
  };
  for (const gateway of world.gateways) bootGateway(world, gateway);
  await settle();
  const { problems: found } = world;
  const perform = (move: Move): Promise<void> => performMove(world, move);
  const finding = await playMoves({ moves: schedule.moves, problems: found, perform, check });
  if (finding) return { world, finding };
  await playToEnd(world, checkDue);
  check();
  if (world.problems.length === 0) await checkEnd(world);
  const { problems } = await verifyLedger(world.ledger.open(world.clock));
  world.problems.push(...problems.map(({ message }) => `verify: ${message}`));
  if (world.problems.length === 0) return { world };
  return { world, finding: { problems: [...world.problems], atMove: schedule.moves.length } };
}

async function playToEnd(world: World, checkDue: () => string[]): Promise<void> {
  await endTroubles(world);
  const { clock } = world;
  const endMs = clock.now() + LONG_MS;
  // Calls under way may still open something.
  do {
    await clock.advance(AFTERMATH_MS);
    while (clock.now() < endMs && isAnythingOpen(world)) {
      world.problems.push(...checkDue());
      await clock.advance(PACE_MS);
    }
    await clock.advance(AFTERMATH_MS);
  } while (clock.now() < endMs && isAnythingOpen(world));
  for (const { coordinator } of world.gateways)
    if (!(await hasStopped(coordinator.stop()))) world.problems.push("the last stop() waits for something");
}

function isAnythingOpen({ ledger, problems }: World): boolean {
  return (
    problems.length === 0 && [...ledger.runs.values()].some(({ summary }) => summary.status === "running")
  );
}
