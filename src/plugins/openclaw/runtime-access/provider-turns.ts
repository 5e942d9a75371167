/**
 * Owns: what the host tells of the calls that sessions make of their providers, and holding back those of children while a
 * provider refuses calls. The host has no hook right before a model call: the first call of a run is held back while its
 * prompt is built, every other one before the tool call that leads to it.
 */
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import { readProviderRefusal } from "../host/provider-refusal.ts";
import type { HookContext, HookEvent } from "../host/sdk.ts";
import { findRuntime } from "./shared-runtime.ts";

/** Notes in the lanes of a provider that a session began a model call; does nothing without lanes or a session. */
export function noteModelCall({ sessionKey, provider }: HookEvent<"model_call_started">): void {
  if (sessionKey) findRuntime()?.providers?.callBegan({ provider, session: sessionKey as SessionKey });
}

/**
 * Notes in the lanes of a provider that a session's model call was answered, for each message of its agent that is no
 * refusal. The host keeps no call that it tries again.
 */
export function noteModelAnswer(
  { message }: HookEvent<"before_message_write">,
  { sessionKey }: HookContext<"before_message_write">,
): void {
  if (sessionKey && message.role === "assistant" && !readProviderRefusal(message))
    findRuntime()?.providers?.callAnswered(sessionKey as SessionKey);
}

/**
 * Notes in the lanes of a provider that it refused a session's model call, and for how long, where the last message
 * says so. The host ends an attempt of its own at every refusal, before it tries again.
 */
export function noteProviderRefusal(
  { messages }: HookEvent<"agent_end">,
  { sessionKey, modelProviderId }: HookContext<"agent_end">,
): void {
  const providers = findRuntime()?.providers;
  const refusal = providers && sessionKey ? readProviderRefusal(messages.at(-1)) : undefined;
  const provider = refusal?.provider ?? modelProviderId;
  if (!refusal || provider === undefined) return;
  providers?.callRefused({ provider, session: sessionKey as SessionKey }, refusal.retryAfterMs);
}

/**
 * Waits until the lanes of its provider let the next model call of a session begin, at most for the configured time;
 * does not wait where there are no lanes.
 */
export async function waitForProviderTurn(sessionKey: string, nextProvider?: string): Promise<void> {
  await findRuntime()?.providers?.takeTurn(sessionKey as SessionKey, nextProvider);
}
