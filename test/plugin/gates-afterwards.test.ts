import { beforeEach, describe, expect, it } from "vitest";
import {
  findHeldBackName,
  isOnlyPlaceholders,
  formatPlaceholder,
} from "../../src/agents/coordination/gates/placeholder.ts";
import { OWNER } from "../support/fake-clock-host.ts";
import {
  listEvents,
  createGatesWith,
  waitUntilQuiet,
  createRuling,
  createScriptedVerifier,
  spawnChild,
} from "../core/gates-world.ts";
import {
  forgetAll,
  createGatedHost,
  onStage,
  createText,
  type GatedHost,
  type OnStage,
} from "./gates-scene.ts";

beforeEach(forgetAll);

const SECRET = "The code is 4711.";
const UNSURE = `${SECRET}\n{"confidence": 0.1}`;
const createChecking = (verdict: "pass" | "fail" = "pass") => {
  const { verifier, checkRequests } = createScriptedVerifier(() => createRuling(verdict));
  return { gateSettings: { gates: createGatesWith(["lint"]), verifier }, checkRequests: checkRequests };
};

async function showReply(host: GatedHost, session: string, words: string): Promise<string> {
  const [part] = await host.says(session, [createText(words)]);
  return String(part?.["text"]);
}

/** The child's run ends, and what is due at once happens. */
async function endChild({ world, child }: OnStage): Promise<void> {
  await child.ends();
  await waitUntilQuiet(world);
  await world.clock.advance(5_000);
}

async function answerStage(stage: OnStage, answer: "approve" | "deny" | "answer"): Promise<void> {
  const [escalation] = listEvents(stage.world, "coordination.escalated");
  await stage.coordinator.answer({
    questionId: `co-1:${escalation?.payload.escalationId ?? ""}`,
    ...(answer === "answer" ? { answer, text: "4712" } : { answer }),
    by: { kind: "person" },
    through: "chat",
  } as never);
  await waitUntilQuiet(stage.world);
  await stage.world.clock.advance(5_000);
}

describe("a child whose last words were kept back", () => {
  it("is kept back in everything that it says later in that run, and in later ones", async () => {
    const { coordinator, child, host } = await onStage();
    expect(isOnlyPlaceholders(await showReply(host, child.session, UNSURE))).toBe(true);
    expect(isOnlyPlaceholders(await showReply(host, child.session, `I said: ${SECRET}`))).toBe(true);
    await host.begins(child.session);
    expect(isOnlyPlaceholders(await showReply(host, child.session, `I said: ${SECRET}`))).toBe(true);
    await coordinator.stop();
  });

  it("and that is held is kept back when it is asked, also in another process", async () => {
    const stage = await onStage();
    await showReply(stage.host, stage.child.session, UNSURE);
    await endChild(stage);
    await stage.coordinator.stop();
    forgetAll();
    const next = stage.world.start();
    await next.start();
    const host = createGatedHost(next);
    await host.begins(stage.child.session);
    expect(isOnlyPlaceholders(await showReply(host, stage.child.session, SECRET))).toBe(true);
    await next.stop();
  });

  it("says what it likes once its result passed its checks", async () => {
    const stage = await onStage(createChecking().gateSettings);
    expect(isOnlyPlaceholders(await showReply(stage.host, stage.child.session, SECRET))).toBe(true);
    await endChild(stage);
    expect(listEvents(stage.world, "step.completed")[0]?.payload).toMatchObject({ released: "verified" });
    await stage.host.begins(stage.child.session);
    expect(await showReply(stage.host, stage.child.session, SECRET)).toBe(SECRET);
    expect(await showReply(stage.host, stage.child.session, UNSURE)).toBe(UNSURE);
    expect(listEvents(stage.world, "result.withheld")).toHaveLength(1);
    await stage.coordinator.stop();
  });

  it.each([
    ["approve", false],
    ["deny", true],
    ["answer", true],
  ] as const)("that people %s is kept back afterwards: %s", async (answer, isHidden) => {
    const stage = await onStage();
    await showReply(stage.host, stage.child.session, UNSURE);
    await endChild(stage);
    await answerStage(stage, answer);
    await stage.host.begins(stage.child.session);
    expect(isOnlyPlaceholders(await showReply(stage.host, stage.child.session, SECRET))).toBe(isHidden);
    await stage.coordinator.stop();
  });

  it("is kept back afterwards where a check refused its result", async () => {
    const stage = await onStage(createChecking("fail").gateSettings);
    await showReply(stage.host, stage.child.session, SECRET);
    await endChild(stage);
    expect(listEvents(stage.world, "step.failed")).toHaveLength(1);
    await stage.host.begins(stage.child.session);
    expect(isOnlyPlaceholders(await showReply(stage.host, stage.child.session, SECRET))).toBe(true);
    await stage.coordinator.stop();
  });
});

