/** Owns: the page while things go wrong: a connection that breaks, a server that restarts, a damaged event, a wrong clock, a conflict. */
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { PRODUCTION, recordConflicts } from "../cli/recorded-conflicts.ts";
import { ENDED_PLAN, recordPlans } from "../cli/recorded-plan.ts";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { openPage, startBrowser } from "./browser.ts";
import { startCable } from "./cable.ts";
import { openAnother } from "./filled-ledger.ts";
import { startServe } from "./page-stage.ts";
import { go, visitPage, type Play } from "./visit.ts";

let browser: Browser;
let folder: TempFolder;

beforeAll(async () => {
  browser = await startBrowser();
  folder = createTempFolder();
});

afterAll(async () => {
  await browser.close();
  folder[Symbol.dispose]();
});

async function fill(name: string): Promise<string> {
  const ledger = join(folder.path, `${name}.sqlite`);
  await recordPlans(ledger, [ENDED_PLAN]);
  return ledger;
}

const visit = (ledger: string, play: Play): Promise<void> => visitPage({ browser, ledger }, play);

it("says that the connection is lost, and shows what was missed when it is back", async () => {
  const ledger = await fill("offline");
  const served = await startServe({ ledger });
  await using cable = await startCable(served.port);
  const address = served.address.replace(`:${served.port}/`, `:${cable.port}/`);
  const { page, context, problems } = await openPage(browser, address);
  await page.locator(".feed.live").waitFor();
  cable.pull();
  await page.getByText("Connection lost").waitFor();
  await openAnother(ledger, "missed");
  expect(await page.getByText("objective missed").count()).toBe(0);
  cable.plugIn();
  await page.locator(".feed.live").waitFor({ timeout: 20_000 });
  await page.getByText("objective missed").waitFor();
  expect(problems).toEqual([]);
  await context.close();
  await served.stop();
});

it("says how to get in again when the server has restarted, and keeps what it showed", async () => {
  const ledger = await fill("restarted");
  await visit(ledger, async ({ page }, served) => {
    await page.getByText("Compare two databases").first().waitFor();
    await served.stop();
    await page.getByText("Connection lost").waitFor({ timeout: 10_000 });
    const again = await startServe({ ledger, port: served.port });
    await page
      .getByText("The session has ended. Open the page with a new link.")
      .waitFor({ timeout: 20_000 });
    expect(await page.getByText("Compare two databases").count()).toBeGreaterThan(0);
    await again.stop();
  });
});

it("shows a damaged event where it is, among the sound ones", async () => {
  const ledger = await fill("damaged");
  forge(ledger, "update event set payload = '{}' where sequence = 3");
  await visit(ledger, async ({ page }) => {
    await go(page, `#/runs/${ENDED_PLAN.id}/log`);
    await page.locator("#event-3.damaged").waitFor();
    expect(await page.locator("#event-3").textContent()).toContain("Damaged");
    expect(await page.locator("#event-2").textContent()).toContain("JSON");
  });
});

it("says how far the clocks are apart", async () => {
  await visit(await fill("clock"), async ({ page }) => {
    await page.evaluate("{ const now = Date.now; Date.now = () => now() + 3_600_000; }");
    await go(page, "#/health");
    await page.getByText(/the server's clock is 1h.* behind this one/u).waitFor();
  });
});

it("shows who was ruled against, and what is claimed", async () => {
  const ledger = join(folder.path, "contested.sqlite");
  await recordConflicts(ledger, folder.path);
  await visit(ledger, async ({ page }) => {
    await go(page, "#/conflicts");
    await page.getByRole("region", { name: "Open conflicts, newest first" }).waitFor();
    expect(await page.locator("conflicts-view").textContent()).toContain(PRODUCTION);
    await page.getByRole("button", { name: "Release" }).first().waitFor();
  });
});
