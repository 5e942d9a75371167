/** A parent is shown a part of a long result; the rest can be read on. */
import { beforeEach, describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { CoordinationId, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { SHORTENED } from "../../src/agents/coordination/results/read-on.ts";
import { isOnlyPlaceholders } from "../../src/agents/coordination/gates/placeholder.ts";
import { listEvents, waitUntilQuiet } from "../core/gates-world.ts";
import { writeLongText } from "../support/long-text.ts";
import { call, createText, forgetAll, onStage, type OnStage } from "./gates-scene.ts";

beforeEach(forgetAll);

const LONG = writeLongText({ chars: 50_000, head: "BEGIN", middle: "MIDDLE", tail: "END", lineChars: 80 });

const textsOf = (parts: readonly { readonly [field: string]: unknown }[]): string[] =>
  parts.map(({ text }) => String(text));

async function sayLong(stage: OnStage, text = LONG, pieces: readonly string[] = []): Promise<string> {
  const [shown = ""] = textsOf(await stage.host.says(stage.child.session, [createText(text)], { pieces }));
  return shown;
}

describe("a child that says more than its parent is to be shown", () => {
  it("is shown by its beginning and its end, and its words are kept whole and recorded once", async () => {
    const stage = await onStage();
    const shown = await sayLong(stage, LONG, [LONG.slice(0, 20_000), LONG.slice(0, 40_000)]);
    expect(shown).toMatch(/^BEGIN/u);
    expect(shown).toMatch(/END$/u);
    expect(shown).not.toContain("MIDDLE");
    expect(shown.length).toBeLessThanOrEqual(16_000);
    await stage.child.ends();
    await waitUntilQuiet(stage.world);
    const [fact, ...more] = listEvents(stage.world, "result.shortened");
    expect(more).toEqual([]);
    expect(fact?.payload).toMatchObject({ chars: LONG.length, shownChars: shown.length });
    const sha256 = (fact!.payload as { text: { sha256: string } }).text.sha256;
    expect(shown).toContain(sha256);
    expect(stage.world.ledger.contents.get(sha256)?.text).toBe(LONG);
    await stage.world.clock.advance(10_000);
    expect(listEvents(stage.world, "coordination.terminal")).toHaveLength(1);
    await stage.coordinator.stop();
  });

  it("reads its own words again in the next call of its model, and nobody else does", async () => {
    const stage = await onStage();
    const { host, child } = stage;
    const shown = await sayLong(stage);
    expect(host.toModel(child.session, `You said: ${shown}`)).toBe(`You said: ${LONG}`);
    expect(host.toModel("agent:main:main", shown)).toBe(shown);
    await stage.coordinator.stop();
  });

  it("is held back as a whole where it states a doubt", async () => {
    const stage = await onStage();
    expect(isOnlyPlaceholders(await sayLong(stage, `${LONG}\n{"confidence": 0.1}`))).toBe(true);
    await stage.child.ends();
    await waitUntilQuiet(stage.world);
    expect(listEvents(stage.world, "result.shortened")).toEqual([]);
    await stage.coordinator.stop();
  });

  it("says it to a tool as it is", async () => {
    const stage = await onStage();
    expect(stage.host.argument(stage.child.session, LONG)).toBe(LONG);
    const written = await stage.host.says(stage.child.session, [call("write", { content: LONG })]);
    expect(written).toEqual([call("write", { content: LONG })]);
    await stage.coordinator.stop();
  });

  it("has a result that can be read, but not while it is held", async () => {
    const stage = await onStage();
    await sayLong(stage);
    await waitUntilQuiet(stage.world);
    const [fact] = listEvents(stage.world, "result.shortened");
    const id = fact?.runId as CoordinationId;
    const resultsOf = async () => (await stage.coordinator.view(id))?.steps[0]?.results;
    expect(await resultsOf()).toMatchObject([{ kind: "text", attempt: 1 }]);
    await stage.host.says(stage.child.session, [createText('No, sorry.\n{"confidence": 0.1}')]);
    await stage.child.ends();
    await waitUntilQuiet(stage.world);
    expect(await resultsOf()).toBeUndefined();
    const place = { stepId: "step-1" as StepId };
    expect(listEvents(stage.world, "result.held")[0]?.payload).toMatchObject(place);
    await stage.coordinator.stop();
  });
});

it("JSON that fits without its spaces can be read as the child wrote it", async () => {
  const stage = await onStage();
  const json = `{"answer": 42,${" ".repeat(16_000)}"share": 1.0}`;
  expect(await sayLong(stage, json)).toMatch(/,"answer":42,"share":1\.0\}$/u);
  await waitUntilQuiet(stage.world);
  const [fact] = listEvents(stage.world, "result.shortened");
  expect(stage.world.ledger.contents.get(fact!.payload.text.sha256)?.text).toBe(json);
  await stage.coordinator.stop();
});

describe("a long text that the ledger does not take when it is said", () => {
  const OTHER = writeLongText({
    chars: 40_000,
    head: "FIRST",
    middle: "SECOND",
    tail: "LAST",
    lineChars: 80,
  });

  /** Says texts of which the child's parent is shown a part, while the ledger is busy. */
  async function sayWhileBusy(stage: OnStage, texts: readonly string[]): Promise<() => void> {
    const { coordinator } = stage.host.runtime;
    stage.host.runtime.coordinator = () => Promise.reject(new Error("the ledger is busy"));
    for (const text of texts) expect(await sayLong(stage, text)).toContain(SHORTENED);
    expect(listEvents(stage.world, "result.shortened")).toEqual([]);
    return () => {
      stage.host.runtime.coordinator = coordinator;
    };
  }

  it.each(["completed", "failed"] as const)(
    "is kept whole when its child has %s, like others",
    async (outcome) => {
      const stage = await onStage();
      const answerAgain = await sayWhileBusy(stage, [LONG, OTHER]);
      answerAgain();
      stage.world.host.end(stage.child.session, { outcome });
      await stage.coordinator.endChild(stage.child.session, { outcome });
      await waitUntilQuiet(stage.world);
      const facts = listEvents(stage.world, "result.shortened");
      expect(facts.map(({ payload }) => stage.world.ledger.contents.get(payload.text.sha256)?.text)).toEqual([
        LONG,
        OTHER,
      ]);
      expect(listEvents(stage.world, `step.${outcome}`)).toHaveLength(1);
      await stage.coordinator.stop();
    },
  );

  it("does not fail the step of its child where the ledger takes it at the end neither", async () => {
    const stage = await onStage();
    await sayWhileBusy(stage, [LONG]);
    await stage.child.ends();
    await waitUntilQuiet(stage.world);
    expect(listEvents(stage.world, "result.shortened")).toEqual([]);
    expect(listEvents(stage.world, "step.completed")).toHaveLength(1);
    await stage.coordinator.stop();
  });

  it("is shown whole where nobody can tell whose words it is, so that nothing of it is lost", async () => {
    const stage = await onStage();
    const uncoordinated = "agent:main:subagent:uncoordinated";
    stage.host.runtime.coordinator = () => Promise.reject(new Error("the ledger is busy"));
    await stage.host.begins(uncoordinated);
    const [shown] = textsOf(await stage.host.says(uncoordinated, [createText(LONG)]));
    expect(shown === LONG).toBe(true);
    await stage.coordinator.stop();
  });
});

describe("a long text that the ledger does not take any more", () => {
  it.each([
    ["in a run that begins later", true],
    ["in a run that goes on", false],
  ])("is shown whole where the coordination has ended, %s", async (_, begins) => {
    const stage = await onStage();
    await sayLong(stage, "A short answer.");
    await stage.child.ends();
    await waitUntilQuiet(stage.world);
    await stage.world.clock.advance(10_000);
    expect(listEvents(stage.world, "coordination.terminal")).toHaveLength(1);
    if (begins) await stage.host.begins(stage.child.session);
    expect((await sayLong(stage)) === LONG).toBe(true);
    await stage.coordinator.stop();
  });

  it("is shown whole where its step has its most long texts", async () => {
    const stage = await onStage();
    const most = BOUNDS.shortenedTextsMax;
    for (let count = 0; count < most; count += 1)
      expect(await sayLong(stage, `${LONG} ${count}`)).toContain(SHORTENED);
    await waitUntilQuiet(stage.world);
    expect(listEvents(stage.world, "result.shortened")).toHaveLength(most);
    expect((await sayLong(stage)) === LONG).toBe(true);
    await stage.coordinator.stop();
  });
});

describe("everybody else", () => {
  it("is shown whole: an owner, and a child whose words just fit", async () => {
    const stage = await onStage();
    expect(stage.host.fromModel("agent:main:main", LONG)).toBe(LONG);
    const fitting = "x".repeat(16_000);
    expect(await sayLong(stage, fitting)).toBe(fitting);
    expect(await sayLong(stage, `${fitting}x`)).toContain(SHORTENED);
    await stage.coordinator.stop();
  });
});
