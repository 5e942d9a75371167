/** Owns: steps whose contested writes become questions to people, and people who answer them. */
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { createGateDependencies } from "../support/gate-dependencies.ts";
import { requireRefused, write, type RefusedWrite } from "./arbiter-calls.ts";
import { openScene, type Scene, type SceneOptions } from "./arbiter-scene.ts";

export const ESCALATE_MS = 3_600_000;
export const TELLS = createGateDependencies({
  escalations: { notify: [{ channel: "chat", afterMs: 0 }] },
  channelOf: () => ({ notify: () => Promise.resolve({ kind: "delivered", tries: 1 }) }),
});

/** Somebody is told of questions. */
export function openAskedScene(options: SceneOptions = {}): Promise<Scene> {
  return openScene({
    ...options,
    conflicts: { strategy: "manual_review", ...options.conflicts },
    settings: { escalateMs: ESCALATE_MS, ...options.settings },
    dependencies: { ...TELLS, ...options.dependencies },
  });
}

/** Two children that want the same file, and the refusal of the second. */
export interface AskingScene {
  readonly s: Scene;
  readonly a: SessionKey;
  readonly b: SessionKey;
  readonly answer: RefusedWrite;
}

/** `a` holds notes.md, and `b` wants it. */
export async function openAskingScene(options: SceneOptions = {}): Promise<AskingScene> {
  const s = await openAskedScene(options);
  const [a, b] = [await s.child("a"), await s.child("b")];
  await s.does(write(s, a, { "notes.md": "a" }));
  return { s, a, b, answer: requireRefused(await s.ask(write(s, b, { "notes.md": "b" }))) };
}

export const FIRST = "co-1:escalation-1";

export async function answerQuestion(
  s: Scene,
  answer: "approve" | "deny",
  questionId = FIRST,
): Promise<string> {
  const by = { kind: "operator" } as const;
  const answered = await s.coordinator.answer({ questionId, answer, by, through: "cli" });
  for (let turn = 0; turn < 5; turn += 1) await waitUntilSettled();
  return answered.kind === "accepted" ? answered.resolution : answered.code;
}

export const answersOf = (s: Scene): string[] => s.events("conflict.resolved").map(({ because }) => because);
export const closedOf = (s: Scene): string[] =>
  s.events("escalation.closed").map(({ resolution }) => resolution);
