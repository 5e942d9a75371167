/** Owns: a plan of four steps that ends in part, and readings of its forks: which agents were asked, and what was carried over. */
import { expect } from "vitest";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { StepPhase } from "../../src/agents/coordination/ledger/state.ts";
import type { Json } from "../support/gateway.ts";
import {
  renderScript,
  textOf,
  type RecordedRequest,
  type Rule,
  type Turn,
} from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { ownerOf, planOf, stepOf, WAIT_MS_MAX } from "./gates-stage.ts";
import { runPackedProgram } from "./packed-program.ts";
import type { OpenedCoordination, Stage } from "./stage.ts";

export const STEPS = ["a", "b", "c", "d"] as const;
export type StepName = (typeof STEPS)[number];

const report = (args: Json): Turn => ({
  call: [{ name: "coordination_report", args: { outcome: "completed", ...args } }],
});

const scriptReport = (stepId: StepName, args: Json = {}): string =>
  `Task of step ${stepId}. ${renderScript(report({ outputs: { found: `found-by-${stepId}` }, ...args }), { say: "Reported." })}`;

/** Returns a plan of a, then b and c, then d, which reads what both came to. Its owner is named like it. */
export function createSourcePlan(coordinationId: string): Json {
  return planOf(coordinationId, [
    stepOf("a", scriptReport("a")),
    stepOf("b", scriptReport("b", { confidence: 0.8 }), { dependsOn: ["a"] }),
    stepOf("c", scriptReport("c"), { dependsOn: ["a"] }),
    stepOf("d", scriptReport("d"), {
      dependsOn: ["b", "c"],
      input: { b: "{{steps.b.outputs.found}}", c: "{{steps.c.outputs.found}}" },
    }),
  ]);
}

/** Lets step c go wrong in the source, and in no fork. */
export function createSourceRule(coordinationId: string): Rule {
  return {
    when: (_, request) => isAbout(request, coordinationId, "c"),
    turns: [report({ outcome: "failed", outputs: {} }), { say: "It went wrong." }],
  };
}

/** True when the request is of the agent of the step, as the plugin's context in its system prompt says. */
export function isAbout(
  { messages }: RecordedRequest["body"],
  coordinationId: string,
  stepId: string,
): boolean {
  const place = `"coordinationId":"${coordinationId}","stepId":"${stepId}"`;
  return messages.some((message) => message.role === "system" && textOf(message).includes(place));
}

/** Waits for a coordination of the session that owns the source and its forks. */
export function waitForPlan(
  stage: Stage,
  { source, plan = source }: { readonly source: string; readonly plan?: string },
  condition: (state: OpenedCoordination) => boolean,
): Promise<OpenedCoordination> {
  return waitFor(
    async () => {
      const state = (await stage.of(ownerOf(source))).find(({ coordinationId }) => coordinationId === plan);
      return state && condition(state) ? state : undefined;
    },
    { what: `the plan ${plan}`, timeoutMs: WAIT_MS_MAX, everyMs: 100 },
  );
}

export const phaseOf = (state: OpenedCoordination, stepId: string): StepPhase | undefined =>
  state.steps.get(stepId as StepId)?.phase;

/** Returns the requests of agents that work on the step. The host repeats tasks in the prompts of their owner. */
function listRequestsFor({ model }: Stage, stepId: StepName): RecordedRequest[] {
  return model.requests.filter(({ body }) =>
    body.messages.some(
      (message) => message.role === "system" && textOf(message).includes(`"stepId":"${stepId}"`),
    ),
  );
}

/** Returns the steps whose agents were asked since then, in whichever coordination. */
export function listAskedSince(stage: Stage, count: number): StepName[] {
  const since = new Set(stage.model.requests.slice(count));
  return STEPS.filter((stepId) => listRequestsFor(stage, stepId).some((request) => since.has(request)));
}

/** Returns the message to the agent of `d` in a fork. */
export function findMessageToLast(stage: Stage, coordinationId: string): string | undefined {
  return listRequestsFor(stage, "d").find(({ body }) => isAbout(body, coordinationId, "d"))?.text;
}

export function expectCarried(
  { fork, source }: { readonly fork: OpenedCoordination; readonly source: OpenedCoordination },
  steps: readonly StepName[],
): void {
  for (const stepId of steps)
    expect(phaseOf(fork, stepId)).toMatchObject({
      status: "completed",
      attempt: 0,
      carriedFrom: source.steps.get(stepId as StepId)?.lastFactId,
    });
}

/** Returns what the plugin's own program prints of the ledger. */
export async function readProgram({ ledgerPath }: Stage, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runPackedProgram(args, ledgerPath);
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${stderr}`);
  return stdout;
}

export const readProgramJson = async (stage: Stage, ...args: string[]): Promise<unknown> =>
  JSON.parse(await readProgram(stage, ...args, "--json")) as unknown;
