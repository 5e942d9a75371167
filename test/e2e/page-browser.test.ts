/** Owns: what an operator does on the page of the real gateway, in a real browser, and that it happens. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { join } from "node:path";
import { waitFor } from "../support/wait-for.ts";
import { openPage, startBrowser, type WatchedPage } from "../page/browser.ts";
import { go } from "../page/visit.ts";
import {
  openGateStage,
  ownerOf,
  planOf,
  runPlan,
  spawnFrom,
  stepOf,
  waitForQuestion,
  WAIT_MS_MAX,
  type GateStage,
} from "./gates-stage.ts";
import { hasEnded, stepNamed } from "./stage.ts";
import { call, gate, openGate, write } from "./writes-stage.ts";

const SECRET = "raw-result-of-the-browser-5c1e";
/** The host takes longer than the page. */
const HOST_WAIT = { timeout: WAIT_MS_MAX };

let stage: GateStage;
let browser: Browser;

beforeAll(async () => {
  const writingTools = join(import.meta.dirname, "fixtures", "writing-tools");
  stage = await openGateStage({}, { extraPluginPaths: [writingTools], toolSearch: false });
  browser = await startBrowser();
});

afterAll(async () => {
  await browser.close();
  await stage.close();
});

/** A page of its own for each test, signed in at a place. */
async function visit(place: string, play: (page: Page) => Promise<void>): Promise<void> {
  const { address } = await stage.gateway.call("coordination.page.link");
  const watched = await openPage(browser, String(address));
  try {
    await watched.page.locator(".feed.live").waitFor(HOST_WAIT);
    await go(watched.page, place);
    await play(watched.page);
    expect(watched.problems).toEqual([]);
  } finally {
    await watched.context.close();
  }
}

/** Confirms what the dialog says before, and returns what it says after. */
async function confirm(page: Page, button: string): Promise<string> {
  await page.locator("dialog").getByRole("button", { name: button, exact: true }).click();
  const happened = page.locator("dialog .happened, dialog .problem");
  await happened.waitFor(HOST_WAIT);
  return (await happened.textContent()) ?? "";
}

const pushButton = (page: Page, name: string): Promise<void> =>
  page.getByRole("button", { name, exact: true }).first().click(HOST_WAIT);

const waitForEnd = (label: string) => stage.until(ownerOf(label), hasEnded, WAIT_MS_MAX);

