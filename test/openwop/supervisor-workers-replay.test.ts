/**
 * Owns: that a run from before the workers of a supervisor were a bound is replayed as it was recorded. Its log is made by running
 * with the worker among the supervisor's, and taking it away from the definition afterwards.
 */
import { hash } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { forge, rehashRun, verify } from "../support/ledger-fixtures-damage.ts";
import { stripVolatile, forkToEnd } from "./levels-model-world.ts";
import { startModelServer, type ModelServer } from "./levels-model-server.ts";
import { createLoop, WORKERS } from "./levels-workflows.ts";
import { filterByType, openWorld, type World } from "./levels-world.ts";

let world: World;
let model: ModelServer;
let decisions: object[] = [];

const WORK = { kind: "next-worker", nextWorkerIds: ["worker-good"], confidence: 0.9 };
const END = { kind: "terminate", reason: "done", confidence: 0.9 };

beforeAll(async () => {
  model = await startModelServer(() => ({ content: JSON.stringify(decisions.shift() ?? END) }));
  const supervisor = { mockDispatchPlan: undefined, prompt: "Plan.", workers: ["worker-good"] };
  world = await openWorld([...WORKERS, createLoop("boss", { plan: [], supervisor })], {
    model: { baseUrl: model.baseUrl, model: "m" },
    privateOrigins: [model.origin],
    testSeams: false,
  });
});
afterAll(async () => {
  await world.close();
  await model.close();
});

/** Has the log of the run follow a definition whose supervisor has other workers. */
function takeWorkerAway(path: string, runId: string): void {
  forge(path, (database) => {
    const select =
      'select sha256, text from workflow_definition where text like \'%"workers":["worker-good"]%\'';
    const [row] = database.prepare<[], { sha256: string; text: string }>(select).all();
    const before = row ?? expect.fail("there is no definition");
    const text = before.text.replace('"workers":["worker-good"]', '"workers":["worker-other"]');
    expect(text).not.toBe(before.text);
    const sha256 = hash("sha256", text);
    database
      .prepare("insert or ignore into workflow_definition (sha256, text) values (?, ?)")
      .run(sha256, text);
    const changed = database
      .prepare(
        "update event set payload = replace(payload, ?, ?) where sequence = 0 and run_key = (select run_key from run where run_id = ?)",
      )
      .run(before.sha256, sha256, runId);
    expect(changed.changes).toBe(1);
    rehashRun(database, runId as CoordinationId);
  });
}

it("an older log whose supervisor sent a worker that it does not list is replayed as recorded", async () => {
  decisions = [WORK];
  const source = await world.client.run("boss");
  expect(source.snapshot.status).toBe("completed");
  expect(filterByType(source.events, "node.dispatched")).toHaveLength(1);
  await world.stop();
  takeWorkerAway(world.ledgerPath, source.runId);
  await world.restart();
  model.askedBodies.length = 0;
  decisions = [WORK];
  const fork = await forkToEnd(world, source.runId);
  expect(fork.snapshot.status).toBe("completed");
  expect(stripVolatile(fork.events.map(({ type, nodeId }) => [type, nodeId]))).toEqual(
    stripVolatile((await world.client.events(source.runId)).map(({ type, nodeId }) => [type, nodeId])),
  );
  await world.stop();
  expect(await verify(world.ledgerPath)).toMatchObject({ problems: [] });
  await world.restart();
});

it("is replayed as recorded up to the place of a fork, and bound from there on", async () => {
  decisions = [WORK];
  const source = await world.client.run("boss");
  const decided = filterByType(source.events, "node.dispatched")[0]?.sequence ?? expect.fail("no dispatch");
  await world.stop();
  takeWorkerAway(world.ledgerPath, source.runId);
  await world.restart();
  decisions = [WORK];
  const { snapshot, events } = await forkToEnd(world, source.runId, { mode: "branch", fromSeq: decided + 1 });
  expect(events.slice(0, decided).map(({ type }) => type)).toEqual(
    source.events.slice(0, decided).map(({ type }) => type),
  );
  expect(snapshot.error?.code).toBe("decision_malformed");
});
