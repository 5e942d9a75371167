/** Owns: the page in the frame of the Control UI's tab, which may run scripts and nothing else. */
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type { Browser, FrameLocator } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { joinLedgerPath } from "../../src/plugins/ledger-setting.ts";
import { ENDED_PLAN, recordPlans } from "../cli/recorded-plan.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { startBrowser } from "./browser.ts";
import { serveGateway, visitTab, type ServedGateway } from "./tab-stage.ts";

let folder: TempFolder;
let gateway: ServedGateway;
let browser: Browser;

beforeAll(async () => {
  folder = createTempFolder();
  const ledger = joinLedgerPath(folder.path);
  mkdirSync(dirname(ledger), { recursive: true });
  await recordPlans(ledger, [ENDED_PLAN]);
  gateway = await serveGateway({ stateDir: folder.path });
  browser = await startBrowser();
});

afterAll(async () => {
  await browser.close();
  await gateway[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

async function openPlan(frame: FrameLocator, tab: string): Promise<void> {
  await frame.getByRole("link", { name: ENDED_PLAN.objective }).click();
  await frame.getByRole("link", { name: tab, exact: true }).click();
}

it("goes where a link leads, and stays signed in", () =>
  visitTab(browser, gateway, async (frame) => {
    await frame.getByRole("link", { name: "Questions" }).click();
    await frame.getByRole("heading", { name: "Questions", exact: true }).waitFor();
    await frame.getByRole("link", { name: "Work", exact: true }).click();
    await openPlan(frame, "Log");
    await frame.locator("event-log li").first().waitFor();
  }));

it("compares with another policy, though its frame sends no forms", () =>
  visitTab(browser, gateway, async (frame) => {
    await openPlan(frame, "What if");
    await frame.getByRole("button", { name: "Compare" }).click();
    await frame.locator("what-if :is(.problem, .happened, table)").first().waitFor();
    expect(await frame.locator("what-if .problem").allTextContents()).toEqual([]);
  }));

it("searches again with Enter", () =>
  visitTab(browser, gateway, async (frame, { page }) => {
    await frame.getByRole("link", { name: ENDED_PLAN.objective }).waitFor();
    const sent = page.waitForRequest(/\/api\/runs(?:\?|$)/u);
    await frame.getByRole("searchbox").press("Enter");
    await sent;
  }));

it("says where a file is saved, and does not say that it saved one", () =>
  visitTab(browser, gateway, async (frame) => {
    const hint = frame.getByText("Files cannot be saved here");
    await openPlan(frame, "Timeline");
    await hint.waitFor();
    expect(await frame.getByRole("button", { name: "Save as file" }).count()).toBe(0);
    await frame.getByRole("link", { name: "Log", exact: true }).click();
    await frame.locator("event-log li").first().waitFor();
    expect(await frame.getByRole("button", { name: "Save as JSON lines" }).count()).toBe(0);
    expect(await hint.count()).toBe(2);
  }));
