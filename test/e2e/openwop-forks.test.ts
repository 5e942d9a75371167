/** Owns: that a fork which a served host accepted takes all its events, however the host ends meanwhile. */
import { setTimeout as passed } from "node:timers/promises";
import { expect, it } from "vitest";
import { createNode, createWorkflow } from "../openwop/levels-workflows.ts";
import { filterByType, type Event } from "../openwop/levels-world.ts";
import { waitFor } from "../support/wait-for.ts";
import { SERVE_KILLS, serveStage } from "./openwop-stage.ts";

/** Long enough for several appends, and for a moment in between. */
const LONG = createWorkflow("long", {
  nodes: [
    createNode("say", "core.identity", { inputs: { text: { type: "static", value: "x".repeat(3_000) } } }),
    createNode("on", "core.noop"),
  ],
  edges: [
    ["say", "on"],
    ["on", "say"],
  ],
  settings: { maxLoopbackIterations: 480 },
});
/** A fork has taken all its events by then. */
const MOMENT_MS_MAX = 40;

const stripRunIds = (events: readonly Event[]): unknown[] => events.map(({ runId: _, ...event }) => event);

it(`is killed with -9 at ${SERVE_KILLS} moments: every fork goes on with the next process, equal to its source`, async () => {
  await using stage = serveStage([LONG]);
  const first = await stage.serve();
  const sourceRunId = await first.client.start("long");
  await first.client.until(sourceRunId, "failed");
  await first.stop();
  const source = await stage.log(sourceRunId);
  expect(source.length).toBeGreaterThan(1_800);
  let cutOff = 0;
  for (let round = 0; round < SERVE_KILLS; round += 1) {
    const serve = await stage.serve();
    const mode = round % 2 === 0 ? "replay" : "branch";
    const body = { mode, fromSeq: mode === "replay" ? 0 : source.length - 2 };
    const before = (await stage.runs()).length;
    const pendingAnswer = serve.client.post(`/v1/runs/${sourceRunId}:fork`, body).catch(() => undefined);
    await waitFor(async () => (await stage.runs()).length > before, { what: "the fork", everyMs: 1 });
    await passed((round * MOMENT_MS_MAX) / SERVE_KILLS);
    await serve.kill9();
    await pendingAnswer;
    const forks = (await stage.runs()).filter(
      ({ origin, summary }) => origin && summary.status === "running",
    );
    cutOff += forks.filter(({ origin, length }) => origin && length < origin.until).length > 0 ? 1 : 0;
  }
  expect(cutOff, "some were cut off in the middle").toBeGreaterThan(0);
  const last = await stage.serve();
  const forks = (await stage.runs()).filter(({ origin }) => origin);
  expect(forks.length).toBe(SERVE_KILLS);
  for (const { runId, origin } of forks) {
    await last.client.until(runId, "failed");
    const events = await stage.log(runId);
    const takenCount = origin?.until ?? 0;
    expect(stripRunIds(events.slice(0, takenCount))).toEqual(stripRunIds(source.slice(0, takenCount)));
    expect(filterByType(events, "run.resuming").length).toBe(origin?.mode === "branch" ? 1 : 0);
  }
  await last.stop();
  expect(await stage.verify()).toMatchObject({ ok: true, problems: [], exitCode: 0 });
});
