/**
 * A child that does not run as it was asked: on another model, without the thinking, outside of its folder. What it is asked to
 * say of itself changes nothing.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { ChildDifference } from "../../src/agents/coordination/contracts/fact-fields.ts";
import type { Step } from "../../src/agents/coordination/ledger/state.ts";
import type { GatewayOptions, Json } from "../support/gateway.ts";
import { isAnnounce, textOf, type RecordedRequest, type SpawnArgs } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { hasEnded, stepNamed, type Known, type Stage } from "../e2e/stage.ts";
import { turnFlag } from "../e2e/turn-flag.ts";
import {
  begin,
  call,
  childOf,
  factsOf,
  ownerOf,
  pathOf,
  read,
  waitForEnd,
  write,
} from "../e2e/writes-stage.ts";
import { openPair, type Pair } from "./pair.ts";

const WAIT_MS_MAX = 90_000;

const createModel = (id: string, reasoning = false): Json => ({
  id,
  name: id,
  reasoning,
  input: ["text"],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 128_000,
  maxTokens: 8_000,
});

/** A large and a small model beside the usual one, and a plugin that routes. */
const WITH_MODELS: Partial<GatewayOptions> = {
  extraPluginPaths: ["writing-tools", "model-router"].map((name) =>
    join(import.meta.dirname, "..", "e2e", "fixtures", name),
  ),
  configPatch: {
    models: {
      providers: {
        mock: { models: [createModel("scripted"), createModel("large", true), createModel("small")] },
      },
    },
    agents: {
      defaults: {
        maxConcurrent: 8,
        subagents: { maxConcurrent: 16 },
        models: { "mock/scripted": {}, "mock/large": { alias: "best" }, "mock/small": {} },
      },
    },
  },
};

let pair: Pair;

beforeAll(async () => {
  pair = await openPair(WITH_MODELS);
});

afterAll(() => pair.close());

/** A child that asks for the large model, is routed to the small one, and claims that it is the large one. */
function createRouted(label: string): SpawnArgs {
  const child = childOf(
    label,
    { say: "I run on mock/large, as asked.", call: [read("x.md")] },
    call(read("x.md")),
    call(read("x.md")),
  );
  return { ...child, model: "mock/large", task: `ROUTE-TO:small ${child.task}` };
}

/** What the model was asked in the session of a child. */
const requestsOf = ({ model }: Stage, label: string): RecordedRequest[] =>
  model.requests.filter(
    ({ body, text }) =>
      !isAnnounce(text) &&
      body.messages.some((message) => textOf(message).includes("[Subagent Task]")) &&
      body.messages.some((message) => textOf(message).includes(`"say":"${label} is at its end"`)),
  );

const modelsOf = (stage: Stage, label: string): (string | undefined)[] => [
  ...new Set(requestsOf(stage, label).map(({ body }) => body.model)),
];

/** What a parent is told when a child has ended. */
const tellingsOf = ({ model }: Stage, words: string): RecordedRequest[] =>
  model.requests.filter(({ text }) => isAnnounce(text) && text.includes(words));

async function spawn(stage: Stage, label: string, child: SpawnArgs): Promise<Step> {
  await begin(stage, label, { spawn: [child] });
  return stepNamed(await waitForEnd(stage, label), String(child["label"]));
}

const differencesOf = (step: Step): readonly ChildDifference[] => step.differences ?? [];

const ROUTED: ChildDifference = { field: "model", asked: "mock/large", ran: "mock/small" };

const turn = (stage: Stage, onMismatch: string): Promise<void> =>
  turnFlag(stage, { enabled: true, phase1: { conflicts: {}, truth: { onMismatch } } });

/** The plain host tells the parent that the model was applied, and nothing when it was not. */
async function showPain(stage: Stage): Promise<void> {
  await begin(stage, "lied", { spawn: [createRouted("lied-child")] });
  await waitFor(() => tellingsOf(stage, "lied-child is at its end").length > 0, {
    what: "the result of the child",
    timeoutMs: WAIT_MS_MAX,
  });
  expect(modelsOf(stage, "lied-child")).toEqual(["small"]);
  const answers = stage.model.requests
    .flatMap(({ body }) => body.messages)
    .filter(({ role }) => role === "tool")
    .map(textOf)
    .filter((text) => text.includes("modelApplied"));
  expect(answers[0]).toMatch(/"resolvedModel":\s*"mock\/large"/u);
  expect(answers[0]).toMatch(/"modelApplied":\s*true/u);
  expect(
    tellingsOf(stage, "lied-child is at its end")
      .map(({ text }) => text)
      .join(),
  ).not.toContain("small");
}

