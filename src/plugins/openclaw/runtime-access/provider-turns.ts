/**
 * Owns: what the host tells of the calls that sessions make of their providers, and holding back those of children while a
 * provider refuses calls. The host has no hook right before a model call: the first call of a run is held back while its
 * prompt is built, every other one before the tool call that leads to it.
 */
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import { readRefusal } from "../host/provider-refusal.ts";
import type { HookContext, HookEvent } from "../host/sdk.ts";
import { findRuntime } from "./shared-runtime.ts";

export function noteModelCall({ sessionKey, provider }: HookEvent<"model_call_started">): void {
  if (sessionKey) findRuntime()?.providers?.callBegan({ provider, session: sessionKey as SessionKey });
}

/** A message that the host keeps while a session works is an answer; the host keeps no call that it tries again. */
export function noteAnswer(
  { message }: HookEvent<"before_message_write">,
  { sessionKey }: HookContext<"before_message_write">,
): void {
  if (sessionKey && message.role === "assistant" && !readRefusal(message))
    findRuntime()?.providers?.callAnswered(sessionKey as SessionKey);
}

/** The host ends an attempt of its own at every refusal, before it tries again. */
export function noteRefusal(
  { messages }: HookEvent<"agent_end">,
  { sessionKey, modelProviderId }: HookContext<"agent_end">,
): void {
  const providers = findRuntime()?.providers;
  const refusal = providers && sessionKey ? readRefusal(messages.at(-1)) : undefined;
  const provider = refusal?.provider ?? modelProviderId;
  if (!refusal || provider === undefined) return;
  providers?.callRefused({ provider, session: sessionKey as SessionKey }, refusal.retryAfterMs);
}

/** Waits until the next model call of a session may begin. */
export async function waitForTurn(sessionKey: string, nextProvider?: string): Promise<void> {
  await findRuntime()?.providers?.takeTurn(sessionKey as SessionKey, nextProvider);
}
