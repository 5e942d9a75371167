/** Owns: the list of the page over a ledger of many coordinations, in a real browser. */
import { join } from "node:path";
import { expect, it } from "vitest";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { openRun, runIdOf } from "../support/ledger-fixtures.ts";
import { createManualClock, createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import { openAnother } from "./filled-ledger.ts";
import { startBrowser } from "./browser.ts";
import { go, visitPage } from "./visit.ts";

const COORDINATIONS = chooseCampaignSize("LISTED_COORDINATIONS", { short: 10_000, long: 100_000 });
const BATCH = 500;
const SEARCH_WAIT = { timeout: 60_000 };

it(`lists ${COORDINATIONS} coordinations, finds the oldest of them, and goes on with what is new`, async () => {
  using folder = createTempFolder();
  const ledger = join(folder.path, "ledger.sqlite");
  await fill(ledger);
  const browser = await startBrowser();
  await visitPage({ browser, ledger }, async ({ page }) => {
    const rows = page.locator("run-list tbody tr");
    await rows.first().waitFor();
    await page.getByRole("link", { name: "Older" }).click();
    await page
      .getByText(runIdOf(COORDINATIONS - 51).slice(0, 13))
      .first()
      .waitFor();
    expect(await rows.count()).toBe(50);

    await go(page, "#/runs");
    await page.getByRole("searchbox").fill(runIdOf(0));
    const beganAtMs = performance.now();
    await page.getByTitle(runIdOf(0), { exact: true }).waitFor(SEARCH_WAIT);
    await page.getByText("What happens from here on is not in this list.").waitFor();
    console.error(`page tests: searched ${COORDINATIONS} in ${Math.round(performance.now() - beganAtMs)} ms`);
    expect(await rows.count()).toBe(1);

    // Another search does not wait for the end of this one.
    await page.getByRole("searchbox").fill("nowhere to be found");
    await page.getByTitle(runIdOf(0), { exact: true }).waitFor({ state: "detached" });
    await page.getByRole("searchbox").fill("");
    await page.getByRole("link", { name: "Older" }).waitFor();
    await openAnother(ledger, "newest");
    await page.getByText("objective newest").waitFor();
  });
  await browser.close();
}, 600_000);

async function fill(path: string): Promise<void> {
  const store = await openTestLedger(path, { clock: createManualClock() });
  for (let first = 0; first < COORDINATIONS; first += BATCH)
    await Promise.all(
      Array.from({ length: BATCH }, (_, index) => store.append(openRun(first + index).request)),
    );
  await store.close();
}
