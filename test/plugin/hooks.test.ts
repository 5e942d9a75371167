import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { parseHostAgentId } from "../../src/agents/coordination/contracts/host-agent-id.ts";
import { createHookHost } from "../../src/plugins/hooks/hook-host.ts";
import { HOOK_BUDGETS_MS, HOOK_LIMITS } from "../../src/plugins/hooks/hook-limits.ts";
import type { CoordinationHooks } from "../../src/plugins/hooks/hooks.ts";
import {
  sampleContest,
  sampleDecision,
  samplePlanDecision,
  sampleResult,
} from "../../src/plugins/hooks/testing.ts";

import { createFakeClock } from "../support/fake-clock.ts";
import { waitForever, createPlugin, throwSecret } from "./hooks-parts.ts";

const doNothing = (): void => undefined;
const silentLogger = { debug: doNothing, info: doNothing, warn: doNothing, error: doNothing };

const award = (to: "requester" | "holder", reason = "why") => ({ award: to, reason });

describe("no hooks", () => {
  it("leave every question without an opinion", async () => {
    const harness = createPlugin({});
    expect(await harness.arbitrate()).toBeUndefined();
    expect(await harness.decide()).toBeUndefined();
    expect(harness.host.verifiersFor("a")).toEqual([]);
    expect(harness.host.channels()).toEqual([]);
    for (const kind of ["arbitrate", "verify", "decide", "escalate", "observe"] as const)
      expect(harness.host.hasAny(kind)).toBe(false);
  });

  it("copy nothing", async () => {
    const harness = createPlugin({ verify: () => ({ verdict: "pass" }) });
    const trap = {
      get coordinationId(): string {
        return throwSecret();
      },
    } as ReturnType<typeof sampleContest>;
    expect(await harness.arbitrate(trap)).toBeUndefined();
    harness.host.observe([trap as never]);
    await harness.host.observed();
    expect(harness.problems).toEqual([]);
  });
});

describe("arbitrate", () => {
  it("awards a contested write, with the plugin and its reason", async () => {
    const harness = createPlugin({
      arbitrate: ({ resource }) =>
        resource.includes("/vendor/") ? award("holder", "It is vendored.") : undefined,
    });
    expect(await harness.arbitrate(sampleContest({ resource: "file:/w/vendor/a.js" }))).toEqual({
      award: "holder",
      plugin: "guard",
      reason: "It is vendored.",
    });
    expect(await harness.arbitrate()).toBeUndefined();
  });

  it("is asked in order of priority, until a plugin has an opinion", async () => {
    const requests: string[] = [];
    const createOpinion = (name: string, input?: ReturnType<typeof award>) => () => {
      requests.push(name);
      return input;
    };
    const harness = createPlugin(
      { arbitrate: { run: createOpinion("low", award("requester")), priority: -1 } },
      "a-low",
    );
    createPlugin({ arbitrate: createOpinion("b", award("holder")) }, "b");
    createPlugin({ arbitrate: createOpinion("a") }, "a");
    createPlugin({ arbitrate: { run: createOpinion("high"), priority: 7 } }, "z-high");
    expect(await harness.arbitrate()).toMatchObject({ award: "holder", plugin: "b" });
    expect(requests).toEqual(["high", "a", "b"]);
  });

  it("fails closed at the first plugin that fails, and asks no other", async () => {
    createPlugin({ arbitrate: { run: throwSecret, priority: 1 } }, "broken");
    const harness = createPlugin({ arbitrate: () => award("requester") });
    const message = "the hook arbitrate of the plugin broken threw an error";
    expect(await harness.arbitrate()).toEqual({ failed: "broken", message });
    expect(harness.problems).toMatchObject([
      { plugin: "broken", hook: "arbitrate", because: "failed", message },
    ]);
  });

  it("fails when it is late, by its own budget or by that of all together", async () => {
    const harness = createPlugin({ arbitrate: { run: waitForever, budgetMs: 20 } });
    const ruling = harness.arbitrate();
    await harness.clock.advance(20);
    expect(await ruling).toMatchObject({
      message: "the hook arbitrate of the plugin guard did not answer within 20 ms",
    });
    harness.close();
    const slow = createPlugin({ arbitrate: { run: waitForever, budgetMs: 1e9 } });
    const late = slow.arbitrate();
    await slow.clock.advance(HOOK_LIMITS.arbitrateMsMax);
    expect(await late).toMatchObject({ failed: "guard" });
  });

  it("tells by its signal that its answer does not count any more", async () => {
    const signals: AbortSignal[] = [];
    const harness = createPlugin({
      arbitrate: (contest, { signal, deadlineAtMs }) => {
        expect(deadlineAtMs).toBe(harness.clock.now() + HOOK_BUDGETS_MS.arbitrate.usual);
        signals.push(signal);
        return contest.tool === "late" ? waitForever() : award("holder");
      },
    });
    await harness.arbitrate();
    const late = harness.arbitrate(sampleContest({ tool: "late" }));
    await harness.clock.advance(HOOK_BUDGETS_MS.arbitrate.usual);
    await late;
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, true]);
  });

  it("is late also when it kept the thread beyond its time", async () => {
    const clock = createFakeClock();
    const harness = createPlugin({
      arbitrate: () => {
        clock.jump(clock.now() + HOOK_BUDGETS_MS.arbitrate.usual + 1);
        return award("requester");
      },
    });
    const problems: unknown[] = [];
    const onProblem = (problem: unknown): unknown => problems.push(problem);
    const host = createHookHost({ clock, logger: silentLogger, onProblem });
    expect(await host.arbitrate(sampleContest())).toMatchObject({ failed: "guard" });
    expect(problems).toMatchObject([{ because: "timed_out" }]);
    expect(clock.pending).toBe(0);
    expect(harness.logged).toHaveLength(1);
  });
});

