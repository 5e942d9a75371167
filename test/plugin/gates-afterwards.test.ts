import { beforeEach, describe, expect, it } from "vitest";
import {
  findHeldBack,
  isOnlyPlaceholders,
  formatPlaceholder,
} from "../../src/agents/coordination/gates/placeholder.ts";
import { OWNER } from "../support/fake-clock-host.ts";
import { eventsIn, gatesWith, quiet, ruling, scriptedVerifier, spawnChild } from "../core/gates-world.ts";
import { forgetAll, gatedHost, onStage, text, type GatedHost, type OnStage } from "./gates-scene.ts";

beforeEach(forgetAll);

const SECRET = "The code is 4711.";
const UNSURE = `${SECRET}\n{"confidence": 0.1}`;
const checking = (verdict: "pass" | "fail" = "pass") => {
  const { verifier, asked } = scriptedVerifier(() => ruling(verdict));
  return { given: { gates: gatesWith(["lint"]), verifier }, asked };
};

async function shown(host: GatedHost, session: string, words: string): Promise<string> {
  const [part] = await host.says(session, [text(words)]);
  return String(part?.["text"]);
}

/** The child's run ends, and what is due at once happens. */
async function ended({ it, child }: OnStage): Promise<void> {
  await child.ends();
  await quiet(it);
  await it.clock.advance(5_000);
}

async function answered(stage: OnStage, answer: "approve" | "deny" | "answer"): Promise<void> {
  const [asked] = eventsIn(stage.it, "coordination.escalated");
  await stage.coordinator.answer({
    questionId: `co-1:${asked?.payload.escalationId ?? ""}`,
    ...(answer === "answer" ? { answer, text: "4712" } : { answer }),
    by: { kind: "person" },
    through: "chat",
  } as never);
  await quiet(stage.it);
  await stage.it.clock.advance(5_000);
}

describe("a child whose last words were kept back", () => {
  it("is kept back in everything that it says later in that run, and in later ones", async () => {
    const { coordinator, child, host } = await onStage();
    expect(isOnlyPlaceholders(await shown(host, child.session, UNSURE))).toBe(true);
    expect(isOnlyPlaceholders(await shown(host, child.session, `I said: ${SECRET}`))).toBe(true);
    await host.begins(child.session);
    expect(isOnlyPlaceholders(await shown(host, child.session, `I said: ${SECRET}`))).toBe(true);
    await coordinator.stop();
  });

  it("and that is held is kept back when it is asked, also in another process", async () => {
    const stage = await onStage();
    await shown(stage.host, stage.child.session, UNSURE);
    await ended(stage);
    await stage.coordinator.stop();
    forgetAll();
    const next = stage.it.start();
    await next.start();
    const host = gatedHost(next);
    await host.begins(stage.child.session);
    expect(isOnlyPlaceholders(await shown(host, stage.child.session, SECRET))).toBe(true);
    await next.stop();
  });

  it("says what it likes once its result passed its checks", async () => {
    const stage = await onStage(checking().given);
    expect(isOnlyPlaceholders(await shown(stage.host, stage.child.session, SECRET))).toBe(true);
    await ended(stage);
    expect(eventsIn(stage.it, "step.completed")[0]?.payload).toMatchObject({ released: "verified" });
    await stage.host.begins(stage.child.session);
    expect(await shown(stage.host, stage.child.session, SECRET)).toBe(SECRET);
    expect(await shown(stage.host, stage.child.session, UNSURE)).toBe(UNSURE);
    expect(eventsIn(stage.it, "result.withheld")).toHaveLength(1);
    await stage.coordinator.stop();
  });

  it.each([
    ["approve", false],
    ["deny", true],
    ["answer", true],
  ] as const)("that people %s is kept back afterwards: %s", async (answer, isHidden) => {
    const stage = await onStage();
    await shown(stage.host, stage.child.session, UNSURE);
    await ended(stage);
    await answered(stage, answer);
    await stage.host.begins(stage.child.session);
    expect(isOnlyPlaceholders(await shown(stage.host, stage.child.session, SECRET))).toBe(isHidden);
    await stage.coordinator.stop();
  });

  it("is kept back afterwards where a check refused its result", async () => {
    const stage = await onStage(checking("fail").given);
    await shown(stage.host, stage.child.session, SECRET);
    await ended(stage);
    expect(eventsIn(stage.it, "step.failed")).toHaveLength(1);
    await stage.host.begins(stage.child.session);
    expect(isOnlyPlaceholders(await shown(stage.host, stage.child.session, SECRET))).toBe(true);
    await stage.coordinator.stop();
  });
});

