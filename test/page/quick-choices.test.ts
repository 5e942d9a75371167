/** Owns: somebody who is quicker than the server: what is shown, and what a key or a button does, is what is chosen by then. */
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { startBrowser } from "./browser.ts";
import { ENDED_PLAN, fillLedger, openAnother, RUNNING_PLAN } from "./filled-ledger.ts";
import { holdNext, settle } from "./held-route.ts";
import { go, visitPage, type Play } from "./visit.ts";

let folder: TempFolder;
let ledger: string;
let browser: Browser;

beforeAll(async () => {
  folder = createTempFolder();
  ledger = join(folder.path, "ledger.sqlite");
  await fillLedger(ledger);
  browser = await startBrowser();
});

afterAll(async () => {
  await browser.close();
  folder[Symbol.dispose]();
});

const visit = (play: Play): Promise<void> => visitPage({ browser, ledger }, play);

describe("questions", () => {
  const DETAIL = /\/api\/questions\/./u;

  /** Opens the questions at the first one, with the keyboard in their list, and returns what the cards say. */
  async function openQuestions(page: Page): Promise<string[]> {
    await go(page, "#/questions");
    await page.locator("article h2").waitFor();
    await page.getByRole("list", { name: "Questions" }).focus();
    return page.locator(".card strong").allTextContents();
  }

  it("takes a key for the chosen question only, once that is shown", () =>
    visit(async ({ page }) => {
      const names = await openQuestions(page);
      const wanted = names.indexOf("far");
      const isFirst = wanted === 0;
      const shown = page.waitForResponse(DETAIL);
      await page
        .locator(".card button")
        .nth(isFirst ? 1 : wanted - 1)
        .click();
      await (await shown).finished();
      await settle(page);
      const hold = await holdNext(page, DETAIL);
      await page.getByRole("list", { name: "Questions" }).focus();
      await page.keyboard.press(isFirst ? "ArrowUp" : "ArrowDown");
      await hold.arrived;
      await page.locator(".card.picked", { hasText: "far" }).waitFor();
      expect(await page.locator("article").count()).toBe(0);
      await page.keyboard.press("a");
      expect(await page.locator("dialog[open]").count()).toBe(0);
      hold.release();
      await page.locator("article h2", { hasText: "far" }).waitFor();
      await page.keyboard.press("a");
      await page.locator("dialog[open] h2", { hasText: "far" }).waitFor();
    }));

  it("shows the question that was chosen last, whichever answer comes last", () =>
    visit(async ({ page }) => {
      await openQuestions(page);
      const hold = await holdNext(page, DETAIL);
      await page.keyboard.press("ArrowDown");
      await hold.arrived;
      const prompt = page.waitForResponse(DETAIL);
      await page.keyboard.press("ArrowDown");
      await (await prompt).finished();
      await settle(page);
      const heading = page.locator("article h2");
      const last = await heading.textContent();
      const late = page.waitForResponse(DETAIL);
      hold.release();
      await (await late).finished();
      await settle(page);
      expect(await heading.textContent()).toBe(last);
    }));

  it("shows no question any more, with no button, when nobody waits", () =>
    visit(async ({ page }) => {
      await openQuestions(page);
      await page.route(/\/api\/questions\?/u, (route) => route.fulfill({ json: { questions: [] } }));
      await openAnother(ledger, "answered-elsewhere");
      await page.getByText("Nobody waits for an answer.").waitFor();
      expect(await page.locator("article").count()).toBe(0);
    }));
});

describe("one run", () => {
  const ENDED = new RegExp(`/api/runs/${ENDED_PLAN.id}$`, "u");
  const RUNNING = new RegExp(`/api/runs/${RUNNING_PLAN.id}$`, "u");

  it.each(["answered", "unanswered"] as const)(
    "is not shown under another's address when it is %s late",
    (outcome) =>
      visit(async ({ page }) => {
        const first = await holdNext(page, ENDED);
        const second = await holdNext(page, RUNNING);
        await go(page, `#/runs/${ENDED_PLAN.id}`);
        await first.arrived;
        await go(page, `#/runs/${RUNNING_PLAN.id}`);
        await settle(page);
        first.release(outcome);
        await second.arrived;
        await settle(page);
        expect(await page.locator("run-view").textContent()).toContain("Reading …");
        second.release();
        await page.locator("h1", { hasText: RUNNING_PLAN.objective }).waitFor();
      }),
  );

  it("is cancelled by the dialog that it was asked in, wherever the address is by then", () =>
    visit(async ({ page }) => {
      await go(page, `#/runs/${RUNNING_PLAN.id}`);
      await page.getByRole("button", { name: "Cancel" }).click();
      await page.locator("dialog[open]").waitFor();
      await go(page, `#/runs/${ENDED_PLAN.id}`);
      await page.locator("h1", { hasText: ENDED_PLAN.objective }).waitFor();
      const sent = page.waitForRequest(/\/cancel$/u);
      await page.getByRole("button", { name: "Cancel the work" }).click();
      expect((await sent).url()).toContain(RUNNING_PLAN.id);
    }));
});

