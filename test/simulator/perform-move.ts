/** Owns: carrying out one move in the world. A move that has nothing to act on does nothing. */
import { answerQuestion, askQuestion, waitForDeadline } from "./perform-answers.ts";
import { forkPlan, nestPlan, requestChange, submitPlan, reportLate } from "./perform-plans.ts";
import { endChild, sayAsChild, spawnChild } from "./perform-spawns.ts";
import { pruneRuns } from "./perform-prune.ts";
import { writeFiles } from "./perform-writes.ts";
import type { Move } from "./moves.ts";
import { armFault, endLife, failWrites, resumeLife } from "./process-life.ts";
import { hasStopped, pauseFor, settle } from "./simulated-processes.ts";
import { bootGateway, callGateway, type Gateway, type World } from "./world.ts";

type Perform<M extends Move> = (world: World, move: M) => void | Promise<void>;

const PERFORMERS: { readonly [K in Move["kind"]]: Perform<Extract<Move, { kind: K }>> } = {
  wait: ({ clock }, { ms }) => clock.advance(ms),
  jump: setClockOff,
  submit: submitPlan,
  spawn: spawnChild,
  end: endChild,
  speak: sayAsChild,
  ask: askQuestion,
  answer: answerQuestion,
  "answer at the deadline": waitForDeadline,
  cancel: requestChange,
  retry: requestChange,
  write: writeFiles,
  fork: forkPlan,
  nest: nestPlan,
  "end turn": endTurn,
  "late report": reportLate,
  break: (world, { gateway, fault }) => armFault(pickGateway(world, gateway).life, fault),
  kill: (world, { gateway, downMs }) => endLife(pickGateway(world, gateway).life, downMs),
  restart: restartGateway,
  reconfigure: restartReconfigured,
  pause: pauseGateway,
  prune: pruneRuns,
  "set clock": setClockOfGateway,
  "fill storage": fillStorage,
  "speak hostile": (world, { style }) => {
    world.hostileStyle = style;
  },
};

export async function performMove(world: World, move: Move): Promise<void> {
  await (PERFORMERS[move.kind] as Perform<Move>)(world, move);
  await settle();
}

export function pickGateway({ gateways }: World, index: number): Gateway {
  const gateway = gateways[index % gateways.length];
  if (!gateway) throw new Error("there is no gateway");
  return gateway;
}

function setClockOff(world: World, { ms }: Extract<Move, { kind: "jump" }>): void {
  if (ms < 0) world.hasGoneBack = true;
  world.clock.jump(world.clock.now() + ms);
  world.jumpsAtMs.push(world.clock.now());
}

function setClockOfGateway(world: World, { gateway, offsetMs }: Extract<Move, { kind: "set clock" }>): void {
  pickGateway(world, gateway).clock.offsetMs = offsetMs;
  world.areClocksApart = true;
  // Comparisons of times of two machines may be off.
  world.hasGoneBack = true;
}

function fillStorage(world: World, { ms }: Extract<Move, { kind: "fill storage" }>): void {
  world.fullUntilMs = world.clock.now() + ms;
  world.fullTimes.push({ fromMs: world.clock.now(), untilMs: world.fullUntilMs });
  for (const { life } of world.gateways) failWrites(life, ms);
}

function endTurn(world: World, { gateway }: Extract<Move, { kind: "end turn" }>): void {
  const at = pickGateway(world, gateway);
  void callGateway(at, ({ coordinator }) => coordinator.turnEnded(at.owner, `turn-${world.calls}`));
}

/** An orderly end, and a new process. */
async function restartGateway(
  world: World,
  { gateway, downMs }: Extract<Move, { kind: "restart" }>,
): Promise<void> {
  const at = pickGateway(world, gateway);
  if (at.life.state !== "on") return;
  await stopOrderly(world, at);
  endLife(at.life, downMs);
}

/** A process that is down or paused has the new configuration when it is started again. */
async function restartReconfigured(
  world: World,
  { gateway, downMs, by, changes }: Extract<Move, { kind: "reconfigure" }>,
): Promise<void> {
  const at = pickGateway(world, gateway);
  const { life, texts } = at;
  at.setup = { ...at.setup, ...changes };
  if (life.state === "dead") return;
  const isOrderly = by !== "crash" && life.state === "on";
  if (isOrderly) await stopOrderly(world, at);
  if (isOrderly && by === "reload") {
    at.keptTexts = texts;
    life.isReloaded = true;
  }
  endLife(life, by === "reload" ? 0 : downMs);
}

async function stopOrderly(world: World, { life, coordinator }: Gateway): Promise<void> {
  const isStopped = await hasStopped(coordinator.stop());
  if (!isStopped && !life.isDisturbed && life.slowCalls === 0)
    world.problems.push("stop() waits for something");
  // A tool call that waits for another one, or for a lease, is the host's and ends by itself.
  const left = life.timers.size - world.waitingWrites;
  if (isStopped && left > 0 && !life.isDisturbed) world.problems.push(`${left} timers are left after stop()`);
}

function pauseGateway(world: World, { gateway, ms }: Extract<Move, { kind: "pause" }>): void {
  pauseFor(pickGateway(world, gateway).life, ms);
}

/** Ends every fault, and starts whatever does not run. */
export async function endTroubles(world: World): Promise<void> {
  world.isCalm = true;
  world.fullUntilMs = 0;
  for (const gateway of world.gateways) {
    gateway.life.faults = [];
    resumeLife(gateway.life);
    await settle();
    if (gateway.life.state === "dead") bootGateway(world, gateway);
    await settle();
  }
}
