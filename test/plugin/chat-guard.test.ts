/** Words of children on their way to a chat. */
import { beforeEach, describe, expect, it } from "vitest";
import { isChildSessionKey } from "../../src/agents/coordination/contracts/host-agent-id.ts";
import { createChatGuard, type ChatGuard } from "../../src/plugins/openclaw/withholding/chat-guard.ts";
import { accessGateMemory } from "../../src/plugins/openclaw/runtime-access/gate-memory.ts";
import { createRunQuietly } from "../../src/plugins/openclaw/runtime-access/run-quietly.ts";
import type { SharedRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import type { ChildWords } from "../../src/agents/coordination/runtime/results/child-words.ts";
import { listEvents, waitUntilQuiet } from "../core/gates-world.ts";
import { OWNER } from "../support/fake-clock-host.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { createHostWithoutState } from "./fake-host.ts";
import { call, createText, forgetAll, onStage, type OnStage, type Part } from "./gates-scene.ts";

beforeEach(forgetAll);

interface Scene extends OnStage {
  readonly guard: ChatGuard;
  /** The host's transcripts, by session: all that it said. */
  readonly transcripts: Map<string, readonly (readonly Part[])[]>;
  /** As the guard has them; a test may replace what they do. */
  readonly childWords: { -readonly [K in keyof ChildWords]: ChildWords[K] };
  readonly warnings: string[];
}

async function createScene(): Promise<Scene> {
  const stage = await onStage();
  const transcripts = new Map<string, readonly (readonly Part[])[]>();
  const warnings: string[] = [];
  const childWords = { ...stage.coordinator.childWords };
  const logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: (_: object, line: string) => void warnings.push(line),
    error: () => undefined,
  };
  const store = stage.world.ledger.open(stage.world.clock);
  const reads = {
    findRuns: async () => ({ items: await store.list({ limit: 10 }) }),
    view: (id: CoordinationId) => stage.coordinator.view(id),
  };
  const runtime = {
    logger,
    coordinator: () => Promise.resolve({ ...stage.coordinator, reads, childWords }),
    readTranscript: (session: string) =>
      Promise.resolve(
        (transcripts.get(session) ?? []).map((content, index) => ({
          role: "assistant",
          content,
          timestamp: 1_000 * index,
        })),
      ),
  };
  const { api } = createHostWithoutState();
  const guard = createChatGuard({
    quietly: createRunQuietly(api, (work) => work(runtime as unknown as SharedRuntime)),
    isChild: isChildSessionKey,
  });
  return { ...stage, guard, transcripts, childWords, warnings };
}

const CHAT = { channelId: "slack" };

const send = ({ guard }: Scene, sessionKey: string | undefined, content: string, mediaUrls: string[] = []) =>
  guard.messageSending(
    { to: "#team", content, metadata: { mediaUrls } },
    {
      ...CHAT,
      ...(sessionKey && { sessionKey }),
    },
  );
const reply = ({ guard }: Scene, sessionKey: string, payload: object) =>
  guard.replySending({ payload, kind: "final", channel: "slack", sessionKey }, { ...CHAT, sessionKey });

const STOPPED = { cancel: true };
const listSuppressed = ({ world }: Scene) =>
  listEvents(world, "message.suppressed").map(({ payload }) => payload);

describe("what a child's session says", () => {
  it("does not go to a chat as a message or a reply, and is recorded without its words", async () => {
    const scene = await createScene();
    expect(await send(scene, scene.child.session, "The code is 4711.")).toMatchObject(STOPPED);
    expect(await reply(scene, scene.child.session, { text: "4711", mediaUrl: "/a.png" })).toMatchObject(
      STOPPED,
    );
    await waitUntilQuiet(scene.world);
    expect(listSuppressed(scene)).toEqual([
      { stepId: "step-1", attempt: 1, through: "message", channel: "slack", chars: 17, media: 0 },
      { stepId: "step-1", attempt: 1, through: "reply", channel: "slack", chars: 4, media: 1 },
    ]);
    await scene.coordinator.stop();
  });

  it("does not go there in the name of its parent, which did not say it", async () => {
    const scene = await createScene();
    await scene.host.says(scene.child.session, [
      createText("Found it: **the code** is 4711.\nMEDIA:/tmp/plan.png"),
    ]);
    expect(await send(scene, OWNER, "Found it: the code is 4711.")).toMatchObject(STOPPED);
    expect(await send(scene, OWNER, "", ["/tmp/plan.png"])).toMatchObject(STOPPED);
    expect(await send(scene, OWNER, "Something went wrong; please try again.")).toBeUndefined();
    expect(await send(scene, "agent:main:other", "Found it: the code is 4711.")).toBeUndefined();
    await scene.coordinator.stop();
  });

  it("goes there when its parent says the same, in words or to a tool", async () => {
    const scene = await createScene();
    await scene.host.says(scene.child.session, [createText("The code is 4711.")]);
    await scene.host.says(OWNER, [createText("My helper says: the code is 4711. Good night.")]);
    expect(await send(scene, OWNER, "the code is 4711")).toBeUndefined();
    await scene.host.says(scene.child.session, [createText("The door is open.")]);
    await scene.host.says(OWNER, [call("message", { action: "send", message: "The door is open." })]);
    expect(await send(scene, OWNER, "The door is open.")).toBeUndefined();
    expect(listSuppressed(scene)).toEqual([]);
    await scene.coordinator.stop();
  });

  it("does not go there in the name of its parent either where it was said before a restart", async () => {
    const scene = await createScene();
    const task = call("sessions_spawn", { task: "Say: found it, the code is 4711." });
    scene.transcripts.set(OWNER, [[task]]);
    scene.transcripts.set(scene.child.session, [[createText("Found it: **the code** is 4711.")]]);
    expect(await send(scene, OWNER, "Found it: the code is 4711.")).toMatchObject(STOPPED);
    expect(await send(scene, OWNER, "Good night.")).toBeUndefined();
    await scene.coordinator.stop();
  });

  it("is told from others by this process's memory where the host has no transcripts", async () => {
    const scene = await createScene();
    scene.transcripts.get = () => {
      throw new Error("no transcripts");
    };
    await scene.host.says(scene.child.session, [createText("The code is 4711.")]);
    expect(await send(scene, OWNER, "The code is 4711.")).toMatchObject(STOPPED);
    await scene.coordinator.stop();
  });

  it("goes there after a restart when its parent has said the same", async () => {
    const scene = await createScene();
    scene.transcripts.set(scene.child.session, [[createText("The code is 4711.")]]);
    const message = call("message", { action: "send", message: "The code is 4711." });
    scene.transcripts.set(OWNER, [[], [message]]);
    expect(await send(scene, OWNER, "The code is 4711.")).toBeUndefined();
    await scene.coordinator.stop();
  });

  it("answers a person who wrote to its own session in that chat, and in no other", async () => {
    const scene = await createScene();
    const { session } = scene.child;
    scene.guard.messageReceived({ ...CHAT, sessionKey: session });
    expect(await reply(scene, session, { text: "Here I am." })).toBeUndefined();
    expect(
      await scene.guard.messageSending(
        { to: "x", content: "Here I am." },
        { channelId: "sms", sessionKey: session },
      ),
    ).toMatchObject(STOPPED);
    await scene.coordinator.stop();
  });
});

