import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChildOfPhase } from "../../src/agents/coordination/ledger/state.ts";
import type { Json } from "../support/gateway.ts";
import {
  isAnnounce,
  renderScript,
  scriptOf,
  textOf,
  type RecordedRequest,
  type Rule,
} from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { hasEnded, openStage, PHASE1, stepNamed, type OpenedCoordination, type Stage } from "./stage.ts";

const MAX_CHILDREN = 3;
/** A child's result that makes its parent spawn again. */
const SPAWN_AGAIN = "ONE-MORE-PLEASE";
/** In the task of a child that spawns again when the host wakes it. */
const MIDDLE_WAKES = "MIDDLE-WAKES";
/** In the request to an owner that spawns again when its background command ends. */
const HAS_COMMAND = "HAS-A-COMMAND";

/** Scripts of turns that the host starts itself. */
const RULES: readonly Rule[] = [
  {
    when: (text) => isAnnounce(text) && text.includes(SPAWN_AGAIN),
    turns: [
      { spawn: [{ label: "second", task: renderScript({ delayMs: 300, say: "second result" }) }] },
      { say: "ok" },
    ],
  },
  {
    when: (text, { messages }) => {
      const words = JSON.stringify(messages);
      return (
        text.includes("Your prior run ended") && words.includes(MIDDLE_WAKES) && !words.includes("late grand")
      );
    },
    turns: [
      { spawn: [{ label: "grand-2", task: renderScript({ delayMs: 300, say: "late grandchild result" }) }] },
    ],
  },
  {
    when: (text, { messages }) =>
      text.includes("async command completion event") && JSON.stringify(messages).includes(HAS_COMMAND),
    // A collector's child: the host would announce another one's result only after minutes of retries, having nobody to tell.
    turns: [
      { spawn: [{ label: "after", collect: true, task: renderScript({ say: "late result" }) }] },
      { say: "ok" },
    ],
  },
];

const nameFixture = (name: string): string => join(import.meta.dirname, "fixtures", name);

let stage: Stage;

beforeAll(async () => {
  const options = {
    // Some tests are about the first ACP child of a process.
    isFresh: true,
    toolSearch: false,
    extraPluginPaths: ["acp-backend", "spawn-blocker", "spawn-probe"].map(nameFixture),
    configPatch: {
      acp: { enabled: true, backend: "scripted-acp", allowedAgents: ["helper"] },
      agents: {
        ownership: "explicit",
        entries: { main: {}, helper: {} },
        defaults: { subagents: { maxChildrenPerAgent: MAX_CHILDREN } },
      },
      tools: { exec: { host: "gateway", security: "full", ask: "off" } },
    },
  };
  stage = await openStage(options, RULES);
});

afterAll(async () => {
  const { problems } = await stage.verify();
  await stage.close();
  expect(problems).toEqual([]);
});

const childKeyOf = (state: OpenedCoordination, name: string): string =>
  findChildOfPhase(stepNamed(state, name).phase)?.childSessionKey ?? "no child";

async function eventsOf(
  state: OpenedCoordination,
  type: string,
): Promise<{ nodeId: string | undefined; atMs: number }[]> {
  const events = (await stage.events(state)).filter((event) => event.type === type);
  return events.map(({ nodeId, timestamp }) => ({ nodeId, atMs: new Date(timestamp).getTime() }));
}

/** The requests of one run of a session, known by a word in what it was asked. */
function listRequestsAbout(word: string): RecordedRequest[] {
  return stage.model.requests.filter(({ body }) =>
    body.messages.some((message) => textOf(message).includes(word)),
  );
}

