import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { HealthReport } from "../../src/plugins/page/contract/health.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { startBrowser, openPage, type DisplaySettings } from "./browser.ts";
import {
  ENDED_PLAN,
  fillLedger,
  GATEWAY,
  HOSTILE,
  openAnother,
  RUNNING_PLAN,
  SPAWNED,
} from "./filled-ledger.ts";
import { REPORT } from "../cli/recorded-questions.ts";
import { settle } from "./held-route.ts";
import { startServe } from "./page-stage.ts";
import { go, visitPage, type Play } from "./visit.ts";

const AXE = readFileSync(
  join(import.meta.dirname, "..", "..", "node_modules", "axe-core", "axe.min.js"),
  "utf8",
);

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

const visit = (play: Play, viewing?: DisplaySettings): Promise<void> =>
  visitPage({ browser, ledger, viewing }, play);

/** Labels of a drawing spell its signs out (`✓` as `completed`), so they do not begin with what is drawn. */
async function listViolations(page: Page): Promise<string[]> {
  return page.evaluate(`(async () => {
    const { violations } = await axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"], rules: { "label-content-name-mismatch": { enabled: false } } });
    return violations.flatMap(({ id, nodes }) => nodes.map(({ target, html }) => id + " at " + target + ": " + html.slice(0, 160)));
  })()`);
}

/** Each place, with something that shows that it is there. */
const VIEWS = [
  { name: "work", place: "#/runs", mark: "Compare two databases" },
  { name: "timeline", place: `#/runs/${SPAWNED}/timeline`, mark: "Zoom in" },
  { name: "graph", place: `#/runs/${RUNNING_PLAN.id}/graph?step=audit`, mark: "Asked and ran" },
  { name: "tree", place: `#/runs/${SPAWNED}/graph`, mark: "agent:main:main" },
  { name: "log", place: `#/runs/${ENDED_PLAN.id}/log`, mark: "coordination.created" },
  { name: "what-if", place: `#/runs/${ENDED_PLAN.id}/what-if`, mark: "Another policy, as JSON" },
  { name: "questions", place: "#/questions", mark: "If nobody answers, it takes" },
  { name: "conflicts", place: "#/conflicts", mark: "Nothing is claimed." },
  { name: "health", place: "#/health", mark: "Recorded events" },
  { name: "plan", place: "#/plan", mark: "Choose a file" },
] as const;

