import { beforeEach, describe, expect, it } from "vitest";
import { isOnlyPlaceholders } from "../../src/agents/coordination/gates/placeholder.ts";
import { noteReportedConfidence } from "../../src/plugins/openclaw/runtime-access/gate-memory.ts";
import { REPORT_TOOL } from "../../src/plugins/openclaw/declarations/tool-declarations.ts";
import {
  listEvents,
  createGatesWith,
  waitUntilQuiet,
  createRuling,
  createScriptedVerifier,
} from "../core/gates-world.ts";
import {
  call,
  forgetAll,
  onStage,
  createText,
  createThought,
  type Part,
  type TextDelivery,
} from "./gates-scene.ts";

beforeEach(forgetAll);

const SECRET = "The code is 4711.";
const LOW = '{"confidence": 0.1}';
const isHidden = (parts: readonly Part[]): boolean => {
  const texts = parts.filter(({ type }) => type === "text");
  return texts.length > 0 && texts.every((part) => isOnlyPlaceholders(String(part["text"])));
};
const createChecking = () => ({
  gates: createGatesWith(["lint"]),
  ...createScriptedVerifier(() => createRuling("pass")),
});

describe("a last message of several texts", () => {
  it.each([
    ["written at once", {}],
    ["written in pieces", { pieces: ["The code", " is 4711.", SECRET, '{"confid', 'ence": 0.1}', LOW] }],
  ] satisfies [string, TextDelivery][])(
    "%s is kept back as a whole where one of them is unsure",
    async (_, how) => {
      const { coordinator, child, host, world } = await onStage();
      const written = await host.says(child.session, [createText(SECRET), createText(LOW)], how);
      expect(written).toHaveLength(2);
      expect(isHidden(written)).toBe(true);
      await child.ends();
      await waitUntilQuiet(world);
      expect(listEvents(world, "result.withheld")[0]?.payload).toMatchObject({ confidence: 1_000 });
      expect(listEvents(world, "result.held")).toHaveLength(1);
      await coordinator.stop();
    },
  );

  it("is kept back as a whole wherever the unsure one stands", async () => {
    const { coordinator, child, host } = await onStage();
    const parts = [createText("Before."), createText(`${SECRET}\n${LOW}`), createText("After.")];
    expect(isHidden(await host.says(child.session, parts))).toBe(true);
    await coordinator.stop();
  });

  it.each(['{"confidence": "low"}', '{"confidence": 0.', '{"confidence": 7}'])(
    "is kept back as a whole where %s cannot be read",
    async (unreadable) => {
      const { coordinator, child, host } = await onStage();
      const written = await host.says(child.session, [createText(SECRET), createText(unreadable)]);
      expect(isHidden(written)).toBe(true);
      await coordinator.stop();
    },
  );

  it("is not kept back for what is sure enough once it is whole", async () => {
    const { coordinator, child, host, world } = await onStage();
    const sureText = '{"confidence": 0.9}';
    const pieces = ['{"confidence": 0.', sureText];
    const written = await host.says(child.session, [createText(SECRET), createText(sureText)], { pieces });
    expect(written).toEqual([createText(SECRET), createText(sureText)]);
    await child.ends();
    await waitUntilQuiet(world);
    expect(listEvents(world, "result.withheld")).toEqual([]);
    expect(listEvents(world, "step.completed")).toHaveLength(1);
    await coordinator.stop();
  });

  it("leaves the next message of a run alone where it called a tool", async () => {
    const { coordinator, child, host } = await onStage();
    await host.says(child.session, [createText(LOW), call("read", { path: "a" })], { stopReason: "toolUse" });
    expect(await host.says(child.session, [createText(SECRET)])).toEqual([createText(SECRET)]);
    await coordinator.stop();
  });
});