describe("a plan", () => {
  const CHECK = /\/api\/plans\/check$/u;
  const nameText = (page: Page) => page.getByLabel("The plan, YAML or JSON", { exact: false });

  it("is offered only while its text is the one that was checked", () =>
    visit(async ({ page }) => {
      await go(page, "#/plan");
      await nameText(page).fill(createPlan("checked"));
      await page.getByRole("button", { name: "Run it" }).waitFor();
      const hold = await holdNext(page, CHECK);
      await nameText(page).fill(createPlan("typed-on"));
      await hold.arrived;
      expect(await page.getByRole("button", { name: "Run it" }).count()).toBe(0);
      hold.release();
      await page.getByRole("heading", { name: "Objective of typed-on" }).waitFor();
    }));

  it("runs as it was shown, whatever is in the field by then", () =>
    visit(async ({ page }) => {
      await go(page, "#/plan");
      await nameText(page).fill(createPlan("checked"));
      await page.getByRole("button", { name: "Run it" }).click();
      await page.getByText("1 step will run as checked").waitFor();
      await page.evaluate(`{
        const area = document.querySelector("plan-view textarea");
        area.value = ${JSON.stringify(createPlan("typed-on"))};
        area.dispatchEvent(new InputEvent("input", { bubbles: true }));
      }`);
      const sent = page.waitForRequest(/\/api\/plans\/run$/u);
      await page.getByRole("button", { name: "Run the plan" }).click();
      expect((await sent).postDataJSON()).toEqual({ text: createPlan("checked") });
    }));

  it("that begins after its dialog was closed leaves what is typed meanwhile, and its page is one click away", () =>
    visit(async ({ page }) => {
      const [arrival, leave] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
      await page.route(/\/api\/plans\/run$/u, async (route) => {
        arrival.resolve(undefined);
        await leave.promise;
        await route.fulfill({ json: { id: RUNNING_PLAN.id, happened: `${RUNNING_PLAN.id} runs.` } });
      });
      await go(page, "#/plan");
      await nameText(page).fill(createPlan("begun"));
      await page.getByRole("button", { name: "Run it" }).click();
      await page.getByRole("button", { name: "Run the plan" }).click();
      await arrival.promise;
      await page.locator("dialog[open]").getByRole("button", { name: "Close" }).click();
      await nameText(page).fill(createPlan("typed-on"));
      leave.resolve(undefined);
      const outcome = page.getByRole("region", { name: "Actions that have ended" });
      await outcome.getByText(`${RUNNING_PLAN.id} runs.`).waitFor();
      expect(new URL(page.url()).hash).toBe("#/plan");
      expect(await nameText(page).inputValue()).toBe(createPlan("typed-on"));
      await outcome.getByRole("link", { name: "Show it" }).click();
      await page.waitForURL(`**#/runs/${RUNNING_PLAN.id}/timeline`);
    }));

  it("is not said to have a problem that the check of an older text had", () =>
    visit(async ({ page }) => {
      await go(page, "#/plan");
      const hold = await holdNext(page, CHECK);
      await nameText(page).fill(createPlan("older"));
      await hold.arrived;
      await nameText(page).fill(createPlan("newer"));
      await page.getByRole("button", { name: "Run it" }).waitFor();
      const failed = page.waitForEvent("requestfailed");
      hold.release("unanswered");
      await failed;
      await settle(page);
      expect(await page.locator("plan-view .problem").count()).toBe(0);
      expect(await page.getByRole("button", { name: "Run it" }).count()).toBe(1);
    }));
});

function createPlan(id: string): string {
  return `coordinationId: ${id}
objective: Objective of ${id}
ownerSession: agent:main:main
conflictPolicy: { strategy: owner_wins }
failurePolicy: { retryBudget: 0, timeoutPolicy: continue_with_partial, escalationPolicy: none }
steps:
  - { stepId: first, agent: main, task: Begin. }
`;
}
