/** Subagents write, edit and patch the same files at once, in the real gateway: who gets them under each strategy. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { Json } from "../support/gateway.ts";
import type { SpawnArgs, ToolCall, Turn } from "../support/scripted-model.ts";
import type { OpenedCoordination, Stage } from "./stage.ts";
import {
  call,
  childOf,
  listConflicts,
  waitForEnd,
  edit,
  expectHeld,
  expectSound,
  factsOf,
  fileOf,
  gate,
  createMeeting,
  openWritesStage,
  ownerOf,
  patchOf,
  pathOf,
  put,
  read,
  REFUSED,
  resultsOf,
  run,
  stepIdOf,
  taskOf,
  readText,
  write,
} from "./writes-stage.ts";

let stage: Stage;

beforeAll(async () => {
  stage = await openWritesStage({
    strategy: "owner_wins",
    overrides: [
      { resource: "merge/**", strategy: "merge_if_safe" },
      { resource: "manual/**", strategy: "manual_review" },
    ],
  });
});

afterAll(() => stage.close());

const WORKERS = ["writer", "editor", "patcher"] as const;
const FILES = ["lines.txt", "same.txt", "new.txt"] as const;
/** The time for results of a worker: behind two files that it reads and a gate. */
const RESULT = { "lines.txt": 3, "same.txt": 4, "new.txt": 5 } as const;
const LINES = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n";
const SAME = "before\nsame\nbehind\n";

type Worker = (typeof WORKERS)[number];
type FileName = (typeof FILES)[number];

/** Texts that each leaves in each file where nobody else has changed it. */
const LEAVES: Record<Worker, Record<FileName, string>> = {
  writer: createLeaves("writer", "one"),
  editor: createLeaves("editor", "five"),
  patcher: createLeaves("patcher", "nine"),
};

function createLeaves(worker: Worker, line: string): Record<FileName, string> {
  return {
    "lines.txt": LINES.replace(line, `${line} by ${worker}`),
    "same.txt": SAME.replace("same", `same by ${worker}`),
    "new.txt": `new by ${worker}\n`,
  };
}

/** Three agents that have read the same files change them at once: at different lines, at the same line, and as new. */
function createTrio(folder: string): SpawnArgs[] {
  const nameFile = (name: FileName): string => `${folder}/${name}`;
  const labels = WORKERS.map((worker) => `${folder}-${worker}`);
  const work = (worker: Worker, changes: readonly ToolCall[]): SpawnArgs => {
    const label = `${folder}-${worker}`;
    return childOf(
      label,
      call(read(nameFile("lines.txt")), read(nameFile("same.txt"))),
      createMeeting(`${folder} read`, label, labels),
      ...changes.map((change) => call(change)),
      createMeeting(`${folder} changed`, label, labels),
    );
  };
  return [
    work(
      "writer",
      FILES.map((name) => write(nameFile(name), LEAVES.writer[name])),
    ),
    work("editor", [
      edit(nameFile("lines.txt"), "five", "five by editor"),
      edit(nameFile("same.txt"), "same", "same by editor"),
      write(nameFile("new.txt"), LEAVES.editor["new.txt"]),
    ]),
    work("patcher", [
      patchOf(`*** Update File: ${nameFile("lines.txt")}`, "@@", "-nine", "+nine by patcher"),
      patchOf(`*** Update File: ${nameFile("same.txt")}`, "@@", "-same", "+same by patcher"),
      patchOf(`*** Add File: ${nameFile("new.txt")}`, "+new by patcher"),
    ]),
  ];
}

async function contendFor(folder: string): Promise<{ state: OpenedCoordination; events: RunEvent[] }> {
  put(stage, `${folder}/lines.txt`, LINES);
  put(stage, `${folder}/same.txt`, SAME);
  const state = await run(stage, `of-${folder}`, { spawn: createTrio(folder) });
  return { state, events: await expectSound(stage, state) };
}

const resultOf = (folder: string, worker: Worker, name: FileName): string =>
  resultsOf(stage, `${folder}-${worker}`)[RESULT[name]] ?? "no result";

/** The one whose change of a file was not refused, and the others. */
function partWorkers(folder: string, name: FileName): { winner: Worker; losers: Worker[] } {
  const isRefused = (worker: Worker): boolean => REFUSED.test(resultOf(folder, worker, name));
  const [winner, ...more] = WORKERS.filter((worker) => !isRefused(worker));
  if (!winner || more.length > 0) throw new Error(`not one of ${folder}/${name}: ${winner}, ${more.join()}`);
  return { winner, losers: WORKERS.filter((worker) => worker !== winner) };
}

