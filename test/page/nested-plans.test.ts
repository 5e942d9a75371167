/** Owns: the page of work whose agents run plans of their own: their steps are in its tree. */
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { CoordinationId, SessionKey, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { recordCommands } from "../cli/recorded-questions.ts";
import {
  admit,
  dispatch,
  finish,
  nameSessionOfAttempt,
  openPlan,
  planStep,
  startStep,
} from "../core/planned-scene.ts";
import { createAuthor, openingOf, runIdOf, spawnOf } from "../support/ledger-fixtures.ts";
import { createManualClock, openTestLedger, TEST_EPOCH_MS } from "../support/temp-ledger.ts";
import { openAnother } from "./filled-ledger.ts";
import { holdAnswer, settle } from "./held-route.ts";
import { go, openTestBrowser, visitPage, type Play } from "./visit.ts";

/** The server beats every ten seconds. */
const BEAT_WAIT = { timeout: 20_000 };
const CHILD = "agent:main:subagent:child" as SessionKey;

const { folder, browser } = await openTestBrowser();

interface NestedScene {
  readonly id: CoordinationId;
  readonly planId: CoordinationId;
  readonly ledger: string;
  /** The child begins its plan, whose step has the same id as the child's own. */
  beginPlan(): Promise<void>;
  /** The step of the plan is begun. */
  dispatchStep(): Promise<void>;
  startStep(): Promise<void>;
}

/** Opens work with one child. */
async function openNesting(name: string): Promise<NestedScene> {
  const ledger = folder.file(`${name}.sqlite`);
  const [outer, inner] = [createAuthor(`outer-${name}`), createAuthor(`inner-${name}`)];
  const record = async (author: typeof outer, ...commands: readonly Command[]): Promise<void> => {
    const store = await openTestLedger(ledger, { clock: createManualClock() });
    await store.append(author.append(...commands));
    await store.close();
  };
  await record(outer, openingOf(`trace-${name}`), spawnOf("call-1"), acknowledge());
  return {
    id: outer.runId,
    planId: inner.runId,
    ledger,
    beginPlan: () => record(inner, openNested(outer.runId, CHILD), admit(planStep("step-1"))),
    dispatchStep: () => record(inner, dispatch("step-1")),
    startStep: () => record(inner, startStep("step-1")),
  };
}

function acknowledge(): Command {
  const child = { childSessionKey: CHILD, childRunId: "run-of-child", via: "hook" } as const;
  return { type: "acknowledgeStep", stepId: "step-1" as StepId, attempt: 1, ...child };
}

/** Opens a plan of the agent of the first step. */
function openNested(coordinationId: CoordinationId, session: SessionKey): Command {
  const parent = { coordinationId, stepId: "step-1", attempt: 1 };
  return { ...openPlan({ steps: 1 }), ownerSession: session, parent } as Command;
}

const visit = ({ ledger }: NestedScene, play: Play): Promise<void> => visitPage({ browser, ledger }, play);

/** The step of the plan, below the step whose agent runs it. */
const findInner = (page: Page) => page.locator(".tree li li li .leaf");

it("the tree follows plans that its agents begin while somebody looks, and their steps", async () => {
  const nesting = await openNesting("followed");
  await visit(nesting, async ({ page }) => {
    await go(page, `#/runs/${nesting.id}/graph`);
    await page.locator(".tree li li .leaf").waitFor();
    await nesting.beginPlan();
    await findInner(page).locator(".status.waiting").waitFor();
    await nesting.dispatchStep();
    await findInner(page).locator(".status.dispatched").waitFor();
    await nesting.startStep();
    await findInner(page).locator(".status.running").waitFor();
  });
});

it("the tree has what happened in a plan while the page read of it for the first time", async () => {
  const nesting = await openNesting("read-meanwhile");
  await nesting.beginPlan();
  await visit(nesting, async ({ page }) => {
    const hold = await holdAnswer(page, new RegExp(`/api/runs/${nesting.id}$`, "u"));
    await go(page, `#/runs/${nesting.id}/graph`);
    await hold.arrived;
    await page.evaluate(LISTEN);
    await nesting.dispatchStep();
    await page.evaluate("window.changeOfTest");
    hold.release();
    await findInner(page).locator(".status.dispatched").waitFor();
  });
});

/** Keeps a promise that is fulfilled as soon as the page was told of a change, and does not wait for it. */
const LISTEN = `(() => {
  window.changeOfTest = new Promise((resolve) => {
    document.querySelector("coordination-page").page.feed.listen({
      onChange: resolve,
      onBeat: () => undefined,
      onState: () => undefined,
    });
  });
})()`;

it("a step of a plan in the tree leads to that step, whatever ids the work itself has", async () => {
  const nesting = await openNesting("led");
  await nesting.beginPlan();
  await visit(nesting, async ({ page }) => {
    await go(page, `#/runs/${nesting.id}/graph?step=step-1`);
    await findInner(page).waitFor();
    expect(await page.locator(".leaf.picked").count()).toBe(1);
    await findInner(page).getByRole("link", { name: "step-1" }).click();
    await page.waitForURL(`**#/runs/${nesting.planId}/graph?step=step-1`);
    await page.locator(".node.picked").waitFor();
    await page.locator("step-panel .status.waiting").waitFor();
  });
});

it("the tree of work that has ended follows the plans that outlive it, and what their agents begin", async () => {
  const ledger = folder.file("outlived.sqlite");
  const [outer, inner, innermost] = [runIdOf("outlived"), runIdOf("outliving"), runIdOf("innermost")];
  const record = async (runId: CoordinationId, ...commands: readonly Command[]): Promise<void> => {
    const store = await openTestLedger(ledger, { clock: createManualClock() });
    const atMs = Date.now() - TEST_EPOCH_MS;
    await recordCommands(
      store,
      runId,
      commands.map((command) => [atMs, command]),
    );
    await store.close();
  };
  const beginPlan = (runId: CoordinationId, parent: CoordinationId, session: SessionKey): Promise<void> =>
    record(
      runId,
      openNested(parent, session),
      admit(planStep("step-1")),
      dispatch("step-1"),
      startStep("step-1"),
    );
  await record(outer, openingOf("trace-outlived"), spawnOf("call-1"), acknowledge());
  await beginPlan(inner, outer, CHILD);
  await record(outer, finish("step-1", 1, { via: "hook" }), { type: "settleCoordination" });
  await visitPage({ browser, ledger }, async ({ page }) => {
    await go(page, `#/runs/${outer}/graph`);
    await page.locator(".facts .status.success").waitFor();
    const duration = findInner(page).locator(".quiet").last();
    const before = await duration.textContent();
    await expect.poll(() => duration.textContent(), BEAT_WAIT).not.toBe(before);
    await beginPlan(innermost, inner, nameSessionOfAttempt("step-1"));
    await page.locator(".tree li li li li .leaf .status.running").waitFor();
  });
});

it("work is not read anew for a coordination that begins elsewhere", async () => {
  const nesting = await openNesting("elsewhere");
  await visit(nesting, async ({ page }) => {
    await go(page, `#/runs/${nesting.id}/graph`);
    await page.locator(".tree li li .leaf").waitFor();
    await settle(page);
    const readings: string[] = [];
    page.on("request", (request) => readings.push(request.url()));
    await page.evaluate(LISTEN);
    await openAnother(nesting.ledger, "stranger");
    await page.evaluate("window.changeOfTest");
    await settle(page);
    expect(readings.filter((address) => address.includes(nesting.id))).toEqual([]);
  });
});
