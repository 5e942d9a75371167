/** Owns: what a shell command changed without saying so, found when it has ended. */
import { linkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { WriteAnswer } from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import { OWNER } from "../support/fake-clock-host.ts";
import { createMemoryLedger } from "../support/memory-store.ts";
import { createShellCall, read, requireRefused, write, type ToolCall } from "./arbiter-calls.ts";
import { answerQuestion, openAskedScene } from "./arbiter-hooks-scene.ts";
import {
  createHost,
  createRealSceneFiles,
  createValueFiles,
  openScene,
  spawnChild,
  startCoordinator,
  versionOf,
  type Scene,
} from "./arbiter-scene.ts";

/** Every file that a command changed is recorded. */
const ALL_FOUND = { afterCommands: "all" } as const;

/** Has `a` hold notes.md. */
async function holdNotes(s: Scene) {
  const [a, b] = [await s.child("a"), await s.child("b")];
  await s.does(write(s, a, { "notes.md": "of a\n" }));
  await s.clock.advance(1);
  return { a, b };
}

const listChanges = (s: Scene) =>
  s.events("resource.changed").map(({ stepId, resource, token }) => ({ stepId, resource, token }));

describe("a command that nobody declared", () => {
  it("that overwrites what another step holds is a change of its step, and a conflict for people", async () => {
    await using scene = await openScene();
    const { b } = await holdNotes(scene);
    await scene.does(createShellCall(scene, b, () => scene.put("notes.md", "of b\n")));
    expect(listChanges(scene)).toEqual([
      { stepId: "step-1", resource: "file:/repo/notes.md", token: 1 },
      { stepId: "step-2", resource: "file:/repo/notes.md", token: undefined },
    ]);
    expect(scene.events("conflict.detected")).toMatchObject([
      {
        resource: "file:/repo/notes.md",
        claims: [{ stepId: "step-1", claimedSequence: 1 }, { stepId: "step-2" }],
        contest: { requester: "step-2", cause: "overwritten", current: versionOf("of b\n") },
      },
    ]);
    expect(scene.events("conflict.resolved")).toMatchObject([
      { strategy: "manual_review", losers: ["step-2"], because: "manual-review" },
    ]);
    expect(await scene.holders("notes.md")).toEqual(["co-1/step-1"]);
  });

  it("is found for every file that a step holds, not for one of them only", async () => {
    await using scene = await openScene();
    const { a, b } = await holdNotes(scene);
    for (const name of ["second.md", "third.md"]) await scene.does(write(scene, a, { [name]: "of a\n" }));
    await scene.clock.advance(1);
    await scene.does(createShellCall(scene, b, () => scene.put("third.md", "of b\n")));
    expect(scene.events("conflict.detected")).toMatchObject([{ resource: "file:/repo/third.md" }]);
  });

  it("has the holder told to read again before it writes the next time", async () => {
    await using scene = await openScene();
    const { a, b } = await holdNotes(scene);
    await scene.does(createShellCall(scene, b, () => scene.put("notes.md", "of b\n")));
    const { sentence } = requireRefused(await scene.ask(write(scene, a, { "notes.md": "again of a\n" })));
    expect(sentence).toContain("was changed by step-2");
  });

  it("has changed nothing of others where their file is as it was, and where nobody holds it", async () => {
    await using scene = await openScene();
    const { b } = await holdNotes(scene);
    await scene.does(createShellCall(scene, b, () => scene.put("free.md", "of b\n")));
    expect(scene.events("conflict.detected")).toEqual([]);
    expect(listChanges(scene)).toHaveLength(1);
  });

  it("is not blamed for what the holder wrote meanwhile, nor for what its own owner holds", async () => {
    await using scene = await openScene();
    const { a, b } = await holdNotes(scene);
    const command = createShellCall(scene, b);
    const allowed = await scene.ask(command);
    await scene.does(write(scene, a, { "notes.md": "more of a\n" }));
    await scene.runs(command, allowed);
    expect(scene.events("conflict.detected")).toEqual([]);
    expect(listChanges(scene).every(({ stepId }) => stepId === "step-1")).toBe(true);
  });

  it("asks people where somebody is told of questions, and leaves it to them who has the file", async () => {
    await using scene = await openAskedScene({ conflicts: { strategy: "owner_wins" } });
    const { b } = await holdNotes(scene);
    await scene.does(createShellCall(scene, b, () => scene.put("notes.md", "of b\n")));
    expect(scene.events("coordination.escalated")).toMatchObject([{ cause: "conflict", stepId: "step-2" }]);
    expect(scene.events("conflict.resolved")).toEqual([]);
    const view = await scene.coordinator.view("co-1" as CoordinationId);
    expect(view?.escalations).toMatchObject([{ cause: "conflict", overwritten: true }]);
    expect(view?.escalations[0]).not.toHaveProperty("stepEnded");
    await answerQuestion(scene, "approve");
    expect(await scene.holders("notes.md")).toEqual(["co-1/step-2"]);
  });

  it("is looked after no more where the operator does not want it", async () => {
    await using scene = await openScene({ conflicts: { afterCommands: "off" } });
    const { b } = await holdNotes(scene);
    await scene.does(createShellCall(scene, b, () => scene.put("notes.md", "of b\n")));
    expect(scene.events("conflict.detected")).toEqual([]);
    expect(listChanges(scene)).toHaveLength(1);
  });
});

describe("a command whose step has ended before it", () => {
  /** `holder` holds notes.md, and a command of `slow` changes it after that step has timed out. */
  async function overwriteLate(scene: Scene): Promise<void> {
    scene.plans.cancel = () => new Promise(() => undefined);
    await scene.plan([{ stepId: "holder" }, { stepId: "slow", timeoutMs: 10_000 }]);
    await scene.does(write(scene, scene.sessionOf("holder"), { "notes.md": "of holder\n" }));
    await scene.clock.advance(1);
    const command = createShellCall(scene, scene.sessionOf("slow"), () => scene.put("notes.md", "of slow\n"));
    const allowed = await scene.ask(command);
    await scene.clock.advance(20_000);
    expect(scene.events("step.timed_out")).toMatchObject([{ stepId: "slow" }]);
    await scene.runs(command, allowed);
  }

  it("is a conflict for people all the same", async () => {
    await using scene = await openScene();
    await overwriteLate(scene);
    expect(scene.events("conflict.detected")).toMatchObject([
      { resource: "file:/repo/notes.md", contest: { requester: "slow", cause: "overwritten" } },
    ]);
    expect(scene.events("conflict.resolved")).toMatchObject([{ losers: ["slow"] }]);
  });

  it.each(["approve", "deny"] as const)("leaves the file to its holder where people %s", async (answer) => {
    await using scene = await openAskedScene({ conflicts: { strategy: "owner_wins" } });
    await overwriteLate(scene);
    expect(scene.events("coordination.escalated")).toMatchObject([{ cause: "conflict", stepId: "slow" }]);
    const view = await scene.coordinator.view("plan-1" as CoordinationId);
    expect(view?.escalations).toMatchObject([{ overwritten: true, stepEnded: true }]);
    await answerQuestion(scene, answer, "plan-1:escalation-1");
    expect(scene.events("conflict.resolved")).toHaveLength(1);
    expect(await scene.holders("notes.md")).toEqual(["plan-1/holder"]);
  });
});

describe("where everything below the folder is looked for", () => {
  it("records every file that the command changed, and none that another step did", async () => {
    await using scene = await openScene({ conflicts: { afterCommands: "all" } });
    const { b } = await holdNotes(scene);
    const command = createShellCall(scene, b, () => scene.put("free.md", "of b\n"));
    await scene.does(command);
    expect(listChanges(scene)).toContainEqual({
      stepId: "step-2",
      resource: "file:/repo/free.md",
      token: undefined,
    });
  });

  it("says that there was more where it was too much", async () => {
    await using s = await openScene({ conflicts: { afterCommands: "all" } });
    const a = await s.child("a");
    const writeMany = () => {
      for (let number = 0; number < 70; number += 1) s.put(`many/${number}.txt`, "x");
    };
    await s.does(createShellCall(s, a, writeMany));
    expect(s.events("resource.changed")).toHaveLength(64);
    expect(s.events("write.undetermined")).toMatchObject([
      { because: "undeclared" },
      { because: "too_many", action: "allowed" },
    ]);
  });
});

it("says in the host's log that the ledger lacks even that there was more, once, where its coordination has ended", async () => {
  const values = createValueFiles();
  const findChanged = () => Promise.resolve({ paths: [], isWhole: false });
  await using s = await openScene({
    conflicts: ALL_FOUND,
    files: { ...values, files: { ...values.files, findChanged } },
  });
  const a = await s.child("a");
  const command = createShellCall(s, a);
  const answer = await s.ask(command);
  await s.ends(a);
  await s.clock.advance(10_000);
  expect(s.events("coordination.terminal")).toHaveLength(1);
  await s.runs(command, answer);
  expect(s.lines.filter(({ level }) => level === "warn")).toEqual([
    { level: "warn", message: "the ledger lacks what a call changed: the coordination ended as success" },
  ]);
});

describe("two hard links", () => {
  it("are one resource: who changes the file by one of them stands against who holds the other", async () => {
    await using s = await openScene({ files: createRealSceneFiles() });
    s.put("notes.md", "one\n");
    linkSync(join(s.folder, "notes.md"), join(s.folder, "same.md"));
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(read(s, a, "notes.md"));
    expect(await s.does(write(s, a, { "notes.md": "of a\n" }))).toEqual({ kind: "granted" });
    expect(requireRefused(await s.ask(write(s, b, { "same.md": "of b\n" }))).sentence).toContain(
      "same.md is held",
    );
  });
});

describe("a session whose own shell command changed a file since it saw it", () => {
  const openWithCommands = async (): Promise<Scene> => {
    const s = await openScene({ conflicts: ALL_FOUND });
    s.put("notes.md", "v0\n");
    return s;
  };

  it.each([
    ["the same coordination", false, /changed by other since/u],
    ["another coordination", true, /changed by step-1 of coordination co-1 since/u],
  ])("is refused what a step of %s changed before the command", async (_, isForeign, sentence) => {
    await using s = await openWithCommands();
    await s.plan([
      { stepId: "asker", priority: "low" },
      { stepId: "other", priority: "high" },
    ]);
    const a = s.sessionOf("asker");
    const b = isForeign ? await s.child("b", { trace: "trace-2" }) : s.sessionOf("other");
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.clock.advance(1_000);
    await s.does(write(s, b, { "notes.md": "of b\n" }));
    if (isForeign) await s.ends(b);
    await s.clock.advance(1_000);
    await s.does(createShellCall(s, a, () => s.put("notes.md", "of b\nof a command\n")));
    if (!isForeign) s.plans.end("other", { outcome: "completed", reply: "{}" });
    await s.clock.advance(1_000);
    expect(requireRefused(await s.does(write(s, a, { "notes.md": "a\n" }))).sentence).toMatch(sentence);
    const priority = isForeign ? "normal" : "high";
    expect(s.events("conflict.detected").at(-1)?.claims).toMatchObject([{ priority }, { priority: "low" }]);
  });

  it("is not refused what a step changed before the session saw the file", async () => {
    await using s = await openWithCommands();
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(write(s, b, { "notes.md": "of b\n" }));
    await s.ends(b);
    await s.does(read(s, a, "notes.md"));
    await s.clock.advance(1_000);
    await s.does(createShellCall(s, a, () => s.put("notes.md", "of a command\n")));
    expect(s.events("resource.changed")).toMatchObject([{ stepId: "step-2" }, { stepId: "step-1" }]);
    expect((await s.does(write(s, a, { "notes.md": "a\n" }))).kind).toBe("granted");
  });

  it("is not refused what it saw of a step in the moment of that change", async () => {
    await using s = await openWithCommands();
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(write(s, b, { "notes.md": "of b\n" }));
    await s.ends(b);
    await s.does(read(s, a, "notes.md"));
    await s.does(createShellCall(s, a, () => s.put("notes.md", "of a command\n")));
    expect((await s.does(write(s, a, { "notes.md": "a\n" }))).kind).toBe("granted");
  });

  it("is not refused its own change where it made it as the owner of an earlier coordination", async () => {
    await using s = await openWithCommands();
    const a = await s.child("a");
    await s.does(read(s, OWNER, "notes.md"));
    await s.clock.advance(1_000);
    await s.does(createShellCall(s, OWNER, () => s.put("notes.md", "of a command\n")));
    expect(s.events("resource.changed")).toMatchObject([{ stepId: "@owner" }]);
    await s.ends(a);
    await s.child("b", { trace: "trace-2" });
    expect((await s.does(write(s, OWNER, { "notes.md": "o\n" }))).kind).toBe("granted");
  });

  it("is refused what a child changed before that in the earlier coordination", async () => {
    await using s = await openWithCommands();
    const a = await s.child("a");
    for (const session of [OWNER, a]) await s.does(read(s, session, "notes.md"));
    await s.clock.advance(1_000);
    await s.does(write(s, a, { "notes.md": "of a\n" }));
    await s.clock.advance(1_000);
    await s.does(createShellCall(s, OWNER, () => s.put("notes.md", "of a\nof a command\n")));
    await s.ends(a);
    await s.child("b", { trace: "trace-2" });
    expect(requireRefused(await s.does(write(s, OWNER, { "notes.md": "o\n" }))).sentence).toContain(
      "changed by step-1 of coordination co-1",
    );
  });

  it("is refused what another owner changed", async () => {
    await using s = await openWithCommands();
    await s.child("a");
    const other = "agent:main:other" as SessionKey;
    await s.child("b", { trace: "trace-2", source: other });
    for (const session of [OWNER, other]) await s.does(read(s, session, "notes.md"));
    await s.clock.advance(1_000);
    await s.does(createShellCall(s, other, () => s.put("notes.md", "of a command\n")));
    expect(requireRefused(await s.does(write(s, OWNER, { "notes.md": "o\n" }))).sentence).toContain(
      "changed by @owner of coordination co-2",
    );
  });

  it("is refused what the owner of the same key changed in another gateway", async () => {
    const host = createHost();
    const ledger = createMemoryLedger();
    using files = createValueFiles();
    files.put("notes.md", "v0\n");
    const startGateway = async (name: string) => {
      const store = ledger.open(host.clock);
      const settings = { gateway: name };
      const coordinator = startCoordinator({ store, host, files, name, settings, conflicts: ALL_FOUND });
      await spawnChild(coordinator, host.observer, { task: name });
      return {
        coordinator,
        makeCall: async (call: ToolCall): Promise<WriteAnswer> => {
          const answer = await coordinator.arbiter.request(call);
          call.tools(undefined);
          await coordinator.arbiter.callEnded(call.callKey);
          return answer;
        },
      };
    };
    const [first, second] = [await startGateway("p"), await startGateway("q")];
    await first.makeCall(read(files, OWNER, "notes.md"));
    await host.clock.advance(1_000);
    await second.makeCall(createShellCall(files, OWNER, () => files.put("notes.md", "of a command\n")));
    expect(
      requireRefused(await first.makeCall(write(files, OWNER, { "notes.md": "o\n" }))).sentence,
    ).toContain("changed by @owner of coordination q-1");
    for (const { coordinator } of [first, second]) await coordinator.stop();
  });
});
