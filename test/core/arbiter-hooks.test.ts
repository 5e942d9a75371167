import { describe, expect, it } from "vitest";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  ContestAnswer,
  PluginContest,
  PluginHooks,
} from "../../src/agents/coordination/runtime/environment/plugin-hooks.ts";
import type { OWNER } from "../support/fake-clock-host.ts";
import { edit, read, requireRefused, write } from "./arbiter-calls.ts";
import { LEASE_MS, openScene, type Scene, type SceneOptions } from "./arbiter-scene.ts";

interface Plugin extends PluginHooks {
  readonly asked: PluginContest[];
  readonly deadlines: EpochMs[];
}

/** A plugin that rules on writes, and how often it was looked for. */
function createPlugin(
  say: (contest: PluginContest) => ContestAnswer | undefined | Promise<ContestAnswer | undefined>,
): Plugin {
  const contests: PluginContest[] = [];
  const deadlines: EpochMs[] = [];
  return {
    asked: contests,
    deadlines,
    hasAny: () => true,
    arbitrate: async (contest, deadlineAtMs) => {
      contests.push(contest);
      deadlines.push(deadlineAtMs);
      return say(contest);
    },
    decide: () => Promise.resolve(undefined),
  };
}

const reason = "Vendored files stay as they are.";
const awardHolder = (): ContestAnswer => ({ award: "holder", plugin: "guard", reason });
const awardRequester = (): ContestAnswer => ({ award: "requester", plugin: "guard", reason });
const waitForever = (): Promise<undefined> => new Promise(() => undefined);

/** `a` holds notes.md, and `b` is to want it. */
async function openContendedScene(
  hooks: PluginHooks,
  options: SceneOptions = {},
): Promise<{ s: Scene; b: typeof OWNER }> {
  const s = await openScene({ ...options, dependencies: { ...options.dependencies, hooks } });
  const [a, b] = [await s.child("a"), await s.child("b")];
  expect((await s.does(write(s, a, { "notes.md": "a" }))).kind).toBe("granted");
  return { s, b };
}

