/**
 * Owns: what the protocol asks of replays of nodes that ask a model or have a side effect (RFC 0041 B and C, 0140), and of
 * comparing runs (RFC 0054), in real runs over HTTP.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startModelServer, type ScriptedAnswer } from "./levels-model-server.ts";
import {
  endOf,
  forkToEnd,
  MODEL_WORKFLOWS,
  openModelWorld,
  programModel,
  REFUSAL,
  SEAMS,
  SECRET,
  stripVolatile,
  VALID_ANSWER,
  type ModelWorld,
} from "./levels-model-world.ts";
import { findSchemaProblems } from "./levels-schemas.ts";
import { findOnly, openWorld, type Event } from "./levels-world.ts";

let world: ModelWorld;
beforeAll(async () => {
  world = await openModelWorld();
});
afterAll(() => world.close());

describe("a replay of a node that asks a model", () => {
  it("L4-70 that refuses what it answered tells where, and fails by that", async () => {
    await programModel(world, "call", VALID_ANSWER);
    const source = await world.client.run("mocked");
    expect(source.snapshot.status).toBe("completed");
    await programModel(world, "call", REFUSAL);
    const { snapshot, events } = await forkToEnd(world, source.runId);
    expect(snapshot).toMatchObject({ status: "failed", error: { code: "replay_diverged_at_refusal" } });
    const { payload } = findOnly(events, "replay.divergedAtRefusal");
    const recorded = endOf(source.events, "call");
    expect(payload).toEqual({
      sourceRunId: source.runId,
      nodeId: "call",
      atSequence: recorded?.sequence,
      originalEventId: recorded?.eventId,
      originalEnvelopeKind: "valid",
      replayEnvelopeKind: "refusal",
    });
    expect(JSON.stringify([snapshot, events])).not.toContain(SECRET);
    expect(endOf(events, "call")?.type).toBe("node.failed");
    expect(events.at(-1)?.type).toBe("run.failed");
  });

  it("L4-71 that answers what it refused tells where, and fails by that", async () => {
    await programModel(world, "call", REFUSAL);
    const source = await world.client.run("mocked");
    expect(source.snapshot.status).toBe("failed");
    await programModel(world, "call", VALID_ANSWER);
    const { snapshot, events } = await forkToEnd(world, source.runId);
    expect(snapshot).toMatchObject({ status: "failed", error: { code: "replay_diverged_at_refusal" } });
    expect(findOnly(events, "replay.divergedAtRefusal").payload).toMatchObject({
      originalEnvelopeKind: "refusal",
      replayEnvelopeKind: "valid",
      originalEventId: findOnly(source.events, "envelope.refusal").eventId,
    });
    await world.client.post(`${SEAMS}/reset`);
  });

  it("L4-72 that does neither has the recorded answer, whatever is said the second time", async () => {
    await programModel(world, "call", { content: '{"valid":false}' }, VALID_ANSWER);
    const source = await world.client.run("mocked");
    const fork = await forkToEnd(world, source.runId);
    expect(fork.snapshot.status).toBe("completed");
    expect(stripVolatile(fork.events)).toEqual(stripVolatile(source.events));
    await programModel(world, "call", REFUSAL, REFUSAL);
    const refused = await world.client.run("mocked");
    expect(stripVolatile((await forkToEnd(world, refused.runId)).events)).toEqual(
      stripVolatile(refused.events),
    );
    await world.client.post(`${SEAMS}/reset`);
  });

  it("L4-73 asks no live model: neither for a node nor for a supervisor", async () => {
    const answered = await world.client.run("structured-word");
    const refused = await world.client.run("prompted-refusal");
    const ended = await world.client.run("supervised-plan");
    const before = world.model.askedBodies.length;
    for (const source of [answered, refused, ended])
      expect(stripVolatile((await forkToEnd(world, source.runId)).events)).toEqual(
        stripVolatile(source.events),
      );
    expect(world.model.askedBodies.length).toBe(before);
  });

  it("L4-74 asks live models again where the operator wants to know whether they refuse now, but no supervisor", async () => {
    const sayings: ScriptedAnswer[] = [{ content: "yes" }];
    const changing = await startModelServer(() => sayings[0] ?? {});
    const ownWorld = await openWorld(MODEL_WORKFLOWS, {
      model: { baseUrl: changing.baseUrl, model: "m" },
      privateOrigins: [changing.origin],
      replayReinvokesModels: true,
    });
    try {
      const source = await ownWorld.client.run("prompted-word");
      sayings[0] = { content: '{"kind":"terminate","reason":"done"}' };
      const loops = await ownWorld.client.run("supervised-word");
      expect([source.snapshot.status, loops.snapshot.status]).toEqual(["completed", "completed"]);
      sayings[0] = { refusal: SECRET };
      const replay = async (runId: string) => {
        const { body } = await ownWorld.client.post(`/v1/runs/${runId}:fork`, { mode: "replay" });
        return ownWorld.client.until(String(body["runId"]), "completed", "failed");
      };
      expect((await replay(source.runId)).error?.code).toBe("replay_diverged_at_refusal");
      expect((await replay(loops.runId)).status).toBe("completed");
      expect(changing.askedBodies).toHaveLength(3);
    } finally {
      await ownWorld.close();
      await changing.close();
    }
  });
});

describe("a replay of a node with a side effect", () => {
  const listEffects = async (): Promise<readonly unknown[]> =>
    (await world.client.get(`${SEAMS}/side-effects`)).body["effects"] as unknown[];

  it("L4-75 has the recorded outcome, and does not do it again", async () => {
    const source = await world.client.run("causes");
    const before = await listEffects();
    expect(before).toContainEqual({
      ...(endOf(source.events, "effect")?.payload["outputs"] as object),
      runId: source.runId,
      nodeId: "effect",
    });
    const fork = await forkToEnd(world, source.runId);
    expect(fork.snapshot.status).toBe("completed");
    expect(stripVolatile(fork.events)).toEqual(stripVolatile(source.events));
    expect(await listEffects()).toEqual(before);
  });

  it("L4-76 that its source never came to fails by that, behind what is pure, which is done again", async () => {
    const runId = await world.client.start("causes", { inputs: { delayMs: 300 } });
    await world.client.post(`/v1/runs/${runId}/cancel`);
    await world.client.until(runId, "cancelled");
    const before = await listEffects();
    const { snapshot, events } = await forkToEnd(world, runId);
    expect(snapshot).toMatchObject({ status: "failed", error: { code: "replay_source_missing" } });
    expect(endOf(events, "wait")?.payload["outputs"]).toEqual({ delayMs: 300 });
    expect(endOf(events, "effect")).toMatchObject({
      type: "node.failed",
      payload: { error: { code: "replay_source_missing" } },
    });
    expect(await listEffects()).toEqual(before);
  });

  it("L4-77 is no replay in a branch: there it is done, once more", async () => {
    const source = await world.client.run("causes");
    const before = (await listEffects()).length;
    const fork = await forkToEnd(world, source.runId, { mode: "branch" });
    expect(fork.snapshot.status).toBe("completed");
    expect((await listEffects()).length).toBe(before + 1);
  });
});

describe("the difference of two runs", () => {
  const diff = (a: string, b: string, client = world.client) => client.get(`/v1/runs/${a}:diff?against=${b}`);

  it("L4-80 is none between a run and itself, and between a run and its replay", async () => {
    const source = await world.client.run("hands-over");
    for (const other of [source.runId, (await forkToEnd(world, source.runId)).runId]) {
      const { status, body } = await diff(source.runId, other);
      expect(status).toBe(200);
      expect(body).toEqual({ a: source.runId, b: other, divergedAtSeq: null, eventDiffs: [], stateDiff: {} });
      expect(findSchemaProblems("run-diff-response", body)).toEqual([]);
    }
  });

  it("L4-81 is none between two runs of one workflow that did the same", async () => {
    const [one, other] = [await world.client.run("hands-over"), await world.client.run("hands-over")];
    expect((await diff(one.runId, other.runId)).body).toMatchObject({ divergedAtSeq: null, eventDiffs: [] });
  });

  it("L4-82 tells the first place, every other one, and the states, without what is in them", async () => {
    const one = await world.client.run("words", { inputs: { word: "sk-abc", apiKey: "api-key-of-mine" } });
    const other = await world.client.run("hands-over", { inputs: { word: "Bearer xyz" } });
    const { status, body } = await diff(one.runId, other.runId);
    expect(status).toBe(200);
    expect(findSchemaProblems("run-diff-response", body)).toEqual([]);
    const diffs = body["eventDiffs"] as { seq: number; op: string; aEvent?: Event; bEvent?: Event }[];
    expect(diffs[0]).toMatchObject({ seq: 0, op: "changed", aEvent: one.events[0], bEvent: other.events[0] });
    expect(body["divergedAtSeq"]).toBe(0);
    expect(diffs.filter(({ op }) => op === "added").map(({ bEvent }) => bEvent?.sequence)).toEqual(
      other.events.slice(one.events.length).map(({ sequence }) => sequence),
    );
    expect(JSON.stringify(body["stateDiff"])).not.toMatch(/sk-|api[_-]?key|secret|bearer\s/iu);
    expect(body["stateDiff"]).toMatchObject({
      variables: expect.arrayContaining([{ name: "word", op: "changed" }]) as unknown,
    });
  });

  it("L4-83 is asked for with the other run, which is one of the caller's", async () => {
    const { runId } = await world.client.run("words");
    const foreign = await world.other.run("words");
    expect((await world.client.get(`/v1/runs/${runId}:diff`)).status).toBe(400);
    expect((await world.client.get(`/v1/runs/${runId}:diff?against=`)).status).toBe(400);
    for (const [a, b] of [
      [runId, "run-of-nobody"],
      ["run-of-nobody", runId],
      [runId, foreign.runId],
      [foreign.runId, runId],
    ] as const)
      expect((await diff(a, b)).status).toBe(404);
  });

  it("L4-84 of a run that goes on is that of what both have come to, and says so", async () => {
    const [one, other] = [await world.client.start("slow"), await world.client.run("mocked")];
    const { body } = await diff(one, one);
    expect(body).toMatchObject({ divergedAtSeq: null, eventDiffs: [], truncated: true });
    const against = (await diff(one, other.runId)).body;
    expect(against).toMatchObject({ truncated: true, divergedAtSeq: 0 });
    expect(findSchemaProblems("run-diff-response", against)).toEqual([]);
    await world.client.post(`/v1/runs/${one}/cancel`);
  });
});
