/** Owns: that a loop keeps its iteration and what its turns are given, when the host that ran it is killed (RFC 0061). */
import { setTimeout as passed } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { end, createNode, createNoop, work, createWorkflow } from "../openwop/levels-workflows.ts";
import { filterByType, type Client, type Event } from "../openwop/levels-world.ts";
import { startHeldModel, type HeldModel } from "../support/held-model.ts";
import type { SupervisorMessage } from "../support/stateful-scene.ts";
import { SERVE_KILLS, serveStage, TOKEN, type Serve, type ServeStage } from "./openwop-stage.ts";

const LOW = 0.1;
const ACCEPT = { action: "accept" };
const WORKERS = [
  createNode("keep", "openclaw.memory.write", { config: { content: "kept in a turn" } }),
  createNode("file", "openclaw.workspace.write", { config: { path: "turn.md", content: "of a turn" } }),
  createNoop("idle"),
];

const DEFINITIONS = [
  createWorkflow("led", {
    nodes: [createNode("boss", "core.orchestrator.supervisor", { config: { prompt: "Lead." } }), ...WORKERS],
    edges: WORKERS.flatMap(({ id: to }) => [
      ["boss", to, { condition: { type: "equals", left: "decision.nextWorkerIds.0", right: to } }] as const,
      [to, "boss"] as const,
    ]),
  }),
  createWorkflow("asks", {
    nodes: [
      createNode("boss", "core.orchestrator.supervisor", { config: { prompt: "Lead." } }),
      createNode("handing", "core.dispatch"),
    ],
  }),
  createWorkflow("elsewhere", {
    nodes: [
      createNode("keep", "openclaw.memory.write", { config: { content: "of another run" } }),
      createNoop("end"),
    ],
  }),
];

interface Stage {
  readonly stage: ServeStage;
  readonly model: HeldModel;
  readonly serve: () => Promise<Serve>;
}

async function runStaged(run: (stage: Stage) => Promise<void>): Promise<void> {
  const model = await startHeldModel();
  const stage = serveStage(DEFINITIONS);
  const options = ["--model-url", model.baseUrl, "--model", "held", "--allow-private", model.origin];
  try {
    await run({ stage, model, serve: () => stage.serve(options) });
    expect(await stage.verify()).toMatchObject({ ok: true, problems: [], exitCode: 0 });
  } finally {
    await stage[Symbol.asyncDispose]();
    await model[Symbol.asyncDispose]();
  }
}