async function showRecord(stage: Stage): Promise<void> {
  const step = await spawn(stage, "lied", createRouted("lied-child"));
  expect(modelsOf(stage, "lied-child")).toEqual(["small"]);
  expect(requestsOf(stage, "lied-child").length).toBeGreaterThan(3);
  expect(step).toMatchObject({
    spec: { requested: { model: "mock/large" } },
    phase: { status: "completed" },
    observed: {
      changes: 1,
      ran: { agentId: "main", model: "mock/small", folder: pathOf(stage, "") },
    },
  });
  expect(step.observed?.ran.tools?.count).toBeGreaterThan(5);
  expect(differencesOf(step)).toEqual([ROUTED]);
  // An alias is a name of the same model, and who asks for nothing gets what there is.
  const aliased = { ...childOf("aliased-child"), model: "Best" };
  expect(differencesOf(await spawn(stage, "aliased", aliased))).toEqual([]);
  const unasked = childOf("unasked-child");
  const routed = { ...unasked, task: `ROUTE-TO:small ${unasked.task}` };
  expect(differencesOf(await spawn(stage, "unasked", routed))).toEqual([]);
}

async function showThinking(stage: Stage): Promise<void> {
  const child = { ...childOf("thinking-child"), model: "mock/small", thinking: "high" };
  const step = await spawn(stage, "thinking", child);
  expect(
    requestsOf(stage, "thinking-child")
      .map(({ body }) => Object.keys(body))
      .flat(),
  ).not.toContain("reasoning_effort");
  expect(differencesOf(step)).toEqual([{ field: "thinking", asked: "high", ran: "off" }]);
}

async function showFolder(stage: Stage): Promise<void> {
  mkdirSync(pathOf(stage, "asked"), { recursive: true });
  const outside = pathOf(stage, "outside.md");
  const child = childOf("folder-child", call(write("inside.md", "in\n")), call(write(outside, "out\n")));
  const step = await spawn(stage, "folder", { ...child, cwd: pathOf(stage, "asked") });
  expect(step.observed?.ran.folder).toBe(pathOf(stage, "asked"));
  expect(differencesOf(step)).toEqual([{ field: "writes", asked: pathOf(stage, "asked"), ran: outside }]);
}

async function showHold(stage: Stage): Promise<void> {
  await turn(stage, "hold");
  await begin(stage, "kept", { spawn: [createRouted("kept-child")] });
  const heldState = await stage.until(
    ownerOf("kept"),
    ({ escalations }) => escalations.size > 0,
    WAIT_MS_MAX,
  );
  const question = heldState.escalations.first();
  expect(question).toMatchObject({ cause: "mismatch" });
  expect(stepNamed(heldState, "kept-child").phase.status).toBe("held");
  expect(tellingsOf(stage, "kept-child is at its end")).toEqual([]);
  const questionId = `${heldState.coordinationId}:${question?.escalationId}`;
  await stage.gateway.call("coordination.answer", { questionId, answer: "approve" });
  const ended = await waitForEnd(stage, "kept");
  expect(stepNamed(ended, "kept-child").phase).toMatchObject({ status: "completed", released: "approved" });
}

async function showRefusal(stage: Stage): Promise<Known> {
  await turn(stage, "refuse");
  const step = await spawn(stage, "stopped", createRouted("stopped-child"));
  const sentence = "model mock/large was asked, and mock/small would have run";
  expect(step.phase).toMatchObject({ status: "failed", error: { code: "not_as_asked", message: sentence } });
  expect(requestsOf(stage, "stopped-child")).toEqual([]);
  expect(tellingsOf(stage, sentence).length).toBeGreaterThan(0);
  return stage.until(ownerOf("stopped"), hasEnded);
}

it("P21 a lie about the model: a child runs on another one than asked, and the host says that it was applied", async () => {
  const { plain, coordinated } = pair;
  await showPain(plain);
  await showRecord(coordinated);
  await showThinking(coordinated);
  await showFolder(coordinated);
  await showHold(coordinated);
  const last = await showRefusal(coordinated);
  const facts = factsOf(await coordinated.events(last), "child.differed");
  expect(facts).toEqual([{ stepId: "step-1", attempt: 1, ...ROUTED }]);
  const { stdout } = await coordinated.gateway.openclaw(["coordination", "show", "--json"]);
  expect((JSON.parse(stdout) as { steps: Json[] }).steps[0]).toMatchObject({
    requested: { model: "mock/large" },
    ran: { model: "mock/small" },
    differences: [ROUTED],
  });
  expect((await coordinated.verify()).problems).toEqual([]);
});