describe("what an agent reported", () => {
  it("counts before its words", async () => {
    const { coordinator, child, host } = await onStage();
    noteReportedConfidence(child.session, 0.95);
    expect(await host.says(child.session, [createText(LOW)])).toEqual([createText(LOW)]);
    noteReportedConfidence(child.session, 0.1);
    expect(isHidden(await host.says(child.session, [createText("sure enough")]))).toBe(true);
    await coordinator.stop();
  });

  it("says nothing any more once it reports again without a confidence", async () => {
    const { coordinator, child, host, world } = await onStage();
    const report = { outcome: "completed", outputs: {} } as const;
    await coordinator.report(child.session, { ...report, confidence: 0.95 });
    noteReportedConfidence(child.session, 0.95);
    await coordinator.report(child.session, report);
    noteReportedConfidence(child.session, undefined);
    const written = await host.says(child.session, [createText(`${SECRET}\n${LOW}`)]);
    expect(isHidden(written)).toBe(true);
    await child.ends();
    await waitUntilQuiet(world);
    expect(listEvents(world, "result.held")).toHaveLength(1);
    await coordinator.stop();
  });

  it("of a session that nobody gates is not remembered", async () => {
    const { coordinator, host } = await onStage();
    noteReportedConfidence("agent:main:main", 0.1);
    expect(await host.says("agent:main:main", [createText(SECRET)])).toEqual([createText(SECRET)]);
    await coordinator.stop();
  });
});

describe("what is written beside the texts", () => {
  const report = (confidence?: number): Part =>
    call(REPORT_TOOL, { outcome: "completed", outputs: { found: SECRET }, confidence });
  const others = [call("write", { path: "a.txt", content: SECRET })];

  it("is left out where everything of a child is kept back, but for the arguments of other tools", async () => {
    const { coordinator, child, host } = await onStage(createChecking());
    const parts = [createThought(SECRET), createText(SECRET), report(0.95), ...others];
    const written = await host.says(child.session, parts, { stopReason: "toolUse" });
    expect(written.map(({ type }) => type)).toEqual(["text", "toolCall", "toolCall"]);
    expect(isHidden(written)).toBe(true);
    expect(written[1]).toMatchObject({ arguments: { outcome: "completed", confidence: 0.95 } });
    expect(JSON.stringify(written.slice(0, 2))).not.toContain("4711");
    expect(written[2]).toEqual(others[0]);
    await coordinator.stop();
  });

  it("is left out where an agent says that it is not sure", async () => {
    const { coordinator, child, host } = await onStage();
    const reported = await host.says(child.session, [report(0.1), ...others], { stopReason: "toolUse" });
    expect(JSON.stringify(reported[0])).not.toContain("4711");
    expect(reported[1]).toEqual(others[0]);
    const parts = await host.says(child.session, [createThought(SECRET), createText(LOW)]);
    expect(JSON.stringify(parts)).not.toContain("4711");
    await coordinator.stop();
  });

  it("stays where an agent is sure, and where nobody gates its session", async () => {
    const { coordinator, child, host } = await onStage();
    const parts = [createThought(SECRET), createText(SECRET), report(0.95), ...others];
    expect(await host.says(child.session, parts)).toEqual(parts);
    expect(await host.says(child.session, [createThought(SECRET), report()])).toEqual([
      createThought(SECRET),
      report(),
    ]);
    const unsure = [createThought(SECRET), createText(LOW), report(0.1)];
    expect(await host.says("agent:main:main", unsure)).toEqual(unsure);
    await coordinator.stop();
  });
});

describe("the arguments of a tool call", () => {
  it("reach the tool as they are, whatever they say", async () => {
    const { coordinator, child, host } = await onStage(createChecking());
    expect(host.argument(child.session, SECRET)).toBe(SECRET);
    expect(host.argument(child.session, LOW)).toBe(LOW);
    expect(isOnlyPlaceholders(host.fromModel(child.session, SECRET))).toBe(true);
    await coordinator.stop();
  });

  it("cast no doubt on the texts beside them", async () => {
    const { coordinator, child, host } = await onStage();
    expect(host.argument(child.session, LOW)).toBe(LOW);
    expect(host.fromModel(child.session, SECRET)).toBe(SECRET);
    await coordinator.stop();
  });
});
