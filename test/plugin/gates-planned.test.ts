import { beforeEach, describe, expect, it, vi } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { isOnlyPlaceholders, formatPlaceholder } from "../../src/agents/coordination/gates/placeholder.ts";
import type { GivenGates } from "../support/gate-dependencies.ts";
import { createScriptedRunner } from "../support/scripted-runner.ts";
import {
  createGatesWith,
  waitUntilQuiet,
  createRuling,
  createScriptedVerifier,
  type Answers,
} from "../core/gates-world.ts";
import { plan, createRetries, step, submitTo, type Fields } from "../core/planned-world.ts";
import { forgetAll, createGatedHost, createGatedWorld, createText, type GatedHost } from "./gates-scene.ts";

beforeEach(forgetAll);

const SECRET = "The code is 4711.";
const LOW = '{"confidence": 0.1}';
const LINTED = ["lint"] as const;

/** A plan of one step `a` whose agent works until the test ends it. */
async function startWorking(gateSettings: GivenGates, fields: Fields = {}) {
  const world = createGatedWorld(
    gateSettings,
    createScriptedRunner(() => "work"),
  );
  const run = await submitTo(world, plan([step("a", fields)]));
  const findSession = (): string => run.ordersOf("a").at(-1)?.childSessionKey ?? "";
  const endWith = async (reply: string): Promise<void> => {
    world.plans.end("a", { outcome: "completed", reply });
    await waitUntilQuiet(world);
  };
  return { world: world, run, session: findSession, endsWith: endWith };
}

const createCheckedBy = (answers: Answers) => {
  const { verifier, checkRequests } = createScriptedVerifier(answers);
  return { checkRequests: checkRequests, gateSettings: { gates: createGatesWith(LINTED), verifier } };
};

async function showReply(host: GatedHost, session: string, ...words: readonly string[]): Promise<string> {
  const written = await host.says(session, words.map(createText));
  return written.map((part) => String(part["text"])).join("\n");
}

describe("a planned step whose reply is only what stands for its words", () => {
  it("is checked on the words", async () => {
    const { checkRequests, gateSettings } = createCheckedBy(() => createRuling("pass"));
    const { run, session, endsWith } = await startWorking(gateSettings);
    const host = createGatedHost(run.coordinator);
    await host.begins(session());
    await endsWith(await showReply(host, session(), '{"n": 1}'));
    expect(checkRequests.map(({ result }) => result.outputs)).toEqual([{ n: 1 }]);
    expect(run.events("step.completed")[0]?.payload).toMatchObject({ released: "verified" });
    await run.close();
  });

  it("is ruled on by the confidence of the words, also in another process", async () => {
    const { run, session, endsWith } = await startWorking({});
    const host = createGatedHost(run.coordinator);
    await host.begins(session());
    const reply = await showReply(host, session(), SECRET, LOW);
    expect(reply).not.toContain("4711");
    await run.restart(forgetAll);
    // A host that showed one of the texts as it was does not make the result surer.
    await endsWith(`${SECRET}\n${reply.split("\n").at(-1) ?? ""}`);
    expect(run.events("result.held")[0]?.payload).toMatchObject({ confidence: 1_000 });
    expect(run.events("step.completed")).toEqual([]);
    await run.close();
  });

  it("has no such place in its outputs, also where the host showed a part of it as it was", async () => {
    const { checkRequests, gateSettings } = createCheckedBy(() => createRuling("pass"));
    const { run, session, endsWith } = await startWorking(gateSettings);
    const host = createGatedHost(run.coordinator);
    await host.begins(session());
    const reply = await showReply(host, session(), SECRET, "That is all.");
    await run.restart(forgetAll);
    await endsWith(`${SECRET}\n${reply.split("\n").at(-1) ?? ""}`);
    expect(checkRequests.map(({ result }) => result.outputs)).toEqual([{ text: `${SECRET}\nThat is all.` }]);
    await run.close();
  });

  it("is checked on the words that this process knows where they could not be kept", async () => {
    const { checkRequests, gateSettings } = createCheckedBy(() => createRuling("pass"));
    const { run, session, endsWith } = await startWorking(gateSettings);
    const host = createGatedHost(run.coordinator);
    await host.begins(session());
    host.runtime.coordinator = () => Promise.reject(new Error("the ledger is busy"));
    await endsWith(await showReply(host, session(), '{"n": 1}'));
    // The failure is reported to the operator first, by code that is loaded for it.
    await vi.waitFor(() => {
      expect(checkRequests.map(({ result }) => result.outputs)).toEqual([{ n: 1 }]);
    }, 10_000);
    await run.close();
  });

  it("fails where no process knows the words any more", async () => {
    const { run, endsWith } = await startWorking({});
    await endsWith(formatPlaceholder("0".repeat(64)));
    expect(run.events("step.failed")[0]?.payload.error).toMatchObject({ code: "result_lost" });
    await run.close();
  });

  it("is taken at its words where it only quotes such a place", async () => {
    const { run, endsWith } = await startWorking({});
    const quoting = `It said ${formatPlaceholder("0".repeat(64))} and nothing else.`;
    await endsWith(JSON.stringify({ found: quoting }));
    expect(run.events("step.completed")).toHaveLength(1);
    await run.close();
  });
});

