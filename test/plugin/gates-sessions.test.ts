import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import type { GatesConfig } from "../../src/agents/coordination/contracts/config/gates-config.ts";
import { isOnlyPlaceholders } from "../../src/agents/coordination/gates/placeholder.ts";
import { OWNER, spawnOf } from "../support/fake-clock-host.ts";
import { gatesWith, LINT, spawnChild } from "../core/gates-world.ts";
import { demanding, forgetAll, gatedHost, gatedWorld, onStage, text, type GatedHost } from "./gates-scene.ts";

beforeEach(forgetAll);
afterEach(() => vi.useRealTimers());

const SECRET = "The code is 4711.";
const LOW = '{"confidence": 0.1}';

/** `agent` may be spelled in any way. */
function checksOf(agent: string): GatesConfig {
  const gates = { verifiers: { lint: LINT }, agents: { [agent]: { checks: ["lint"] } } };
  return parsePluginConfig({ coordination: { phase1: { gates } } }).gates;
}

async function hides(host: GatedHost, session: string, words = SECRET): Promise<boolean> {
  const [part] = await host.says(session, [text(words)]);
  return isOnlyPlaceholders(String(part?.["text"]));
}

/** A host whose ledger does not answer. */
function silentHost(): GatedHost {
  const host = gatedHost(gatedWorld().start());
  host.runtime.coordinator = () => Promise.reject(new Error("the ledger is busy"));
  return host;
}

describe("a child of which the ledger does not answer", () => {
  it.each([
    ["coder", "agent:coder:subagent:1"],
    ["CODER", "agent:coder:subagent:1"],
    [" coder", "agent:coder:subagent:1"],
    ["coder", "agent:CODER:subagent:1"],
  ])("is kept back as a whole where checks of %j are demanded: %s", async (agent, session) => {
    demanding(checksOf(agent));
    const host = silentHost();
    await host.begins(session);
    expect(await hides(host, session)).toBe(true);
  });

  it("goes on where no checks of its agent are demanded", async () => {
    demanding(checksOf("coder"));
    const host = silentHost();
    for (const session of ["agent:main:subagent:1", "agent:coderx:subagent:1"]) {
      await host.begins(session);
      expect(await hides(host, session)).toBe(false);
      expect(await hides(host, session, LOW)).toBe(false);
    }
  });

  it("goes on where this process has no runtime at all", async () => {
    const host = silentHost();
    await host.begins("agent:coder:subagent:1");
    expect(await hides(host, "agent:coder:subagent:1")).toBe(false);
  });

  it("is no child where its key says so, and goes on", async () => {
    demanding(checksOf("coder"));
    const host = silentHost();
    await host.begins("agent:coder:main");
    expect(await hides(host, "agent:coder:main")).toBe(false);
  });

  it("keeps the gate that was known before", async () => {
    const { coordinator, child, host } = await onStage();
    demanding(gatesWith(["lint"]));
    host.runtime.coordinator = () => Promise.reject(new Error("the ledger is busy"));
    await host.begins(child.session);
    expect(await hides(host, child.session)).toBe(false);
    expect(await hides(host, child.session, LOW)).toBe(true);
    await coordinator.stop();
  });

  it("has the gate that the ledger knows as soon as it answers, in the same run", async () => {
    const it = gatedWorld();
    const coordinator = it.start();
    await coordinator.start();
    const child = await spawnChild(it, coordinator);
    demanding(gatesWith(["lint"]));
    const host = silentHost();
    await host.begins(child.session);
    expect(await hides(host, child.session)).toBe(true);
    host.runtime.coordinator = () => Promise.resolve(coordinator);
    await host.callsModel(child.session);
    expect(await hides(host, child.session)).toBe(false);
    expect(await hides(host, child.session, LOW)).toBe(true);
    await coordinator.stop();
  });

  it("is let go where the ledger then knows no such child", async () => {
    const coordinator = gatedWorld().start();
    demanding(checksOf("coder"));
    const host = silentHost();
    await host.begins("agent:coder:subagent:1");
    host.runtime.coordinator = () => Promise.resolve(coordinator);
    await host.callsModel("agent:coder:subagent:1");
    expect(await hides(host, "agent:coder:subagent:1")).toBe(false);
    await coordinator.stop();
  });
});

describe("a child whose spawn is not confirmed when it begins", () => {
  const unconfirmed = async (waitMs: number) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "performance"] });
    const it = gatedWorld({ gates: gatesWith(["lint"]) });
    const coordinator = it.start();
    await coordinator.start();
    const admission = await coordinator.admitSpawn(spawnOf({ task: "t" }));
    if (admission.kind === "refused") throw new Error(admission.reason);
    const { coordinationId, stepId } = admission.envelope;
    const { childSessionKey, childRunId } = it.host.spawn(spawnOf({ task: "t" }));
    const host = gatedHost(coordinator);
    host.runtime.pendingSpawns.size = 1;
    const began = host.begins(childSessionKey);
    await vi.advanceTimersByTimeAsync(waitMs);
    const claim = { coordinationId, stepId, sourceSession: OWNER, toolCallId: "t" };
    const confirm = () => coordinator.confirmSpawn(claim, { childSessionKey, childRunId });
    return { coordinator, host, began, confirm, session: childSessionKey };
  };

  it("waits for that a little, and is gated", async () => {
    const { coordinator, host, began, confirm, session } = await unconfirmed(1_000);
    await confirm();
    await vi.advanceTimersByTimeAsync(100);
    await began;
    expect(await hides(host, session)).toBe(true);
    await coordinator.stop();
  });

  it("does not wait for ever, and where checks are demanded says nothing to anybody meanwhile", async () => {
    demanding(gatesWith(["lint"]));
    const { coordinator, host, began, confirm, session } = await unconfirmed(2_100);
    await began;
    expect(await hides(host, session)).toBe(true);
    await confirm();
    expect(await hides(host, session)).toBe(true);
    await coordinator.stop();
  });

  it("does not wait where no spawn is under way", async () => {
    const it = gatedWorld();
    const host = gatedHost(it.start());
    await host.begins("agent:main:subagent:1");
    expect(await hides(host, "agent:main:subagent:1")).toBe(false);
  });
});
