/** Owns: what a child says of how far it is: a claim, bounded in size and in number. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { formatProgressLine } from "../../src/agents/coordination/runtime/plans/take-progress.ts";
import { readProgressLines } from "../../src/agents/coordination/runtime/log/read-progress.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { readStatusReport } from "../../src/plugins/openclaw/plans/coordination-status.ts";
import { createWorld, type World } from "../support/fake-clock-host.ts";
import { createGatesWith, listEvents, spawnChild, waitUntilQuiet } from "./gates-world.ts";

describe("a line of progress", () => {
  it("loses what cannot be seen and what turns text around, and is one line", () => {
    expect(formatProgressLine(" reading\u0007 \u202eevil\u202c\n\tfile\u2028two ")).toBe(
      "reading evil filetwo",
    );
  });

  it("of only such characters says nothing", () => {
    expect(formatProgressLine("\u202e\u0000\u200b \n")).toBe("");
  });

  it("is never longer than its bound, never broken in a character, and stays as it is when shown again", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 600 }), (text) => {
        const line = formatProgressLine(text);
        expect(Array.from(line).length).toBeLessThanOrEqual(BOUNDS.progressCharsMax);
        expect(line.isWellFormed()).toBe(true);
        expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
        expect(formatProgressLine(line)).toBe(line);
      }),
    );
  });
});

async function openStage(checks: readonly string[] = []) {
  const world: World = createWorld({}, undefined, { gates: createGatesWith(checks) });
  const coordinator = world.start();
  await coordinator.start();
  const child = await spawnChild(world, coordinator);
  const view = async () =>
    (await coordinator.view("co-1" as CoordinationId)) ?? expect.fail("no coordination");
  return { world, coordinator, child, view, content: world.ledger.open(world.clock) };
}

describe("a child", () => {
  it("tells its progress, which its parent reads when it asks, and which is gone when the step ends", async () => {
    const { coordinator, child, view, content, world } = await openStage();
    expect(await coordinator.progress(child.session, { percent: 40, line: "half\u202eway" })).toMatchObject({
      kind: "recorded",
    });
    const { steps } = await readStatusReport(content, await view());
    expect(steps[0]?.progress).toMatchObject({ percent: 40, line: "halfway" });
    const [fact] = listEvents(world, "step.progressed");
    expect(JSON.stringify(fact)).not.toContain("halfway");
    await child.ends();
    await waitUntilQuiet(world);
    expect((await view()).steps[0]?.progress).toBeUndefined();
    expect(await verifyLedger(content)).toMatchObject({ ok: true, problems: [] });
    await coordinator.stop();
  });

  it("that tells it too often is told when it may again, and nothing is recorded", async () => {
    const { coordinator, child, world } = await openStage();
    const first = await coordinator.progress(child.session, { line: "one" });
    const second = await coordinator.progress(child.session, { line: "two" });
    expect(second).toEqual({ ...first, kind: "too_soon" });
    expect(listEvents(world, "step.progressed")).toHaveLength(1);
    await coordinator.stop();
  });

  it.each([
    ["of nobody", "agent:main:elsewhere", "works on no step"],
    ["that says nothing", undefined, "says nothing"],
  ])("%s is refused", async (_, session, reason) => {
    const { coordinator, child } = await openStage();
    const line = session === undefined ? "\u200b" : "x";
    const answer = await coordinator.progress((session ?? child.session) as never, { line });
    expect(answer).toMatchObject({ kind: "refused", reason: expect.stringContaining(reason) as string });
    await coordinator.stop();
  });

  it("under a strict gate tells how far it is, and its words are withheld", async () => {
    const { coordinator, child, view, content } = await openStage(["lint"]);
    await coordinator.progress(child.session, { percent: 40, line: "the vein is under the old mill" });
    const shown = await view();
    expect(shown.steps[0]?.progress).toMatchObject({ percent: 40, lineWithheld: true });
    expect(await readProgressLines(content, shown)).toEqual(new Map());
    const report = JSON.stringify(await readStatusReport(content, shown));
    expect(report).toContain('"percent":40');
    expect(report).not.toContain("old mill");
    await coordinator.stop();
  });
});