async function put({ baseUrl }: Serve, path: string, content: string): Promise<void> {
  const response = await fetch(`${baseUrl}/v1/host/workspace/files/${path}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify({ content }),
  });
  expect(response.status).toBe(200);
}

const iterationsOf = (events: readonly Event[]): unknown[] =>
  filterByType(events, "runOrchestrator.decided").map(({ payload }) => payload["iteration"]);

async function waitForEnd(client: Client, runId: string): Promise<Event[]> {
  await client.until(runId, "completed");
  return client.events(runId);
}

const SHARED = { scopeId: "shared" };

describe("kill -9 of the host of a stateful loop", () => {
  it("while it asks the model: the next process asks the same, though everything was written to meanwhile", () =>
    runStaged(async ({ model, serve }) => {
      const first = await serve();
      await put(first, "ground.md", "1");
      const runId = await first.client.start("led", SHARED);
      await model.asked(1);
      await model.say(work(["keep"]));
      await model.asked(2);
      await put(first, "ground.md", "2");
      await first.client.run("elsewhere", SHARED);
      await first.kill9();
      const second = await serve();
      await model.asked(3);
      expect(model.bodies[2]).toBe(model.bodies[1]);
      expect(model.told(2)).toMatchObject({ turn: 2, workspace: [{ content: "1" }] });
      expect(model.told(2).memory?.map(({ content }) => content)).toEqual(["kept in a turn"]);
      await model.say(work(["file"]));
      await model.asked(4);
      expect(model.told(3).memory).toHaveLength(2);
      expect(model.told(3).workspace?.map(({ content }) => content)).toEqual(["2", "of a turn"]);
      await model.say(end());
      const events = await waitForEnd(second.client, runId);
      expect(iterationsOf(events)).toEqual([1, 2, 3]);
      expect(filterByType(events, "run.resuming")).toHaveLength(1);
      expect(model.bodies).toHaveLength(4);
    }));

  it("while people are asked to agree: whoever answers it lets the same iteration go on, and nobody decides twice", () =>
    runStaged(async ({ stage, model, serve }) => {
      const [first, second] = await Promise.all([serve(), serve()]);
      const runId = await first.client.start("led");
      await model.asked(1);
      await model.say(work(["idle"]));
      await model.asked(2);
      await model.say(work(["file"], LOW));
      await first.client.until(runId, "waiting-approval");
      const waiting = await first.client.events(runId);
      await first.kill9();
      await put(second, "while-waiting.md", "1");
      // The other process looks at what was left, with each beat: the loop waits.
      for (let beats = 0, last = -1; beats < 3;) {
        const [only, ...others] = await stage.beats();
        if (!only || others.length > 0 || only.count === last) await passed(50);
        else [last, beats] = [only.count, beats + 1];
      }
      expect(await second.client.events(runId)).toEqual(waiting);
      await second.client.resolve(runId, "boss", ACCEPT);
      await model.asked(3);
      const resumed = await second.client.events(runId);
      expect(iterationsOf(resumed)).toEqual([1, 2]);
      expect(resumed.slice(0, waiting.length)).toEqual(waiting);
      expect(model.told(2)).toMatchObject({ turn: 3 });
      expect(model.told(2).workspace?.map(({ path }) => path)).toEqual(["turn.md", "while-waiting.md"]);
      await model.say(end());
      expect(iterationsOf(await waitForEnd(second.client, runId))).toEqual([1, 2, 3]);
      expect(model.bodies).toHaveLength(3);
    }));

  it("while somebody is asked a question: another process takes the answer, and the loop when its owner is killed", () =>
    runStaged(async ({ model, serve }) => {
      const [first, second] = await Promise.all([serve(), serve()]);
      const runId = await first.client.start("asks");
      await model.asked(1);
      await model.say({ kind: "ask-user", prompt: "Which vein?" });
      await first.client.until(runId, "waiting-input");
      await second.client.resolve(runId, "handing", { answers: { q1: "the silver one" } });
      await model.asked(2);
      expect(JSON.stringify(model.told(1).transcript)).toContain("the silver one");
      // The one that began the run asks the model; the other one is there to go on.
      await first.kill9();
      await model.asked(3);
      expect(model.bodies[2]).toBe(model.bodies[1]);
      await model.say(end());
      expect(iterationsOf(await waitForEnd(second.client, runId))).toEqual([1, 2]);
      expect(model.bodies).toHaveLength(3);
    }));

  it("at many moments: each turn is given the same however often it is asked, and is decided once", () =>
    runStaged(async ({ model, serve }) => {
      const turns = SERVE_KILLS;
      let serving = await serve();
      const runId = await serving.client.start("led", SHARED);
      let requestCount = 0;
      const decisions = [work(["keep"]), work(["file"]), work(["idle"])];
      for (let round = 0; ; round += 1) {
        await model.asked(requestCount + 1);
        requestCount = model.bodies.length;
        if (round % 3 === 0) {
          await put(serving, "ground.md", `round ${round}`);
          await serving.kill9();
          serving = await serve();
          continue;
        }
        // The request that is answered says which turn it is: the host may be further than the one that was looked at.
        let answered = 0;
        await model.sayTo(({ turn }) => {
          answered = turn;
          return turn === turns ? end() : decisions[turn % 3];
        });
        if (answered === turns) break;
        // Before, while or after what follows from the decision is written.
        if (round % 3 === 1) {
          await passed((round * 7) % 23);
          await serving.kill9();
          serving = await serve();
        }
      }
      const events = await waitForEnd(serving.client, runId);
      expect(iterationsOf(events)).toEqual(Array.from({ length: turns }, (_, index) => index + 1));
      const tellings = model.bodies.map((body, index): [SupervisorMessage, string] => [
        model.told(index),
        body,
      ]);
      const byTurn = Map.groupBy(tellings, ([{ turn }]) => turn);
      expect([...byTurn.values()].filter((each) => each.length > 1).length).toBeGreaterThan(turns / 4);
      for (const each of byTurn.values()) expect(new Set(each.map(([, body]) => body)).size).toBe(1);
      const writes = filterByType(events, "workspace.updated").map(({ payload }) => payload["version"]);
      expect(writes).toEqual(writes.map((_, index) => index + 1));
    }));
});
