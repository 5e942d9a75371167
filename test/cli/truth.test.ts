/** A child that was asked to run on one model and ran on another, with names that a terminal must not obey. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ChildRun } from "../../src/agents/coordination/contracts/fact-fields.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { nameChildSession, OWNER, spawnRequest, testCoordinator } from "../support/ledger-fixtures.ts";
import {
  createManualClock,
  createTempFolder,
  openTestLedger,
  type TempFolder,
} from "../support/temp-ledger.ts";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import { runCli } from "./run-cli.ts";

const RAN: ChildRun = { model: "openai/small\u001b[31m", thinking: "off", folder: "/repo" };
const DIFFERENCES = [{ field: "model", asked: "openai/large", ran: "openai/small\u001b[31m" }];

let folder: TempFolder;
const nameLedger = (): string => folder.file("coordination/ledger.sqlite");

const { gates } = parsePluginConfig({ coordination: { phase1: { gates: { requireConfidence: true } } } });

beforeAll(async () => {
  folder = createTempFolder();
  const clock = createManualClock();
  const store = await openTestLedger(nameLedger(), { clock });
  const coordinator = testCoordinator({
    store,
    clock,
    newCoordinationId: () => "co-truth" as CoordinationId,
    gates: { gates, truth: { onMismatch: "hold" } },
  });
  const base = spawnRequest({ call: "call-1", trace: "trace-1" });
  const requested = { model: "openai/large", thinking: "off", folder: "/repo" };
  const admission = await coordinator.admitSpawn({
    ...base,
    spawn: { ...base.spawn, name: "reader", requested },
  });
  if (admission.kind !== "admitted") throw new Error(admission.reason);
  const { coordinationId, stepId } = admission.envelope;
  const session = nameChildSession("reader");
  await coordinator.confirmSpawn(
    { coordinationId, stepId, sourceSession: OWNER, toolCallId: "call-1" },
    { childSessionKey: session, childRunId: "run-1" },
  );
  const child = await coordinator.childWatch.find(session);
  if (!child) throw new Error("the session is nobody's child");
  await coordinator.childWatch.observe(child, { ran: RAN, toolNames: ["edit", "read"] });
  await coordinator.report(session, { outcome: "completed", outputs: { n: 1 } });
  await coordinator.endChild(session, { outcome: "completed" });
  await coordinator.stop();
  await store.close();
});

afterAll(() => {
  folder[Symbol.dispose]();
});

async function run(...args: readonly string[]): Promise<string> {
  const result = await runCli([...args, "--ledger", nameLedger()], { stateDir: folder.path });
  expect(result).toMatchObject({ exitCode: 0, stderr: "" });
  return result.stdout;
}

const SENTENCE = /model openai\/large was asked, and openai\/small.* ran/u;

describe("a child that did not run as it was asked", () => {
  test("show says what was asked, what ran and where they differ", async () => {
    const text = await run("show");
    expect(text).toMatch(/asked +openai\/large, thinking off, in \/repo/u);
    expect(text).toMatch(/ran +openai\/small.*, thinking off, in \/repo, 2 tools offered/u);
    expect(text).toMatch(SENTENCE);
    expect(text).not.toContain("\u001b[31m");
    const { steps } = JSON.parse(await run("show", "--json")) as { steps: object[] };
    expect(steps[0]).toMatchObject({
      requested: { model: "openai/large" },
      ran: { ...RAN, tools: { count: 2 } },
      differences: DIFFERENCES,
    });
  });

  test("timeline says it below the chart", async () => {
    const text = await run("timeline");
    expect(text).toMatch(new RegExp(`! reader: ${SENTENCE.source}`, "u"));
    expect(text).not.toContain("\u001b[31m");
    expect(JSON.parse(await run("timeline", "--json"))).toMatchObject({
      rows: [{ differences: DIFFERENCES }],
    });
  });

  test("status counts the coordinations", async () => {
    expect(await run("status")).toMatch(/truth +children of 1 coordination did not run as asked/u);
    expect(JSON.parse(await run("status", "--json"))).toMatchObject({ mismatches: 1 });
  });

  test("a question about its result says so, whatever the question is asked for", async () => {
    const id = "co-truth:escalation-1";
    for (const text of [await run("questions"), await run("questions", "show", id)]) {
      expect(text).toContain("its agent states no readable confidence");
      expect(text.replaceAll(/\s+/gu, " ")).toMatch(
        new RegExp(`its agent did not run as it was asked: ${SENTENCE.source}`, "u"),
      );
      expect(text).not.toContain("\u001b[31m");
    }
    expect(JSON.parse(await run("questions", "show", id, "--json"))).toMatchObject({
      cause: "confidence",
      differences: DIFFERENCES,
    });
  });

  test("the ledger is sound", async () => {
    expect(await run("verify")).toMatch(/sound|ok|proved|verified/iu);
  });
});
