/** Results that are checked before they count: by a program that wants another turn, by a pattern, and by another plugin. */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { Json } from "../support/gateway.ts";
import { renderScript, textOf, type RecordedRequest } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { hasEnded, stepNamed, type OpenedCoordination } from "./stage.ts";
import {
  findChildOfStep,
  expectKept,
  expectSound,
  factsOf,
  HELD_BACK,
  NOT_ACCEPTED,
  openGateStage,
  ownerOf,
  planOf,
  askToReadAfterwards,
  requestsOf,
  runPlan,
  spawnFrom,
  stepOf,
  countTimesRead,
  waitUntilAnnounced,
  WAIT_MS_MAX,
  type GateStage,
} from "./gates-stage.ts";

import { call, gate, pathOf, resultsOf, taskOf, readText, write } from "./writes-stage.ts";

/** Passes what says forty-two, asks for more where there is a guess, and fails all else. */
const PROGRAM = `
  let input = "";
  process.stdin.on("data", (chunk) => (input += chunk)).on("end", () => {
    const { text, outputs } = JSON.parse(input);
    const said = String(text) + JSON.stringify(outputs);
    process.exitCode = said.includes("forty-two") ? 0 : said.includes("guess") ? 3 : 1;
  });`;

const GATES = {
  verifiers: {
    program: { kind: "command", command: process.execPath, args: ["-e", PROGRAM], reviseOn: [3] },
    finished: { kind: "pattern", pattern: "TODO", absent: true },
  },
  agents: { checked: { checks: ["program"] }, finisher: { checks: ["finished"] } },
};

const AGENTS = {
  ownership: "explicit",
  entries: { main: {}, checked: {}, finisher: {}, reviewed: {} },
  defaults: { subagents: { allowAgents: ["*"] } },
};

let folder: string;
let stage: GateStage;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coordination-hook-plugin-"));
  stage = await openGateStage(
    { gates: GATES },
    {
      extraPluginPaths: [createHookPlugin(), join(import.meta.dirname, "fixtures", "writing-tools")],
      configPatch: { agents: AGENTS, tools: { swarm: { defaultAgentId: "checked" } } },
    },
  );
});

