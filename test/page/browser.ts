/**
 * Owns: the real browser of the page's tests. It comes with `npm ci`: `@sparticuz/chromium` carries a Chromium for Linux on x64.
 * Elsewhere `CHROMIUM` names the program of an installed one, such as Debian's `/usr/bin/chromium`.
 */
import { existsSync } from "node:fs";
import carried from "@sparticuz/chromium";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";

/** Nothing on the page takes longer. */
const WAIT_MS = 8_000;

const INSTALLED = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export async function startBrowser(): Promise<Browser> {
  const executablePath = await findBrowser();
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  console.error(`page tests: Chromium ${browser.version()} of ${executablePath}`);
  return browser;
}

async function findBrowser(): Promise<string> {
  const { CHROMIUM } = process.env;
  if (CHROMIUM !== undefined) return CHROMIUM;
  if (process.platform === "linux" && process.arch === "x64") return carried.executablePath();
  const installed = INSTALLED.find((path) => existsSync(path));
  if (installed !== undefined) return installed;
  throw new Error(
    "No Chromium here: install one, such as Debian's `chromium`, or name its program in CHROMIUM.",
  );
}

/** A page with all that went wrong in it. */
export interface WatchedPage {
  readonly page: Page;
  /** Errors of scripts, and everything that the content security policy stopped. */
  readonly problems: string[];
  readonly context: BrowserContext;
}

/** The settings of the browser in which a test opens the page. */
export interface DisplaySettings {
  readonly colorScheme?: "light" | "dark";
  readonly width?: number;
  /** Such as `Asia/Tokyo`. */
  readonly timezoneId?: string;
}

export async function openPage(
  browser: Browser,
  address: string,
  viewing: DisplaySettings = {},
): Promise<WatchedPage> {
  const { colorScheme = "light", width = 1_280, timezoneId = "UTC" } = viewing;
  const context = await browser.newContext({
    colorScheme,
    locale: "en-US",
    timezoneId,
    viewport: { width, height: 800 },
    acceptDownloads: true,
  });
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => {
    if (message.text().includes("Content Security Policy")) problems.push(message.text());
  });
  await page.goto(address);
  return { page, problems, context };
}