describe("a plugin that rules on contested writes", () => {
  it("is asked before the strategy, and its requester gets what another one held", async () => {
    const hooks = createPlugin(awardRequester);
    const { s, b } = await openContendedScene(hooks);
    await using _ = s;
    expect((await s.does(write(s, b, { "notes.md": "b" }))).kind).toBe("granted");
    expect(await s.holders("notes.md")).toEqual(["co-1/step-2"]);
    expect(s.events("conflict.detected")).toMatchObject([
      { contest: { strategy: "owner_wins", hook: { plugin: "plugin:guard", award: "requester" } } },
    ]);
    expect(s.events("conflict.resolved")).toMatchObject([
      { winner: "step-2", losers: ["step-1"], rule: "hook", because: "plugin:guard" },
    ]);
  });

  it("hears who wants what, from whom and by which tool, and no content", async () => {
    const hooks = createPlugin(awardHolder);
    const { s, b } = await openContendedScene(hooks);
    await using _ = s;
    await s.ask(write(s, b, { "notes.md": "secret" }));
    const priority = "normal";
    expect(hooks.asked).toEqual([
      {
        coordinationId: "co-1",
        resource: s.resource("notes.md"),
        names: [s.resource("notes.md")],
        cause: "overlap",
        strategy: "owner_wins",
        tool: "write",
        requester: { stepId: "step-2", priority, agentId: "main" },
        holders: [{ stepId: "step-1", priority, agentId: "main", expiresAtMs: s.clock.now() + LEASE_MS }],
      },
    ]);
  });

  it("refuses the call for the holders, in its own words for the model and in none for the log", async () => {
    const { s, b } = await openContendedScene(createPlugin(awardHolder));
    await using _ = s;
    const { sentence, conflictId } = requireRefused(await s.ask(write(s, b, { "notes.md": "b" })));
    expect(sentence).toContain(`the plugin guard ruled so: ${reason}`);
    expect(sentence).toContain("held by step-1");
    expect(sentence).toContain(`(conflict ${String(conflictId)})`);
    expect(s.events("conflict.resolved")).toMatchObject([
      { winner: "step-1", losers: ["step-2"], rule: "hook", because: "plugin:guard" },
    ]);
    expect(JSON.stringify([s.events("conflict.detected"), s.events("conflict.resolved")])).not.toContain(
      "Vendored",
    );
    expect(await s.holders("notes.md")).toEqual(["co-1/step-1"]);
  });

  it("leaves it to the strategy where it has no opinion", async () => {
    const hooks = createPlugin(() => undefined);
    const { s, b } = await openContendedScene(hooks);
    await using _ = s;
    requireRefused(await s.ask(write(s, b, { "notes.md": "b" })));
    expect(hooks.asked).toHaveLength(1);
    expect(s.events("conflict.detected")[0]?.contest).not.toHaveProperty("hook");
    expect(s.events("conflict.resolved")).toMatchObject([{ rule: "lease", because: "lease-holder" }]);
  });

  it("is not asked where nobody stands against the call", async () => {
    const hooks = createPlugin(awardHolder);
    await using s = await openScene({ dependencies: { hooks } });
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(write(s, a, { "1.md": "a" }));
    expect((await s.does(write(s, b, { "2.md": "b" }))).kind).toBe("granted");
    expect(hooks.asked).toEqual([]);
  });

  it("is not asked about what is high-risk, which stays with people", async () => {
    const hooks = createPlugin(awardRequester);
    const { s, b } = await openContendedScene(hooks, { conflicts: { highRisk: ["notes.md"] } });
    await using _ = s;
    requireRefused(await s.ask(write(s, b, { "notes.md": "b" })));
    expect(hooks.asked).toEqual([]);
  });

  it("is not even called where no plugin has such a hook", async () => {
    const hooks: PluginHooks = { ...createPlugin(awardRequester), hasAny: (kind) => kind === "decide" };
    const { s, b } = await openContendedScene(hooks);
    await using _ = s;
    requireRefused(await s.ask(write(s, b, { "notes.md": "b" })));
    expect(s.events("conflict.resolved")).toMatchObject([{ rule: "lease" }]);
  });

  it("rules where a merge would be tried, and then nothing is merged", async () => {
    const { s, b } = await openContendedScene(createPlugin(awardHolder), {
      conflicts: { strategy: "merge_if_safe" },
    });
    await using _ = s;
    await s.ask(edit(s, b, ["notes.md", "a", "b"]));
    expect(s.events("conflict.detected")[0]?.contest).not.toHaveProperty("merge");
    expect(s.events("conflict.resolved")).toMatchObject([{ rule: "hook" }]);
  });

  it("lets a later call of the same message be merged with what it let happen", async () => {
    const hooks = createPlugin(({ tool }) => (tool === "write" ? awardRequester() : undefined));
    const s = await openScene({ dependencies: { hooks } });
    await using _ = s;
    await s.plan([{ stepId: "owner", resources: ["file:notes.md"] }, { stepId: "other" }], {
      conflictPolicy: { strategy: "merge_if_safe" },
    });
    const other = s.sessionOf("other");
    const [first, second] = [
      write(s, other, { "notes.md": "one" }),
      edit(s, other, ["notes.md", "one", "two"]),
    ];
    const answers = [await s.ask(first), await s.ask(second)];
    expect(answers.map(({ kind }) => kind)).toEqual(["granted", "granted"]);
    await s.runs(first, { kind: "granted" });
    await s.runs(second, { kind: "granted" });
    expect(s.text("notes.md")).toBe("two");
  });

  it("is asked about each contested target of a call, and all must be for the requester", async () => {
    const hooks = createPlugin(({ resource }) =>
      resource.endsWith("1.md") ? awardRequester() : awardHolder(),
    );
    await using s = await openScene({ dependencies: { hooks } });
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(write(s, a, { "1.md": "a", "2.md": "a" }));
    expect(requireRefused(await s.ask(write(s, b, { "1.md": "b", "2.md": "b" }))).sentence).toContain("2.md");
    expect(hooks.asked).toHaveLength(2);
    expect(await s.holders("1.md")).toEqual(["co-1/step-1"]);
  });
});

