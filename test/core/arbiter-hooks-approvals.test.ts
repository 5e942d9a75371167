import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { PluginHooks } from "../../src/agents/coordination/runtime/environment/plugin-hooks.ts";
import {
  createNamedCall,
  createOutputCall,
  read,
  requireRefused,
  write,
  type ToolCall,
} from "./arbiter-calls.ts";
import {
  answersOf,
  openAskedScene,
  openAskingScene,
  closedOf,
  answerQuestion,
  type AskingScene,
} from "./arbiter-hooks-scene.ts";
import { LEASE_MS, type Scene } from "./arbiter-scene.ts";

describe("what people approved", () => {
  const DECLARED = {
    conflictPolicy: { strategy: "manual_review" },
    steps: [{ stepId: "owner", resources: ["file:notes.md"] }, { stepId: "other" }],
  };

  /** A step at work names notes.md as its own and never claims it: it stands against every write. */
  async function openDeclaredScene(): Promise<{ s: Scene; other: SessionKey; questionId: string }> {
    const s = await openAskedScene();
    await s.plan(DECLARED.steps, { conflictPolicy: DECLARED.conflictPolicy });
    const other = s.sessionOf("other");
    requireRefused(await s.ask(write(s, other, { "notes.md": "1" })));
    return { s, other, questionId: "plan-1:escalation-1" };
  }

  it("goes through once, also against who holds no claim that could end", async () => {
    const { s, other, questionId } = await openDeclaredScene();
    await using _ = s;
    await answerQuestion(s, "approve", questionId);
    await s.clock.advance(10);
    expect((await s.does(write(s, other, { "notes.md": "1" }))).kind).toBe("granted");
    expect(requireRefused(await s.ask(write(s, other, { "notes.md": "2" }))).sentence).toContain(
      "plan-1:escalation-2",
    );
  });

  it("goes through once, also when two calls are made at once", async () => {
    const { s, other, questionId } = await openDeclaredScene();
    await using _ = s;
    await answerQuestion(s, "approve", questionId);
    const first = write(s, other, { "notes.md": "1" });
    const answer = await s.ask(first);
    expect(answer.kind).toBe("granted");
    expect((await s.ask(write(s, other, { "notes.md": "2" }))).kind).toBe("refused");
    await s.runs(first, answer);
  });

  it("goes through once, also where nobody can see what it changed, and again only where it failed", async () => {
    const s = await openAskedScene();
    await using _ = s;
    await s.plan([{ stepId: "owner", resources: ["queue:mail"] }, { stepId: "other" }]);
    const send = (): ToolCall => createNamedCall(s, s.sessionOf("other"), "queue:mail");
    requireRefused(await s.ask(send()));
    await answerQuestion(s, "approve", "plan-1:escalation-1");
    const failed = send();
    expect((await s.ask(failed)).kind).toBe("granted");
    await s.coordinator.arbiter.callEnded(failed.callKey, { hasFailed: true });
    expect((await s.does(send())).kind).toBe("granted");
    expect(requireRefused(await s.ask(send())).sentence).toContain("plan-1:escalation-2");
    expect(s.events("resource.changed")).toMatchObject([
      { stepId: "other", resource: "queue:mail", version: "unknown" },
    ]);
  });

  it("goes through once for a folder, and stands in nobody's way then", async () => {
    const s = await openAskedScene({ conflicts: { highRisk: ["dist"] } });
    await using _ = s;
    s.put("dist/old.js", "old");
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(createOutputCall(s, a, "dist"));
    await s.clock.advance(1_000);
    requireRefused(await s.ask(createOutputCall(s, b, "dist")));
    await answerQuestion(s, "approve");
    expect((await s.does(createOutputCall(s, b, "dist"))).kind).toBe("granted");
    expect(s.events("resource.changed")).toMatchObject([{ stepId: "step-2", version: "unknown" }]);
    await s.ends(b);
    expect((await s.does(createOutputCall(s, a, "dist"))).kind).toBe("granted");
  });

  it("can be tried again where the call changed nothing", async () => {
    const { s, other, questionId } = await openDeclaredScene();
    await using _ = s;
    await answerQuestion(s, "approve", questionId);
    const failed = write(s, other, { "notes.md": "1" });
    expect((await s.ask(failed)).kind).toBe("granted");
    await s.coordinator.arbiter.callEnded(failed.callKey, { hasFailed: true });
    expect((await s.does(write(s, other, { "notes.md": "1" }))).kind).toBe("granted");
  });

  it("does not hold against somebody whom they did not know of", async () => {
    const { s, other, questionId } = await openDeclaredScene();
    await using _ = s;
    await answerQuestion(s, "approve", questionId);
    await s.clock.advance(10);
    s.put("notes.md", "by an outsider");
    await s.does(read(s, s.sessionOf("owner"), "notes.md"));
    await s.does(read(s, other, "notes.md"));
    s.put("notes.md", "by an outsider, again");
    expect(requireRefused(await s.ask(write(s, other, { "notes.md": "1" }))).sentence).toContain(
      "plan-1:escalation-2",
    );
  });

  it.each([
    ["as people knew it", undefined, "granted"],
    ["that was changed from outside once more", "outside again", "refused"],
  ] as const)("holds against a file %s", async (_name, text, kind) => {
    await using s = await openAskedScene();
    const b = await s.child("b");
    s.put("notes.md", "v0");
    await s.does(read(s, b, "notes.md"));
    s.put("notes.md", "outside");
    requireRefused(await s.ask(write(s, b, { "notes.md": "b" })));
    expect(await answerQuestion(s, "approve")).toBe("approved");
    if (text !== undefined) s.put("notes.md", text);
    expect((await s.does(write(s, b, { "notes.md": "b" }))).kind).toBe(kind);
  });

  it("is not asked of plugins again", async () => {
    let count = 0;
    const hooks: PluginHooks = {
      hasAny: () => true,
      arbitrate: () => Promise.resolve(void (count += 1)),
      decide: () => Promise.resolve(undefined),
    };
    const s = await openAskedScene({ dependencies: { hooks } });
    await using _ = s;
    await s.plan(DECLARED.steps, { conflictPolicy: DECLARED.conflictPolicy });
    const other = s.sessionOf("other");
    requireRefused(await s.ask(write(s, other, { "notes.md": "1" })));
    expect(count).toBe(1);
    await answerQuestion(s, "approve", "plan-1:escalation-1");
    expect((await s.does(write(s, other, { "notes.md": "1" }))).kind).toBe("granted");
    expect(count).toBe(1);
  });

  it("does not hold against what others had under way and did after people answered", async () => {
    const { s, a, b } = await openAskingScene();
    await using _ = s;
    const late = write(s, a, { "notes.md": "a2" });
    expect((await s.ask(late)).kind).toBe("granted");
    await answerQuestion(s, "approve");
    await s.clock.advance(10);
    await s.runs(late, { kind: "granted" });
    expect(requireRefused(await s.ask(write(s, b, { "notes.md": "b" }))).sentence).toContain(
      "co-1:escalation-2",
    );
  });

  it("is not used up by what the requester changed before", async () => {
    const s = await openAskedScene();
    await using _ = s;
    await s.plan(DECLARED.steps, { conflictPolicy: {} });
    const { other, owner } = { other: s.sessionOf("other"), owner: s.sessionOf("owner") };
    requireRefused(await s.ask(write(s, other, { "notes.md": "1" })));
    await answerQuestion(s, "approve", "plan-1:escalation-1");
    await s.does(write(s, other, { "notes.md": "1" }));
    await s.clock.advance(LEASE_MS + 1);
    await s.does(read(s, owner, "notes.md"));
    requireRefused(await s.ask(write(s, other, { "notes.md": "2" })));
    await answerQuestion(s, "approve", "plan-1:escalation-2");
    expect((await s.does(write(s, other, { "notes.md": "2" }))).kind).toBe("granted");
  });

  /** People approve, and what follows cannot be recorded until `up`. */
  async function openUnclaimedScene(): Promise<AskingScene & { readonly up: () => void }> {
    let isDown = false;
    const asking = await openAskingScene({
      settings: { escalateMs: 10_000, stepTimeoutMs: 600_000 },
      wrap: (store) => ({
        ...store,
        append: (request) =>
          isDown && request.events.some(({ type }) => type === "conflict.resolved")
            ? Promise.reject(new CoordinationError("LEDGER_UNAVAILABLE", "gone"))
            : store.append(request),
      }),
    });
    const { s } = asking;
    isDown = true;
    expect(await answerQuestion(s, "approve")).toBe("approved");
    expect(answersOf(s)).toEqual([]);
    expect(s.lines).toContainEqual({
      level: "warn",
      message: "an approved write could not be claimed yet",
    });
    return { ...asking, up: () => void (isDown = false) };
  }

  it("is claimed with the next call where the process that was told died before", async () => {
    const { s, b, up } = await openUnclaimedScene();
    await using _ = s;
    up();
    await s.restart();
    expect((await s.does(write(s, b, { "notes.md": "b" }))).kind).toBe("granted");
    expect(answersOf(s)).toEqual(["approved"]);
  });

  it("is withdrawn, and not closed twice, where the step ends before it was claimed", async () => {
    const { s, b, up } = await openUnclaimedScene();
    await using _ = s;
    up();
    await s.ends(b);
    expect(answersOf(s)).toEqual(["withdrawn"]);
    expect(closedOf(s)).toEqual(["approved"]);
  });

  it("is withdrawn where nobody claimed it in time", async () => {
    const { s, up } = await openUnclaimedScene();
    await using _ = s;
    up();
    await s.clock.advance(90_000);
    expect(answersOf(s)).toEqual(["withdrawn"]);
  });
});
