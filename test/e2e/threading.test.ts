import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  coordinationEnvelopeSchema,
  UNBOUND_TARGET,
  type CoordinationEnvelope,
} from "../../src/agents/coordination/contracts/envelope.ts";
import { findChildOfPhase } from "../../src/agents/coordination/ledger/state.ts";
import type { Json } from "../support/gateway.ts";
import { renderScript, scriptOf, textOf, type RecordedRequest } from "../support/scripted-model.ts";
import { hasEnded, openStage, stepNamed, type OpenedCoordination, type Stage } from "./stage.ts";

const SESSION = "agent:main:threaded";

let stage: Stage;
let state: OpenedCoordination;

beforeAll(async () => {
  stage = await openStage({ extraPluginPaths: [join(import.meta.dirname, "fixtures", "spawn-probe")] });
  const grandchild = renderScript({ say: "grandchild result" });
  const child = scriptOf({
    turns: [{ spawn: [{ label: "grandchild", task: grandchild }] }, { say: "waiting" }],
    onAnnounce: "child result",
  });
  const spawn = [{ label: "child", task: child, runTimeoutSeconds: 120 }];
  await stage.gateway.agent({
    sessionKey: SESSION,
    message: renderScript({ spawn }, { say: "ok" }),
  });
  state = await stage.until(SESSION, hasEnded);
});

afterAll(() => stage.close());

function childSessionOf(name: string): string {
  return findChildOfPhase(stepNamed(state, name).phase)?.childSessionKey ?? "no child";
}

/** The params of the call that made a child, as the host kept them. */
async function readEnvelopeInParams(name: string): Promise<CoordinationEnvelope> {
  const { calls } = await stage.gateway.call("spawn-probe.calls");
  const call = (calls as { params: Json; details?: Json }[]).find(
    ({ details }) => details?.["childSessionKey"] === childSessionOf(name),
  );
  return coordinationEnvelopeSchema.parse(call?.params["coordination"]);
}

async function readEnvelopeInEntry(name: string): Promise<CoordinationEnvelope> {
  const { entry } = await stage.gateway.call("spawn-probe.entry", { sessionKey: childSessionOf(name) });
  const { pluginExtensions } = entry as { pluginExtensions?: { coordination?: { envelope?: unknown } } };
  return coordinationEnvelopeSchema.parse(pluginExtensions?.coordination?.envelope);
}

/** The model requests of the child (depth 1) or the grandchild (depth 2), in all turns of its session. */
function listRequestsAt(depth: 1 | 2): RecordedRequest[] {
  const question = `as a subagent (depth ${depth}/`;
  return stage.model.requests.filter(({ body }) =>
    body.messages.some((message) => message.role === "user" && textOf(message).includes(question)),
  );
}

/** The block that the child's model reads, as its system prompt has it. */
function promptOf({ body }: RecordedRequest): { readonly text: string; readonly place: Json } {
  const system = body.messages.find(({ role }) => role === "system" || role === "developer");
  const [text = ""] = /<coordination>[^]*<\/coordination>/u.exec(system ? textOf(system) : "") ?? [];
  const place = text.split("\n").find((line) => line.startsWith("{")) ?? "{}";
  return { text, place: JSON.parse(place) as Json };
}

const traceIdOf = ({ traceparent }: RecordedRequest): string | undefined => traceparent?.split("-")[1];

it("the envelope is in the params, the child's session entry and its prompt, and all name one step", async () => {
  const { coordinationId } = state;
  const { stepId } = stepNamed(state, "child").spec;
  const inParams = await readEnvelopeInParams("child");
  const inEntry = await readEnvelopeInEntry("child");
  const [prompted] = listRequestsAt(1);
  const { place } = prompted ? promptOf(prompted) : { place: {} };
  for (const carrier of [inParams, inEntry, place]) {
    expect(carrier).toMatchObject({ coordinationId, stepId, sourceSession: SESSION });
  }
  expect(inParams.parentStepId).toBeUndefined();
  expect(inParams.targetSession).toBe(UNBOUND_TARGET);
  for (const carrier of [inEntry, place]) {
    expect(carrier).toMatchObject({ targetSession: childSessionOf("child") });
  }
  expect(inEntry.deadlineMs).toBe(inParams.deadlineMs);
  expect(inEntry.createdAtMs).toBe(inParams.createdAtMs);
});

it("the envelope of a nested child names the step that it lies under, in every carrier", async () => {
  const parentStepId = stepNamed(state, "child").spec.stepId;
  const { stepId } = stepNamed(state, "grandchild").spec;
  const [prompted] = listRequestsAt(2);
  const { place } = prompted ? promptOf(prompted) : { place: {} };
  for (const carrier of [
    await readEnvelopeInParams("grandchild"),
    await readEnvelopeInEntry("grandchild"),
    place,
  ]) {
    expect(carrier).toMatchObject({
      coordinationId: state.coordinationId,
      stepId,
      parentStepId,
      sourceSession: childSessionOf("child"),
    });
  }
});

it("a child reads the same text in all its turns, and its parent reads none", () => {
  const texts = listRequestsAt(1).map((request) => promptOf(request).text);
  // Its own run, the result of its child, and the host's wake turn.
  expect(texts.length).toBeGreaterThan(3);
  expect(texts[0]).toContain(state.coordinationId);
  expect(new Set(texts).size).toBe(1);
  const ofOwner = stage.model.requests.filter(({ text }) => !text.includes("[Subagent"));
  expect(JSON.stringify(ofOwner[0]?.body.messages[0])).not.toContain("<coordination>");
});

it("owner, child and grandchild work on the one W3C trace that the coordination names", () => {
  const { traceId } = state.created.trace;
  expect(traceId).toMatch(/^[0-9a-f]{32}$/u);
  for (const depth of [1, 2] as const) expect(listRequestsAt(depth).length).toBeGreaterThan(0);
  expect(new Set(stage.model.requests.map(traceIdOf))).toEqual(new Set([traceId]));
});

it("shows every event of the coordination to other plugins, by ids and types", async () => {
  const recorded = await stage.events(state);
  const { events } = await stage.gateway.call("spawn-probe.events");
  const seen = (events as { runId: string; seq: number; sessionKey?: string; data: Json }[]).filter(
    ({ runId }) => runId === state.coordinationId,
  );
  expect(seen.map(({ data }) => [data["sequence"], data["type"], data["eventId"]])).toEqual(
    recorded.map(({ sequence, type, eventId }) => [sequence, type, eventId]),
  );
  expect(seen.map(({ seq }) => seq)).toEqual(seen.map((_, index) => index + 1));
  expect(new Set(seen.map(({ sessionKey }) => sessionKey))).toEqual(new Set([SESSION]));
  expect(JSON.stringify(seen)).not.toContain("grandchild result");
});
