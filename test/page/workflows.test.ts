/** Owns: runs of workflows on the page of whoever runs them, as an operator sees and changes them. */
import { mkdirSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Browser, Page } from "playwright-core";
import { createNode, createNoop, createWorkflow } from "../openwop/levels-workflows.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { openPage, startBrowser } from "./browser.ts";
import { holdNext } from "./held-route.ts";
import { startServe, TOKEN, type PageServer } from "./page-stage.ts";
import { serveGateway, type ServedGateway } from "./tab-stage.ts";
import { go } from "./visit.ts";

const ASKS = createWorkflow("asks", {
  nodes: [createNoop("survey"), createNode("gate", "core.approvalGate", { config: { title: "Dig?" } })],
});

let folder: TempFolder;
let browser: Browser;
let served: PageServer;

beforeAll(async () => {
  folder = createTempFolder();
  mkdirSync(folder.file("workflows"));
  writeFileSync(folder.file("workflows/asks.json"), JSON.stringify(ASKS));
  served = await startServe({ ledger: folder.file("ledger.sqlite"), workflows: folder.file("workflows") });
  browser = await startBrowser();
});

afterAll(async () => {
  await browser.close();
  await served.stop();
  folder[Symbol.dispose]();
});

async function startRun(host = `http://127.0.0.1:${served.port}`): Promise<string> {
  const response = await fetch(`${host}/v1/runs`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify({ workflowId: ASKS.id }),
  });
  return ((await response.json()) as { readonly runId: string }).runId;
}

it("a run is seen to wait, is forked with what is kept said before, and the fork is cancelled", async () => {
  const { page, problems } = await openPage(browser, served.address);
  await page.locator(".feed.live").waitFor();
  const runId = await startRun();
  await page.getByRole("link", { name: "asks" }).waitFor();

  await go(page, `#/runs/${runId}`);
  await page
    .locator(".facts")
    .getByText(/waiting.approval/u)
    .waitFor();
  const gateStart = page.locator("event-log li", { hasText: "node.started" }).last();
  await gateStart.getByRole("button", { name: "Fork here" }).click();
  const dialog = page.locator("dialog[open]");
  await dialog.getByText("It keeps 1 result and runs 1 node anew").waitFor();
  expect(await dialog.getByRole("listitem").allTextContents()).toEqual(["survey", "gate"]);
  await dialog.getByRole("button", { name: "Run the fork" }).click();

  await page.getByText(`fork of`).waitFor();
  expect(page.url()).not.toContain(runId);
  await page.keyboard.press("Escape");
  await page.locator("dialog[open]").waitFor({ state: "detached" });
  await page
    .locator(".facts")
    .getByText(/waiting.approval/u)
    .waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await dialog.getByText("the runs that it started are cancelled with it").waitFor();
  await dialog.getByRole("button", { name: "Cancel the work" }).click();
  await page.locator(".facts").getByText("cancelled").waitFor();
  expect(await page.getByRole("button", { name: "Cancel", exact: true }).count()).toBe(0);
  expect(problems).toEqual([]);
});

it("a fork that begins after its dialog was closed moves nobody away, and its page is one click away", async () => {
  const again = await startServe({
    ledger: folder.file("late.sqlite"),
    workflows: folder.file("workflows"),
  });
  const { page, problems } = await openPage(browser, again.address);
  await page.locator(".feed.live").waitFor();
  const runId = await startRun(`http://127.0.0.1:${again.port}`);
  await go(page, `#/runs/${runId}`);
  await page.locator("event-log li", { hasText: "node.started" }).last().waitFor();
  await page.getByRole("button", { name: "Fork here" }).last().click();
  const hold = await holdNext(page, /\/fork$/u);
  const dialog = page.locator("dialog[open]");
  await dialog.getByRole("button", { name: "Run the fork" }).click();
  await hold.arrived;
  await dialog.getByRole("button", { name: "Close" }).click();
  hold.release();
  const outcome = page.getByRole("region", { name: "Actions that have ended" });
  await outcome.getByText("✓ Fork from event").waitFor();
  expect(page.url()).toContain(runId);
  await outcome.getByRole("link", { name: "Show it" }).click();
  await page.getByText("fork of").waitFor();
  expect(page.url()).not.toContain(runId);
  expect(problems).toEqual([]);
  await again.stop();
});

/** Looks at the oldest run of a gateway, whose log is read by then. */
async function visitRunOf(gateway: ServedGateway, play: (page: Page) => Promise<void>): Promise<void> {
  const address = await gateway.mintAddress(["operator.read", "operator.write"]);
  const { page, context, problems } = await openPage(browser, address);
  await page.getByRole("link", { name: "asks" }).last().click();
  await page.locator("event-log li", { hasText: "node.started" }).last().waitFor();
  await play(page);
  expect(problems).toEqual([]);
  await context.close();
}

it("a run is forked and cancelled on the page of a gateway while that runs workflows, and not after", async () => {
  const openwop = { enabled: true, tokens: [{ token: TOKEN }], workflows: ["workflows"] };
  {
    await using gateway = await serveGateway({ stateDir: folder.path, phase1: { openwop } });
    await startRun(`${gateway.origin}/coordination/openwop`);
    await visitRunOf(gateway, async (page) => {
      await page.getByRole("button", { name: "Fork here" }).last().click();
      await page.getByText("It keeps 1 result and runs 1 node anew").waitFor();
      await page.getByRole("button", { name: "Run the fork" }).click();
      await page.getByText("fork of").waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "Cancel", exact: true }).click();
      await page.getByRole("button", { name: "Cancel the work" }).click();
      await page.locator(".facts").getByText("cancelled").waitFor();
    });
  }
  await using gateway = await serveGateway({ stateDir: folder.path });
  await visitRunOf(gateway, async (page) => {
    expect(await page.getByRole("button", { name: /Fork here|Cancel/u }).count()).toBe(0);
  });
});
