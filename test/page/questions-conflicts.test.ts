/** Owns: what people see of questions and conflicts before they rule on them: all that are open, and what each button does. */
import { beforeAll, describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type {
  CoordinationId,
  EpochMs,
  SessionKey,
  StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import { readChangeLog } from "../../src/plugins/reports/conflict-log.ts";
import { PRODUCTION, recordConflicts, WRITERS } from "../cli/recorded-conflicts.ts";
import { recordPlans } from "../cli/recorded-plan.ts";
import { recordContests } from "../cli/recorded-contests.ts";
import { createAskedByOwner, createOpening, recordCommands, spawn } from "../cli/recorded-questions.ts";
import { step } from "../core/plan-scene.ts";
import { contentOf, OWNER, testCoordinator } from "../support/ledger-fixtures.ts";
import { createManualClock, openTestLedger, TEST_EPOCH_MS } from "../support/temp-ledger.ts";
import { FAILED_REASON, recordFailedReport } from "./filled-ledger.ts";
import { holdNext } from "./held-route.ts";
import { go, openTestBrowser, visitPage } from "./visit.ts";

const CLAIM_MS = 5_000;
/** The server beats every ten seconds. */
const BEAT_WAIT = { timeout: 20_000 };

const { folder, browser } = await openTestBrowser();

describe("questions", () => {
  it("are listed 500 at once, those that expire first, and that there are more is said", async () => {
    const ledger = folder.file("many.sqlite");
    const store = await openTestLedger(ledger, { clock: createManualClock() });
    const later = Array.from({ length: 500 }, (_, index) =>
      createAskedByOwner(index + 2, { text: `Question ${index}?`, answerMs: 600_000 }),
    );
    await recordCommands(store, "co-many" as CoordinationId, [
      [0, createOpening("trace-many")],
      createAskedByOwner(1, { text: "The most urgent?", answerMs: 60_000 }),
      ...later,
    ]);
    await store.close();
    await visitPage({ browser, ledger }, async ({ page }) => {
      await go(page, "#/questions");
      await page.locator("blockquote", { hasText: "The most urgent?" }).waitFor();
      expect(await page.locator(".card").count()).toBe(500);
      await page.getByText("There are more open questions, which expire later").waitFor();
      await go(page, "#/questions?which=all");
      await page.getByText("There are older questions").waitFor();
    });
  });

  it("are shown with what counts if nobody answers, who may not answer, and who was told", async () => {
    const ledger = folder.file("default.sqlite");
    const store = await openTestLedger(ledger, { clock: createManualClock() });
    const content = contentOf(
      JSON.stringify({ question: "Delete the old volumes?", otherwise: "<b>yes</b>\u202e, delete them" }),
    );
    const questions = {
      answerMs: 600_000,
      notify: [{ channel: "webhook:ops", afterMs: 0 }],
      requireDifferentApprover: true,
    };
    await recordCommands(store, "co-default" as CoordinationId, [
      [0, { ...createOpening("trace-default"), questions } as Command],
      [
        1_000,
        {
          type: "askPeople",
          askedBy: OWNER,
          kind: "clarification",
          question: content.ref,
          hasDefault: true,
          openMax: 10,
        },
        [content],
      ],
    ]);
    await store.close();
    await visitPage({ browser, ledger }, async ({ page }) => {
      await go(page, "#/questions");
      await page.getByRole("heading", { name: "If nobody answers, it takes" }).waitFor();
      expect(await page.locator("blockquote").allTextContents()).toEqual([
        "Delete the old volumes?",
        "<b>yes</b>[U+202E], delete them",
      ]);
      const findField = (name: string) => page.locator("dl.fields div", { hasText: name }).locator("dd");
      expect(await findField("not by").textContent()).toBe(
        "the session that it is about, or whose plan it is",
      );
      expect(await findField("told").textContent()).toContain("webhook:ops due at");
    });
  });

  it("about contested writes have the resource on their cards", async () => {
    const ledger = folder.file("contests.sqlite");
    await recordContests(ledger, "file:/repo/notes.md", "queue:\u202email");
    await visitPage({ browser, ledger }, async ({ page }) => {
      await go(page, "#/questions");
      const resources = page.locator(".card .mono");
      await resources.first().waitFor();
      expect((await resources.allTextContents()).toSorted()).toEqual([
        "file:/repo/notes.md",
        "queue:[U+202E]mail",
      ]);
    });
  });

  it("about a step that failed are shown with why its agent could not do it", async () => {
    const ledger = folder.file("failed.sqlite");
    await recordFailedReport(ledger);
    await visitPage({ browser, ledger }, async ({ page }) => {
      await go(page, "#/questions");
      await page.getByRole("heading", { name: "Why the agent could not do it" }).waitFor();
      expect(await page.locator("blockquote").allTextContents()).toEqual([FAILED_REASON]);
    });
  });
});

const HOSTILE = "x;touch pwned|sh; it's $(id)";
const QUOTED = `'x;touch pwned|sh; it'\\''s $(id)'`;

describe("conflicts and claims", () => {
  let ledger: string;

  beforeAll(async () => {
    ledger = folder.file("conflicts.sqlite");
    await recordConflicts(ledger, folder.path);
    await claimAsOwner(ledger);
    await claimInPlan(ledger, { token: 5, expiresAtMs: TEST_EPOCH_MS + 60_000 });
  });

  /** The owner's session writes a file that nobody else wants. */
  async function claimAsOwner(path: string): Promise<void> {
    const clock = createManualClock(TEST_EPOCH_MS + 30_000);
    const store = await openTestLedger(path, { clock });
    const coordinator = testCoordinator({
      store,
      clock,
      workspace: folder.path,
      newCoordinationId: () => "co-owner" as CoordinationId,
    });
    const target = { at: { path: "plan.md", folder: folder.path }, replaces: true };
    const call = { session: OWNER, tool: "write", callKey: "call-of-owner", reads: [], targets: [target] };
    expect((await coordinator.arbiter.request(call)).kind).toBe("granted");
    await coordinator.stop();
    await store.close();
  }

  /** A step's child spawns a step of its own in the plan, which claims a resource. */
  async function claimInPlan(
    path: string,
    claim: { readonly token: number; readonly expiresAtMs: number },
  ): Promise<void> {
    const spawned = {
      ...spawn("below", { threshold: 0 }, "agent:main:subagent:write-1" as SessionKey),
      parentStepId: "write" as StepId,
    } as Command;
    const { token, expiresAtMs } = claim;
    const request = { resource: "queue:reports", token, expiresAtMs: expiresAtMs as EpochMs };
    await recordPlans(path, [
      {
        id: HOSTILE,
        objective: "Spawn and claim",
        steps: [step("write")],
        acts: [
          [1_000, "dispatch", "write", 1],
          [1_100, "ack", "write", 1],
          [2_000, "command", spawned],
          [3_000, "command", { type: "requestResources", stepId: "@step-2" as StepId, requests: [request] }],
        ],
      },
    ]);
  }

  it("the conflicts that people are asked about are apart from the settled ones", () =>
    visitPage({ browser, ledger }, async ({ page }) => {
      await go(page, "#/conflicts");
      const openOnes = page.getByRole("region", { name: "Open conflicts, newest first" });
      await openOnes.getByText(PRODUCTION).waitFor();
      expect(await openOnes.locator("tbody tr").count()).toBe(1);
      const settled = page.getByRole("region", { name: "Settled conflicts, newest first" });
      expect(await settled.getByText("people are asked").count()).toBe(0);
      expect(await settled.locator("tbody tr").count()).toBeGreaterThan(1);
    }));

  it("releasing a claim says before that its holder keeps working, and what stops a step", () =>
    visitPage({ browser, ledger }, async ({ page }) => {
      await go(page, "#/conflicts");
      const region = page.getByRole("region", { name: "Claims" });
      const readWords = async (holder: string): Promise<string | null> => {
        const row = region.locator("tr", { has: page.getByRole("link", { name: holder }) });
        await row.first().getByRole("button", { name: "Release" }).click();
        const words = await page.locator("dialog[open] p").first().textContent();
        await page.keyboard.press("Escape");
        return words;
      };
      expect(await readWords("step-1")).toMatch(
        /Step step-1 keeps working, and its next write there is ruled on anew\. To stop the step, cancel it: `cancel co-\S+ step-1`\.$/u,
      );
      expect(await readWords("@owner")).toMatch(
        /The owner's session keeps working, and its next write there is ruled on anew\.$/u,
      );
      expect(await readWords("@step-2")).toMatch(
        /^queue:reports .* Step @step-2 keeps working, and its next write there is ruled on anew\. To stop/u,
      );
    }));

  it("a claim whose time ends while somebody looks is told as expired", async () => {
    const path = folder.file("expiring.sqlite");
    await recordPlans(path, []);
    await visitPage({ browser, ledger: path }, async ({ page }) => {
      await go(page, "#/conflicts");
      await page.getByText("Nothing is claimed.").waitFor();
      await claimInPlan(path, { token: 1, expiresAtMs: Date.now() + CLAIM_MS });
      const until = page.locator("tr", { hasText: "queue:reports" }).locator("td").nth(4);
      await expect.poll(() => until.textContent(), BEAT_WAIT).toMatch(/^in \d/u);
      await expect.poll(() => until.textContent(), BEAT_WAIT).not.toMatch(/^in \d/u);
      expect(await until.textContent()).toBe("expired");
    });
  });

  it("the command that stops a step does nothing else in the shell that it is pasted into", () =>
    visitPage({ browser, ledger }, async ({ page }) => {
      await go(page, "#/conflicts");
      const row = page.locator("tr", { hasText: "queue:reports" });
      await row.getByRole("button", { name: "Release" }).click();
      const words = await page.locator("dialog[open] p").first().textContent();
      expect(words?.split("cancel it: ")[1]).toBe(`\`cancel ${QUOTED} @step-2\`.`);
    }));

  it("a conflict that is settled while the page reads is shown once, as settled", async () => {
    const path = folder.file("settled-meanwhile.sqlite");
    await recordConflicts(path, folder.path);
    await visitPage({ browser, ledger: path }, async ({ page }) => {
      const open = page.waitForResponse(/conflicts\?which=open/u);
      const hold = await holdNext(page, /conflicts\?which=all/u);
      await go(page, "#/conflicts");
      await hold.arrived;
      await (await open).finished();
      // The change makes the page read again; until that is answered, it shows the first reading.
      await holdNext(page, /conflicts\?which=open/u);
      await settleOpenConflict(path);
      hold.release();
      await page.getByRole("heading", { name: "Settled conflicts" }).waitFor();
      expect(await page.getByRole("heading", { name: "Open conflicts" }).count()).toBe(0);
    });
  });

  async function settleOpenConflict(path: string): Promise<void> {
    const store = await openTestLedger(path, { clock: createManualClock() });
    const { conflicts } = await readChangeLog(store, WRITERS);
    const { conflictId = "" } = conflicts.find(({ resolution }) => !resolution) ?? {};
    await recordCommands(store, WRITERS, [[40_000, { type: "settleReview", conflictId, answer: "denied" }]]);
    await store.close();
  }
});