describe("where a person wrote to the parent in that chat", () => {
  it("does not go there in the parent's name, which has not said it", async () => {
    const scene = await createScene();
    scene.guard.messageReceived({ ...CHAT, sessionKey: OWNER });
    await scene.host.says(scene.child.session, [createText("Found it: the code is 4711.")]);
    expect(await send(scene, OWNER, "Found it: the code is 4711.")).toMatchObject(STOPPED);
    await scene.host.says(OWNER, [createText("Found it: the code is 4711.")]);
    expect(await send(scene, OWNER, "Found it: the code is 4711.")).toBeUndefined();
    await scene.coordinator.stop();
  });

  it("does not go there in the name of a child that has children and was written to, either", async () => {
    const scene = await createScene();
    const { session } = scene.child;
    scene.guard.messageReceived({ ...CHAT, sessionKey: session });
    accessGateMemory().spoken.noteOfChild(session, "agent:main:subagent:below", "The code is 4711.");
    expect(await send(scene, session, "The code is 4711.")).toMatchObject(STOPPED);
    expect(await send(scene, session, "Here I am.")).toBeUndefined();
    await scene.coordinator.stop();
  });
});

describe("what cannot be recorded", () => {
  it.each(["its own session", "its parent"])("does not go to a chat in the name of %s either", async (by) => {
    const scene = await createScene();
    scene.childWords.recordSuppressed = () => Promise.reject(new Error("the ledger is busy"));
    await scene.host.says(scene.child.session, [createText("The code is 4711.")]);
    const session = by === "its parent" ? OWNER : scene.child.session;
    expect(await send(scene, session, "The code is 4711.")).toMatchObject(STOPPED);
    await waitUntilQuiet(scene.world);
    expect(listSuppressed(scene)).toEqual([]);
    expect(scene.warnings).toEqual(["words of a subagent did not go to a chat"]);
    await scene.coordinator.stop();
  });
});

describe("a session of which the ledger cannot tell whether it is a child", () => {
  const failLedger = (scene: Scene): void => {
    scene.childWords.childOf = () => Promise.reject(new Error("the ledger is busy"));
  };

  it("says nothing in a chat where its key is that of a child", async () => {
    const scene = await createScene();
    failLedger(scene);
    const { session } = scene.child;
    expect(await send(scene, session, "The code is 4711.")).toMatchObject(STOPPED);
    expect(await reply(scene, session, { text: "4711" })).toMatchObject(STOPPED);
    expect(await reply(scene, "agent:main:acp:1", { text: "4711" })).toMatchObject(STOPPED);
    await scene.coordinator.stop();
  });

  it("answers a person who wrote to it all the same", async () => {
    const scene = await createScene();
    failLedger(scene);
    scene.guard.messageReceived({ ...CHAT, sessionKey: scene.child.session });
    expect(await reply(scene, scene.child.session, { text: "Here I am." })).toBeUndefined();
    await scene.coordinator.stop();
  });

  it("says what it likes under any other key, but not the words of a child", async () => {
    const scene = await createScene();
    failLedger(scene);
    await scene.host.says(scene.child.session, [createText("Found it: the code is 4711.")]);
    expect(await send(scene, OWNER, "Good night.")).toBeUndefined();
    expect(await send(scene, OWNER, "Found it: the code is 4711.")).toMatchObject(STOPPED);
    await scene.coordinator.stop();
  });
});

describe("what others say", () => {
  it("goes to a chat: owners, sessions that are nobody's child, and messages of no session", async () => {
    const scene = await createScene();
    for (const session of [OWNER, "agent:main:subagent:of-another", undefined])
      expect(await send(scene, session, "Hello.")).toBeUndefined();
    await scene.coordinator.stop();
  });
});
