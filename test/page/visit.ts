/** Owns: a server of its own and a signed-in page for each test, because a link signs in once. */
import type { Browser, Page } from "playwright-core";
import { afterAll, expect } from "vitest";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { openPage, startBrowser, type DisplaySettings, type WatchedPage } from "./browser.ts";
import { startServe, type PageServer } from "./page-stage.ts";

export type Play = (watched: WatchedPage, served: PageServer) => Promise<void>;

/** Starts a browser, and makes a folder for ledgers, for the tests of a file. Both end with them. */
export async function openTestBrowser(): Promise<{
  readonly browser: Browser;
  readonly folder: TempFolder;
}> {
  const folder = createTempFolder();
  const browser = await startBrowser();
  afterAll(async () => {
    await browser.close();
    folder[Symbol.dispose]();
  });
  return { browser, folder };
}

/** The browser and the ledger of a visit to the page. */
export interface PageVisit {
  readonly browser: Browser;
  readonly ledger: string;
  readonly viewing?: DisplaySettings | undefined;
}

/** Fails where a script went wrong or the content security policy stopped something. */
export async function visitPage({ browser, ledger, viewing }: PageVisit, play: Play): Promise<void> {
  const served = await startServe({ ledger });
  const watched = await openPage(browser, served.address, viewing);
  try {
    await watched.page.locator(".feed.live").waitFor();
    await play(watched, served);
    expect(watched.problems).toEqual([]);
  } finally {
    await watched.context.close();
    await served.stop();
  }
}

/** Goes to a place of the page, such as `#/runs`. */
export async function go(page: Page, place: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(place)}`);
}