afterAll(async () => {
  await stage.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The example as its author has it: installed beside its own copy of our package. */
function createHookPlugin(): string {
  const dir = join(folder, "hook-plugin");
  const example = new URL("../../examples/hook-plugin", import.meta.url).pathname;
  const withoutDependencies = (path: string): boolean => basename(path) !== "node_modules";
  cpSync(example, dir, { recursive: true, filter: withoutDependencies });
  const packed = inject("pluginDir");
  const modules = join(dir, "node_modules");
  // The host asks for the dependencies of dependencies, whether or not they are loaded.
  cpSync(join(packed, "node_modules"), modules, { recursive: true });
  cpSync(packed, join(modules, "openclaw-coordination"), { recursive: true, filter: withoutDependencies });
  return dir;
}

const FIRST = "first-result-9c1d";
const SECOND = "second-result-9c1d";

/** Its first result is a guess, and its second one is not. */
function teachSecondThoughts(label: string, good: string): { readonly task: string } {
  const task = `Task of ${label}.`;
  stage.teachRevision(task, { say: `${good} ${SECOND}-${label}` });
  stage.teach(task, { say: `A guess: ${FIRST}-${label}` });
  return { task };
}

const endedOf = (label: string): Promise<OpenedCoordination> =>
  stage.until(ownerOf(label), hasEnded, WAIT_MS_MAX);

/** The agent went on in the same session, was told which criteria it had not met, and its second result counts. */
async function expectRevisedOnce(
  state: OpenedCoordination,
  name: string,
  criteria: readonly string[],
): Promise<string> {
  const child = findChildOfStep(state, name);
  expect(stepNamed(state, name).phase).toMatchObject({
    status: "completed",
    attempt: 2,
    released: "verified",
  });
  const { stepId } = stepNamed(state, name).spec;
  const acknowledged = (await factsOf(stage, state, "step.acknowledged")).filter(
    (each) => each.stepId === stepId,
  );
  expect(acknowledged.map(({ childSessionKey }) => childSessionKey)).toEqual([child, child]);
  const verdicts = await factsOf(stage, state, "result.verified");
  expect(verdicts.map(({ attempt, verdict }) => [attempt, verdict])).toEqual([
    [1, "revise"],
    [2, "pass"],
  ]);
  const revised = await factsOf(stage, state, "result.revised");
  expect(revised).toMatchObject([{ attempt: 1, revision: 1, criteria }]);
  const second = requestsOf(stage, child).at(-1);
  expect(second?.text).toContain(NOT_ACCEPTED);
  for (const key of criteria) expect(second?.text).toContain(`- ${key}`);
  return child;
}

const ownWords = (request: RecordedRequest | undefined): string =>
  (request?.body.messages ?? [])
    .filter(({ role }) => role === "assistant")
    .map(textOf)
    .join("\n");

describe("a program that wants another turn", () => {
  it("of a model's own spawn: the parent hears the second result once, and never the first one", async () => {
    const label = "spawned";
    teachSecondThoughts(label, "It is forty-two.");
    await spawnFrom(stage, label, [], { agentId: "checked" });
    const state = await endedOf(label);
    const child = await expectRevisedOnce(state, label, ["program"]);
    expect(ownWords(requestsOf(stage, child).at(-1))).toContain(`${FIRST}-${label}`);
    expect(JSON.stringify((await waitUntilAnnounced(stage, child)).body)).toContain(HELD_BACK);
    expectKept(stage, `${FIRST}-${label}`, child);
    expect(countTimesRead(await askToReadAfterwards(stage, label), `${SECOND}-${label}`)).toBe(1);
    await expectSound(stage, state);
  });

  it("of a step of a plan: what depends on it, and the owner, have the second result only", async () => {
    const label = "planned";
    const { task } = teachSecondThoughts(label, '{"answer":"forty-two"}');
    stage.teachRevision(task, { say: `{"answer":"forty-two ${SECOND}-${label}"}` });
    await runPlan(
      stage,
      planOf(label, [
        stepOf("asked", task, { agent: "checked" }),
        stepOf("after", "Task of what comes after.", {
          dependsOn: ["asked"],
          input: { text: "{{steps.asked.outputs.text}}" },
        }),
      ]),
    );
    const state = await endedOf(label);
    expect(state).toMatchObject({ kind: "ended", status: "success" });
    const child = await expectRevisedOnce(state, "asked", ["program"]);
    expectKept(stage, `${FIRST}-${label}`, child);
    const [after] = stage.model.requests.filter(({ text }) => text.includes("Task of what comes after."));
    expect(after?.text).toContain(`${SECOND}-${label}`);
    await expectSound(stage, state);
  });
});

describe("a collector", () => {
  const findRequest = (say: string): RecordedRequest =>
    stage.model.requests.findLast(({ turn }) => turn.say === say) ?? expect.fail(`nobody said ${say}`);

  it("of an agent with checks is not spawned where it is to give the host a value of a certain form", async () => {
    const label = "formed";
    const spawn = { label, agentId: "checked", collect: true, outputSchema: { type: "object" }, task: "t" };
    const message = renderScript({ spawn: [spawn] }, { say: "read why" });
    await stage.gateway.agent({ sessionKey: ownerOf(label), message });
    const answers = findRequest("read why").body.messages.filter(({ role }) => role === "tool");
    expect(answers.map(textOf).at(-1)).toContain("spawn it without outputSchema");
    expect(await stage.of(ownerOf(label))).toEqual([]);
  });

  it("whose spawn names no agent is checked as the agent that the host runs", async () => {
    const label = "defaulted";
    await spawnFrom(stage, label, [{ say: "It is forty-two." }], { collect: true });
    const state = await endedOf(label);
    expect(stepNamed(state, label)).toMatchObject({
      spec: { agentId: "checked" },
      phase: { status: "completed", released: "verified" },
    });
    expect(findChildOfStep(state, label)).toMatch(/^agent:checked:/u);
    await expectSound(stage, state);
  });
});

describe("a check that fails", () => {
  it("ends the step, and the parent is told once that there is no result; tools were called as ever", async () => {
    const label = "unfinished";
    const report = { outcome: "completed", outputs: { pages: "three" } };
    const words = [
      call(write(pathOf(stage, "by-finisher.txt"), "written\n")),
      call({ name: "coordination_report", args: report }),
      { say: `TODO: ${FIRST}-${label}` },
    ];
    await spawnFrom(stage, label, words, { agentId: "finisher" });
    const state = await endedOf(label);
    expect(readText(stage, "by-finisher.txt")).toBe("written\n");
    expect(await factsOf(stage, state, "step.reported")).toMatchObject([{ outcome: "completed" }]);
    const { phase } = stepNamed(state, label);
    expect(phase).toMatchObject({ status: "failed", attempt: 1, error: { code: "verification_failed" } });
    const sentence = `The result of the subagent "${label}" (step step-1, agent finisher) was withheld`;
    expect(countTimesRead(await askToReadAfterwards(stage, label), sentence)).toBe(1);
    expectKept(stage, `${FIRST}-${label}`, findChildOfStep(state, label));
    await expectSound(stage, state);
  });
});

describe("the example plugin beside ours", () => {
  interface Counts {
    readonly events: Readonly<Record<string, number>>;
    readonly dropped: number;
    readonly questions: number;
  }

  const readCounts = async (): Promise<Counts> => (await stage.gateway.call("hook-plugin.counts")) as never;

  it("sends a result back that nobody reviewed, and lets the reviewed one through", async () => {
    const label = "reviewing";
    teachSecondThoughts(label, "It was read.\nReviewed-by: Ada\n");
    await spawnFrom(stage, label, [], { agentId: "reviewed" });
    const state = await endedOf(label);
    const child = await expectRevisedOnce(state, label, ["reviewed-by"]);
    const verdicts = await factsOf(stage, state, "result.verified");
    expect(verdicts.map(({ check, agentId }) => [check, agentId])).toEqual([
      ["plugin:hook-plugin", "plugin:hook-plugin"],
      ["plugin:hook-plugin", "plugin:hook-plugin"],
    ]);
    expectKept(stage, `${FIRST}-${label}`, child);
    expect(countTimesRead(await askToReadAfterwards(stage, label), `${SECOND}-${label}`)).toBe(1);
    await expectSound(stage, state);
  });

  it("keeps a vendored file with who holds it, where priority would win; about others it has no opinion", async () => {
    const label = "vendored";
    const [vendored, plain] = ["vendor/lib.txt", "plain.txt"];
    const low = taskOf("low", [
      call(write(pathOf(stage, vendored), "by the holder\n")),
      call(write(pathOf(stage, plain), "by the holder\n")),
      gate({ opens: ["low wrote"], awaits: ["high wrote"] }),
    ]);
    const high = taskOf("high", [
      gate({ awaits: ["low wrote"] }),
      call(write(pathOf(stage, vendored), "by priority\n")),
      call(write(pathOf(stage, plain), "by priority\n")),
      gate({ opens: ["high wrote"] }),
    ]);
    const steps = [stepOf("low", low, { priority: "low" }), stepOf("high", high, { priority: "high" })];
    await runPlan(stage, planOf(label, steps, { conflictPolicy: { strategy: "priority_wins" } }));
    const state = await endedOf(label);
    const [, refused, wrote] = resultsOf(stage, "high");
    expect(refused).toContain("Files below vendor/ stay with who holds them.");
    expect(wrote).toContain("Successfully wrote");
    expect([readText(stage, vendored), readText(stage, plain)]).toEqual(["by the holder\n", "by priority\n"]);
    const resolved = await factsOf(stage, state, "conflict.resolved");
    expect(resolved).toMatchObject([
      { winner: "low", losers: ["high"], rule: "hook" },
      { winner: "high", losers: ["low"], rule: "strategy" },
    ]);
    await expectSound(stage, state);
  });

  it("hears of every event that is on the disk, once and by its type", async () => {
    const knownCounts: Json = {};
    for (const label of ["spawned", "planned", "defaulted", "unfinished", "reviewing", "vendored"])
      for (const state of await stage.of(ownerOf(label)))
        for (const { type } of await stage.events(state))
          knownCounts[type] = Number(knownCounts[type] ?? 0) + 1;
    expect(knownCounts).toMatchObject({ "result.revised": 3, "conflict.resolved": 2 });
    await waitFor(
      async () => {
        const { dropped, events } = await readCounts();
        expect(dropped).toBe(0);
        for (const type of Object.keys(events))
          expect([type, events[type]]).toEqual([type, knownCounts[type]]);
        expect(events).toMatchObject({ "result.revised": 3, "conflict.resolved": 2 });
        return true;
      },
      { what: "as many events as the ledger has", timeoutMs: WAIT_MS_MAX },
    );
  });
});
