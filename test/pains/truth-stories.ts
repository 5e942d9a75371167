/**
 * P21, told twice: children that do not run as they were asked, on another model, without the thinking, outside of their folder.
 * Their words about themselves change nothing.
 */
import { mkdirSync, symlinkSync } from "node:fs";
import { expect } from "vitest";
import type { ChildDifference } from "../../src/agents/coordination/contracts/fact-fields.ts";
import type { Step } from "../../src/agents/coordination/ledger/state.ts";
import type { Json } from "../support/gateway.ts";
import {
  isAnnounce,
  textOf,
  type RecordedRequest,
  type SpawnArgs,
  type Turn,
} from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { stepNamed, type OpenedCoordination, type Stage } from "../e2e/stage.ts";
import { runCli } from "../cli/run-cli.ts";
import { turnFlagOrRestart } from "../e2e/turn-flag.ts";
import {
  begin,
  call,
  childOf,
  factsOf,
  ownerOf,
  pathOf,
  put,
  read,
  readText,
  resultsOf,
  run,
  waitForEnd,
  write,
} from "../e2e/writes-stage.ts";
import type { Pair } from "./pair.ts";
import { WAIT_MS_MAX } from "./story-parts.ts";

const createModel = (id: string, reasoning = false): Json => ({
  id,
  name: id,
  reasoning,
  compat: { supportsReasoningEffort: reasoning },
  input: ["text"],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 128_000,
  maxTokens: 8_000,
});

/** A fixture that sends the model calls of a session elsewhere. */
export const ROUTER = "model-router";
/** A large and a small model beside the usual one. */
export const ROUTED_MODELS: readonly Json[] = [createModel("large", true), createModel("small")];
/** Settings that both gateways need beside those models. */
export const TRUTH_CONFIG: Json = {
  agents: {
    defaults: { models: { "mock/scripted": {}, "mock/large": { alias: "best" }, "mock/small": {} } },
  },
};

/** Asks for the large model, is routed to the small one, and claims wherever it can that it is the large one. */
export function createLiar(label: string): SpawnArgs {
  const outputs = { ran: { model: "mock/large" } };
  const child = childOf(
    label,
    { say: "I run on mock/large, as asked.", call: [read("x.md")] },
    call({ name: "coordination_progress", args: { percent: 50, line: "mock/large is at work" } }),
    call({ name: "coordination_report", args: { outcome: "completed", outputs } }),
  );
  return { ...child, model: "mock/large", task: `ROUTE-TO:small ${child.task}` };
}

export const ROUTED: ChildDifference = { field: "model", asked: "mock/large", ran: "mock/small" };
const UNTHINKING: ChildDifference = { field: "thinking", asked: "high", ran: "off" };

const createUnthinking = (label: string): SpawnArgs => ({
  ...childOf(label),
  model: "mock/small",
  thinking: "high",
});

const wordsOf = (label: string): string => `${label} is at its end`;

/** Requests to the model in the session of a child. */
const requestsOf = ({ model }: Stage, label: string): RecordedRequest[] =>
  model.requests.filter(
    ({ body, text }) =>
      !isAnnounce(text) &&
      body.messages.some((message) => textOf(message).includes("[Subagent Task]")) &&
      body.messages.some((message) => textOf(message).includes(`"say":"${wordsOf(label)}"`)),
  );

const modelsOf = (stage: Stage, label: string): (string | undefined)[] => [
  ...new Set(requestsOf(stage, label).map(({ body }) => body.model)),
];

const isThinking = (stage: Stage, label: string): boolean =>
  requestsOf(stage, label).some(({ body }) => Object.keys(body).includes("reasoning_effort"));

/** The message to a parent when a child has ended. */
const tellingsOf = ({ model }: Stage, words: string): string[] =>
  model.requests.map(({ text }) => text).filter((text) => isAnnounce(text) && text.includes(words));

/** Wherever in its prompts a model other than the child's own reads its last words. */
export const readingsOf = ({ model }: Stage, label: string): string[] =>
  model.requests
    .flatMap(({ body }) => body.messages.map(textOf))
    .filter((text) => text.includes(wordsOf(label)) && !text.includes("SCRIPT:"));

export const differencesOf = (state: OpenedCoordination, name: string): readonly ChildDifference[] =>
  stepNamed(state, name).differences ?? [];

const turn = (stage: Stage, onMismatch: string): Promise<void> =>
  turnFlagOrRestart(stage, { enabled: true, phase1: { conflicts: {}, truth: { onMismatch } } });

/** The question about a child whose result is held. */
export async function waitForHeld(
  stage: Stage,
  label: string,
  name: string,
): Promise<{ heldStep: Step; questionId: string }> {
  const state = await stage.until(
    ownerOf(label),
    ({ steps }) =>
      [...steps.values()].some(({ spec, phase }) => spec.name === name && phase.status === "held"),
    WAIT_MS_MAX,
  );
  const question = state.escalations.first();
  expect(question).toMatchObject({ cause: "mismatch", stepId: stepNamed(state, name).spec.stepId });
  return {
    heldStep: stepNamed(state, name),
    questionId: `${state.coordinationId}:${question?.escalationId}`,
  };
}

