/** A plan whose agents are programs that speak ACP over stdio, in the real gateway. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { PromptLine } from "../support/acp-agent.ts";
import type { Json } from "../support/gateway.ts";
import { textOf } from "../support/scripted-model.ts";
import {
  hasEnded,
  openStage,
  PHASE1,
  createPluginConfig,
  type OpenedCoordination,
  type Stage,
} from "./stage.ts";

const OWNER = "agent:main:acp-planner";
const AGENT = join(import.meta.dirname, "..", "support", "acp-agent.ts");

let stage: Stage;
let folder: string;
let log: string;
let state: OpenedCoordination;

const step = (stepId: string, task: string, fields: Json = {}): Json => ({
  stepId,
  agent: "coder",
  task,
  ...fields,
});

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coordination-acp-"));
  log = join(folder, "prompts.jsonl");
  const coder = { command: process.execPath, args: [AGENT], env: { ACP_LOG: log }, cwd: folder };
  stage = await openStage({ pluginConfig: createPluginConfig({ ...PHASE1, acpAgents: { coder } }) });
  const plan = {
    coordinationId: "acp-diamond",
    objective: "the diamond, by agents that speak ACP",
    ownerSession: OWNER,
    conflictPolicy: {},
    failurePolicy: { retryBudget: 2, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
    defaults: { retry: { budget: 0, backoffMs: 200 }, timeoutMs: 60_000 },
    steps: [
      step("facts", 'ACP:json {"n":7}', {
        outputSchema: { type: "object", required: ["n"], properties: { n: { type: "integer" } } },
      }),
      step("short", 'ACP:fail-first 1 json {"title":"short"}', {
        dependsOn: ["facts"],
        input: { n: "{{steps.facts.outputs.n}}" },
        retry: { budget: 1, backoffMs: 200 },
      }),
      step("long", "ACP:hang", { dependsOn: ["facts"], timeoutMs: 4_000 }),
      step("check", "ACP:echo-meta", { dependsOn: ["short", "long"], fanIn: "any" }),
      step("aside", "ACP:hang", { dependsOn: ["facts"] }),
    ],
  };
  await stage.gateway.call("coordination.plan.run", { plan });
  await stage.until(OWNER, ({ steps }) => steps.get("aside" as StepId)?.phase.status === "running");
  await stage.gateway.call("coordination.cancel", { coordinationId: "acp-diamond", stepId: "aside" });
  state = await stage.until(OWNER, hasEnded, 90_000);
});

afterAll(async () => {
  await stage.close();
  rmSync(folder, { recursive: true, force: true });
});

const phaseOf = (stepId: string) => state.steps.get(stepId as StepId)?.phase;
const readPrompts = (): PromptLine[] =>
  existsSync(log)
    ? readFileSync(log, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as PromptLine)
    : [];

it("runs the diamond with a retry, a time-out and a cancellation", () => {
  expect(state).toMatchObject({ kind: "ended", status: "partial" });
  expect(phaseOf("facts")).toMatchObject({ status: "completed", attempt: 1 });
  expect(phaseOf("short")).toMatchObject({ status: "completed", attempt: 2 });
  expect(phaseOf("long")).toMatchObject({ status: "timed_out", attempt: 1 });
  expect(phaseOf("check")).toMatchObject({ status: "completed", attempt: 1 });
  expect(phaseOf("aside")).toMatchObject({ status: "cancelled", attempt: 1 });
  expect([...state.steps.values()].map(({ spec }) => spec.runner)).toContain("acp_stdio");
});

it("starts every attempt once, with its envelope and its trace in _meta", () => {
  const seen = readPrompts();
  expect(seen).toHaveLength(6);
  const [first] = seen;
  expect(JSON.stringify(first)).toContain('"coordinationId":"acp-diamond"');
  expect(JSON.stringify(first)).toMatch(/"traceparent":"00-[0-9a-f]{32}-[0-9a-f]{16}-01"/u);
});

it("leaves no agent process behind, and tells its owner once", async () => {
  const alive = readPrompts().filter(({ pid }) => isAlive(pid));
  expect(alive).toEqual([]);
  const requests = stage.model.requests.filter(({ text }) => text.includes("The plan acp-diamond has ended"));
  expect(requests).toHaveLength(1);
  const history = requests[0]?.body.messages.filter((message) => textOf(message).includes("has ended"));
  expect(history).toHaveLength(1);
  expect((await stage.verify()).problems).toEqual([]);
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
