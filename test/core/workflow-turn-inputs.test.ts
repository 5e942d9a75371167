/** Owns: what a supervisor is told in its turn: the parts of the text, what is masked or cleaned in them, and how they are bounded. */
import { describe, expect, it } from "vitest";
import { Map as ImmutableMap } from "immutable";
import { createEventId, formatTimestamp } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowVariable } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import type {
  WorkflowDraft,
  WorkflowEvent,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { evolveWorkflow } from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import {
  fitValues,
  TURN_CHARS,
  formatTurnInputs,
  type TurnInputs,
} from "../../src/agents/coordination/workflow/node-contract/turn-inputs.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import { isRecord } from "../../src/agents/coordination/std/is-record.ts";
import { createHandoff, createVariable } from "./workflow-node-view-scene.ts";
import { createGraph, createNodeRun, createRun, NOW, RUN, withNodes } from "./workflow-view-scene.ts";

interface Turn extends Partial<Omit<TurnInputs, "graph" | "transcript">> {
  /** The variables of the workflow. */
  readonly variables?: readonly WorkflowVariable[];
  /** The events of the transcript; their sequences begin with 3. */
  readonly drafts?: readonly WorkflowDraft[];
}

function createEvent(draft: WorkflowDraft, sequence: number): WorkflowEvent {
  const timestamp = formatTimestamp(NOW);
  return { eventId: createEventId(RUN, sequence), runId: RUN, sequence, timestamp, ...draft };
}

/** Returns what the text says, read as the model reads it. */
function readTurn(
  { variables = [], drafts = [], run = createRun(), ...more }: Turn = {},
  clean = (text: string) => text,
): Values {
  const graph = { ...createGraph(), variables };
  const transcript = drafts.map((draft, index) => createEvent(draft, index + 3));
  const read: unknown = JSON.parse(formatTurnInputs({ run, graph, transcript, ...more }, clean));
  if (!isRecord(read)) throw new Error("the text is no object");
  return read;
}

/** Returns what is told of the only event of a transcript. */
function readEvent(draft: WorkflowDraft, variables: readonly WorkflowVariable[] = []): unknown {
  const { transcript } = readTurn({ variables, drafts: [draft] });
  return Array.isArray(transcript) ? transcript[0] : undefined;
}

function startWith(inputs: Values): WorkflowDraft {
  return { type: "run.started", payload: createRun({}, { inputs }).started };
}

describe("what a supervisor is told", () => {
  it("has only the parts that are there", () => {
    expect(readTurn()).toStrictEqual({ turn: 1, variables: {}, workers: [], transcript: [] });
  });

  it("counts the turn that is being taken", () => {
    expect(readTurn({ run: createRun({ orchestrator: { decided: 4, revisions: 2 } }) })).toMatchObject({
      turn: 5,
    });
  });

  it("names the workers and how each of them ended, or how far it is", () => {
    const run = createRun(
      withNodes(
        createNodeRun("a", "running", { handoff: createHandoff({ workerId: "researcher" }) }),
        createNodeRun("b", "completed"),
        createNodeRun("c", "completed", {
          handoff: createHandoff({ phase: "ended", childStatus: "completed", gaveUp: true }),
        }),
      ),
    );
    expect(readTurn({ run })).toMatchObject({
      workers: [
        { worker: "researcher", status: "running" },
        { worker: "writer", status: "completed", goalSatisfied: false },
      ],
    });
    expect(readTurn({ run: createRun(withNodes(createNodeRun("a", "running"))) })["workers"]).toEqual([]);
  });

  it("does not say that a worker missed its goal unless it gave up", () => {
    const handoff = createHandoff({ childStatus: "failed" });
    const run = createRun(withNodes(createNodeRun("a", "running", { handoff })));
    expect(readTurn({ run })["workers"]).toStrictEqual([{ worker: "writer", status: "failed" }]);
  });

  it("has the rulings on the work of workers where there are some", () => {
    const review = { nodeId: "a", workerId: "writer", isMerged: true };
    expect(readTurn({ run: createRun({ reviews: ImmutableMap({ "a\nwriter": review }) }) })).toMatchObject({
      reviews: [{ worker: "writer", merged: true }],
    });
  });

  it("has the entries of the memory without what else is stored with them", () => {
    const entry = { id: "m-1", tags: ["x"], createdAt: "now", content: "remember", owner: "acme" };
    expect(readTurn({ memory: [entry] })["memory"]).toStrictEqual([
      { id: "m-1", tags: ["x"], createdAt: "now", content: "remember" },
    ]);
  });

  it("has the files of the workspace, some of them by name only", () => {
    const workspace = [
      { path: "a.md", version: 2, content: "text" },
      { path: "b.md", version: 1 },
    ];
    expect(readTurn({ workspace })["workspace"]).toStrictEqual(workspace);
  });

  it("has the events with their payloads, and with their nodes where they are about one", () => {
    const drafts: WorkflowDraft[] = [
      { type: "run.resumed", payload: {} },
      { type: "node.skipped", nodeId: "a", payload: { nodeId: "a", reason: "no edge" } },
    ];
    expect(readTurn({ drafts })["transcript"]).toStrictEqual([
      { sequence: 3, type: "run.resumed", payload: {} },
      { sequence: 4, type: "node.skipped", nodeId: "a", payload: { nodeId: "a", reason: "no edge" } },
    ]);
  });
});

describe("what a supervisor may not see", () => {
  const SENSITIVE = [createVariable("token", { sensitive: true }), createVariable("goal")];

  it("is masked among the variables", () => {
    const run = createRun({}, { inputs: { token: "abc", goal: "win" } });
    expect(readTurn({ run, variables: SENSITIVE })["variables"]).toStrictEqual({
      token: "[masked]",
      goal: "win",
    });
  });

  it("is masked among the inputs that the run began with", () => {
    expect(readEvent(startWith({ token: "abc", goal: "win" }), SENSITIVE)).toMatchObject({
      payload: { workflowId: "w", inputs: { token: "[masked]", goal: "win" } },
    });
  });

  it("is no input of a tool that happens to have the name of a variable", () => {
    const payload = { agentId: "acme.writer", toolName: "t", callId: "c", inputs: { token: "abc" } };
    const turn = readEvent({ type: "agent.toolCalled", payload }, SENSITIVE);
    expect(turn).toMatchObject({ payload: { inputs: { token: "abc" } } });
  });

  it("is masked where a sensitive variable changes, and what it was before is left out", () => {
    const payload = { name: "token", previous: "abc", next: "xyz", nodeId: "a" };
    expect(readEvent({ type: "variable.changed", payload }, SENSITIVE)).toStrictEqual({
      sequence: 3,
      type: "variable.changed",
      payload: { name: "token", next: "[masked]" },
    });
  });

  it("is not the change of another variable", () => {
    const payload = { name: "goal", previous: "win", next: "draw" };
    expect(readEvent({ type: "variable.changed", payload }, SENSITIVE)).toMatchObject({ payload });
  });

  it("is no other event that names something like a variable", () => {
    const payload = { name: "token", count: 3 };
    expect(readEvent({ type: "provider.usage", payload }, SENSITIVE)).toMatchObject({ payload });
  });

  it("is what a worker produced while people are asked about it", () => {
    const data = { artifactType: "subrun-output", title: "Merge?", artifactData: { result: "raw" } };
    const draft: WorkflowDraft = {
      type: "interrupt.requested",
      payload: { kind: "approval", key: "k", data },
    };
    expect(readEvent(draft)).toStrictEqual({
      sequence: 3,
      type: "interrupt.requested",
      payload: { kind: "approval", key: "k", data: { artifactType: "subrun-output", title: "Merge?" } },
    });
  });

  it("is not what people are asked about otherwise", () => {
    const data = { artifactType: "text", artifactData: { result: "raw" } };
    const payload = { kind: "approval", key: "k", data } as const;
    expect(readEvent({ type: "interrupt.requested", payload })).toMatchObject({ payload });
  });

  it("is masked wherever a text holds the value of a sensitive variable, also in names and lists", () => {
    const run = createRun({}, { inputs: { token: { keys: ["secret-1", null, 5] }, goal: "use secret-1" } });
    const content = { list: ["secret-1", 7, true, null], "secret-1": "x" };
    const turn = readTurn({ run, variables: SENSITIVE, memory: [{ id: "m", content }] });
    expect(turn["variables"]).toStrictEqual({ token: "[masked]", goal: "use [masked]" });
    expect(turn["memory"]).toStrictEqual([
      { id: "m", content: { list: ["[masked]", 7, true, null], "[masked]": "x" } },
    ]);
  });

  it("is masked in the names of files, and in the tags and ids of entries, too", () => {
    const run = createRun({}, { inputs: { token: "secret-1" } });
    const memory = [{ id: "of secret-1", tags: ["secret-1"], createdAt: "2026", content: "x" }];
    const workspace = [{ path: "out/secret-1.md", version: 1 }];
    const turn = readTurn({ run, variables: SENSITIVE, memory, workspace });
    expect(JSON.stringify(turn)).not.toContain("secret-1");
    expect(turn["workspace"]).toMatchObject([{ path: "out/[masked].md", version: 1 }]);
  });

  it("is masked also where the variable has another value by now", () => {
    const drafts = ["secret-2", { key: "secret-3" }, "secret-4"].map((next): WorkflowDraft => ({
      type: "variable.changed",
      payload: { name: "token", next },
    }));
    const begun = createRun({}, { inputs: { token: "secret-1", goal: "win" } });
    const run = drafts.map((draft, index) => createEvent(draft, index + 1)).reduce(evolveWorkflow, begun);
    const variables = [createVariable("token", { sensitive: true, defaultValue: "secret-0" })];
    const content = "secret-0 secret-1 secret-2 secret-3 secret-4 secret-5";
    expect(readTurn({ run, variables, memory: [{ id: "m", content }] })["memory"]).toMatchObject([
      { content: "[masked] [masked] [masked] [masked] [masked] secret-5" },
    ]);
  });

  it("is not what another variable held before", () => {
    const drafts = ["earlier-goal", "later-goal"].map((next): WorkflowDraft => ({
      type: "variable.changed",
      payload: { name: "goal", next },
    }));
    const run = drafts
      .map((draft, index) => createEvent(draft, index + 1))
      .reduce(evolveWorkflow, createRun());
    const memory = [{ id: "m", content: "earlier-goal" }];
    expect(readTurn({ run, variables: SENSITIVE, memory })["memory"]).toMatchObject(memory);
  });

  it("is not looked for where the variable has no value or one that is no text", () => {
    const variables = [...SENSITIVE, createVariable("pin", { sensitive: true })];
    const run = createRun({}, { inputs: { pin: 12_345_678, goal: "12345678" } });
    expect(readTurn({ run, variables })["variables"]).toStrictEqual({ pin: "[masked]", goal: "12345678" });
  });

  it.each([
    ["is looked for from eight characters on", "12345678", "[masked]"],
    ["is not looked for where it is shorter, because it would be found everywhere", "1234567", "1234567"],
  ])("%s", (_title, token, goal) => {
    const run = createRun({}, { inputs: { token, goal: token } });
    expect(readTurn({ run, variables: SENSITIVE })).toMatchObject({ variables: { goal } });
  });

  it("is masked as a whole where one value is the beginning of another one", () => {
    const variables = [
      createVariable("short", { sensitive: true }),
      createVariable("long", { sensitive: true }),
      createVariable("goal"),
    ];
    const inputs = { short: "password", long: "password-of-root", goal: "password-of-root, password" };
    const turn = readTurn({ run: createRun({}, { inputs }), variables });
    expect(turn).toMatchObject({ variables: { goal: "[masked], [masked]" } });
  });

  it("is taken out by whoever tells it, too", () => {
    const run = createRun({}, { inputs: { goal: "my key" } });
    const turn = readTurn({ run, memory: [{ id: "m", content: "a key" }] }, (text) =>
      text.replaceAll("key", "***"),
    );
    expect(turn).toMatchObject({ variables: { goal: "my ***" }, memory: [{ content: "a ***" }] });
  });

  it("is as little as nothing where a variable is null", () => {
    const run = createRun({ variables: ImmutableMap({ goal: undefined }) }, { inputs: { other: null } });
    expect(readTurn({ run })["variables"]).toStrictEqual({ goal: null, other: null });
  });
});

describe("the size of what a supervisor is told", () => {
  const LONG = "x".repeat(40_000);

  function createCut(chars: number): string {
    return `${"x".repeat(chars)}… (40000 characters)`;
  }

  it("is bounded for the variables together", () => {
    const run = createRun({}, { inputs: { one: LONG, few: "few" } });
    expect(readTurn({ run })["variables"]).toStrictEqual({
      one: createCut(TURN_CHARS.variables - 5),
      few: "few",
    });
  });

  it.each([['"'], ["\n"], ["\u0001"], ["\ud800"], ["😀"]])(
    "is bounded as it is sent, escapes included: %j",
    (character) => {
      const long = character.repeat(40_000);
      const turn = readTurn({
        run: createRun({}, { inputs: { one: long, two: [long] } }),
        memory: [{ id: "m", content: long }],
        workspace: [{ path: "a.md", version: 1, content: long }],
        drafts: [{ type: "variable.changed", payload: { name: "goal", next: long } }],
      });
      const { variables, memory, workspace, transcript } = TURN_CHARS;
      const notes = 200;
      expect(JSON.stringify(turn["variables"]).length).toBeLessThan(variables + notes);
      expect(JSON.stringify(turn["memory"]).length).toBeLessThan(memory + notes);
      expect(JSON.stringify(turn["workspace"]).length).toBeLessThan(workspace + notes);
      expect(JSON.stringify(turn["transcript"]).length).toBeLessThan(transcript + notes);
      expect(JSON.stringify(turn["memory"]).length).toBeGreaterThan(memory - notes);
    },
  );

  it("is bounded for the memory, the files and the events, each by itself", () => {
    const payload = { name: "goal", next: LONG };
    const turn = readTurn({
      memory: [{ id: "m", content: LONG }],
      workspace: [{ path: "a.md", version: 1, content: LONG }],
      drafts: [{ type: "variable.changed", payload }],
    });
    expect(turn).toMatchObject({
      memory: [{ id: "m", content: createCut(16_000) }],
      workspace: [{ path: "a.md", version: 1, content: createCut(24_000) }],
      transcript: [
        // Its JSON is a text in JSON, where each of its 7 quotes takes two characters.
        { sequence: 3, payload: `${JSON.stringify(payload).slice(0, 31_993)}… (40025 characters)` },
      ],
    });
  });
});

describe("values that share a number of characters", () => {
  function fitAll(values: readonly unknown[], charsMax: number): unknown[] {
    return fitValues(
      values.map((value, index) => [String(index), value] as const),
      charsMax,
    ).map(([, value]) => value);
  }

  it("keep their names and their order", () => {
    expect(
      fitValues(
        [
          ["b", "xxxxxx"],
          ["a", 1],
        ],
        3,
      ),
    ).toStrictEqual([
      ["b", "xx… (6 characters)"],
      ["a", 1],
    ]);
  });

  it("are whole where all of them fit exactly", () => {
    expect(fitAll(["xx", "yy"], 8)).toStrictEqual(["xx", "yy"]);
  });

  it("are whole where they are as long as their share", () => {
    expect(fitAll(["xx"], 4)).toStrictEqual(["xx"]);
    expect(fitAll(["xx", "yyyyyyyy"], 8)).toStrictEqual(["xx", "yyyy… (8 characters)"]);
  });

  it("are cut to the same length where none of them fits", () => {
    expect(fitAll(["xxxxxx", "yyyyyy"], 7)).toStrictEqual(["xxx… (6 characters)", "yyy… (6 characters)"]);
  });

  it("leave to the longest what the shorter ones do not need", () => {
    expect(fitAll(["xxxxxxxx", "", "yyyyyyyy", 1], 13)).toStrictEqual([
      "xxxxx… (8 characters)",
      "",
      "yyyyy… (8 characters)",
      1,
    ]);
  });

  it("are cut as JSON where they are no texts", () => {
    expect(fitAll([["a", "b"]], 4)).toStrictEqual(['["a… (9 characters)']);
  });
});