/** The plain host tells the parent that all was applied, and nothing when it was not. */
async function showPain(stage: Stage): Promise<void> {
  await begin(stage, "p21-recorded", { spawn: [createLiar("p21-liar"), createUnthinking("p21-shallow")] });
  await waitFor(
    () => ["p21-liar", "p21-shallow"].every((label) => tellingsOf(stage, wordsOf(label)).length > 0),
    { what: "the results of the children", timeoutMs: WAIT_MS_MAX },
  );
  expect(modelsOf(stage, "p21-liar")).toEqual(["small"]);
  expect(isThinking(stage, "p21-shallow")).toBe(false);
  const [liar, shallow] = resultsOf(stage, "p21-recorded");
  expect(liar).toMatch(/"resolvedModel":\s*"mock\/large"/u);
  for (const answer of [liar, shallow]) expect(answer).toMatch(/"modelApplied":\s*true/u);
  expect(tellingsOf(stage, wordsOf("p21-liar")).join()).not.toContain("small");
}

async function showModels(stage: Stage): Promise<OpenedCoordination> {
  const unasked = childOf("p21-unasked");
  const honest = childOf("p21-honest", { say: "I run on mock/small.", call: [read("x.md")] });
  const ended = await run(stage, "p21-recorded", {
    spawn: [
      createLiar("p21-liar"),
      { ...honest, model: "mock/large" },
      // An alias is a name of the same model, and who asks for nothing gets what there is.
      { ...childOf("p21-aliased"), model: "Best" },
      { ...unasked, task: `ROUTE-TO:small ${unasked.task}` },
    ],
  });
  expect(modelsOf(stage, "p21-liar")).toEqual(["small"]);
  expect(modelsOf(stage, "p21-aliased")).toEqual(["large"]);
  expect(modelsOf(stage, "p21-unasked")).toEqual(["small"]);
  const liar = stepNamed(ended, "p21-liar");
  expect(liar).toMatchObject({
    spec: { requested: { model: "mock/large" } },
    phase: { status: "completed" },
    observed: {
      changes: 1,
      ran: { agentId: "main", model: "mock/small", folder: pathOf(stage, "") },
    },
  });
  expect(liar.observed?.ran.tools?.count).toBeGreaterThan(5);
  expect(differencesOf(ended, "p21-liar")).toEqual([ROUTED]);
  for (const name of ["p21-honest", "p21-aliased", "p21-unasked"])
    expect(differencesOf(ended, name), name).toEqual([]);
  return ended;
}

async function showThinking(stage: Stage): Promise<void> {
  const ended = await run(stage, "p21-thinking", {
    spawn: [
      createUnthinking("p21-shallow"),
      { ...childOf("p21-deep"), model: "mock/large", thinking: "high" },
    ],
  });
  expect(isThinking(stage, "p21-shallow")).toBe(false);
  expect(isThinking(stage, "p21-deep")).toBe(true);
  expect(differencesOf(ended, "p21-shallow")).toEqual([UNTHINKING]);
  expect(stepNamed(ended, "p21-deep").observed?.ran.thinking).toBe("high");
  expect(differencesOf(ended, "p21-deep")).toEqual([]);
}

const ASKED = "p21-asked";

/** A folder to work in, with a link in it that leads out of it. */
function prepareFolders(stage: Stage): void {
  for (const name of [ASKED, "p21-elsewhere"]) mkdirSync(pathOf(stage, name), { recursive: true });
  symlinkSync(pathOf(stage, "p21-elsewhere"), pathOf(stage, `${ASKED}/inside`));
}

function createChildOfFolder(label: string, cwd: string, ...turns: readonly Turn[]): SpawnArgs {
  return { ...childOf(label, ...turns), cwd };
}

/** Whatever a child calls its folder and its files, the real ones are compared. */
async function showFolder(stage: Stage): Promise<void> {
  const folder = pathOf(stage, ASKED);
  const claim: Turn = { say: `All that I write is in ${folder}.`, call: [write("../p21-out.md", "out\n")] };
  const ended = await run(stage, "p21-folders", {
    spawn: [
      createChildOfFolder("p21-stray", folder, call(write("in.md", "in\n")), claim),
      createChildOfFolder("p21-linked", folder, call(write("inside/linked.md", "out\n"))),
      createChildOfFolder("p21-settled", `${folder}/`, call(write("settled.md", "in\n"))),
    ],
  });
  for (const name of ["p21-stray", "p21-linked", "p21-settled"])
    expect(stepNamed(ended, name).observed?.ran.folder, name).toBe(folder);
  const createStrayWrite = (name: string): ChildDifference => ({
    field: "writes",
    asked: folder,
    ran: pathOf(stage, name),
  });
  expect(readText(stage, `${ASKED}/in.md`)).toBe("in\n");
  expect(differencesOf(ended, "p21-stray")).toEqual([createStrayWrite("p21-out.md")]);
  expect(differencesOf(ended, "p21-linked")).toEqual([createStrayWrite("p21-elsewhere/linked.md")]);
  expect(differencesOf(ended, "p21-settled")).toEqual([]);
}

