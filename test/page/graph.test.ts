/** Owns: how a plan's graph is drawn. Laying out hundreds of steps takes seconds, in which the page answers nobody. */
import type { Browser, CDPSession, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { recordPlans } from "../cli/recorded-plan.ts";
import { step } from "../core/plan-scene.ts";
import { createTempFolder, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { startBrowser } from "./browser.ts";
import { go, visitPage } from "./visit.ts";

const RANKS = 6;
const STEPS_PER_RANK = 8;
/** The server beats every ten seconds. */
const BEAT_WAIT = { timeout: 20_000 };

let folder: TempFolder;
let ledger: string;
let browser: Browser;

beforeAll(async () => {
  folder = createTempFolder();
  ledger = folder.file("ranks.sqlite");
  const steps = Array.from({ length: RANKS }, (_, rank) =>
    listRank(rank).map((stepId) => step(stepId, rank === 0 ? [] : listRank(rank - 1))),
  ).flat();
  // Long work is told in minutes and longer, which a beat does not change.
  const atMs = Date.now() - TEST_EPOCH_MS;
  await recordPlans(ledger, [{ id: "plan-ranks", objective: "Go on by ranks", steps, atMs, acts: [] }]);
  browser = await startBrowser();
});

afterAll(async () => {
  await browser.close();
  folder[Symbol.dispose]();
});

/** Returns the ids of the steps of one rank: each of them waits for all of the rank before. */
function listRank(rank: number): string[] {
  return Array.from({ length: STEPS_PER_RANK }, (_, index) => `rank-${rank}-${index}`);
}

/** Returns how often functions of the page were called since this was last read. */
async function readCallCount(profiler: CDPSession): Promise<number> {
  const { result } = await profiler.send("Profiler.takePreciseCoverage");
  const functions = result.flatMap((script) => script.functions);
  return functions.reduce((sum, { ranges }) => sum + (ranges[0]?.count ?? 0), 0);
}

/** Begins to count calls of functions. */
async function countCalls(page: Page): Promise<CDPSession> {
  const profiler = await page.context().newCDPSession(page);
  await profiler.send("Profiler.enable");
  await profiler.send("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  return profiler;
}

it("a running plan is laid out once, though time goes on, it is read anew and a step is chosen", async () => {
  await visitPage({ browser, ledger }, async ({ page }) => {
    const profiler = await countCalls(page);
    await go(page, "#/runs/plan-ranks/graph");
    await page.locator(".node").last().waitFor();
    const callsOfLayout = await readCallCount(profiler);

    const duration = page.locator(".facts strong");
    const before = await duration.textContent();
    await expect.poll(() => duration.textContent(), BEAT_WAIT).not.toBe(before);
    expect.soft(await readCallCount(profiler), "a beat").toBeLessThan(callsOfLayout / 5);

    await page.getByRole("button", { name: "Pause" }).click();
    const reading = page.waitForResponse(/api\/runs\/plan-ranks$/u);
    await page.getByRole("button", { name: "Go on" }).click();
    await (await reading).finished();
    await page.locator(".feed.live").waitFor();
    expect.soft(await readCallCount(profiler), "a reading").toBeLessThan(callsOfLayout / 5);

    await page.locator(".node").last().click();
    await page.locator(".node.picked").waitFor();
    expect.soft(await readCallCount(profiler), "a choice").toBeLessThan(callsOfLayout / 5);
  });
});

it("every arrow ends in the middle of the left side of a step", () =>
  visitPage({ browser, ledger }, async ({ page }) => {
    await go(page, "#/runs/plan-ranks/graph");
    await page.locator(".node").last().waitFor();
    const { ends, sides } = await page.evaluate<{ ends: string[]; sides: string[] }>(READ_ARROWS);
    expect(ends).toHaveLength((RANKS - 1) * STEPS_PER_RANK ** 2);
    expect(ends.filter((end) => !sides.includes(end))).toEqual([]);
  }));

const READ_ARROWS = `(() => {
  const round = (numbers) => numbers.map((each) => Math.round(Number(each))).join(" ");
  const arrows = [...document.querySelectorAll(".arrow")].map((each) => each.getAttribute("d")).join("");
  const nodes = [...document.querySelectorAll(".node")];
  return {
    ends: [...arrows.matchAll(/M([\\d.]+) ([\\d.]+)/gu)].map(([, x, y]) => round([x, y])),
    sides: nodes.map((node) => {
      const { e: x, f: y } = node.transform.baseVal[0].matrix;
      return round([x, y + node.querySelector("rect").height.baseVal.value / 2]);
    }),
  };
})()`;
