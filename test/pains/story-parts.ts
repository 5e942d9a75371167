/** Parts that the stories of the pains share: what the models were asked, and plans whose owner is named like them. */
import type { Json } from "../support/gateway.ts";
import {
  parseScript,
  textOf,
  type ChatMessage,
  type RecordedRequest,
  type Turn,
} from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import type { OpenedCoordination, Stage } from "../e2e/stage.ts";
import { begin, childOf, ownerOf, resultsOf, taskOf } from "../e2e/writes-stage.ts";

export const WAIT_MS_MAX = 90_000;

/** The first turn of a gateway took more than a minute, on a machine with other work. */
const TIMEOUT_MS = 300_000;

/** Whether the model of an agent has said its last words. */
export const hasSaid = ({ model }: Stage, label: string): boolean =>
  model.requests.some(({ turn }) => turn.say === `${label} is at its end`);

export async function waitUntilSaid(stage: Stage, labels: readonly string[]): Promise<void> {
  const isSaidByAll = (): boolean => {
    const missing = labels.filter((label) => !hasSaid(stage, label));
    if (missing.length > 0) throw new Error(`${missing.join(" and ")} did not come to its end`);
    return true;
  };
  await waitFor(isSaidByAll, { what: labels.join(" and "), timeoutMs: WAIT_MS_MAX });
}

/** Requests to the model of a session, the host's own turns included. */
export function listRequestsOf({ model }: Stage, label: string): RecordedRequest[] {
  return model.requests.filter(({ body }) => nameLastWords(body.messages) === `${label} is at its end`);
}

/** A session's first message with a script is its own task. Later ones may quote those of its children. */
function nameLastWords(messages: readonly ChatMessage[]): string | undefined {
  const scripts = messages.flatMap((message) =>
    message.role === "user" ? (parseScript(textOf(message)) ?? []) : [],
  );
  return scripts[0]?.turns.at(-1)?.say;
}

/** How many agents were given this work. */
export const countWorkers = (stage: Stage, label: string): number =>
  listRequestsOf(stage, label).filter(({ matched, turnIndex }) => matched === "script" && turnIndex === 0)
    .length;

/** The turns in which the host told a session about its children. */
export const listAnnounces = (stage: Stage, label: string): RecordedRequest[] =>
  listRequestsOf(stage, label).filter(({ matched }) => matched === "announce");

/** Waits until the host has told a session about its children for the first time. */
export const waitUntilAnnounced = (stage: Stage, label: string): Promise<unknown> =>
  waitFor(() => listAnnounces(stage, label).length > 0, {
    what: `what the host tells ${label}`,
    timeoutMs: WAIT_MS_MAX,
  });

interface MadeChild {
  readonly childSessionKey: string;
  readonly runId: string;
}

/** The child that the host made for the first spawn of the session's newest turn. */
export const readChild = (stage: Stage, label: string): MadeChild =>
  JSON.parse(resultsOf(stage, label)[0] ?? "") as MadeChild;

/** A child as the host itself tells it. */
export async function readTaskOf({ gateway }: Stage, { runId }: MadeChild): Promise<Json | undefined> {
  const { tasks } = await gateway.call("tasks.list", { limit: 500 });
  return (tasks as Json[]).find((task) => task["runId"] === runId);
}

/** Lets another owner have a child and hear of it: what the host still had to do before is done by then. */
export async function passTime(stage: Stage, label: string): Promise<void> {
  await begin(stage, label, { spawn: [childOf(`${label}-child`)] });
  await waitUntilAnnounced(stage, label);
}

export function planOf(label: string, steps: readonly Json[], fields: Json = {}): Json {
  return {
    coordinationId: label,
    objective: `objective of ${label}`,
    ownerSession: ownerOf(label),
    conflictPolicy: {},
    failurePolicy: { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
    defaults: { timeoutMs: TIMEOUT_MS },
    steps,
    ...fields,
  };
}

/** The failure policy of a plan whose steps are tried again at once. */
export const TRIED_AGAIN: Json = {
  failurePolicy: { retryBudget: 1, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
  defaults: { timeoutMs: TIMEOUT_MS, retry: { budget: 1, backoffMs: 200 } },
};

export const stepOf = (stepId: string, turns: readonly Turn[], fields: Json = {}): Json => ({
  stepId,
  agent: "main",
  task: taskOf(stepId, turns),
  ...fields,
});

export const runPlan = (stage: Stage, plan: Json): Promise<Json> =>
  stage.gateway.call("coordination.plan.run", { plan });

/** The requests that end with the plan's result, which its owner is told. */
export const listTellings = ({ model }: Stage, label: string): RecordedRequest[] =>
  model.requests.filter(({ text }) => text.includes(`The plan ${label} has ended`));

/** How many messages of a request hold the words. */
export const countMessagesWith = ({ body }: RecordedRequest, words: string): number =>
  body.messages.filter((message) => textOf(message).includes(words)).length;

/** The delivery of a plan's result, as the ledger has it. */
export async function readDelivery(stage: Stage, state: OpenedCoordination): Promise<unknown> {
  const terminal = (await stage.events(state)).find(({ type }) => type === "coordination.terminal");
  return (terminal?.payload as Json | undefined)?.["delivery"];
}
