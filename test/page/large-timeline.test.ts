import { join } from "node:path";
import { expect, it } from "vitest";
import { createTempFolder } from "../support/temp-ledger.ts";
import { startBrowser, openPage } from "./browser.ts";
import { fillLarge, LARGE } from "./filled-ledger.ts";
import { startServe } from "./page-stage.ts";

const MOVES = 120;
/** 60 on an idle machine; the other core is the server's, the browser's painting and whoever else works there. */
const FRAMES_MIN = 45;

it("draws at least 45 frames a second while a timeline of 10,000 steps is dragged", async () => {
  using folder = createTempFolder();
  const ledger = join(folder.path, "ledger.sqlite");
  await fillLarge(ledger);
  const served = await startServe({ ledger });
  const browser = await startBrowser();
  const { page, problems } = await openPage(browser, served.address);
  await page.locator(".feed.live").waitFor();
  await page.evaluate(`location.hash = "#/runs/${LARGE}/timeline"`);
  const rows = page.locator("svg.rows");
  await rows.waitFor();
  for (let times = 0; times < 6; times += 1) await page.getByRole("button", { name: "Zoom in" }).click();
  const box = (await rows.boundingBox())!;
  await page.mouse.move(box.x + 900, box.y + 100);
  await page.mouse.down();
  await page.evaluate(COUNT_FRAMES);
  for (let move = 0; move < MOVES; move += 1)
    await page.mouse.move(box.x + 900 - (move % 60) * 8, box.y + 100 + (move % 10));
  const { frames, ms } = await page.evaluate<{ frames: number; ms: number }>("stopFrames()");
  await page.mouse.up();
  const perSecond = (frames * 1_000) / ms;
  console.error(
    `page tests: ${perSecond.toFixed(1)} frames a second over ${(ms / 1_000).toFixed(1)} s of dragging`,
  );
  expect(perSecond).toBeGreaterThan(FRAMES_MIN);
  expect(problems).toEqual([]);
  await browser.close();
  await served.stop();
});

const COUNT_FRAMES = `{
  let frames = 0;
  const startedAt = performance.now();
  let last = startedAt;
  const count = (now) => { frames += 1; last = now; handle = requestAnimationFrame(count); };
  let handle = requestAnimationFrame(count);
  globalThis.stopFrames = () => { cancelAnimationFrame(handle); return { frames, ms: last - startedAt }; };
}`;
