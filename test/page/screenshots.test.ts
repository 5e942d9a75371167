/** Owns: the pictures of the page in the docs. They are always taken, and replaced where that is asked for. */
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { createTempFolder, TEST_EPOCH_MS } from "../support/temp-ledger.ts";
import { openPage, startBrowser } from "./browser.ts";
import { fillFriendly, RUNNING_PLAN, SPAWNED } from "./filled-ledger.ts";
import { startServe } from "./page-stage.ts";
import { go } from "./visit.ts";

const SHOWN = join(import.meta.dirname, "..", "..", "docs", "screenshots");
/** Some work has ended by then, some still runs, and every question may still be answered. */
const TAKEN_AT_MS = TEST_EPOCH_MS + 130_000;

/** Each picture, with what is on it once it is whole. */
const PICTURES = [
  { name: "work", place: "#/runs", mark: "run-list tbody tr" },
  { name: "timeline", place: `#/runs/${SPAWNED}/timeline`, mark: "svg.rows" },
  { name: "graph", place: `#/runs/${RUNNING_PLAN.id}/graph?step=audit`, mark: "step-panel dl" },
  { name: "questions", place: "#/questions", card: "verifier", mark: ".held-text" },
  { name: "health", place: "#/health", mark: "hours-chart canvas" },
];

/** Makes programs of Node that are started afterwards believe that it is that time. */
function setClock(atMs: number): void {
  const aheadMs = atMs - Date.now();
  const code = `const read = Date.now; Date.now = () => read() + ${aheadMs};`;
  vi.stubEnv("NODE_OPTIONS", `--import=data:text/javascript,${encodeURIComponent(code)}`);
}

it("can be shown in the pictures of the docs", async () => {
  using folder = createTempFolder();
  const shots = process.env["SCREENSHOTS"] === "1" ? SHOWN : folder.path;
  const ledger = folder.file("ledger.sqlite");
  await fillFriendly(ledger);
  const browser = await startBrowser();
  setClock(TAKEN_AT_MS);
  const served = await startServe({ ledger });
  vi.unstubAllEnvs();
  const { page, problems } = await openPage(browser, "about:blank");
  await page.clock.setFixedTime(TAKEN_AT_MS);
  await page.goto(served.address);
  await page.locator(".feed.live").waitFor();
  for (const { name, place, card, mark } of PICTURES) {
    await go(page, place);
    if (card !== undefined) await page.locator(".card", { hasText: card }).click();
    await page.mouse.move(0, 0);
    await page.locator(mark).first().waitFor();
    await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true, animations: "disabled" });
  }
  expect(problems).toEqual([]);
  await browser.close();
  await served.stop();
});
