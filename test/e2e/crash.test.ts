import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isEnded } from "../../src/agents/coordination/ledger/state.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { renderScript } from "../support/scripted-model.ts";
import { openPage, startBrowser, type WatchedPage } from "../page/browser.ts";
import { startCable, type Cable } from "../page/cable.ts";
import { hasEnded, openStage, stepNamed, type Stage } from "./stage.ts";

/** The host takes longer than the page. */
const HOST_WAIT = { timeout: 60_000 };

let stage: Stage;
let browser: Browser;
/** Lies between the browser and the gateway, because a gateway that is started again has another port. */
let cable: Cable;

beforeAll(async () => {
  stage = await openStage();
  browser = await startBrowser();
  cable = await startCable(stage.gateway.port);
});

afterAll(async () => {
  await browser.close();
  await cable[Symbol.asyncDispose]();
  await stage.close();
});

/** A page of the gateway that is signed in and shows what happens. */
async function openLivePage(): Promise<WatchedPage> {
  const { address } = await stage.gateway.call("coordination.page.link");
  const watched = await openPage(
    browser,
    String(address).replace(`:${stage.gateway.port}/`, `:${cable.port}/`),
  );
  await watched.page.locator(".feed.live").waitFor(HOST_WAIT);
  return watched;
}

describe("kill -9 of the gateway", () => {
  let shown: WatchedPage;

  it("while children run: each open step gets the host's outcome after the restart, once", async () => {
    const session = "agent:main:crash";
    const spawn = [
      { label: "quick", task: renderScript({ say: "quick result" }) },
      { label: "slow", task: renderScript({ delayMs: 60_000, say: "never" }) },
    ];
    await stage.gateway.agent({ sessionKey: session, message: renderScript({ spawn }, { say: "ok" }) });
    await stage.until(session, (state) => stepNamed(state, "quick").phase.status === "completed");
    const before = (await stage.of(session)).at(-1);
    shown = await openLivePage();
    await shown.page.getByText(session).first().waitFor(HOST_WAIT);
    await stage.gateway.kill9();
    await shown.page.getByText("Connection lost").waitFor(HOST_WAIT);
    await stage.restart();
    cable.plugIn(stage.gateway.port);
    const after = await stage.until(session, hasEnded, 120_000);
    expect(after).toMatchObject({ status: "partial", coordinationId: before?.coordinationId });
    expect(stepNamed(after, "slow").phase).toMatchObject({ status: "failed", attempt: 1 });
    const outcomes = (await stage.events(after)).filter(({ type }) =>
      /^step\.(completed|failed|timed_out)$/u.test(type),
    );
    expect(outcomes.map(({ nodeId }) => nodeId).toSorted()).toEqual(["step-1", "step-2"]);
  });

  it("under an open page, which says how to get in again and keeps what it showed", async () => {
    await shown.page.getByText("The session has ended. Open the page with a new link.").waitFor(HOST_WAIT);
    expect(await shown.page.getByText("agent:main:crash").count()).toBeGreaterThan(0);
    expect(shown.problems).toEqual([]);
    await shown.context.close();

    const again = await openLivePage();
    await again.page.getByText("agent:main:crash").first().waitFor(HOST_WAIT);
    expect(again.problems).toEqual([]);
    await again.context.close();
  });

  it("at every stage of a spawn: no step is lost, none is recorded twice, and the ledger stays sound", async () => {
    const nameSession = (round: number): string => `agent:main:round-${round}`;
    const rounds = chooseCampaignSize("GATEWAY_KILLS", { short: 2, long: 10 });
    const delaysMs = Array.from(
      { length: rounds },
      (_, round) => 30 + Math.round((370 * round) / (rounds - 1)),
    );
    for (const [round, delayMs] of delaysMs.entries()) {
      const spawn = [
        { label: "one", task: renderScript({ delayMs: 500, say: "one" }) },
        { label: "two", task: renderScript({ delayMs: 500, say: "two" }) },
      ];
      const turn = stage.gateway.agent({
        sessionKey: nameSession(round),
        message: renderScript({ spawn }, { say: "ok" }),
      });
      turn.catch(() => undefined);
      await stage.until(nameSession(round), () => true);
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      await stage.gateway.kill9();
      expect((await stage.verify()).problems).toEqual([]);
      await stage.restart();
    }
    for (const round of delaysMs.keys()) {
      const state = await stage.until(nameSession(round), hasEnded, 240_000);
      const calls = [...state.steps.values()].map(({ spec }) => spec.call.toolCallId);
      expect(new Set(calls).size).toBe(calls.length);
      const children = [...state.steps.values()].flatMap(({ phase }) =>
        isEnded(phase) && "child" in phase ? [phase.child.childSessionKey] : [],
      );
      expect(new Set(children).size).toBe(children.length);
    }
    expect((await stage.verify()).problems).toEqual([]);
  });
});