describe("turns that the host makes of children's results", () => {
  it("steered into a running turn: each step is completed once, and the end waits for the turn", async () => {
    const session = "agent:main:steered";
    const spawn = [
      { label: "one", task: renderScript({ delayMs: 100, say: "steered-one" }) },
      { label: "two", task: renderScript({ delayMs: 300, say: "steered-two" }) },
    ];
    const call = [{ name: "session_status", args: {} }];
    const message = renderScript(
      { spawn },
      // Long enough for both results to come; then longer than the coordination's quiet time.
      { delayMs: 5_000, call },
      { delayMs: PHASE1.settleMs + 1_500, call },
      { say: "the-long-turn-is-over" },
    );
    await stage.gateway.agent({ sessionKey: session, message });
    const state = await stage.until(session, hasEnded);
    const last = listRequestsAbout("the-long-turn-is-over").findLast(({ matched }) => matched === "script");
    expect(last?.turnIndex).toBe(3);
    const steered = last?.body.messages.filter(({ role }) => role === "user").slice(1);
    for (const result of ["steered-one", "steered-two"]) {
      expect(steered?.some((message) => textOf(message).includes(result))).toBe(true);
    }
    const completed = await eventsOf(state, "step.completed");
    expect(completed.map(({ nodeId }) => nodeId).toSorted()).toEqual(["step-1", "step-2"]);
    const quietFromMs = Math.max(...completed.map(({ atMs }) => atMs));
    const overMs = last?.receivedAt ?? 0;
    expect(overMs - quietFromMs).toBeGreaterThan(PHASE1.settleMs);
    const [terminal] = await eventsOf(state, "coordination.terminal");
    expect(terminal?.atMs).toBeGreaterThan(overMs);
  });

  it("a spawn in an announce turn joins the coordination that is still open", async () => {
    const session = "agent:main:announced";
    const spawn = [{ label: "first", task: renderScript({ delayMs: 100, say: SPAWN_AGAIN }) }];
    await stage.gateway.agent({ sessionKey: session, message: renderScript({ spawn }, { say: "ok" }) });
    const state = await stage.until(
      session,
      (coordination) => hasEnded(coordination) && coordination.steps.size === 2,
    );
    expect(await stage.of(session)).toHaveLength(1);
    expect(state).toMatchObject({ status: "success" });
    const { spec } = stepNamed(state, "second");
    expect(spec).toMatchObject({ sourceSession: session });
    expect(spec.parentStepId).toBeUndefined();
    expect(spec.call.runId).toMatch(/^announce:/u);
  });

  it("a spawn on the same trace after the end opens a coordination that names the one before", async () => {
    const session = "agent:main:afterwards";
    const gate = join(stage.gateway.home, "gate");
    // The host wakes a session only for a command that printed something.
    const command = `until [ -e ${gate} ]; do sleep 0.1; done; echo open`;
    const message = renderScript(
      {
        spawn: [{ label: "before", task: renderScript({ say: "early result" }) }],
        call: [{ name: "exec", args: { command, background: true } }],
      },
      { say: "ok" },
    );
    await stage.gateway.agent({ sessionKey: session, message: `${HAS_COMMAND} ${message}` });
    const before = await stage.until(session, hasEnded);
    expect(existsSync(gate)).toBe(false);
    writeFileSync(gate, "");
    const after = await stage.until(
      session,
      (coordination) => coordination.coordinationId !== before.coordinationId && hasEnded(coordination),
    );
    expect(stepNamed(after, "after").phase.status).toBe("completed");
    expect(after.created.trace).toMatchObject({
      traceId: before.created.trace.traceId,
      causalRef: before.coordinationId,
    });
    expect(before.created.trace.causalRef).toBeUndefined();
  });

  it("a spawn in the wake turn of a child lies under that child's step", async () => {
    const session = "agent:main:woken";
    const grand = renderScript({ delayMs: 200, say: "first grandchild result" });
    const middle = scriptOf({
      turns: [{ spawn: [{ label: "grand-1", task: grand }] }, { say: "waiting" }],
      onAnnounce: "middle final",
    });
    const spawn = [{ label: "middle", task: `${MIDDLE_WAKES} ${middle}` }];
    await stage.gateway.agent({ sessionKey: session, message: renderScript({ spawn }, { say: "ok" }) });
    const state = await stage.until(session, hasEnded);
    expect(state).toMatchObject({ status: "success" });
    const { stepId } = stepNamed(state, "middle").spec;
    const woken = stepNamed(state, "grand-2").spec;
    expect(stepNamed(state, "grand-1").spec.parentStepId).toBe(stepId);
    expect(woken).toMatchObject({ parentStepId: stepId, sourceSession: childKeyOf(state, "middle") });
    expect(woken.call.runId).toMatch(/^announce:.*:wake$/u);
    const order = (await eventsOf(state, "step.completed")).map(({ nodeId }) => nodeId);
    expect(order).toEqual([stepNamed(state, "grand-1").spec.stepId, woken.stepId, stepId]);
  });
});