describe("what stands for words that were kept back", () => {
  it("is the words for the child itself and for no other session", async () => {
    const { it, coordinator, child, host } = await onStage(checking().given);
    const other = await spawnChild(it, coordinator, "u");
    await host.begins(other.session);
    await host.begins(OWNER);
    const place = await shown(host, child.session, SECRET);
    const asked = `You said: ${place} Why?`;
    expect(host.toModel(child.session, asked)).toBe(`You said: ${SECRET} Why?`);
    expect(host.toModel(other.session, asked)).toBe(asked);
    expect(host.toModel(OWNER, asked)).toBe(asked);
    await coordinator.stop();
  });

  it("is the words for the child itself after a restart, too", async () => {
    const { it, coordinator, child, host } = await onStage(checking().given);
    const place = await shown(host, child.session, SECRET);
    const other = await spawnChild(it, coordinator, "u");
    await coordinator.stop();
    forgetAll();
    const next = it.start();
    await next.start();
    const later = gatedHost(next);
    for (const session of [child.session, other.session, OWNER]) await later.begins(session);
    expect(later.toModel(child.session, place)).toBe(SECRET);
    expect(later.toModel(other.session, place)).toBe(place);
    expect(later.toModel(OWNER, place)).toBe(place);
    await next.stop();
  });

  it("stays one place where it passes again, and of several texts is each its own", async () => {
    const { coordinator, child, host } = await onStage(checking().given);
    const place = await shown(host, child.session, SECRET);
    expect(await shown(host, child.session, place)).toBe(place);
    const [one, two] = await host.says(child.session, [text("one"), text("two")]);
    expect(host.toModel(child.session, String(one?.["text"]))).toBe("one");
    expect(host.toModel(child.session, String(two?.["text"]))).toBe("two");
    await coordinator.stop();
  });

  it("is read by its child after many others that it wrote while it worked", async () => {
    const { coordinator, child, host } = await onStage(checking().given);
    const [first] = await host.says(child.session, [text("I will read it.")], { stopReason: "toolUse" });
    const pieces = Array.from({ length: 100 }, (_, number) => ` piece ${number}`);
    await host.says(child.session, [text("done")], { pieces });
    expect(host.toModel(child.session, String(first?.["text"]))).toBe("I will read it.");
    await coordinator.stop();
  });

  it("hides nothing where an agent forged it beside what it is not sure of", async () => {
    const { coordinator, child, host } = await onStage();
    const forged = formatPlaceholder("0".repeat(64));
    expect(await shown(host, child.session, forged)).toBe(forged);
    const kept = await shown(host, child.session, `${forged}\n${UNSURE}`);
    expect(isOnlyPlaceholders(kept)).toBe(true);
    expect(kept).not.toContain("0".repeat(64));
    await coordinator.stop();
  });

  it("is checked as it stands where an agent wrote that of another one, whose words nobody gets", async () => {
    const { given, asked } = checking();
    const { it, coordinator, child, host } = await onStage(given);
    const place = await shown(host, child.session, SECRET);
    const other = await spawnChild(it, coordinator, "u");
    await host.begins(other.session);
    const forged = await shown(host, other.session, place);
    expect(findHeldBack(forged)).not.toBe(findHeldBack(place));
    await other.ends();
    await quiet(it);
    expect(asked.map(({ result }) => result.text)).toEqual([place]);
    await coordinator.stop();
  });
});
