/** Owns: runs of workflows on the page of `serve`, as an operator sees and changes them. */
import { mkdirSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Browser } from "playwright-core";
import { createNode, createNoop, createWorkflow } from "../openwop/levels-workflows.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { openPage, startBrowser } from "./browser.ts";
import { startServe, TOKEN, type Served } from "./page-stage.ts";
import { go } from "./visit.ts";

const ASKS = createWorkflow("asks", {
  nodes: [createNoop("survey"), createNode("gate", "core.approvalGate", { config: { title: "Dig?" } })],
});

let folder: TempFolder;
let browser: Browser;
let served: Served;

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

async function startRun(): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${served.port}/v1/runs`, {
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
