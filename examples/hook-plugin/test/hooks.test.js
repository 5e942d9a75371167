import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { registerCoordinationHooks } from "openclaw-coordination/hooks";
import {
  createHookHarness,
  sampleContest,
  sampleEvent,
  sampleQuestion,
  sampleResult,
} from "openclaw-coordination/testing";
import { createHooks } from "../hooks.js";

let harness;
let counts;
const lines = [];

beforeEach(() => {
  lines.length = 0;
  harness = createHookHarness({ pluginId: "hook-plugin" });
  const created = createHooks((line) => lines.push(line));
  counts = created.counts;
  registerCoordinationHooks(harness.api, created.hooks);
});

afterEach(() => {
  assert.deepEqual(harness.problems, []);
  harness.close();
});

test("a vendored file stays with who holds it", async () => {
  const ruling = await harness.arbitrate(sampleContest({ resource: "file:/repo/app/vendor/lib/a.js" }));
  assert.equal(ruling.award, "holder");
  assert.equal(ruling.plugin, "hook-plugin");
});

test("a vendored file stays with who holds it, also where the call writes it by a hard link elsewhere", async () => {
  const names = ["file:/repo/app/src/a.js", "file:/repo/app/vendor/lib/a.js"];
  const ruling = await harness.arbitrate(sampleContest({ resource: "hardlink:1-2", names }));
  assert.equal(ruling.award, "holder");
});

test("about any other resource it has no opinion", async () => {
  for (const resource of ["file:/repo/vendors/a.js", "file:/repo/vendor", "queue:vendor/x"])
    assert.equal(await harness.arbitrate(sampleContest({ resource })), undefined);
});

test("a reviewed result passes, another goes back", async () => {
  const passed = await harness.verify(sampleResult({ text: "Done.\nReviewed-by: Ann" }));
  assert.equal(passed.verdict, "pass");
  const back = await harness.verify(sampleResult({ text: "Done. Reviewed-by: " }));
  assert.deepEqual([back.verdict, back.criteria], ["revise", ["reviewed-by"]]);
});

test("only results of the agent `reviewed` are verified", () => {
  assert.equal(harness.isVerified("reviewed"), true);
  assert.equal(harness.isVerified("main"), false);
});

test("a question is told, and left to people", async () => {
  const { outcome, answers } = await harness.escalate(sampleQuestion());
  assert.equal(outcome.kind, "delivered");
  assert.deepEqual(answers, []);
  assert.match(lines[0], /^open question co-sample:escalation-1: /);
});

test("events are counted by type, over reloads", async () => {
  const before = counts().events["step.completed"] ?? 0;
  await harness.observe(sampleEvent());
  harness.end("reload");
  registerCoordinationHooks(harness.api, createHooks(() => undefined).hooks);
  await harness.observe(sampleEvent(), sampleEvent());
  assert.equal(counts().events["step.completed"], before + 3);
});
