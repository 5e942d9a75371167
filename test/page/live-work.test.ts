/** Owns: the pictures of work that goes on while somebody looks at them. */
import { expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { createAuthor, openingOf, spawnOf } from "../support/ledger-fixtures.ts";
import { createManualClock, openTestLedger } from "../support/temp-ledger.ts";
import { holdAnswer, settle } from "./held-route.ts";
import { go, openTestBrowser, visitPage, type Play } from "./visit.ts";

const { folder, browser } = await openTestBrowser();

interface Work {
  readonly id: CoordinationId;
  readonly ledger: string;
  /** Admits one spawn more for each call. */
  spawn(...calls: readonly string[]): Promise<void>;
}

async function openWork(name: string): Promise<Work> {
  const ledger = folder.file(`${name}.sqlite`);
  const author = createAuthor(name);
  const spawn: Work["spawn"] = async (...calls) => {
    const store = await openTestLedger(ledger, { clock: createManualClock() });
    for (const call of calls) await store.append(author.append(spawnOf(call)));
    await store.close();
  };
  const store = await openTestLedger(ledger, { clock: createManualClock() });
  await store.append(author.append(openingOf(`trace-${name}`)));
  await store.close();
  await spawn("first", "second", "third");
  return { id: author.runId, ledger, spawn };
}

const visit = ({ ledger }: Work, play: Play): Promise<void> => visitPage({ browser, ledger }, play);

it("the log has the events that came while it was read", async () => {
  const work = await openWork("read-meanwhile");
  await visit(work, async ({ page }) => {
    await go(page, `#/runs/${work.id}/log`);
    await page.locator("event-log li").first().waitFor();
    const hold = await holdAnswer(page, /\/events\?.*after=/u);
    await work.spawn("fourth");
    await hold.arrived;
    const reread = page.waitForResponse(new RegExp(`/api/runs/${work.id}$`, "u"));
    await work.spawn("fifth");
    await (await reread).finished();
    await settle(page);
    hold.release();
    await page.locator("event-log li", { hasText: '"fifth"' }).first().waitFor();
  });
});

it("the timeline grows on after a click that moved by one pixel", async () => {
  const work = await openWork("one-pixel");
  await visit(work, async ({ page }) => {
    await go(page, `#/runs/${work.id}/timeline`);
    await page.locator("g[role=option]").nth(2).waitFor();
    const box = await page.locator("svg.rows").boundingBox();
    if (!box) throw new Error("no rows are drawn");
    const moveMouse = async (pixels: number): Promise<void> => {
      await page.mouse.move(box.x + 400, box.y + 10);
      await page.mouse.down();
      await page.mouse.move(box.x + 400 + pixels, box.y + 10);
      await page.mouse.up();
    };
    const all = page.getByRole("button", { name: "All" });
    await moveMouse(20);
    await all.click();
    await moveMouse(1);
    await page.getByRole("complementary", { name: "Step" }).waitFor();
    expect(await all.isDisabled()).toBe(true);
  });
});

it("the keyboard stays at its row of the timeline when a step is added", async () => {
  const work = await openWork("keyboard");
  await visit(work, async ({ page }) => {
    await go(page, `#/runs/${work.id}/timeline?step=step-1`);
    await page.locator("g[role=option]").nth(2).waitFor();
    const rows = page.getByRole("listbox");
    await rows.focus();
    await page.keyboard.press("End");
    const active = page.locator("g.active");
    const name = await active.getAttribute("aria-label");
    expect(name).toContain("step-3");
    await work.spawn("fourth");
    await page.locator("g[role=option]").nth(3).waitFor();
    expect(await active.getAttribute("aria-label")).toContain("step-3");
    await go(page, `#/runs/${work.id}/timeline?step=step-2`);
    await page.locator("g.active", { hasText: "step-2" }).waitFor();
  });
});
