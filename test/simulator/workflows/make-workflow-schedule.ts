/** Owns: the schedule of workflow runs that a seed gives. */
import { deriveSeed, diceOf, type Dice } from "../../crash/plan-dice.ts";
import { GROUPS, type PortFault } from "../moves.ts";
import { addDeadlineAnswers } from "./add-deadline-answers.ts";
import { addFullDisk } from "./add-full-disk.ts";
import { addHostClocks } from "./add-host-clocks.ts";
import { makeSmallWorkflowSchedule } from "./make-small-workflow-schedule.ts";
import { WORKFLOW_IDS } from "./make-workflows.ts";
import type { CallerName, WorkflowMove, WorkflowSchedule, WorkflowSetup } from "./workflow-moves.ts";

/** The same seed gives the same schedule for ever. One in three is small, and about one subject. */
export function makeWorkflowSchedule(seed: number): WorkflowSchedule {
  const isSmall = seed % 3 === 1;
  const schedule = isSmall ? makeSmallWorkflowSchedule(seed) : makeLargeWorkflowSchedule(seed);
  return addFullDisk(addHostClocks(addDeadlineAnswers(schedule)));
}

function makeLargeWorkflowSchedule(seed: number): WorkflowSchedule {
  const dice = diceOf(deriveSeed(seed, "workflow schedule"));
  const setup = makeSetup(dice);
  const roughness = dice.oneOf([0, 0.12, 0.25]);
  const moves: WorkflowMove[] = [];
  const count = dice.int(4, 18);
  for (let index = 0; index < count; index += 1) {
    if (index === 0) moves.push(makeCreate(dice, setup));
    else moves.push(dice.chance(roughness) ? makeTrouble(dice, setup) : makeRequest(dice, setup));
    if (dice.chance(0.55)) moves.push({ kind: "wait", ms: makeWait(dice) });
  }
  return { seed, setup, moves };
}

function makeSetup(dice: Dice): WorkflowSetup {
  return {
    hosts: dice.oneOf([1, 1, 1, 2, 2, 3]),
    isOneMachine: dice.chance(0.5),
    outside: dice.oneOf(["prompt", "rough"]),
  };
}

function makeWait(dice: Dice): number {
  return dice.oneOf([10, 300, 2_000, dice.int(0, 10_000), dice.int(0, 40_000), 70_000]);
}

function makeCreate(dice: Dice, { hosts }: WorkflowSetup): WorkflowMove {
  return {
    kind: "create",
    host: dice.int(0, hosts - 1),
    workflow: dice.int(0, WORKFLOW_IDS.length - 1),
    request: dice.int(1, 4),
    by: "alice",
  };
}

const CALLERS: readonly [CallerName, ...CallerName[]] = ["alice", "alice", "bob", "stranger"];

function makeRequest(dice: Dice, setup: WorkflowSetup): WorkflowMove {
  const host = dice.int(0, setup.hosts - 1);
  const run = dice.int(0, 7);
  const kind = dice.oneOf(["create", "create", "answer", "answer", "answer", "control", "look", "fork"]);
  switch (kind) {
    case "create":
      return makeCreate(dice, setup);
    case "answer":
      return {
        kind,
        host,
        question: dice.int(0, 3),
        value: dice.oneOf(["yes", "yes", "yes", "no", "nonsense"]),
        by: dice.oneOf(CALLERS),
        isContradicted: dice.chance(0.2),
      };
    case "control":
      return makeControl(dice, host, run);
    case "look":
      return { kind, host, run, by: dice.oneOf(CALLERS) };
    case "fork":
      return {
        kind,
        host,
        run,
        mode: dice.oneOf(["branch", "replay"]),
        share: dice.int(0, 100),
        request: dice.int(1, 3),
      };
  }
}

function makeControl(dice: Dice, host: number, run: number): WorkflowMove {
  const kind = dice.oneOf(["cancel", "hold", "hold", "resume", "resume"]);
  if (kind === "hold")
    return { kind, host, run, drainPolicy: dice.oneOf(["immediate", "drain-current-node"]) };
  return { kind, host, run, by: dice.oneOf(CALLERS) };
}

function makeTrouble(dice: Dice, { hosts }: WorkflowSetup): WorkflowMove {
  const host = dice.int(0, hosts - 1);
  const downMs = dice.oneOf([0, 1_000, 15_000, 60_000]);
  const kind = dice.oneOf(["break", "break", "break", "kill", "restart", "pause", "jump"]);
  switch (kind) {
    case "break":
      return { kind, host, fault: makeFault(dice, downMs) };
    case "kill":
    case "restart":
      return { kind, host, downMs };
    case "pause":
      return { kind, host, ms: dice.oneOf([500, 5_000, 30_000]) };
    case "jump":
      return { kind, ms: dice.oneOf([-2_000, 5_000, 60_000]) };
  }
}

function makeFault(dice: Dice, downMs: number): PortFault {
  return {
    kind: dice.oneOf(["dies before", "dies after", "fails", "fails", "answers late", "fails after"]),
    group: dice.oneOf(GROUPS),
    atCall: dice.int(1, 12),
    lastsMs: dice.oneOf([0, 0, 500, 8_000]),
    downMs,
  };
}