describe("the session of an attempt that was refused", () => {
  it("is kept back for ever, also when a later attempt in another session was let through", async () => {
    const { gateSettings } = createCheckedBy((_, time) => createRuling(time === 1 ? "fail" : "pass"));
    const { world, run, session, endsWith } = await startWorking(gateSettings, createRetries(1));
    const host = createGatedHost(run.coordinator);
    const first = session();
    await host.begins(first);
    await endsWith(await showReply(host, first, '{"n": 1}'));
    await world.clock.advance(5_000);
    const second = session();
    expect(second).not.toBe(first);
    await host.begins(second);
    await endsWith(await showReply(host, second, '{"n": 2}'));
    expect(run.events("step.completed")[0]?.payload).toMatchObject({ attempt: 2, released: "verified" });
    await host.begins(first);
    expect(isOnlyPlaceholders(await showReply(host, first, "I said 1."))).toBe(true);
    await host.begins(second);
    expect(await showReply(host, second, "I said 2.")).toBe("I said 2.");
    await run.close();
  });
});

describe("the session of an attempt that was not sure", () => {
  it("is kept back for ever, also when a later attempt in another session was sure", async () => {
    const { world, run, session, endsWith } = await startWorking({}, createRetries(1));
    const host = createGatedHost(run.coordinator);
    const first = session();
    const unsure = { outcome: "completed", outputs: { code: SECRET }, confidence: 0.1 } as const;
    await run.coordinator.report(first as never, unsure);
    world.plans.end("a", { outcome: "failed", message: "it broke" });
    await waitUntilQuiet(world);
    await world.clock.advance(5_000);
    await endsWith('{"n": 2}');
    expect(run.events("step.completed")[0]?.payload).toMatchObject({ attempt: 2 });
    await host.begins(first);
    expect(isOnlyPlaceholders(await showReply(host, first, SECRET))).toBe(true);
    await run.close();
  });
});

describe("an agent that said as much as one attempt may", () => {
  it("is ruled on by its newest words in the attempt after that", async () => {
    const { checkRequests, gateSettings } = createCheckedBy((_, time) =>
      createRuling(time === 1 ? "fail" : "pass"),
    );
    const { world, run, session, endsWith } = await startWorking(gateSettings, createRetries(1));
    const host = createGatedHost(run.coordinator);
    await host.begins(session());
    let reply = "";
    for (let number = 1; number <= BOUNDS.withheldTextsMax; number += 1)
      reply = await showReply(host, session(), `{"n": ${number}}`);
    await endsWith(reply);
    await world.clock.advance(5_000);
    await host.begins(session());
    reply = await showReply(host, session(), '{"n": "new"}');
    await run.restart(forgetAll);
    await endsWith(reply);
    expect(checkRequests.map(({ result }) => result.outputs)).toEqual([
      { n: BOUNDS.withheldTextsMax },
      { n: "new" },
    ]);
    await run.close();
  });
});