describe("verify", () => {
  it("gives the verdict of a plugin, under its name", async () => {
    const harness = createPlugin({
      verify: ({ text }) => ({
        verdict: text.includes("ok") ? "pass" : "revise",
        criteria: ["says.ok", "@typescript-eslint/no-unused-vars"],
        confidence: 0.9,
      }),
    });
    expect(await harness.verify(sampleResult({ text: "ok" }))).toEqual({
      kind: "verdict",
      verdict: "pass",
      criteria: ["says.ok", "@typescript-eslint/no-unused-vars"],
      confidence: 0.9,
      agentId: "plugin:guard",
    });
    expect(await harness.verify()).toMatchObject({
      verdict: "revise",
      criteria: ["says.ok", "@typescript-eslint/no-unused-vars"],
    });
  });

  it("ends with the time of all checks of a result, however long its own is", async () => {
    const harness = createPlugin({ verify: { run: waitForever, budgetMs: 300_000 } });
    const answer = harness.verify();
    await harness.clock.advance(120_000);
    expect(await answer).toMatchObject({ kind: "none", because: "timed_out" });
  });

  it("is for the agents that it names, in order of priority", () => {
    const pass = (): { verdict: "pass" } => ({ verdict: "pass" });
    const harness = createPlugin({ verify: { agents: ["writer"], run: pass } }, "one");
    createPlugin({ verify: { run: pass, priority: 5 } }, "two");
    expect(harness.host.verifiersFor("writer")).toEqual(["plugin:two", "plugin:one"]);
    expect(harness.host.verifiersFor("other")).toEqual(["plugin:two"]);
    expect(harness.isVerified("other")).toBe(false);
  });

  it.each(["Writer", " writer", "WRITER\n", "writer-"])(
    "is for an agent that is named in another spelling: %j",
    (spelling) => {
      const harness = createPlugin({ verify: { agents: [spelling], run: () => ({ verdict: "pass" }) } });
      expect(harness.host.verifiersFor("writer")).toEqual(["plugin:guard"]);
      expect(harness.isVerified("Writer ")).toBe(true);
      expect(harness.isVerified("editor")).toBe(false);
    },
  );

  it("takes two spellings for the same agent exactly where OpenClaw does", () => {
    const id = fc.string({
      unit: fc.constantFrom("a", "B", "-", "_", " ", "é", "7"),
      minLength: 1,
      maxLength: 90,
    });
    const same = fc
      .tuple(id, fc.constantFrom("", " ", "-"))
      .map(([one, end]) => [one, `${one.toUpperCase()}${end}`]);
    fc.assert(
      fc.property(fc.oneof(fc.tuple(id, id), same), ([agent = "", wanted = ""]) => {
        const harness = createPlugin({ verify: { agents: [agent], run: () => ({ verdict: "pass" }) } });
        const isVerified = harness.isVerified(wanted);
        harness.close();
        expect(isVerified).toBe(parseHostAgentId(agent) === parseHostAgentId(wanted));
      }),
    );
  });

  it("has no verdict about anything but the result", async () => {
    const harness = createPlugin({ verify: ({ target }) => ({ verdict: "pass", target: `${target}0` }) });
    expect(await harness.verify()).toMatchObject({ kind: "none", because: "other_target" });
    const same = createPlugin({ verify: ({ target }) => ({ verdict: "pass", target }) }, "same");
    expect(await same.verify()).toMatchObject({ kind: "verdict", verdict: "pass" });
  });

  it.each([
    ["throws", throwSecret, "failed", "the hook verify of the plugin guard threw an error"],
    ["rejects", () => Promise.reject(new Error("no")), "failed", "threw an error"],
    ["answers nothing", () => undefined, "malformed", "it is no object"],
    [
      "has a verdict that is none",
      () => ({ verdict: "ok" }),
      "malformed",
      "`verdict` is none of pass, fail, revise",
    ],
    ["misspells a field", () => ({ verdict: "pass", confidense: 0.1 }), "malformed", "fields other than"],
    [
      "is not a number sure",
      () => ({ verdict: "pass", confidence: Number.NaN }),
      "malformed",
      "`confidence`",
    ],
    ["is less than not sure", () => ({ verdict: "pass", confidence: -0.01 }), "malformed", "`confidence`"],
    ["is surer than sure", () => ({ verdict: "pass", confidence: 1.01 }), "malformed", "`confidence`"],
    [
      "has sentences for criteria",
      () => ({ verdict: "fail", criteria: ["two words"] }),
      "malformed",
      "`criteria`",
    ],
    [
      "has too many criteria",
      () => ({ verdict: "fail", criteria: Array(65).fill("a") }),
      "malformed",
      "`criteria`",
    ],
    [
      "has a criterion that begins with a dash",
      () => ({ verdict: "fail", criteria: ["-a"] }),
      "malformed",
      "`criteria` has a key that is not a letter, a digit or @, and then at most 63 of A-Z a-z 0-9 . _ : @ / -",
    ],
  ])("that %s is no verdict", async (_what, run, because, message) => {
    const harness = createPlugin({ verify: run as never });
    const answer = await harness.verify();
    expect(answer).toMatchObject({
      kind: "none",
      because,
      message: expect.stringContaining(message) as string,
    });
    expect(harness.problems).toHaveLength(1);
    // The thrown value may be content: it goes into the plugin's own log only.
    expect(JSON.stringify(answer)).not.toContain("secret words");
  });

  it("that is late is no verdict, by its budget or by the time of the check", async () => {
    const harness = createPlugin({ verify: waitForever });
    const answer = harness.verify();
    await harness.clock.advance(HOOK_BUDGETS_MS.verify.usual);
    expect(await answer).toMatchObject({ kind: "none", because: "timed_out" });
    const signal = new AbortController().signal;
    const request = { result: sampleResult(), deadlineAtMs: harness.clock.now() + 10, signal };
    const bounded = harness.host.verify(request as never, "plugin:guard");
    await harness.clock.advance(10);
    expect(await bounded).toMatchObject({
      because: "timed_out",
      message: expect.stringContaining("10 ms") as string,
    });
    expect(await harness.host.verify(request as never, "plugin:guard")).toMatchObject({
      because: "timed_out",
    });
  });

  it("is not waited for when the coordinator stops", async () => {
    const stop = new AbortController();
    const harness = createPlugin({ verify: waitForever });
    const request = { result: sampleResult(), deadlineAtMs: harness.clock.now() + 1e6, signal: stop.signal };
    const answer = harness.host.verify(request as never, "plugin:guard");
    stop.abort();
    expect(await answer).toMatchObject({ kind: "none", because: "unavailable" });
    expect(await harness.host.verify(request as never, "plugin:guard")).toMatchObject({
      because: "unavailable",
    });
  });

  it("by a plugin that is not there is unavailable", async () => {
    const harness = createPlugin({ verify: waitForever });
    const request = { result: sampleResult(), deadlineAtMs: 1e15, signal: new AbortController().signal };
    expect(await harness.host.verify(request as never, "plugin:other")).toEqual({
      kind: "none",
      because: "unavailable",
      message: "no plugin verifies as plugin:other",
    });
  });
});