describe("the page", () => {
  it.each(["light", "dark"] as const)(
    "shows every view without a violation of WCAG AA in %s",
    (colorScheme) =>
      visit(
        async ({ page }) => {
          await page.evaluate(AXE);
          const violations: string[] = [];
          for (const { name, place, mark } of VIEWS) {
            await go(page, place);
            await page.getByText(mark, { exact: false }).first().waitFor();
            violations.push(...(await listViolations(page)).map((violation) => `${name}: ${violation}`));
          }
          expect(violations).toEqual([]);
        },
        { colorScheme },
      ),
  );

  it.each(["once", "before"])(
    "needs no sideways scrolling on a narrow screen %s drawings know its width",
    (when) =>
      visit(
        async ({ page }) => {
          if (when === "before") await page.evaluate("ResizeObserver.prototype.observe = () => {}");
          for (const { place, mark } of VIEWS) {
            await go(page, place);
            await page.getByText(mark, { exact: false }).first().waitFor();
            expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth"), place).toBe(0);
          }
        },
        { width: 360 },
      ),
  );

  it("names the gateway of a coordination where several share the ledger", () =>
    visit(async ({ page }) => {
      await go(page, "#/runs");
      await page.getByText(`gateway ${GATEWAY}`).waitFor();
      expect(await page.getByText("gateway", { exact: false }).count()).toBe(1);
      await go(page, `#/runs/${SPAWNED}/timeline`);
      await page.locator("dl.fields div", { hasText: "gateway" }).getByText(GATEWAY).waitFor();
    }));

  it("names the lines of a chart by how each of them is drawn", () =>
    visit(async ({ page }) => {
      await go(page, "#/health");
      await page.locator(".chart figcaption").first().waitFor();
      const signs = await page.evaluate<string[]>(
        `[...document.querySelectorAll(".chart:has([aria-label^=Work]) figcaption span")].map((span) => span.innerHTML.replace(span.textContent.match(/[a-z]+/u), ""))`,
      );
      expect(signs).toHaveLength(3);
      expect(new Set(signs).size, signs.join(", ")).toBe(3);
    }));

  it.each([
    ["is ahead", "Asia/Kathmandu", "2026-01-02T20:00Z"],
    ["puts its clock forward", "America/New_York", "2026-03-07T20:00Z"],
  ])("draws the hours of its charts in UTC, also where the browser %s", async (_, where, firstHour) => {
    const drawings: string[][] = [];
    let health: string | undefined;
    for (const timezoneId of ["UTC", where])
      await visit(
        async ({ page }) => {
          await page.route(/\/api\/health$/u, async (route) => {
            const response = await route.fetch();
            health ??= moveHours((await response.json()) as HealthReport, Date.parse(firstHour));
            await route.fulfill({ response, body: health });
          });
          await go(page, "#/health");
          await page.getByRole("heading", { name: "The last day, in UTC" }).waitFor();
          await page.locator(".plot canvas").nth(2).waitFor();
          await settle(page);
          drawings.push(await page.evaluate<string[]>(READ_CHARTS));
        },
        { timezoneId },
      );
    const [there = [], elsewhere = []] = drawings;
    expect(there).toHaveLength(3);
    expect(there.map((drawing, index) => drawing === elsewhere[index])).toEqual([true, true, true]);
  });

  it("takes the link out of the address, and keeps nothing where another page could read it", () =>
    visit(async ({ page, context }) => {
      expect(page.url()).not.toContain("link=");
      expect(
        await page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length"),
      ).toBe(0);
      expect(await context.cookies()).toEqual([]);
    }));

  it("signs in once with a link, and says how to get another one", async () => {
    const served = await startServe({ ledger });
    const first = await openPage(browser, served.address);
    await first.page.locator(".feed.live").waitFor();
    const second = await openPage(browser, served.address);
    await second.page.getByRole("alert").waitFor();
    expect(await second.page.getByText("Compare two databases").count()).toBe(0);
    await first.context.close();
    await second.context.close();
    await served.stop();
  });

  it("shows hostile text as text, with what hides in it", () =>
    visit(async ({ page }) => {
      await go(page, `#/runs/${HOSTILE}/timeline`);
      const title = page.locator("h1");
      await title.waitFor();
      expect(await title.textContent()).toContain("<img src=x onerror=");
      expect(await title.textContent()).toContain("[U+202E]");
      expect(await page.locator("img").count()).toBe(0);
      expect(await page.locator("coordination-page").textContent()).toContain("<b>bold</b>[U+202E]txt");
      expect(await page.title()).toBe("Coordination");
    }));

  it("finds work by its objective, and keeps the filter in the address", () =>
    visit(async ({ page }) => {
      await page.getByLabel("Search").fill("quarterly");
      await page.waitForURL(/text=quarterly/u);
      await page.getByText("Compare two databases").waitFor({ state: "detached" });
      await page.getByText("Prepare the quarterly report").waitFor();
    }));

  it("shows work that begins elsewhere, unless it is paused", () =>
    visit(async ({ page }) => {
      await openAnother(ledger, "live-1");
      await page.getByText("objective live-1").waitFor({ timeout: 5_000 });
      await page.getByRole("button", { name: "Pause" }).click();
      await page.getByText("What you see stays as it is").waitFor();
      await openAnother(ledger, "live-2");
      await page.getByRole("button", { name: "Go on" }).click();
      await page.getByText("objective live-2").waitFor({ timeout: 5_000 });
    }));

  it("says that the connection is lost when the server ends", () =>
    visit(async ({ page }, served) => {
      await served.stop();
      await page.getByText("Connection lost").waitFor({ timeout: 10_000 });
    }));

  it("says before what an answer does, and after why it needs the gateway, by the keyboard alone", () =>
    visit(async ({ page }) => {
      await go(page, "#/questions");
      await page.getByText("If nobody answers, it takes").waitFor();
      await page.getByRole("list", { name: "Questions" }).focus();
      const names = await page.locator(".card strong").allTextContents();
      for (let at = 0; at < names.indexOf("far"); at += 1) await page.keyboard.press("ArrowDown");
      await page.getByText("The held result, as it would count").waitFor();
      await page.keyboard.press("a");
      await page.getByText("It counts only while everything is as it is shown now").waitFor();
      await page.keyboard.press("Enter");
      await page.locator("dialog .problem").waitFor();
      expect(await page.locator("dialog .problem").textContent()).toContain("gateway");
      await page.keyboard.press("Escape");
      await page.locator("dialog[open]").waitFor({ state: "detached" });
    }));

  it("marks the problems of a plan at their line, and shows the graph of one without", () =>
    visit(async ({ page }) => {
      await go(page, "#/plan");
      const area = page.getByLabel("The plan, YAML or JSON", { exact: false });
      await area.fill("coordinationId: p\nsteps: [{ stepId: a, dependsOn: [nobody] }]\n");
      await page
        .getByRole("button", { name: /^line \d/u })
        .first()
        .waitFor();
      await area.fill(PLAN);
      await page.locator("work-graph .node").nth(1).waitFor();
      await page.getByRole("button", { name: "Run it" }).click();
      await page.getByText("2 steps will run as two-steps").waitFor();
    }));

  it("reads a plan's file again that was changed and is chosen again, and says when it cannot be read", () =>
    visit(async ({ page }) => {
      await go(page, "#/plan");
      const input = page.locator("plan-view input[type=file]");
      const area = page.locator("plan-view textarea");
      for (const text of ["steps: [", PLAN]) {
        await input.setInputFiles({ name: "p.yaml", mimeType: "text/yaml", buffer: Buffer.from(text) });
        await expect.poll(() => area.inputValue()).toBe(text);
        // A browser tells of no choice that is the one before.
        expect(await input.inputValue()).toBe("");
      }
      await page.evaluate("Blob.prototype.text = () => Promise.reject(new Error('removed meanwhile'))");
      await input.setInputFiles({ name: "p.yaml", mimeType: "text/yaml", buffer: Buffer.from(PLAN) });
      await page.locator("plan-view .problem").getByText("cannot be read").waitFor();
    }));

  it("opens a step from the timeline by the keyboard, with what is known of it", () =>
    visit(async ({ page }) => {
      await go(page, `#/runs/${RUNNING_PLAN.id}/timeline`);
      await page.getByRole("listbox").focus();
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await page.getByRole("complementary", { name: "Step" }).waitFor();
      expect(await page.locator("step-panel h2").textContent()).toBe("fetch");
      expect(await page.locator("step-panel").textContent()).toContain("failed after");
    }));

  it("compares with the policy that it gives as an example", () =>
    visit(async ({ page }) => {
      await go(page, `#/runs/${ENDED_PLAN.id}/what-if`);
      await page.getByRole("button", { name: "Compare" }).click();
      await page.locator("what-if :is(.problem, .happened, table)").first().waitFor();
      expect(await page.locator("what-if .problem").allTextContents()).toEqual([]);
    }));

  it.each([
    [REPORT, '{"gates": {}}', "does not follow from the events before it"],
    [ENDED_PLAN.id, '{"budget": {"tokens": 1}}', "a plan states its own"],
    [RUNNING_PLAN.id, '{"retry": {"budget": 0}}', "No longer certain: fetch"],
  ])("says of %s under %s what it cannot tell", (id, policy, words) =>
    visit(async ({ page }) => {
      await go(page, `#/runs/${id}/what-if`);
      await page.locator("what-if textarea").fill(policy);
      await page.getByRole("button", { name: "Compare" }).click();
      await page.locator("what-if").getByText(words).waitFor();
    }),
  );

  it("links causes and effects in the log", () =>
    visit(async ({ page }) => {
      await go(page, `#/runs/${ENDED_PLAN.id}/log`);
      await page.getByRole("button", { name: "because of 0" }).first().click();
      expect(await page.evaluate("document.activeElement.id")).toBe("event-0");
    }));

  it("says that a saved log ends before the log of a coordination that has more than 100,000 events", () =>
    visit(async ({ page }) => {
      await go(page, `#/runs/${ENDED_PLAN.id}/log`);
      await page.getByRole("button", { name: "Save as JSON lines" }).waitFor();
      await page.route(/\/events\?limit=1000/u, (route) => {
        const first = Number(new URL(route.request().url()).searchParams.get("after") ?? -1) + 1;
        const events = Array.from({ length: 1_000 }, (_, place) => ({ sequence: first + place, damage: "" }));
        return route.fulfill({ json: { events, next: first + 999 } });
      });
      const saved = page.waitForEvent("download");
      await page.getByRole("button", { name: "Save as JSON lines" }).click();
      const path = join(folder.path, "saved.jsonl");
      await (await saved).saveAs(path);
      expect(readFileSync(path, "utf8").match(/\n/gu)).toHaveLength(100_000);
      await page
        .locator("event-log .problem")
        .getByText("Only the first 100,000 events were saved")
        .waitFor();
    }));

  it.each([
    [1, "1 event was saved as a file."],
    [2, "2 events were saved as a file."],
  ])("says how many events of a log were saved: %i", (count, sentence) =>
    visit(async ({ page }) => {
      await go(page, `#/runs/${ENDED_PLAN.id}/log`);
      const events = Array.from({ length: count }, (_, sequence) => ({ sequence, damage: "" }));
      await page.route(/\/events\?limit=1000/u, (route) => route.fulfill({ json: { events } }));
      await page.getByRole("button", { name: "Save as JSON lines" }).click();
      await page.locator("coordination-page > [role=status]", { hasText: sentence }).waitFor();
    }),
  );

  it("saves the timeline as one file that shows the same and asks for nothing", () =>
    visit(async ({ page }) => {
      await go(page, `#/runs/${ENDED_PLAN.id}/timeline`);
      const saved = page.waitForEvent("download");
      await page.getByRole("button", { name: "Save as file" }).click();
      const path = join(folder.path, "saved.html");
      await (await saved).saveAs(path);
      const { page: file, context } = await openPage(browser, `file://${path}`);
      expect(await file.locator("h1").textContent()).toBe("Compare two databases");
      expect(await file.locator("svg rect.work").count()).toBeGreaterThan(1);
      expect(readFileSync(path, "utf8")).not.toMatch(/<script|https?:\/\/(?!www\.w3\.org)/u);
      await context.close();
    }));
});

const PLAN = `coordinationId: two-steps
objective: Do one thing after another
ownerSession: agent:main:main
conflictPolicy: { strategy: owner_wins }
failurePolicy: { retryBudget: 0, timeoutPolicy: continue_with_partial, escalationPolicy: none }
steps:
  - { stepId: first, agent: main, task: Begin. }
  - { stepId: second, agent: main, task: End., dependsOn: [first] }
`;

const READ_CHARTS = `[...document.querySelectorAll(".plot canvas")].map((canvas) => canvas.toDataURL())`;

/** Returns a report whose hours begin at another one. */
function moveHours(report: HealthReport, firstMs: number): string {
  const hours = report.hours.map((hour, place) => ({ ...hour, startMs: firstMs + place * 3_600_000 }));
  return JSON.stringify({ ...report, hours });
}
