/** Owns: small schedules of workflow runs, each about one subject, so that what is rarely reached is reached often. */
import { deriveSeed, diceOf, type Dice } from "../../crash/plan-dice.ts";
import type { WorkflowMove, WorkflowSchedule, WorkflowSetup } from "./workflow-moves.ts";

type Subject = "pauses" | "cancellations" | "takeovers" | "twins";

export function makeSmallWorkflowSchedule(seed: number): WorkflowSchedule {
  const dice = diceOf(deriveSeed(seed, "small workflow schedule"));
  const subject = dice.oneOf(["pauses", "cancellations", "takeovers", "twins"] as const);
  return { seed, ...MAKERS[subject](dice) };
}

type SetupAndMoves = Pick<WorkflowSchedule, "setup" | "moves">;

const MAKERS: { readonly [S in Subject]: (dice: Dice) => SetupAndMoves } = {
  pauses: makePauses,
  cancellations: makeCancellations,
  takeovers: makeTakeovers,
  twins: makeTwins,
};

function makeSetup(dice: Dice, hosts: number): WorkflowSetup {
  return { hosts, isOneMachine: dice.chance(0.7), outside: dice.oneOf(["prompt", "rough", "rough"]) };
}

function makeCreate(dice: Dice, host = 0, request = 1): WorkflowMove {
  return { kind: "create", host, workflow: dice.int(0, 3), request, by: "alice" };
}

function makeWait(dice: Dice): WorkflowMove {
  return { kind: "wait", ms: dice.oneOf([10, 300, 1_000, 3_000, 30_000]) };
}

/** A run is paused while something of it is under way, and goes on after that has ended. */
function makePauses(dice: Dice): SetupAndMoves {
  const run = dice.oneOf([0, 0, 1]);
  const workflow = dice.oneOf([0, 1, 2, 2, 2]);
  const moves: WorkflowMove[] = [{ kind: "create", host: 0, workflow, request: 1, by: "alice" }];
  if (dice.chance(0.3)) moves.push(makeWait(dice));
  moves.push({
    kind: "hold",
    host: 0,
    run,
    drainPolicy: dice.oneOf(["immediate", "immediate", "drain-current-node"]),
  });
  moves.push(makeWait(dice), { kind: "resume", host: 0, run, by: "alice" }, makeWait(dice));
  return { setup: { ...makeSetup(dice, 1), outside: "rough" }, moves };
}

/** A run is cancelled while it works or waits, perhaps with children. */
function makeCancellations(dice: Dice): SetupAndMoves {
  const hosts = dice.oneOf([1, 1, 2]);
  const moves: WorkflowMove[] = [makeCreate(dice)];
  if (dice.chance(0.5)) moves.push(makeWait(dice));
  moves.push({ kind: "cancel", host: dice.int(0, 1), run: dice.int(0, 1), by: "alice" }, makeWait(dice));
  return { setup: makeSetup(dice, hosts), moves };
}

/** A process ends while others have trouble with the ledger's rows of owners. */
function makeTakeovers(dice: Dice): SetupAndMoves {
  const trouble: WorkflowMove = {
    kind: "break",
    host: 0,
    fault: {
      kind: dice.oneOf(["fails", "fails after", "fails after", "answers late"]),
      group: "owners",
      atCall: dice.int(1, 12),
      lastsMs: dice.oneOf([0, 500, 8_000]),
      downMs: 0,
    },
  };
  const moves: WorkflowMove[] = [makeCreate(dice, 1), trouble];
  if (dice.chance(0.5)) moves.push(makeWait(dice));
  if (dice.chance(0.4)) moves.push({ kind: "pause", host: 1, ms: 30_000 });
  else moves.push({ kind: "kill", host: 1, downMs: 60_000 });
  moves.push({ kind: "wait", ms: dice.oneOf([300, 3_000, 15_000, 30_000]) });
  return { setup: makeSetup(dice, 2), moves };
}

/** Two requests for one run or fork, and answers through another process, in one moment. */
function makeTwins(dice: Dice): SetupAndMoves {
  const slow: WorkflowMove = {
    kind: "break",
    host: 0,
    fault: {
      kind: "answers late",
      group: "append",
      atCall: dice.oneOf([1, 1, 2]),
      lastsMs: 2_000,
      downMs: 0,
    },
  };
  const answer: WorkflowMove = {
    kind: "answer",
    host: 1,
    question: dice.oneOf([0, 1, 1]),
    value: "yes",
    by: "bob",
    isContradicted: false,
  };
  const create: WorkflowMove = { kind: "create", host: 0, workflow: 3, request: 1, by: "alice" };
  const fork: WorkflowMove = {
    kind: "fork",
    host: 0,
    run: 0,
    mode: dice.oneOf(["branch", "replay"]),
    share: dice.oneOf([50, 100, 100]),
    request: 1,
  };
  const pause: WorkflowMove = { kind: "pause", host: 0, ms: dice.oneOf([500, 2_000]) };
  const second = dice.oneOf([
    [slow, fork, { kind: "wait", ms: 10 }, answer],
    [pause, create, answer],
    [answer, pause, create],
    [pause, answer, create],
  ] as const);
  return {
    setup: { ...makeSetup(dice, 2), isOneMachine: false },
    moves: [create, makeWait(dice), ...second, { kind: "wait", ms: dice.oneOf([300, 3_000]) }],
  };
}