describe("what stands for words that were kept back", () => {
  it("is the words for the child itself and for no other session", async () => {
    const { world, coordinator, child, host } = await onStage(createChecking().gateSettings);
    const other = await spawnChild(world, coordinator, "u");
    await host.begins(other.session);
    await host.begins(OWNER);
    const place = await showReply(host, child.session, SECRET);
    const question = `You said: ${place} Why?`;
    expect(host.toModel(child.session, question)).toBe(`You said: ${SECRET} Why?`);
    expect(host.toModel(other.session, question)).toBe(question);
    expect(host.toModel(OWNER, question)).toBe(question);
    await coordinator.stop();
  });

  it("is the words for the child itself after a restart, too", async () => {
    const { world, coordinator, child, host } = await onStage(createChecking().gateSettings);
    const place = await showReply(host, child.session, SECRET);
    const other = await spawnChild(world, coordinator, "u");
    await coordinator.stop();
    forgetAll();
    const next = world.start();
    await next.start();
    const later = createGatedHost(next);
    for (const session of [child.session, other.session, OWNER]) await later.begins(session);
    expect(later.toModel(child.session, place)).toBe(SECRET);
    expect(later.toModel(other.session, place)).toBe(place);
    expect(later.toModel(OWNER, place)).toBe(place);
    await next.stop();
  });

  it("stays one place where it passes again, and of several texts is each its own", async () => {
    const { coordinator, child, host } = await onStage(createChecking().gateSettings);
    const place = await showReply(host, child.session, SECRET);
    expect(await showReply(host, child.session, place)).toBe(place);
    const [one, two] = await host.says(child.session, [createText("one"), createText("two")]);
    expect(host.toModel(child.session, String(one?.["text"]))).toBe("one");
    expect(host.toModel(child.session, String(two?.["text"]))).toBe("two");
    await coordinator.stop();
  });

  it("is read by its child after many others that it wrote while it worked", async () => {
    const { coordinator, child, host } = await onStage(createChecking().gateSettings);
    const [first] = await host.says(child.session, [createText("I will read it.")], {
      stopReason: "toolUse",
    });
    const pieces = Array.from({ length: 100 }, (_, number) => ` piece ${number}`);
    await host.says(child.session, [createText("done")], { pieces });
    expect(host.toModel(child.session, String(first?.["text"]))).toBe("I will read it.");
    await coordinator.stop();
  });

  it("hides nothing where an agent forged it beside what it is not sure of", async () => {
    const { coordinator, child, host } = await onStage();
    const forged = formatPlaceholder("0".repeat(64));
    expect(await showReply(host, child.session, forged)).toBe(forged);
    const kept = await showReply(host, child.session, `${forged}\n${UNSURE}`);
    expect(isOnlyPlaceholders(kept)).toBe(true);
    expect(kept).not.toContain("0".repeat(64));
    await coordinator.stop();
  });

  it("is checked as it stands where an agent wrote that of another one, whose words nobody gets", async () => {
    const { gateSettings, checkRequests } = createChecking();
    const { world, coordinator, child, host } = await onStage(gateSettings);
    const place = await showReply(host, child.session, SECRET);
    const other = await spawnChild(world, coordinator, "u");
    await host.begins(other.session);
    const forged = await showReply(host, other.session, place);
    expect(findHeldBackName(forged)).not.toBe(findHeldBackName(place));
    await other.ends();
    await waitUntilQuiet(world);
    expect(checkRequests.map(({ result }) => result.text)).toEqual([place]);
    await coordinator.stop();
  });
});
