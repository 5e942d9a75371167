import { beforeEach, describe, expect, it } from "vitest";
import { isOnlyPlaceholders } from "../../src/agents/coordination/gates/placeholder.ts";
import { noteReported } from "../../src/plugins/openclaw/runtime-access/gate-memory.ts";
import { REPORT_TOOL } from "../../src/plugins/openclaw/host/tool-declarations.ts";
import { eventsIn, gatesWith, quiet, ruling, scriptedVerifier } from "../core/gates-world.ts";
import { call, forgetAll, onStage, text, thought, type Part, type Saying } from "./gates-scene.ts";

beforeEach(forgetAll);

const SECRET = "The code is 4711.";
const LOW = '{"confidence": 0.1}';
const isHidden = (parts: readonly Part[]): boolean => {
  const texts = parts.filter(({ type }) => type === "text");
  return texts.length > 0 && texts.every((part) => isOnlyPlaceholders(String(part["text"])));
};
const checking = () => ({ gates: gatesWith(["lint"]), ...scriptedVerifier(() => ruling("pass")) });

describe("a last message of several texts", () => {
  it.each([
    ["written at once", {}],
    ["written in pieces", { pieces: ["The code", " is 4711.", SECRET, '{"confid', 'ence": 0.1}', LOW] }],
  ] satisfies [string, Saying][])(
    "%s is kept back as a whole where one of them is unsure",
    async (_, how) => {
      const { coordinator, child, host, it } = await onStage();
      const written = await host.says(child.session, [text(SECRET), text(LOW)], how);
      expect(written).toHaveLength(2);
      expect(isHidden(written)).toBe(true);
      await child.ends();
      await quiet(it);
      expect(eventsIn(it, "result.withheld")[0]?.payload).toMatchObject({ confidence: 1_000 });
      expect(eventsIn(it, "result.held")).toHaveLength(1);
      await coordinator.stop();
    },
  );

  it("is kept back as a whole wherever the unsure one stands", async () => {
    const { coordinator, child, host } = await onStage();
    const parts = [text("Before."), text(`${SECRET}\n${LOW}`), text("After.")];
    expect(isHidden(await host.says(child.session, parts))).toBe(true);
    await coordinator.stop();
  });

  it.each(['{"confidence": "low"}', '{"confidence": 0.', '{"confidence": 7}'])(
    "is kept back as a whole where %s cannot be read",
    async (unreadable) => {
      const { coordinator, child, host } = await onStage();
      const written = await host.says(child.session, [text(SECRET), text(unreadable)]);
      expect(isHidden(written)).toBe(true);
      await coordinator.stop();
    },
  );

  it("is not kept back for what is sure enough once it is whole", async () => {
    const { coordinator, child, host, it } = await onStage();
    const sure = '{"confidence": 0.9}';
    const pieces = ['{"confidence": 0.', sure];
    const written = await host.says(child.session, [text(SECRET), text(sure)], { pieces });
    expect(written).toEqual([text(SECRET), text(sure)]);
    await child.ends();
    await quiet(it);
    expect(eventsIn(it, "result.withheld")).toEqual([]);
    expect(eventsIn(it, "step.completed")).toHaveLength(1);
    await coordinator.stop();
  });

  it("leaves the next message of a run alone where it called a tool", async () => {
    const { coordinator, child, host } = await onStage();
    await host.says(child.session, [text(LOW), call("read", { path: "a" })], { stopReason: "toolUse" });
    expect(await host.says(child.session, [text(SECRET)])).toEqual([text(SECRET)]);
    await coordinator.stop();
  });
});

describe("what an agent reported", () => {
  it("counts before its words", async () => {
    const { coordinator, child, host } = await onStage();
    noteReported(child.session, 0.95);
    expect(await host.says(child.session, [text(LOW)])).toEqual([text(LOW)]);
    noteReported(child.session, 0.1);
    expect(isHidden(await host.says(child.session, [text("sure enough")]))).toBe(true);
    await coordinator.stop();
  });

  it("says nothing any more once it reports again without a confidence", async () => {
    const { coordinator, child, host, it } = await onStage();
    const report = { outcome: "completed", outputs: {} } as const;
    await coordinator.report(child.session, { ...report, confidence: 0.95 });
    noteReported(child.session, 0.95);
    await coordinator.report(child.session, report);
    noteReported(child.session, undefined);
    const written = await host.says(child.session, [text(`${SECRET}\n${LOW}`)]);
    expect(isHidden(written)).toBe(true);
    await child.ends();
    await quiet(it);
    expect(eventsIn(it, "result.held")).toHaveLength(1);
    await coordinator.stop();
  });

  it("of a session that nobody gates is not remembered", async () => {
    const { coordinator, host } = await onStage();
    noteReported("agent:main:main", 0.1);
    expect(await host.says("agent:main:main", [text(SECRET)])).toEqual([text(SECRET)]);
    await coordinator.stop();
  });
});

describe("what is written beside the texts", () => {
  const report = (confidence?: number): Part =>
    call(REPORT_TOOL, { outcome: "completed", outputs: { found: SECRET }, confidence });
  const others = [call("write", { path: "a.txt", content: SECRET })];

  it("is left out where everything of a child is kept back, but for the arguments of other tools", async () => {
    const { coordinator, child, host } = await onStage(checking());
    const parts = [thought(SECRET), text(SECRET), report(0.95), ...others];
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
    const said = await host.says(child.session, [thought(SECRET), text(LOW)]);
    expect(JSON.stringify(said)).not.toContain("4711");
    await coordinator.stop();
  });

  it("stays where an agent is sure, and where nobody gates its session", async () => {
    const { coordinator, child, host } = await onStage();
    const parts = [thought(SECRET), text(SECRET), report(0.95), ...others];
    expect(await host.says(child.session, parts)).toEqual(parts);
    expect(await host.says(child.session, [thought(SECRET), report()])).toEqual([thought(SECRET), report()]);
    const unsure = [thought(SECRET), text(LOW), report(0.1)];
    expect(await host.says("agent:main:main", unsure)).toEqual(unsure);
    await coordinator.stop();
  });
});

describe("the arguments of a tool call", () => {
  it("reach the tool as they are, whatever they say", async () => {
    const { coordinator, child, host } = await onStage(checking());
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