describe("a plugin that fails to rule", () => {
  it.each<[string, () => ContestAnswer | Promise<ContestAnswer>, string, object]>([
    [
      "that its host says so of",
      () => ({ failed: "guard", message: "the hook arbitrate of the plugin guard threw an error" }),
      "the hook arbitrate of the plugin guard threw an error.",
      { plugin: "plugin:guard", award: "holder", failed: true },
    ],
    [
      "whose id cannot be recorded",
      () => ({ ...awardRequester(), plugin: "x".repeat(500) }),
      "no usable id",
      { award: "holder", failed: true },
    ],
    [
      "by breaking its host",
      () => Promise.reject(new Error("secret")),
      "a plugin that rules on writes failed",
      { award: "holder", failed: true },
    ],
  ])("%s rules for the holders, and is recorded so", async (_name, say, words, hook) => {
    const { s, b } = await openContendedScene(createPlugin(say));
    await using _ = s;
    expect(requireRefused(await s.ask(write(s, b, { "notes.md": "b" }))).sentence).toContain(words);
    expect(s.events("conflict.detected")[0]?.contest?.hook).toEqual(hook);
    expect(s.events("conflict.resolved")).toMatchObject([
      { winner: "step-1", losers: ["step-2"], rule: "hook" },
    ]);
  });

  it("by never answering is given up before the host gives up the call", async () => {
    const hooks = createPlugin(waitForever);
    const { s, b } = await openContendedScene(hooks);
    await using _ = s;
    const beganAtMs = s.clock.now();
    const answer = s.ask(write(s, b, { "notes.md": "b" }));
    await s.clock.advance(11_000);
    expect(requireRefused(await answer).sentence).toContain("did not answer in time");
    expect(hooks.deadlines).toEqual([beganAtMs + 10_000]);
    expect(s.events("conflict.detected")[0]?.contest?.hook).toEqual({ award: "holder", failed: true });
  });

  it.each([11_001, 20_000])(
    "by keeping the thread for %d ms, too long for the call, is refused at once",
    async (keptMs) => {
      const hooks = createPlugin(() => {
        s.clock.jump(s.clock.now() + keptMs);
        return { failed: "guard", message: "late" };
      });
      const { s, b } = await openContendedScene(hooks);
      await using _ = s;
      expect(requireRefused(await s.ask(write(s, b, { "notes.md": "b" }))).sentence).toContain(
        "waiting for too long",
      );
      expect(s.events("conflict.detected")).toEqual([]);
    },
  );
});

describe("a call that must be answered earlier, because its hook has waited for something else", () => {
  it.each([
    ["gets its claim while there is time to record it", "granted", 6_900],
    ["gets none when its time is over", "refused", 7_300],
  ] as const)("%s", async (_name, kind, askedMs) => {
    const hooks = createPlugin(
      () =>
        new Promise((resolve) => {
          s.clock.wakeAt((s.clock.now() + askedMs) as EpochMs, () => resolve(awardRequester()));
        }),
    );
    const { s, b } = await openContendedScene(hooks);
    await using _ = s;
    const beganAtMs = s.clock.now();
    const answerByMs = (beganAtMs + 9_000) as EpochMs;
    const answer = s.ask({ ...write(s, b, { "notes.md": "b" }), answerByMs });
    await s.clock.advance(askedMs);
    expect(hooks.deadlines).toEqual([beganAtMs + 7_000]);
    expect((await answer).kind).toBe(kind);
    expect(await s.holders("notes.md")).toEqual([kind === "granted" ? "co-1/step-2" : "co-1/step-1"]);
  });
});