describe("decide", () => {
  it("denies where any plugin does, however sure the others are", async () => {
    const harness = createPlugin(
      { decide: { run: () => ({ action: "allow", confidence: 1 }), priority: 9 } },
      "yes",
    );
    createPlugin(
      { decide: ({ kind }) => (kind === "plan" ? { action: "deny", reason: "No plans." } : undefined) },
      "no",
    );
    expect(await harness.decide(samplePlanDecision())).toEqual({
      action: "deny",
      plugin: "no",
      reason: "the plugin no denied it: No plans.",
    });
    expect(await harness.decide(sampleDecision())).toEqual({ action: "allow", plugin: "yes", confidence: 1 });
  });

  it("counts the least confidence of those that allow it", async () => {
    const harness = createPlugin({ decide: { run: () => ({ action: "allow" }), priority: 9 } }, "silent");
    createPlugin({ decide: () => ({ action: "allow", confidence: 0.8 }) }, "surer");
    createPlugin({ decide: () => ({ action: "allow", confidence: 0.3 }) }, "unsure");
    expect(await harness.decide()).toEqual({ action: "allow", plugin: "unsure", confidence: 0.3 });
  });

  it("denies also where another plugin allows it with no confidence at all", async () => {
    createPlugin({ decide: { run: () => ({ action: "allow", confidence: 0 }), priority: 9 } }, "unsure");
    const harness = createPlugin({ decide: () => ({ action: "deny" }) }, "no");
    const reason = "the plugin no denied it: it gave no reason";
    expect(await harness.decide()).toEqual({ action: "deny", plugin: "no", reason });
  });

  it("fails closed, with a sentence that names the plugin", async () => {
    createPlugin({ decide: waitForever }, "slow");
    const harness = createPlugin({ decide: () => ({ action: "allow" }) });
    const ruling = harness.decide();
    await harness.clock.advance(0);
    // The clock of another harness: each asks by its own.
    await harness.clock.advance(HOOK_BUDGETS_MS.decide.usual);
    expect(await ruling).toEqual({
      action: "deny",
      plugin: "slow",
      reason: "the hook decide of the plugin slow did not answer within 5000 ms",
      failed: true,
    });
  });
});

