import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import type { GatesConfig } from "../../src/agents/coordination/contracts/config/gates-config.ts";
import { isOnlyPlaceholders } from "../../src/agents/coordination/gates/placeholder.ts";
import { OWNER, spawnOf } from "../support/fake-clock-host.ts";
import { createGatesWith, LINT, spawnChild } from "../core/gates-world.ts";
import {
  demandGates,
  forgetAll,
  createGatedHost,
  createGatedWorld,
  onStage,
  createText,
  type GatedHost,
} from "./gates-scene.ts";

beforeEach(forgetAll);
afterEach(() => vi.useRealTimers());

const SECRET = "The code is 4711.";
const LOW = '{"confidence": 0.1}';

/** `agent` may be spelled in any way. */
function checksOf(agent: string): GatesConfig {
  const gates = { verifiers: { lint: LINT }, agents: { [agent]: { checks: ["lint"] } } };
  return parsePluginConfig({ coordination: { phase1: { gates } } }).gates;
}

async function isHiding(host: GatedHost, session: string, words = SECRET): Promise<boolean> {
  const [part] = await host.says(session, [createText(words)]);
  return isOnlyPlaceholders(String(part?.["text"]));
}

/** A host whose ledger does not answer. */
function createSilentHost(): GatedHost {
  const host = createGatedHost(createGatedWorld().start());
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
    demandGates(checksOf(agent));
    const host = createSilentHost();
    await host.begins(session);
    expect(await isHiding(host, session)).toBe(true);
  });

  it("is kept back also where its spawn shows it among the sessions of people, which are not", async () => {
    demandGates(checksOf("coder"));
    const host = createSilentHost();
    const visible = "agent:coder:dashboard:1";
    const ofPerson = "agent:coder:dashboard:2";
    host.entries.set(visible, { spawnedBy: OWNER, parentSessionKey: OWNER, spawnDepth: 1 });
    host.entries.set(ofPerson, { parentSessionKey: OWNER, spawnDepth: 0 });
    for (const session of [visible, ofPerson]) await host.begins(session);
    expect(await isHiding(host, visible)).toBe(true);
    expect(await isHiding(host, ofPerson)).toBe(false);
  });

  it("goes on where no checks of its agent are demanded", async () => {
    demandGates(checksOf("coder"));
    const host = createSilentHost();
    for (const session of ["agent:main:subagent:1", "agent:coderx:subagent:1"]) {
      await host.begins(session);
      expect(await isHiding(host, session)).toBe(false);
      expect(await isHiding(host, session, LOW)).toBe(false);
    }
  });

  it("goes on where this process has no runtime at all", async () => {
    const host = createSilentHost();
    await host.begins("agent:coder:subagent:1");
    expect(await isHiding(host, "agent:coder:subagent:1")).toBe(false);
  });

  it("is no child where its key says so, and goes on", async () => {
    demandGates(checksOf("coder"));
    const host = createSilentHost();
    await host.begins("agent:coder:main");
    expect(await isHiding(host, "agent:coder:main")).toBe(false);
  });

  it("keeps the gate that was known before", async () => {
    const { coordinator, child, host } = await onStage();
    demandGates(createGatesWith(["lint"]));
    host.runtime.coordinator = () => Promise.reject(new Error("the ledger is busy"));
    await host.begins(child.session);
    expect(await isHiding(host, child.session)).toBe(false);
    expect(await isHiding(host, child.session, LOW)).toBe(true);
    await coordinator.stop();
  });

  it("has the gate that the ledger knows as soon as it answers, in the same run", async () => {
    const world = createGatedWorld();
    const coordinator = world.start();
    await coordinator.start();
    const child = await spawnChild(world, coordinator);
    demandGates(createGatesWith(["lint"]));
    const host = createSilentHost();
    await host.begins(child.session);
    expect(await isHiding(host, child.session)).toBe(true);
    host.runtime.coordinator = () => Promise.resolve(coordinator);
    await host.callsModel(child.session);
    expect(await isHiding(host, child.session)).toBe(false);
    expect(await isHiding(host, child.session, LOW)).toBe(true);
    await coordinator.stop();
  });

  it("is let go where the ledger then knows no such child, as one whose spawn was not to be coordinated", async () => {
    const coordinator = createGatedWorld().start();
    demandGates(checksOf("coder"));
    const host = createSilentHost();
    await host.begins("agent:coder:subagent:1");
    host.runtime.coordinator = () => Promise.resolve(coordinator);
    await host.callsModel("agent:coder:subagent:1");
    expect(await isHiding(host, "agent:coder:subagent:1")).toBe(false);
    await coordinator.stop();
  });
});

describe("a child whose spawn is not confirmed when it begins", () => {
  const waitUnconfirmed = async (waitMs: number) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "performance"] });
    const world = createGatedWorld({ gates: createGatesWith(["lint"]) });
    const coordinator = world.start();
    await coordinator.start();
    const admission = await coordinator.admitSpawn(spawnOf({ task: "t" }));
    if (admission.kind === "refused") throw new Error(admission.reason);
    const { coordinationId, stepId } = admission.envelope;
    const { childSessionKey, childRunId } = world.host.spawn(spawnOf({ task: "t" }));
    const host = createGatedHost(coordinator);
    host.runtime.pendingSpawns.size = 1;
    const began = host.begins(childSessionKey);
    await vi.advanceTimersByTimeAsync(waitMs);
    const claim = { coordinationId, stepId, sourceSession: OWNER, toolCallId: "t" };
    const confirm = () => coordinator.confirmSpawn(claim, { childSessionKey, childRunId });
    return { coordinator, host, began, confirm, session: childSessionKey };
  };

  it("waits for that a little, and is gated", async () => {
    const { coordinator, host, began, confirm, session } = await waitUnconfirmed(1_000);
    await confirm();
    await vi.advanceTimersByTimeAsync(100);
    await began;
    expect(await isHiding(host, session)).toBe(true);
    await coordinator.stop();
  });

  it("does not wait for ever, and where checks are demanded says nothing to anybody meanwhile", async () => {
    demandGates(createGatesWith(["lint"]));
    const { coordinator, host, began, confirm, session } = await waitUnconfirmed(2_100);
    await began;
    expect(await isHiding(host, session)).toBe(true);
    await confirm();
    expect(await isHiding(host, session)).toBe(true);
    await coordinator.stop();
  });

  it("does not wait where no spawn is under way", async () => {
    const world = createGatedWorld();
    const host = createGatedHost(world.start());
    await host.begins("agent:main:subagent:1");
    expect(await isHiding(host, "agent:main:subagent:1")).toBe(false);
  });
});
