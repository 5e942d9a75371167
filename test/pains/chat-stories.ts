/** P22: words of children that reach a user's chat, by every way that the host has to it. */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import type { Json } from "../support/gateway.ts";
import { scriptOf, type Turn } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { hasEnded, type Stage } from "../e2e/stage.ts";
import { factsOf } from "../e2e/writes-stage.ts";
import type { Pair } from "./pair.ts";
import { WAIT_MS_MAX } from "./story-parts.ts";

/** A fixture with a chat that writes down what it is sent. */
export const CHAT = "chat-recorder";
/** Settings that both gateways need for it. */
export const CHAT_CONFIG: Json = { channels: { [CHAT]: { enabled: true } } };

export const chatOwnerOf = (label: string): string => `agent:main:${CHAT}:direct:${label}`;

/** A person's message, in a chat of its own, on which the agent spawns a child. */
export async function writeInChat(
  stage: Stage,
  label: string,
  turn: Turn,
  onAnnounce: string,
): Promise<void> {
  const task = scriptOf({ turns: [turn, { say: `${label} is done` }] });
  const message = scriptOf({
    turns: [{ spawn: [{ label, task }] }, { say: "I asked somebody." }],
    onAnnounce,
  });
  const chat = { channel: CHAT, to: label, deliver: true };
  const run = {
    message,
    agentId: "main",
    sessionKey: chatOwnerOf(label),
    idempotencyKey: randomUUID(),
    ...chat,
  };
  await stage.gateway.call("agent", run, WAIT_MS_MAX);
}

interface ChatDelivery {
  readonly to: string;
  readonly text?: string;
}

export async function readChat({ gateway }: Stage, to: string): Promise<string[]> {
  const { sent } = (await gateway.call(`${CHAT}.seen`)) as unknown as {
    readonly sent: readonly ChatDelivery[];
  };
  return sent.filter((message) => message.to.includes(to)).map(({ text = "" }) => text);
}

export function waitUntilSent(stage: Stage, to: string, words: string): Promise<unknown> {
  const isSent = async (): Promise<boolean> =>
    (await readChat(stage, to)).some((text) => text.includes(words));
  return waitFor(isSent, { what: `${words} in the chat`, timeoutMs: WAIT_MS_MAX, everyMs: 250 });
}

export async function waitUntilSuppressed(stage: Stage, label: string): Promise<Json[]> {
  const readFacts = async (): Promise<Json[]> => {
    const [state] = (await stage.of(chatOwnerOf(label))).slice(-1);
    return state ? factsOf(await stage.events(state), "message.suppressed") : [];
  };
  return waitFor(async () => ((await readFacts()).length > 0 ? readFacts() : undefined), {
    what: `a suppressed message of ${label}`,
    timeoutMs: WAIT_MS_MAX,
  });
}

export const SECRET = "raw words of the child";

/** P22: a parent has nothing to say of what its child found. */
export async function tellRawWords({ plain, coordinated }: Pair): Promise<void> {
  const label = "silent-parent";
  const turn = { say: `${SECRET} of ${label}` };
  await writeInChat(plain, label, turn, "");
  await waitUntilSent(plain, label, turn.say);

  await writeInChat(coordinated, label, turn, "");
  const [fact] = await waitUntilSuppressed(coordinated, label);
  expect(fact).toMatchObject({ channel: CHAT, chars: turn.say.length, media: 0 });
  await coordinated.until(chatOwnerOf(label), hasEnded, WAIT_MS_MAX);
  expect((await readChat(coordinated, label)).join("\n")).not.toContain(SECRET);
  expect(await coordinated.verify()).toMatchObject({ ok: true, problems: [] });
}

/** The parent says in the chat what its child found, in the same words. */
export async function sayInParentsName({ plain, coordinated }: Pair): Promise<void> {
  const label = "telling-parent";
  const words = `${SECRET} of ${label}`;
  for (const stage of [plain, coordinated]) {
    await writeInChat(stage, label, { say: words }, words);
    await waitUntilSent(stage, label, words);
  }
}