describe("every hook", () => {
  it("gets a copy of its own that it cannot change", async () => {
    const hookResult = sampleResult({ outputs: { list: [{ a: 1 }] } });
    const seen: unknown[] = [];
    const verify: CoordinationHooks["verify"] = (result) => {
      seen.push(result);
      expect(() => ((result as { text: string }).text = "better")).toThrow(TypeError);
      expect(() => (result.outputs as { list: unknown[] }).list.push(2)).toThrow(TypeError);
      return { verdict: "pass" };
    };
    const harness = createPlugin({ verify });
    expect(await harness.verify(hookResult)).toMatchObject({ verdict: "pass" });
    expect(await harness.verify(hookResult)).toMatchObject({ verdict: "pass" });
    expect(seen).toEqual([hookResult, hookResult]);
    expect(seen[0]).not.toBe(seen[1]);
    expect(Object.isFrozen(hookResult.outputs)).toBe(false);
  });

  it("keeps its `this`", async () => {
    const hooks: CoordinationHooks = {
      arbitrate(this: CoordinationHooks) {
        return award("holder", Object.keys(this).join(" "));
      },
      decide: {
        priority: 3,
        run(this: { priority: number }) {
          return { action: "deny" as const, reason: String(this.priority) };
        },
      },
    };
    const harness = createPlugin(hooks);
    expect(await harness.arbitrate()).toMatchObject({ reason: "arbitrate decide" });
    expect(await harness.decide()).toMatchObject({ reason: "the plugin guard denied it: 3" });
  });
});

describe("the limits", () => {
  it("are those of the contracts, where both have one", () => {
    expect(HOOK_LIMITS).toMatchObject({
      criteriaMax: BOUNDS.criteriaMax,
      keyCharsMax: BOUNDS.nameCharsMax,
      reasonCharsMax: BOUNDS.errorMessageCharsMax,
      answerCharsMax: BOUNDS.answerCharsMax,
      answererCharsMax: BOUNDS.idCharsMax,
      agentIdCharsMax: BOUNDS.agentIdCharsMax,
      pluginIdCharsMax: BOUNDS.nameCharsMax - "plugin:".length,
    });
  });
});