describe("ACP children", () => {
  const spawn = (label: string, task: string) => [{ label, runtime: "acp", agentId: "helper", task }];

  /**
   * Spawns an ACP child, and another one where the host's maintenance of tasks closed it: 5 s after a start and then
   * each minute, the host takes a child that has no task yet for one that nobody owns.
   */
  async function spawnBesideMaintenance(round: number) {
    for (let attempt = 1; ; attempt++) {
      const session = `agent:main:acp-${round}-${attempt}`;
      const result = `acp-result-${round}-${attempt}.`;
      // Another file may have used this gateway before.
      const { length: logged } = stage.gateway.log();
      await stage.gateway.agent({
        sessionKey: session,
        message: renderScript({ spawn: spawn("coder", `work ACP-SAY: ${result}`) }, { say: "ok" }),
      });
      const state = await stage.until(session, hasEnded);
      const { phase } = stepNamed(state, "coder");
      const closing = `acp close fast-reset: fresh-session preparation skipped for ${childKeyOf(state, "coder")}`;
      const isClosedByHost = phase.status === "failed" && stage.gateway.log().slice(logged).includes(closing);
      if (!isClosedByHost || attempt === 3) return { session, result, logged, state };
      expect(phase.error?.message).toContain("ACP metadata is missing");
    }
  }

  it.each([1, 2, 3])(
    "are recorded and not disturbed, be it the first of the process (spawn %i)",
    async (round) => {
      const { session, result, logged, state } = await spawnBesideMaintenance(round);
      const { spec, phase } = stepNamed(state, "coder");
      expect(spec).toMatchObject({ runner: "acp", agentId: "helper" });
      expect(phase.status, JSON.stringify(phase)).toBe("completed");
      const child = childKeyOf(state, "coder");
      expect(child).toMatch(/^agent:helper:acp:/u);
      await waitFor(
        () => stage.model.requests.some(({ text }) => isAnnounce(text) && text.includes(result)),
        {
          what: "the child's result in its parent",
        },
      );
      const { entry } = await stage.gateway.call("spawn-probe.entry", { sessionKey: child });
      expect(entry).toMatchObject({ status: "done", spawnedBy: session });
      expect(entry).not.toHaveProperty("pluginExtensions");
      const failures =
        stage.gateway
          .log()
          .slice(logged)
          .match(/^.*ACP_SESSION_INIT_FAILED.*$/gmu) ?? [];
      expect(failures).toEqual([]);
    },
  );

  it("that fail are failed steps with the backend's reason", async () => {
    const session = "agent:main:acp-failing";
    await stage.gateway.agent({
      sessionKey: session,
      message: renderScript({ spawn: spawn("broken", "work ACP-FAIL: the backend broke") }, { say: "ok" }),
    });
    const state = await stage.until(session, hasEnded);
    const { phase } = stepNamed(state, "broken");
    expect(phase).toMatchObject({ status: "failed", error: { code: "child_failed" } });
    expect("error" in phase && phase.error.message).toContain("the backend broke");
  });
});

describe("spawns without Tool Search", () => {
  it("are recorded as ever: two in parallel, a third nested under one of them", async () => {
    const session = "agent:main:direct";
    const grand = renderScript({ delayMs: 200, say: "grandchild result" });
    const middle = renderScript({ spawn: [{ label: "grand", task: grand }] }, { say: "waiting" });
    const spawn = [
      { label: "left", task: renderScript({ delayMs: 200, say: "left result" }) },
      { label: "middle", task: middle },
    ];
    await stage.gateway.agent({
      sessionKey: session,
      message: renderScript({ spawn }, { say: "direct-tools" }),
    });
    const state = await stage.until(session, hasEnded);
    expect(state).toMatchObject({ kind: "ended", status: "success" });
    expect(state.steps.size).toBe(3);
    expect(stepNamed(state, "grand").spec.parentStepId).toBe(stepNamed(state, "middle").spec.stepId);
    const offered = listRequestsAbout("direct-tools")[0]?.body.tools?.map((tool) => tool.function?.name);
    expect(offered).toContain("sessions_spawn");
    expect(offered).not.toContain("tool_call");
  });

  it("beyond the host's limit of children are failed steps with the host's reason", async () => {
    const session = "agent:main:crowd";
    const labels = ["one", "two", "three", "four"];
    const spawn = labels.map((label) => ({
      label,
      task: renderScript({ delayMs: 300, say: `${label} result` }),
    }));
    await stage.gateway.agent({ sessionKey: session, message: renderScript({ spawn }, { say: "ok" }) });
    const state = await stage.until(session, hasEnded);
    expect(state).toMatchObject({ status: "partial" });
    const phases = [...state.steps.values()].map(({ phase }) => phase);
    expect(phases.filter(({ status }) => status === "completed")).toHaveLength(MAX_CHILDREN);
    const refused = phases.find(({ status }) => status === "failed");
    expect(refused).toMatchObject({ error: { code: "spawn_refused" } });
    expect(refused && "error" in refused && refused.error.message).toMatch(/max active children.*\(3\/3/u);
  });
});

describe("another plugin that acts after this one", () => {
  it("blocks a spawn: the step fails with that plugin's reason; rewrites one: the step still gets its child", async () => {
    const session = "agent:main:meddled";
    const spawn = [
      { label: "blocked", task: "BLOCK-THIS" },
      { label: "rewritten", task: `REWRITE-THIS ${renderScript({ say: "rewritten result" })}` },
    ];
    await stage.gateway.agent({ sessionKey: session, message: renderScript({ spawn }, { say: "ok" }) });
    const state = await stage.until(session, hasEnded);
    expect(stepNamed(state, "blocked").phase).toMatchObject({
      status: "failed",
      error: { code: "spawn_refused", message: "blocked by another plugin" },
    });
    expect(stepNamed(state, "rewritten").phase.status).toBe("completed");
    const { calls } = await stage.gateway.call("spawn-probe.calls");
    const call = (calls as { sessionKey: string; params: Json; details: Json }[]).find(
      ({ sessionKey, params }) => sessionKey === session && String(params["task"]).includes("REWRITTEN"),
    );
    expect(call?.params).not.toHaveProperty("coordination");
    expect(childKeyOf(state, "rewritten")).toBe(call?.details["childSessionKey"]);
  });
});