describe("the page of the gateway, in a browser", () => {
  it("shows the held text as it was held, and approves it by the keyboard", () =>
    visit("#/questions", async (page) => {
      await spawnFrom(stage, "page-browser", [{ say: `It is ${SECRET}.\n{"confidence": 0.4}` }]);
      await waitForQuestion(stage, "page-browser");
      await page.locator(".held-text", { hasText: SECRET }).waitFor(HOST_WAIT);
      await page.getByRole("list", { name: "Questions" }).focus();
      await page.keyboard.press("a");
      expect(await confirm(page, "Approve")).toMatch(/✓/u);
      const state = await waitForEnd("page-browser");
      expect(stepNamed(state, "page-browser").phase).toMatchObject({ status: "completed" });
      await page.keyboard.press("Escape");
      await page.getByText("Nobody waits for an answer.").waitFor(HOST_WAIT);
    }));

  it("denies a question, and the result does not count", async () => {
    await spawnFrom(stage, "page-denied", [{ say: 'A guess.\n{"confidence": 0.4}' }]);
    await waitForQuestion(stage, "page-denied");
    await visit("#/questions", async (page) => {
      await pushButton(page, "Deny");
      expect(await confirm(page, "Deny")).toMatch(/✓/u);
      expect(stepNamed(await waitForEnd("page-denied"), "page-denied").phase).toMatchObject({
        status: "failed",
      });
    });
  });

  it("runs a plan that is dropped as a file, follows it, and forks it from an event", () =>
    visit("#/plan", async (page) => {
      stage.teach("Begin the dropped plan.", { say: "Begun." });
      stage.teach("End the dropped plan.", { say: "Ended." });
      await dropFile(page, "plan.yaml", PLAN);
      await pushButton(page, "Run it");
      await page.locator("dialog").getByText("2 steps will run as page-dropped").waitFor();
      // It leads to the work itself, which is seen as it happens.
      await page.locator("dialog").getByRole("button", { name: "Run the plan", exact: true }).click();
      await page.locator("dialog .happened").waitFor(HOST_WAIT);
      await page.keyboard.press("Escape");
      await waitForEnd("page-dropped");
      await page.locator(".facts", { hasText: "success" }).waitFor(HOST_WAIT);

      await go(page, "#/runs/page-dropped/log");
      // The fork keeps the results from before the second end.
      const ended = page.locator("li:has(> strong:text-is('step.completed')):has(> span:text-is('second'))");
      await ended.getByRole("button", { name: "Fork here" }).click(HOST_WAIT);
      await page.locator("dialog[open]").waitFor(HOST_WAIT);
      expect(await page.locator("dialog[open]").textContent()).toMatch(
        /Kept \(1\).*first.*Anew \(1\).*second/su,
      );
      await page.locator("dialog").getByRole("button", { name: "Run the fork", exact: true }).click();
      await page.getByText("fork of").waitFor(HOST_WAIT);
      const fork = await waitFor(
        async () =>
          (await stage.of(ownerOf("page-dropped"))).find(
            ({ coordinationId }) => coordinationId !== "page-dropped",
          ),
        { what: "the fork", timeoutMs: WAIT_MS_MAX },
      );
      expect(fork.steps.get("first" as never)?.phase).toMatchObject({ status: "completed", attempt: 0 });
      await page.locator(".facts", { hasText: "success" }).waitFor(HOST_WAIT);
    }));

  it("tells what another policy would have decided, and runs nothing", () =>
    visit("#/runs/page-dropped/what-if", async (page) => {
      const count = stage.model.requests.length;
      await pushButton(page, "Compare");
      await page.locator("what-if :is(.problem, .happened, table)").first().waitFor(HOST_WAIT);
      expect(await page.locator("what-if .problem").allTextContents()).toEqual([]);
      expect(stage.model.requests.length).toBe(count);
    }));

  it("cancels work, and the agent is stopped", async () => {
    stage.teach("Wait to be cancelled.", { delayMs: 120_000, say: "late" });
    await runPlan(stage, planOf("page-cancelled", [stepOf("waits", "Wait to be cancelled.")]));
    await visit("#/runs/page-cancelled/timeline", async (page) => {
      await pushButton(page, "Cancel");
      expect(await confirm(page, "Cancel the work")).toMatch(/✓/u);
      expect(await waitForEnd("page-cancelled")).toMatchObject({ status: "cancelled" });
      await page.keyboard.press("Escape");
      await page.locator(".facts", { hasText: "cancelled" }).waitFor(HOST_WAIT);
    });
  });

  it("gives a step that waits for people one attempt more", async () => {
    stage.teach(
      "Fail once.",
      call({ name: "coordination_report", args: { outcome: "failed", outputs: {} } }),
      {
        say: "It went wrong.",
      },
    );
    const failurePolicy = {
      retryBudget: 0,
      timeoutPolicy: "continue_with_partial",
      escalationPolicy: "hitl",
    };
    await runPlan(stage, planOf("page-retried", [stepOf("fails", "Fail once.")], { failurePolicy }));
    await waitForQuestion(stage, "page-retried");
    await visit("#/runs/page-retried/timeline?step=fails", async (page) => {
      await pushButton(page, "Retry");
      expect(await confirm(page, "Retry the step")).toMatch(/✓/u);
      const isTriedAgain = await stage.until(
        ownerOf("page-retried"),
        ({ steps }) => [...steps.values()].some(({ phase }) => "attempt" in phase && phase.attempt === 2),
        WAIT_MS_MAX,
      );
      expect(isTriedAgain.coordinationId).toBe("page-retried");
    });
    await stage.gateway.call("coordination.cancel", { coordinationId: "page-retried" });
  });

  it("releases a claim, and the resource is free", async () => {
    stage.teach(
      "Hold a file.",
      call(write("claimed.md", "held\n")),
      gate({ opens: ["file is held"], awaits: ["claim is released"] }),
      { say: "Held." },
    );
    await runPlan(stage, planOf("page-claiming", [stepOf("holds", "Hold a file.")]));
    await openGate(stage, "file is held");
    await visit("#/conflicts", async (page) => {
      await page.getByText("claimed.md").first().waitFor(HOST_WAIT);
      await pushButton(page, "Release");
      expect(await confirm(page, "Release the claim")).toMatch(/✓/u);
      await page.keyboard.press("Escape");
      await page.getByText("Nothing is claimed.").waitFor(HOST_WAIT);
    });
    await stage.gateway.call("writing-tools.open", { gate: "claim is released" });
    await waitForEnd("page-claiming");
  });
});

describe("the tab of the Control UI", () => {
  it("shows the work in the gateway's own dashboard, and says why it may only read", async () => {
    const { port, token } = stage.gateway;
    const watched: WatchedPage = await openPage(browser, "about:blank");
    try {
      const { page } = watched;
      // The host's dashboard goes on loading long after it can be used.
      await page.goto(`http://127.0.0.1:${port}/#token=${token}`, { waitUntil: "commit", ...HOST_WAIT });
      await page.getByText("Coordination").first().click(HOST_WAIT);
      const frame = page.frameLocator("iframe[src*='page-tab']");
      await frame.locator(".feed.live").waitFor(HOST_WAIT);
      await frame.getByText("objective of dropped").first().waitFor(HOST_WAIT);
      await frame.getByRole("link", { name: "Questions", exact: true }).click();
      await frame.getByRole("heading", { name: "Questions", exact: true }).waitFor();
    } finally {
      await watched.context.close();
    }
  });
});

/** As a person drops a file on the page. */
async function dropFile(page: Page, name: string, text: string): Promise<void> {
  await page.locator(".drop").waitFor();
  const transfer = await page.evaluateHandle(
    `(() => { const transfer = new DataTransfer(); transfer.items.add(new File([${JSON.stringify(text)}], ${JSON.stringify(name)})); return transfer; })()`,
  );
  await page.locator(".drop").dispatchEvent("drop", { dataTransfer: transfer });
}

const PLAN = `coordinationId: page-dropped
objective: objective of dropped
ownerSession: ${ownerOf("page-dropped")}
conflictPolicy: { strategy: owner_wins }
failurePolicy: { retryBudget: 0, timeoutPolicy: continue_with_partial, escalationPolicy: none }
steps:
  - { stepId: first, agent: main, task: Begin the dropped plan. }
  - { stepId: second, agent: main, task: End the dropped plan., dependsOn: [first] }
`;
