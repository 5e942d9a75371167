import { describe, expect, it, vi } from "vitest";
import type { AgentId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { createProviderLanes } from "../../src/agents/coordination/runtime/providers/provider-lanes.ts";
import { unshiftedClock } from "../../src/infra/clock/system-clock.ts";
import { createPQueueLanes } from "../../src/infra/lanes/p-queue-lanes.ts";
import { createFakeClock, waitUntilSettled } from "../support/fake-clock.ts";
import { quietLogger } from "../support/ledger-fixtures.ts";

const nameSession = (name: string, agent = "main"): SessionKey =>
  `agent:${agent}:subagent:${name}` as SessionKey;

function openProviders(callDelayMs = 8_000) {
  const clock = createFakeClock();
  const providers = createProviderLanes({
    clock,
    logger: quietLogger,
    rules: { retryAfterMsMax: 600_000, callDelayMs },
    drawFraction: () => 0.5,
  });
  const refuse = (name: string, retryAfterMs?: number): void => {
    const call = { provider: "acme", session: nameSession(name) };
    providers.callBegan(call);
    providers.callRefused(call, retryAfterMs);
  };
  return { clock, providers, refuse };
}

describe("calls of a provider that refused one", () => {
  it("wait until the provider takes calls again, and go on in the order in which they came", async () => {
    const { clock, providers, refuse } = openProviders();
    refuse("a", 3_000);
    const released: string[] = [];
    for (const name of ["b", "c"])
      void providers.takeTurn(nameSession(name), "acme")?.then(() => {
        released.push(name);
        providers.callBegan({ provider: "acme", session: nameSession(name) });
      });
    await clock.advance(2_900);
    expect(released).toEqual([]);
    await clock.advance(100);
    expect(released).toEqual(["b"]);
    await clock.advance(1_040);
    expect(released).toEqual(["b", "c"]);
  });

  it("go on when their hook may wait no longer", async () => {
    const { clock, providers, refuse } = openProviders();
    refuse("a", 60_000);
    let isReleased = false;
    void providers.takeTurn(nameSession("b"), "acme")?.then(() => (isReleased = true));
    await clock.advance(7_999);
    expect(isReleased).toBe(false);
    await clock.advance(1);
    expect(isReleased).toBe(true);
  });

  it("are not held back where another provider refused one", () => {
    const { providers, refuse } = openProviders();
    refuse("a", 60_000);
    expect(providers.takeTurn(nameSession("b"), "beta")).toBeUndefined();
    providers.callBegan({ provider: "beta", session: nameSession("b") });
    expect(providers.takeTurn(nameSession("b"))).toBeUndefined();
  });

  it("wait for the provider that they will call, whichever their session called last", async () => {
    const { clock, providers, refuse } = openProviders();
    refuse("a", 1_000);
    expect(providers.takeTurn(nameSession("a"), "beta")).toBeUndefined();
    providers.callBegan({ provider: "beta", session: nameSession("a") });
    let isReleased = false;
    void providers.takeTurn(nameSession("a"), "acme")?.then(() => (isReleased = true));
    await clock.advance(999);
    expect(isReleased).toBe(false);
    await clock.advance(1);
    expect(isReleased).toBe(true);
  });

  it("take one turn for all tool calls of one message", async () => {
    const { clock, providers, refuse } = openProviders();
    refuse("a", 1_000);
    expect(providers.takeTurn(nameSession("a"))).toBeDefined();
    expect(providers.takeTurn(nameSession("a"))).toBeUndefined();
    await clock.advance(1_000);
    expect(providers.takeTurn(nameSession("a"))).toBeUndefined();
    providers.callBegan({ provider: "acme", session: nameSession("a") });
    expect(providers.takeTurn(nameSession("a"))).toBeDefined();
  });

  it("do not wait for a call that was let go on and never began", async () => {
    const { clock, providers, refuse } = openProviders();
    refuse("a", 1_000);
    void providers.takeTurn(nameSession("b"), "acme");
    await clock.advance(1_000);
    let isReleased = false;
    void providers.takeTurn(nameSession("c"), "acme")?.then(() => (isReleased = true));
    await clock.advance(3_000);
    expect(isReleased).toBe(true);
  });

  it("leave no timer and no waiting call behind when everything stops", async () => {
    const { clock, providers, refuse } = openProviders();
    refuse("a", 60_000);
    const turn = providers.takeTurn(nameSession("b"), "acme");
    providers.stop();
    await turn;
    expect(clock.pending).toBe(0);
  });

  it("and steps go on when it takes calls again, also where the machine's clock was put back meanwhile", async () => {
    vi.useFakeTimers();
    try {
      const providers = createProviderLanes({
        clock: unshiftedClock,
        logger: quietLogger,
        rules: { retryAfterMsMax: 600_000, callDelayMs: 8_000 },
        drawFraction: () => 0.5,
      });
      const call = { provider: "acme", session: nameSession("a") };
      providers.callBegan(call);
      providers.callRefused(call, 3_000);
      let isReleased = false;
      void providers.takeTurn(nameSession("b"), "acme")?.then(() => (isReleased = true));
      vi.setSystemTime(Date.now() - 3_600_000);
      await vi.advanceTimersByTimeAsync(2_900);
      expect([isReleased, providers.canBeginStep("main" as AgentId)]).toEqual([false, false]);
      await vi.advanceTimersByTimeAsync(100);
      expect([isReleased, providers.canBeginStep("main" as AgentId)]).toEqual([true, true]);
      providers.stop();
    } finally {
      vi.useRealTimers();
    }
  });

  it("are held back for a bounded number of providers", () => {
    const { providers } = openProviders();
    const refuseAt = (provider: string) => {
      const call = { provider, session: nameSession(provider) };
      providers.callBegan(call);
      providers.callRefused(call, 60_000);
      return providers.takeTurn(call.session);
    };
    const turns = Array.from({ length: 70 }, (_, index) => refuseAt(`made-up-${index}`));
    expect(turns.filter((turn) => turn !== undefined)).toHaveLength(64);
    providers.stop();
  });
});

/** Lanes whose steps wait for their provider, and when each agent's steps began, in milliseconds from now. */
function openLanes({ clock, providers }: ReturnType<typeof openProviders>) {
  const limits = { control: 1, data: 8, escalation: 1, queueMax: 16, agingMs: 60_000 };
  const lanes = createPQueueLanes(
    { ...limits, perSessionMax: undefined, perAgentMax: undefined },
    clock,
    providers,
  );
  const startMs = clock.now();
  const begun: { readonly agent: string; readonly atMs: number }[] = [];
  const runStep = (agentId: string): void => {
    const request = {
      lane: "data" as const,
      priority: "normal" as const,
      readyAtMs: clock.now(),
      criticalPathMs: 0,
      session: "agent:main:owner" as SessionKey,
      agentId: agentId as AgentId,
    };
    void lanes.run(request, async () => {
      begun.push({ agent: agentId, atMs: clock.now() - startMs });
      await waitUntilSettled();
    });
  };
  return { begun, runStep };
}

describe("steps in their lanes", () => {
  it("wait while the provider of their agent is closed, and those of another provider overtake them", async () => {
    const scene = openProviders();
    const { begun, runStep } = openLanes(scene);
    scene.providers.callBegan({ provider: "beta", session: nameSession("x", "other") });
    scene.refuse("a", 5_000);
    runStep("main");
    runStep("other");
    await scene.clock.advance(5_900);
    expect(begun).toEqual([
      { agent: "other", atMs: 0 },
      { agent: "main", atMs: 5_000 },
    ]);
  });

  it("begin after ten minutes at a provider that names a year", async () => {
    const scene = openProviders();
    const { begun, runStep } = openLanes(scene);
    scene.refuse("a", 365 * 86_400_000);
    runStep("main");
    await scene.clock.advance(3_600_000);
    expect(begun).toEqual([{ agent: "main", atMs: 600_000 }]);
  });

  it("begin at a provider that never names a time, later after each refusal and within a minute", async () => {
    const scene = openProviders();
    const { begun, runStep } = openLanes(scene);
    const startMs = scene.clock.now();
    const waitsMs: number[] = [];
    for (let refusals = 0; refusals < 12; refusals += 1) {
      scene.refuse("a");
      const refusedAtMs = scene.clock.now() - startMs;
      runStep("main");
      await scene.clock.advance(60_000);
      waitsMs.push((begun[refusals]?.atMs ?? Infinity) - refusedAtMs);
    }
    expect(waitsMs.slice(0, 4)).toEqual([187, 375, 750, 1_500]);
    // Between half a minute and a whole one.
    expect(waitsMs.at(-1)).toBe(45_000);
  });

  it("begin as soon as the provider is open, however long its pace lets the next call wait", async () => {
    const scene = openProviders();
    const { clock, providers, refuse } = scene;
    const { begun, runStep } = openLanes(scene);
    for (let call = 0; call < 20; call += 1) {
      providers.callBegan({ provider: "acme", session: nameSession(`first-${call}`) });
      await clock.advance(50);
    }
    for (let call = 0; call < 51; call += 1) {
      refuse(`refused-${call}`, 1_000);
      await clock.advance(1_001);
    }
    refuse("last", 1_000);
    const openAtMs = 20 * 50 + 51 * 1_001 + 1_000;
    runStep("main");
    await clock.advance(300_000);
    expect(begun).toEqual([{ agent: "main", atMs: openAtMs }]);
  });

  it("begin when the calls that were before them have waited as long as they may", async () => {
    const scene = openProviders();
    const { clock, providers, refuse } = scene;
    const { begun, runStep } = openLanes(scene);
    refuse("a", 1_000);
    for (let call = 0; call < 40; call += 1) {
      await clock.advance(1_001);
      refuse("a", 1_000);
    }
    await clock.advance(1_001);
    for (const name of ["b", "c"]) void providers.takeTurn(nameSession(name), "acme");
    const askedAtMs = 41 * 1_001;
    runStep("main");
    await clock.advance(300_000);
    expect(begun).toEqual([{ agent: "main", atMs: askedAtMs + 8_000 }]);
  });
});

describe("an agent that calls another provider than before", () => {
  it("is told of where its steps may begin or wait by that, and only there", () => {
    const { providers, refuse } = openProviders();
    const begin = (provider: string): void =>
      providers.callBegan({ provider, session: nameSession("x", "other") });
    let changes = 0;
    providers.onChange(() => (changes += 1));
    begin("beta");
    begin("gamma");
    expect(changes).toBe(0);
    refuse("a", 60_000);
    expect(changes).toBe(1);
    begin("acme");
    expect(changes).toBe(2);
    begin("beta");
    expect(changes).toBe(3);
    begin("gamma");
    expect(changes).toBe(3);
  });
});

describe("a call that waits for its turn", () => {
  it("goes on when the provider has refused nothing for a minute, before its place in the pace comes", async () => {
    const { clock, providers, refuse } = openProviders(90_000);
    refuse("a", 0);
    for (let call = 0; call < 40; call += 1) {
      await clock.advance(1_000);
      refuse("a", 0);
    }
    const refusedAtMs = clock.now();
    providers.callBegan({ provider: "acme", session: nameSession("a") });
    await clock.advance(1_000);
    let releasedAtMs: number | undefined;
    void providers.takeTurn(nameSession("a"), "acme")?.then(() => (releasedAtMs = clock.now()));
    await clock.advance(80_000);
    expect(releasedAtMs).toBe(refusedAtMs + 60_000);
  });
});