describe("while a plugin is asked", () => {
  it("the call may be cancelled, and gets no claim", async () => {
    const ruling = Promise.withResolvers<ContestAnswer>();
    const { s, b } = await openContendedScene(createPlugin(() => ruling.promise));
    await using _ = s;
    const call = write(s, b, { "notes.md": "b" });
    const answer = s.ask(call);
    await s.clock.advance(1_000);
    await s.coordinator.arbiter.callEnded(call.callKey, { hasFailed: true });
    ruling.resolve(awardRequester());
    requireRefused(await answer);
    expect(await s.holders("notes.md")).toEqual(["co-1/step-1"]);
  });

  it("calls of other sessions are ruled on, and what they claim elsewhere is no news to it", async () => {
    const ruling = Promise.withResolvers<ContestAnswer>();
    const hooks = createPlugin(() => ruling.promise);
    const { s, b } = await openContendedScene(hooks);
    await using _ = s;
    const answer = s.ask(write(s, b, { "notes.md": "b" }));
    const c = await s.child("c");
    expect((await s.does(write(s, c, { "other.md": "c" }))).kind).toBe("granted");
    ruling.resolve(awardHolder());
    requireRefused(await answer);
    expect(hooks.asked).toHaveLength(1);
  });

  it("its time runs, and what changes at the end of it is not asked about again", async () => {
    const hooks = createPlugin(
      () =>
        new Promise((resolve) => {
          s.clock.wakeAt((s.clock.now() + 10_000) as EpochMs, () => resolve(awardRequester()));
        }),
    );
    const s = await openScene({ dependencies: { hooks } });
    await using _ = s;
    const [a, b, c] = [await s.child("a"), await s.child("b"), await s.child("c")];
    await s.does(write(s, a, { "notes.md": "a" }));
    const answer = s.ask(write(s, b, { "notes.md": "b" }));
    await s.clock.advance(1);
    await s.ends(a);
    await s.does(read(s, c, "notes.md"));
    await s.does(write(s, c, { "notes.md": "c" }));
    await s.clock.advance(10_000);
    expect(requireRefused(await answer).sentence).toContain("did not answer in time");
    expect(hooks.asked).toHaveLength(1);
  });

  it("what it was asked about may change, and then it is asked again", async () => {
    const ruling = Promise.withResolvers<ContestAnswer>();
    const hooks = createPlugin(() => (hooks.asked.length === 1 ? ruling.promise : awardHolder()));
    const s = await openScene({ dependencies: { hooks } });
    await using _ = s;
    const [a, b, c] = [await s.child("a"), await s.child("b"), await s.child("c")];
    await s.does(write(s, a, { "notes.md": "a" }));
    const answer = s.ask(write(s, b, { "notes.md": "b" }));
    await s.clock.advance(1);
    await s.ends(a);
    await s.does(read(s, c, "notes.md"));
    await s.does(write(s, c, { "notes.md": "c" }));
    ruling.resolve(awardRequester());
    requireRefused(await answer);
    expect(hooks.asked.map(({ holders }) => holders.map(({ stepId }) => stepId))).toEqual([
      ["step-1"],
      ["step-3"],
    ]);
    expect(hooks.deadlines[1]).toBe(hooks.deadlines[0]);
  });

  it("the other side may end, and then the call needs no ruling", async () => {
    const ruling = Promise.withResolvers<ContestAnswer>();
    const s = await openScene({ dependencies: { hooks: createPlugin(() => ruling.promise) } });
    await using _ = s;
    const [a, b] = [await s.child("a"), await s.child("b")];
    const call = write(s, a, { "notes.md": "a" });
    await s.ask(call);
    await s.coordinator.arbiter.callEnded(call.callKey);
    const answer = s.ask(write(s, b, { "notes.md": "b" }));
    await s.clock.advance(1);
    await s.ends(a);
    ruling.resolve(awardHolder());
    expect((await answer).kind).toBe("granted");
    expect(s.events("conflict.detected")).toEqual([]);
  });

  it("a renewed lease of the other side is no news, and it is asked once", async () => {
    const hooks = createPlugin(awardHolder);
    const { s, b } = await openContendedScene(hooks, {
      conflicts: { onConflict: "wait", waitMs: 8_000, leaseMs: 9_000 },
    });
    await using _ = s;
    const answer = s.ask(write(s, b, { "notes.md": "b" }));
    await s.clock.advance(8_001);
    requireRefused(await answer);
    expect(hooks.asked).toHaveLength(1);
  });

  it("the time to wait for a lease runs too", async () => {
    const hooks = createPlugin(
      () =>
        new Promise(
          (resolve) => void s.clock.wakeAt((s.clock.now() + 7_000) as EpochMs, () => resolve(awardHolder())),
        ),
    );
    const { s, b } = await openContendedScene(hooks, { conflicts: { onConflict: "wait", waitMs: 8_000 } });
    await using _ = s;
    const beganAtMs = s.clock.now();
    let endedAtMs = 0;
    const answer = s.ask(write(s, b, { "notes.md": "b" })).finally(() => {
      endedAtMs = s.clock.now();
    });
    await s.clock.advance(12_000);
    requireRefused(await answer);
    expect(endedAtMs - beganAtMs).toBe(8_000);
  });
});