/** Its parent reads nothing of it until a person has said that it counts. */
async function showHold(stage: Stage): Promise<void> {
  await turn(stage, "hold");
  await begin(stage, "p21-held", { spawn: [createLiar("p21-kept"), childOf("p21-usual")] });
  const { questionId } = await waitForHeld(stage, "p21-held", "p21-kept");
  expect(readingsOf(stage, "p21-kept")).toEqual([]);
  const { questions } = (await stage.gateway.call("coordination.questions")) as { questions: Json[] };
  expect(questions.find((question) => question["questionId"] === questionId)).toMatchObject({
    cause: "mismatch",
    differences: [ROUTED],
  });
  await stage.gateway.call("coordination.answer", { questionId, answer: "approve" });
  const ended = await waitForEnd(stage, "p21-held");
  expect(stepNamed(ended, "p21-kept").phase).toMatchObject({ status: "completed", released: "approved" });
  await waitFor(() => readingsOf(stage, "p21-kept").length > 0, {
    what: "the parent to be told what was approved",
    timeoutMs: WAIT_MS_MAX,
  });
  expect(stepNamed(ended, "p21-usual").phase).toMatchObject({ status: "completed" });
}

/** A difference before the run stops it; a later one holds the result, from the child's next word on. */
async function showRefusal(stage: Stage): Promise<void> {
  await turn(stage, "refuse");
  const late = call(write(pathOf(stage, "p21-late.md"), "out\n"));
  await begin(stage, "p21-refused", {
    spawn: [
      createLiar("p21-stopped"),
      createUnthinking("p21-thoughtless"),
      createChildOfFolder("p21-late", pathOf(stage, ASKED), late),
    ],
  });
  const { heldStep, questionId } = await waitForHeld(stage, "p21-refused", "p21-late");
  expect(heldStep.differences).toMatchObject([{ field: "writes", ran: pathOf(stage, "p21-late.md") }]);
  await stage.gateway.call("coordination.answer", { questionId, answer: "deny" });
  const ended = await waitForEnd(stage, "p21-refused");
  const sentences = {
    "p21-stopped": "model mock/large was asked, and mock/small would have run",
    "p21-thoughtless": "thinking high was asked, and off would have run",
  };
  for (const [name, message] of Object.entries(sentences)) {
    const error = { code: "not_as_asked", message };
    expect(stepNamed(ended, name).phase).toMatchObject({ status: "failed", error });
    expect(requestsOf(stage, name)).toEqual([]);
    expect(tellingsOf(stage, message).length).toBeGreaterThan(0);
  }
  expect(stepNamed(ended, "p21-late").phase).toMatchObject({ status: "failed" });
  expect(readingsOf(stage, "p21-late")).toEqual([]);
}

/** The difference is a fact, and whoever looks sees it. */
async function showFact(stage: Stage, recorded: OpenedCoordination): Promise<void> {
  const { stepId } = stepNamed(recorded, "p21-liar").spec;
  const facts = factsOf(await stage.events(recorded), "child.differed");
  expect(facts).toEqual([{ stepId, attempt: 1, ...ROUTED }]);
  const print = async (...args: readonly string[]): Promise<string> => {
    const { stdout, stderr } = await runCli([...args, "--ledger", stage.ledgerPath], {
      stateDir: stage.gateway.stateDir,
      nowMs: Date.now(),
    });
    expect(stderr).toBe("");
    return stdout;
  };
  const { steps } = JSON.parse(await print("show", recorded.coordinationId, "--json")) as { steps: Json[] };
  expect(steps.find((step) => step["stepId"] === stepId)).toMatchObject({
    requested: { model: "mock/large" },
    ran: { model: "mock/small" },
    differences: [ROUTED],
  });
  expect(await print("timeline", recorded.coordinationId)).toMatch(
    /! p21-liar: model mock\/large was asked, and mock\/small ran/u,
  );
  expect(await print("status")).toMatch(/children of \d+ coordinations did not run as asked/u);
}

/** P21: children are asked for one model, thinking and folder, and have another. It leaves `truth.onMismatch` at `refuse`. */
export async function tellLies({ plain, coordinated }: Pair): Promise<void> {
  await showPain(plain);
  put(coordinated, "x.md", "x\n");
  prepareFolders(coordinated);
  const recorded = await showModels(coordinated);
  await showThinking(coordinated);
  await showFolder(coordinated);
  await showHold(coordinated);
  await showRefusal(coordinated);
  await showFact(coordinated, recorded);
  expect((await coordinated.verify()).problems).toEqual([]);
}
