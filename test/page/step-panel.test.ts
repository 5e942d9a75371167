/** Owns: what the panel of a step says of its result, also where that changes while somebody looks at it. */
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { CoordinationId, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  complete,
  createOpening,
  recordCommands,
  spawn,
  type RecordedCommand,
} from "../cli/recorded-questions.ts";
import { contentOf } from "../support/ledger-fixtures.ts";
import { createManualClock, openTestLedger } from "../support/temp-ledger.ts";
import { FAILED, FAILED_REASON, recordFailedReport } from "./filled-ledger.ts";
import { holdAnswer, holdNext, settle } from "./held-route.ts";
import { go, openTestBrowser, visitPage, type Play } from "./visit.ts";

const DRAFT = "the draft of the first step";
const REVIEW = "the review of the second step";
const CORRECTED = "what people wrote instead";
const RESULT = /\/result$/u;
const HELD_WORDS = "It is held and does not count yet.";

const { folder, browser } = await openTestBrowser();

interface Work {
  readonly id: CoordinationId;
  readonly ledger: string;
  record(...commands: readonly RecordedCommand[]): Promise<void>;
}

/** Opens work with two steps, whose results wait for people. */
async function openHeldWork(name: string): Promise<Work> {
  const ledger = folder.file(`${name}.sqlite`);
  const id = `co-${name}` as CoordinationId;
  const record: Work["record"] = async (...commands) => {
    const store = await openTestLedger(ledger, { clock: createManualClock() });
    await recordCommands(store, id, commands);
    await store.close();
  };
  await record(
    [0, createOpening(`trace-${name}`), [contentOf(`objective of trace-${name}`)]],
    [100, spawn("draft", { threshold: 7_000 })],
    [200, spawn("review", { threshold: 7_000 })],
    [10_000, complete("step-1", 3_100, DRAFT), [contentOf(DRAFT)]],
    [11_000, complete("step-2", 3_100, REVIEW), [contentOf(REVIEW)]],
  );
  return { id, ledger, record };
}

function answer(fields: Partial<Command & { type: "answerEscalation" }>): Command {
  return {
    type: "answerEscalation",
    escalationId: "escalation-1",
    answer: "approve",
    through: "cli",
    by: { kind: "operator", id: "cli" },
    ...fields,
  };
}

const visit = ({ ledger }: Pick<Work, "ledger">, play: Play): Promise<void> =>
  visitPage({ browser, ledger }, play);

const findShow = (page: Page) => page.getByRole("button", { name: "Show the result" });

it("the text of a held result stays when it is approved, and is no longer said to be held", async () => {
  const work = await openHeldWork("approved");
  await visit(work, async ({ page }) => {
    await go(page, `#/runs/${work.id}/timeline?step=step-1`);
    await findShow(page).click();
    await page.getByText(DRAFT).waitFor();
    await page.getByText(HELD_WORDS).waitFor();
    await work.record([20_000, answer({ answer: "approve" })]);
    await page.getByText(HELD_WORDS).waitFor({ state: "detached" });
    await page.locator("step-panel .status.completed").waitFor();
    expect(await page.locator("step-panel pre").textContent()).toBe(DRAFT);
  });
});

it("the text of a result goes when the step has another one, which can be shown", async () => {
  const work = await openHeldWork("corrected");
  const corrected = contentOf(CORRECTED);
  await visit(work, async ({ page }) => {
    await go(page, `#/runs/${work.id}/timeline?step=step-1`);
    await findShow(page).click();
    await page.getByText(DRAFT).waitFor();
    await work.record([20_000, answer({ answer: "answer", text: corrected.ref }), [corrected]]);
    await page.getByText(corrected.ref.sha256.slice(0, 16)).waitFor();
    expect(await page.getByText(DRAFT).count()).toBe(0);
    await findShow(page).click();
    await page.getByText(CORRECTED).waitFor();
  });
});

it("a text that is read as another result than the one that is named is not shown", async () => {
  const work = await openHeldWork("changed-meanwhile");
  const corrected = contentOf(CORRECTED);
  await visit(work, async ({ page }) => {
    await go(page, `#/runs/${work.id}/timeline?step=step-1`);
    await findShow(page).waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.locator(".feed.paused").waitFor();
    await work.record([20_000, answer({ answer: "answer", text: corrected.ref }), [corrected]]);
    await findShow(page).click();
    await page.locator("step-panel .problem", { hasText: "another result by now" }).waitFor();
    await page.getByRole("button", { name: "Go on" }).click();
    await page.getByText(corrected.ref.sha256.slice(0, 16)).waitFor();
    expect(await page.locator("step-panel .problem").count()).toBe(0);
  });
});

it("a result that could not be read is read when it is asked for again", async () => {
  const work = await openHeldWork("unread");
  await visit(work, async ({ page }) => {
    await go(page, `#/runs/${work.id}/timeline?step=step-1`);
    const hold = await holdNext(page, RESULT);
    await findShow(page).click();
    hold.release("unanswered");
    await page.locator("step-panel .problem").waitFor();
    await findShow(page).click();
    await page.getByText(DRAFT).waitFor();
    expect(await page.locator("step-panel .problem").count()).toBe(0);
  });
});

it("a result that comes late is not shown as that of another step", async () => {
  const work = await openHeldWork("late");
  await visit(work, async ({ page }) => {
    await go(page, `#/runs/${work.id}/timeline?step=step-1`);
    const hold = await holdAnswer(page, RESULT);
    await findShow(page).click();
    await hold.arrived;
    await go(page, `#/runs/${work.id}/timeline?step=step-2`);
    await page.locator("step-panel h2", { hasText: "review" }).waitFor();
    hold.release();
    await settle(page);
    expect(await page.getByText(DRAFT).count()).toBe(0);
    await findShow(page).click();
    await page.getByText(REVIEW).waitFor();
  });
});

it("the last words of an agent that reported nothing can be shown while they are held", async () => {
  const ledger = folder.file("spoken.sqlite");
  const id = "co-spoken" as CoordinationId;
  const words = contentOf(`${DRAFT}\n{"confidence": 0.4}`);
  const attempt = { stepId: "step-1" as StepId, attempt: 1 };
  const store = await openTestLedger(ledger, { clock: createManualClock() });
  await recordCommands(store, id, [
    [0, createOpening("trace-spoken"), [contentOf("objective of trace-spoken")]],
    [100, spawn("draft", { threshold: 7_000 })],
    [200, { type: "withholdText", ...attempt, text: words.ref, confidence: 4_000 }, [words]],
    [300, { type: "completeStep", ...attempt, via: "hook" }],
  ]);
  await store.close();
  await visit({ ledger }, async ({ page }) => {
    await go(page, `#/runs/${id}/timeline?step=step-1`);
    await findShow(page).click();
    await page.getByText(HELD_WORDS).waitFor();
    expect(await page.locator("step-panel pre").textContent()).toBe(words.text);
  });
});

it("what the agent of a failed step reported can be shown", async () => {
  const ledger = folder.file("failed.sqlite");
  await recordFailedReport(ledger);
  await visit({ ledger }, async ({ page }) => {
    await go(page, `#/runs/${FAILED}/graph?step=collect`);
    await findShow(page).click();
    await page.locator("step-panel pre", { hasText: FAILED_REASON }).waitFor();
  });
});