describe("owner_wins", () => {
  let state: OpenedCoordination;
  let events: RunEvent[];

  beforeAll(async () => {
    ({ state, events } = await contendFor("owner"));
  });

  it.each(FILES)("leaves %s to the first, whole, and tells the others who has it", (name) => {
    const { winner, losers } = partWorkers("owner", name);
    expect(readText(stage, `owner/${name}`)).toBe(LEAVES[winner][name]);
    const resource = fileOf(stage, `owner/${name}`);
    const holder = stepIdOf(state, `owner-${winner}`);
    const conflicts = listConflicts(events).filter((conflict) => conflict.resource === resource);
    expect(conflicts).toHaveLength(2);
    for (const loser of losers) {
      const requester = stepIdOf(state, `owner-${loser}`);
      const conflict = conflicts.find(({ contest }) => contest?.requester === requester);
      expect(conflict).toMatchObject({
        contest: { cause: "overlap", strategy: "owner_wins", from: "default" },
        resolutions: [{ winner: holder, losers: [requester], rule: "lease", because: "lease-holder" }],
      });
      const by = `${holder} ("owner-${winner}")`;
      expectHeld(resultOf("owner", loser, name), { resource, by, conflictId: conflict?.conflictId });
    }
    const changed = factsOf(events, "resource.changed").filter((change) => change.resource === resource);
    expect(changed).toMatchObject([{ stepId: holder }]);
  });

  it("gives one claim for each file, until its agent has ended", () => {
    const acquired = factsOf(events, "claim.acquired").map(({ resource }) => resource);
    expect(acquired.toSorted()).toEqual(FILES.map((name) => fileOf(stage, `owner/${name}`)).toSorted());
    // Either may end first for the ledger: the agent's turn, or its step.
    for (const { because } of factsOf(events, "claim.released"))
      expect(["turn_ended", "step_ended"]).toContain(because);
  });
});

describe("merge_if_safe", () => {
  let state: OpenedCoordination;
  let events: RunEvent[];

  beforeAll(async () => {
    ({ state, events } = await contendFor("merge"));
  });

  it("lands every change of another line, by whichever tool", () => {
    const all = LINES.replace("one", "one by writer")
      .replace("five", "five by editor")
      .replace("nine", "nine by patcher");
    expect(readText(stage, "merge/lines.txt")).toBe(all);
    for (const worker of WORKERS) expect(resultOf("merge", worker, "lines.txt")).not.toMatch(REFUSED);
    const resource = fileOf(stage, "merge/lines.txt");
    const conflicts = listConflicts(events).filter((conflict) => conflict.resource === resource);
    expect(conflicts).toHaveLength(2);
    for (const { contest, resolutions } of conflicts) {
      expect(contest).toMatchObject({
        strategy: "merge_if_safe",
        from: "operator",
        merge: { kind: "clean" },
      });
      expect(resolutions).toMatchObject([
        { winner: contest?.requester, losers: [], rule: "strategy", because: "merged" },
      ]);
    }
    const changed = factsOf(events, "resource.changed").filter((change) => change.resource === resource);
    expect(new Set(changed.map(({ stepId }) => stepId)).size).toBe(3);
    expect(changed.map(({ tool }) => tool).toSorted()).toEqual(["apply_patch", "edit", "write"]);
  });

  it.each(["same.txt", "new.txt"] as const)("leaves %s, changed at one place, to people", (name) => {
    const { winner, losers } = partWorkers("merge", name);
    expect(readText(stage, `merge/${name}`)).toBe(LEAVES[winner][name]);
    for (const loser of losers) {
      const requester = stepIdOf(state, `merge-${loser}`);
      const conflict = listConflicts(events).find(
        ({ resource, contest }) =>
          resource === fileOf(stage, `merge/${name}`) && contest?.requester === requester,
      );
      expect(conflict).toMatchObject({
        contest: { merge: { kind: "obstacle", obstacle: "overlapping_changes" } },
        resolutions: [{ losers: [requester], rule: "strategy", because: "overlapping-changes" }],
      });
      expect(conflict?.resolutions[0]?.winner).toBeUndefined();
      expect(resultOf("merge", loser, name)).toContain(`(conflict ${conflict?.conflictId})`);
    }
  });
});

describe("manual_review", () => {
  it("refuses all but the first where nobody can be asked, with the id of the conflict", async () => {
    const { state, events } = await contendFor("manual");
    expect(listConflicts(events)).toHaveLength(6);
    for (const name of FILES) {
      const { winner, losers } = partWorkers("manual", name);
      expect(readText(stage, `manual/${name}`)).toBe(LEAVES[winner][name]);
      for (const loser of losers) {
        const requester = stepIdOf(state, `manual-${loser}`);
        const conflict = listConflicts(events).find(
          ({ resource, contest }) =>
            resource === fileOf(stage, `manual/${name}`) && contest?.requester === requester,
        );
        expect(conflict?.resolutions).toMatchObject([{ losers: [requester], because: "manual-review" }]);
        expect(conflict?.resolutions[0]?.winner).toBeUndefined();
        const sentence = resultOf("manual", loser, name);
        expect(sentence).toContain(`a person must decide who may change ${pathOf(stage, `manual/${name}`)}`);
        expect(sentence).toContain(`(conflict ${conflict?.conflictId})`);
      }
    }
  });
});

const planStep = (stepId: string, turns: readonly Turn[], fields: Json = {}): Json => ({
  stepId,
  agent: "main",
  task: taskOf(stepId, turns),
  ...fields,
});

