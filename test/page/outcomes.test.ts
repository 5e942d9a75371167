/** Owns: what the page says of an action that somebody does not wait for, and of a server that does not answer, or another one. */
import { join } from "node:path";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { recordPlans } from "../cli/recorded-plan.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { openPage, startBrowser } from "./browser.ts";
import { startCable } from "./cable.ts";
import { RUNNING_PLAN } from "./filled-ledger.ts";
import { holdNext, settle, type HeldRoute } from "./held-route.ts";
import { startServe } from "./page-stage.ts";
import { go, visitPage, type Play } from "./visit.ts";

let folder: TempFolder;
let ledger: string;
let browser: Browser;

beforeAll(async () => {
  folder = createTempFolder();
  ledger = join(folder.path, "ledger.sqlite");
  await recordPlans(ledger, [RUNNING_PLAN]);
  browser = await startBrowser();
});

afterAll(async () => {
  await browser.close();
  folder[Symbol.dispose]();
});

async function boxOf(locator: Locator): Promise<{ readonly y: number; readonly height: number }> {
  const box = await locator.boundingBox();
  if (!box) throw new Error("it is not shown");
  return box;
}

const visit = (play: Play): Promise<void> => visitPage({ browser, ledger }, play);

const CANCEL = /\/cancel$/u;

/** Cancels the work of the page, and closes the dialog while the answer is held back. */
async function cancelAndClose(page: Page): Promise<HeldRoute> {
  const hold = await holdNext(page, CANCEL);
  const dialog = page.locator("dialog[open]");
  await page.getByRole("button", { name: "Cancel" }).click();
  await dialog.getByRole("button", { name: "Cancel the work" }).click();
  await hold.arrived;
  await dialog.getByRole("button", { name: "Close" }).click();
  return hold;
}

describe("the dialog of an action", () => {
  it("keeps the outcome of another action out, which is announced", () =>
    visit(async ({ page }) => {
      await go(page, `#/runs/${RUNNING_PLAN.id}`);
      const hold = await holdNext(page, CANCEL);
      const dialog = page.locator("dialog[open]");
      const confirm = dialog.getByRole("button", { name: "Cancel the work" });
      await page.getByRole("button", { name: "Cancel" }).click();
      await confirm.click();
      await hold.arrived;
      await dialog.getByRole("button", { name: "Close" }).click();
      await page.getByRole("button", { name: "Cancel" }).click();
      await confirm.waitFor();
      hold.release();
      await page.locator("coordination-page > [role=status]", { hasText: "without a gateway" }).waitFor();
      expect(await dialog.locator(".problem, .happened").count()).toBe(0);
      expect(await confirm.isEnabled()).toBe(true);
    }));

  it.each([
    ["refused", "answered", "without a gateway"],
    ["unknown", "unanswered", "Whether it was done is not known"],
  ] as const)("leaves an outcome that is %s on the page until it is dismissed", (_, how, words) =>
    visit(async ({ page }) => {
      await go(page, `#/runs/${RUNNING_PLAN.id}`);
      const hold = await cancelAndClose(page);
      hold.release(how);
      const outcome = page.getByRole("region", { name: "Actions that have ended" });
      await outcome.getByText("Cancel this work: ").waitFor();
      expect(await outcome.locator(".problem").textContent()).toContain(words);
      await go(page, "#/runs");
      await page.locator("run-list time").first().waitFor();
      await outcome.getByRole("button", { name: "Dismiss" }).click();
      expect(await outcome.count()).toBe(0);
    }),
  );

  it("shows an outcome to somebody who scrolled down meanwhile", () =>
    visit(async ({ page }) => {
      await page.setViewportSize({ width: 1_280, height: 300 });
      await go(page, `#/runs/${RUNNING_PLAN.id}`);
      const hold = await cancelAndClose(page);
      await page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)");
      hold.release();
      const outcome = page.getByText("Cancel this work: ").first();
      await outcome.waitFor();
      expect(await page.evaluate<number>("window.scrollY")).toBeGreaterThan(200);
      const { y, height } = await boxOf(outcome);
      expect(y).toBeGreaterThanOrEqual(0);
      expect(y + height).toBeLessThanOrEqual(300);
      await outcome.getByRole("button", { name: "Dismiss" }).click();
    }));

  it("shows an outcome beside the head of the panel of a step", () =>
    visit(async ({ page }) => {
      await page.setViewportSize({ width: 1_280, height: 500 });
      await go(page, `#/runs/${RUNNING_PLAN.id}/graph?step=audit`);
      const head = page.locator("step-panel h2").first();
      await head.waitFor();
      const hold = await cancelAndClose(page);
      await page.evaluate(`window.scrollBy(0, ${(await boxOf(head)).y} - 16)`);
      hold.release();
      const outcome = page.getByRole("region", { name: "Actions that have ended" });
      await outcome.waitFor();
      const [{ y: headTop, height: headHeight }, { y, height }] = [await boxOf(head), await boxOf(outcome)];
      expect(headTop).toBeGreaterThanOrEqual(0);
      expect(headTop + headHeight).toBeLessThanOrEqual(y);
      expect(y + height).toBeLessThanOrEqual(500);
    }));

  it("does not say that an action without an answer is tried again", () =>
    visit(async ({ page }) => {
      await go(page, `#/runs/${RUNNING_PLAN.id}`);
      const hold = await holdNext(page, CANCEL);
      await page.getByRole("button", { name: "Cancel" }).click();
      await page.getByRole("button", { name: "Cancel the work" }).click();
      hold.release("unanswered");
      const problem = page.locator("dialog[open] .problem");
      await problem.waitFor();
      expect(await problem.textContent()).toBe(
        "The server does not answer. Whether it was done is not known: look, and then try again.",
      );
    }));
});

it("does not say that a reading is tried again which nothing repeats", () =>
  visit(async ({ page }) => {
    const hold = await holdNext(page, /\/events\?/u);
    hold.release("unanswered");
    await go(page, `#/runs/${RUNNING_PLAN.id}/log`);
    const problem = page.locator("event-log .problem");
    await problem.waitFor();
    expect(await problem.textContent()).toBe("The server does not answer.");
  }));

it("signs in with a new link that is pasted where the session has ended", () =>
  visit(async ({ page }, served) => {
    await served.stop();
    const again = await startServe({ ledger, port: served.port });
    await page.locator(".feed.ended").waitFor({ timeout: 20_000 });
    await go(page, new URL(again.address).hash);
    await page.locator(".feed.live").waitFor();
    expect(page.url()).not.toContain("link=");
    await again.stop();
  }));

it("follows by one stream only, also where the browser is online again while it connects", async () => {
  const served = await startServe({ ledger });
  await using cable = await startCable(served.port);
  const address = served.address.replace(`:${served.port}/`, `:${cable.port}/`);
  const { page, context } = await openPage(browser, address);
  await page.locator(".feed.live").waitFor();
  cable.pull();
  await page.locator(".feed.lost").waitFor();
  const hold = await holdNext(page, /\/api\/live$/u);
  const connecting = page.waitForRequest(/\/api\/live$/u);
  await hold.arrived;
  const first = await connecting;
  cable.plugIn();
  await page.evaluate("window.dispatchEvent(new Event('online'))");
  await page.locator(".feed.live").waitFor();
  hold.release();
  await settle(page);
  expect(first.failure()).not.toBeNull();
  await context.close();
  await served.stop();
});
