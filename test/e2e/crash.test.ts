import { setTimeout as passed } from "node:timers/promises";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isEnded } from "../../src/agents/coordination/ledger/state.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { renderScript } from "../support/scripted-model.ts";
import { openPage, startBrowser, type WatchedPage } from "../page/browser.ts";
import { startCable, type Cable } from "../page/cable.ts";
import { hasEnded, openStage, stepNamed, type Known, type Stage } from "./stage.ts";

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

const SESSION = "agent:main:crash";
const ROUNDS = chooseCampaignSize("GATEWAY_KILLS", { short: 1, long: 10 });
/** So many sessions spawn one after the other, so that a kill meets each at another stage of its spawns. */
const SESSIONS = 6;
const STAGGER_MS = 80;

const nameSession = (round: number, index: number): string => `agent:main:round-${round}-${index}`;
const SPAWNING_SESSIONS = Array.from({ length: ROUNDS * SESSIONS }, (_, index) =>
  nameSession(Math.floor(index / SESSIONS), index % SESSIONS),
);

/** Ends when the last session's first spawn is recorded, and waits for no turn. */
async function spawnInSessions(round: number): Promise<void> {
  const spawn = ["one", "two"].map((label) => ({ label, task: renderScript({ delayMs: 500, say: label }) }));
  const message = renderScript({ spawn }, { say: "ok" });
  for (let index = 0; index < SESSIONS; index += 1) {
    const turn = stage.gateway.agent({ sessionKey: nameSession(round, index), message });
    turn.catch(() => undefined);
    await passed(STAGGER_MS);
  }
  await stage.until(nameSession(round, SESSIONS - 1), () => true);
}

/** Every session whose model spawns. The first one has children before any kill. */
const SOURCES = [SESSION, ...SPAWNING_SESSIONS];

/** Lists the children of these sessions, as the host recorded them. It lists a session's own turns, too. */
async function listHostChildren(): Promise<string[]> {
  const { stdout } = await stage.gateway.openclaw(["tasks", "list", "--json"]);
  const { tasks } = JSON.parse(stdout) as {
    tasks: { requesterSessionKey?: string; childSessionKey?: string }[];
  };
  return tasks.flatMap(({ requesterSessionKey = "", childSessionKey }) =>
    childSessionKey?.includes(":subagent:") && SOURCES.includes(requesterSessionKey) ? [childSessionKey] : [],
  );
}

/** Lists the steps that each child works on, over all coordinations of these sessions. */
async function listStepsByChild(): Promise<Map<string, Set<string>>> {
  const steps = new Map<string, Set<string>>();
  for (const session of SOURCES)
    for (const state of await stage.of(session))
      for (const { type, runId, payload } of await stage.events(state))
        if (type === "step.acknowledged")
          steps.set(
            payload.childSessionKey,
            (steps.get(payload.childSessionKey) ?? new Set<string>()).add(`${runId}/${payload.stepId}`),
          );
  return steps;
}

describe("kill -9 of the gateway", () => {
  let shown: WatchedPage;
  let before: Known | undefined;

  // A start takes half a minute: one kill serves all tests.
  beforeAll(async () => {
    const spawn = [
      { label: "quick", task: renderScript({ say: "quick result" }) },
      { label: "slow", task: renderScript({ delayMs: 60_000, say: "never" }) },
    ];
    await stage.gateway.agent({ sessionKey: SESSION, message: renderScript({ spawn }, { say: "ok" }) });
    before = await stage.until(SESSION, (state) => stepNamed(state, "quick").phase.status === "completed");
    shown = await openLivePage();
    await shown.page.getByText(SESSION).first().waitFor(HOST_WAIT);
    for (let round = 0; round < ROUNDS; round += 1) {
      await spawnInSessions(round);
      await stage.gateway.kill9();
      expect((await stage.verify()).problems).toEqual([]);
      await shown.page.getByText("Connection lost").waitFor(HOST_WAIT);
      await stage.restart();
    }
    cable.plugIn(stage.gateway.port);
  }, 200_000 * ROUNDS);

  it("under an open page, which says how to get in again and keeps what it showed", async () => {
    await shown.page.getByText("The session has ended. Open the page with a new link.").waitFor(HOST_WAIT);
    expect(await shown.page.getByText(SESSION).count()).toBeGreaterThan(0);
    expect(shown.problems).toEqual([]);
    await shown.context.close();

    const again = await openLivePage();
    await again.page.getByText(SESSION).first().waitFor(HOST_WAIT);
    expect(again.problems).toEqual([]);
    await again.context.close();
  });

  it("while children run: each open step gets the host's outcome after the restart, once", async () => {
    const after = await stage.until(SESSION, hasEnded, 120_000);
    expect(after).toMatchObject({ status: "partial", coordinationId: before?.coordinationId });
    expect(stepNamed(after, "slow").phase).toMatchObject({ status: "failed", attempt: 1 });
    const outcomes = (await stage.events(after)).filter(({ type }) =>
      /^step\.(completed|failed|timed_out)$/u.test(type),
    );
    expect(outcomes.map(({ nodeId }) => nodeId).toSorted()).toEqual(["step-1", "step-2"]);
  });

  it("at every stage of a spawn: no step is lost, none is recorded twice, and the ledger stays sound", async () => {
    for (const session of SPAWNING_SESSIONS) {
      const state = await stage.until(session, hasEnded, 240_000);
      const calls = [...state.steps.values()].map(({ spec }) => spec.call.toolCallId);
      expect(new Set(calls).size).toBe(calls.length);
      const children = [...state.steps.values()].flatMap(({ phase }) =>
        isEnded(phase) && "child" in phase ? [phase.child.childSessionKey] : [],
      );
      expect(new Set(children).size).toBe(children.length);
    }
    const steps = await listStepsByChild();
    const hostChildren = await listHostChildren();
    expect(hostChildren).not.toHaveLength(0);
    // The host makes a child for nothing that is not recorded before, and no two steps share one.
    expect(hostChildren.map((child) => [child, steps.get(child)?.size])).toEqual(
      hostChildren.map((child) => [child, 1]),
    );
    expect((await stage.verify()).problems).toEqual([]);
  });
});