/** Runs a plan, which is named as its owner's session, to its end. */
async function runPlan(label: string, strategy: string, steps: readonly Json[]): Promise<OpenedCoordination> {
  await stage.gateway.call("coordination.plan.run", {
    plan: {
      coordinationId: label,
      objective: `objective of ${label}`,
      ownerSession: ownerOf(label),
      conflictPolicy: { strategy },
      failurePolicy: { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
      defaults: { timeoutMs: 90_000 },
      steps,
    },
  });
  return waitForEnd(stage, label);
}

describe("priority_wins", () => {
  const [lines, fresh] = ["priority/lines.txt", "priority/new.txt"];
  let state: OpenedCoordination;
  let events: RunEvent[];

  beforeAll(async () => {
    put(stage, lines, LINES);
    state = await runPlan("priority", "priority_wins", [
      planStep(
        "low",
        [
          call(
            patchOf(
              `*** Update File: ${lines}`,
              "@@",
              "-nine",
              "+nine by low",
              `*** Add File: ${fresh}`,
              "+low",
            ),
          ),
          gate({ opens: ["priority low"], awaits: ["priority high"] }),
          call(write(lines, "low again\n")),
          gate({ opens: ["priority low again"] }),
        ],
        { priority: "low" },
      ),
      planStep("normal", [
        gate({ awaits: ["priority low"] }),
        call(edit(lines, "five", "five by normal")),
        gate({ opens: ["priority normal"], awaits: ["priority high"] }),
        call(edit(lines, "high", "normal again")),
        gate({ opens: ["priority normal again"] }),
      ]),
      planStep(
        "high",
        [
          gate({ awaits: ["priority normal"] }),
          call(write(lines, "high\n"), write(fresh, "high\n")),
          gate({ opens: ["priority high"], awaits: ["priority low again", "priority normal again"] }),
        ],
        { priority: "high" },
      ),
    ]);
    events = await expectSound(stage, state);
  });

  it("gives each file to whoever has the highest priority, whenever it comes", () => {
    expect(readText(stage, lines)).toBe("high\n");
    expect(readText(stage, fresh)).toBe("high\n");
    expect(resultsOf(stage, "normal")[1]).not.toMatch(REFUSED);
    for (const result of resultsOf(stage, "high")) expect(result).not.toMatch(REFUSED);
    const won = listConflicts(events).map(({ resource, contest, resolutions: [resolution] }) => ({
      resource,
      requester: contest?.requester,
      strategy: [contest?.strategy, contest?.from],
      ruling: [resolution?.winner, resolution?.losers, resolution?.rule, resolution?.because],
    }));
    const matchRuled = (name: string, requester: string, [winner, loser]: readonly [string, string]) => ({
      resource: fileOf(stage, name),
      requester,
      strategy: ["priority_wins", "plan"],
      ruling: [winner, [loser], "strategy", "highest-priority"],
    });
    expect(won.slice(0, 3)).toEqual([
      matchRuled(lines, "normal", ["normal", "low"]),
      matchRuled(lines, "high", ["high", "normal"]),
      matchRuled(fresh, "high", ["high", "low"]),
    ]);
    expect(won.slice(3).toSorted((a, b) => (String(a.requester) < String(b.requester) ? -1 : 1))).toEqual([
      matchRuled(lines, "low", ["high", "low"]),
      matchRuled(lines, "normal", ["high", "normal"]),
    ]);
  });

  it("ends the claims of those who lose, and tells them who has it when they try again", () => {
    const released = factsOf(events, "claim.released").filter(({ because }) => because === "preempted");
    expect(released.map(({ stepId }) => stepId)).toEqual(["low", "normal", "low"]);
    for (const [label, at] of [
      ["low", 2],
      ["normal", 3],
    ] as const) {
      const conflict = listConflicts(events).findLast(({ contest }) => contest?.requester === label);
      expectHeld(resultsOf(stage, label)[at], {
        resource: fileOf(stage, lines),
        by: "high",
        conflictId: conflict?.conflictId,
      });
    }
  });
});

describe("a resource that a step of a plan declares", () => {
  it("is that step's as long as it is at work, though another comes first", async () => {
    const name = "declared/f.txt";
    const state = await runPlan("declaring", "owner_wins", [
      planStep("early", [
        gate({ awaits: ["declaring begun"] }),
        call(write(name, "early\n")),
        gate({ opens: ["declaring tried"] }),
      ]),
      planStep(
        "late",
        [gate({ opens: ["declaring begun"], awaits: ["declaring tried"] }), call(write(name, "late\n"))],
        { resources: [`file:${name}`] },
      ),
    ]);
    const events = await expectSound(stage, state);
    expect(readText(stage, name)).toBe("late\n");
    const sentence = resultsOf(stage, "early")[1];
    expect(sentence).toMatch(REFUSED);
    expect(sentence).toContain(`${pathOf(stage, name)} is declared by late as its own in the plan`);
    expect(listConflicts(events)).toMatchObject([
      {
        contest: { requester: "early" },
        resolutions: [{ winner: "late", losers: ["early"], rule: "ownership", because: "declared-owner" }],
      },
    ]);
  });
});
