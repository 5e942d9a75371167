/** Owns: which hooks of the host the plugin listens to, with their order and budgets (docs/openclaw.md says why). */
import { registerObservation } from "./children/register-observation.ts";
import { registerGates } from "./withholding/register-gates.ts";
import { registerUsage } from "./register-usage.ts";
import { registerChatGuard } from "./withholding/register-chat-guard.ts";
import type { OpenClawPluginApi } from "./host/sdk.ts";
import { createOnceLoader } from "../../agents/coordination/std/load-once.ts";

/** The host blocks the spawn when a `before_tool_call` hook takes longer; ours answers within `SPAWN_BUDGET_MS`. */
const HOST_TIMEOUT_MS = 10_000;

/**
 * A call, and the prompt of a child, may wait for as long as the operator says: for its provider and for who holds what it writes,
 * 8 s together at most. The rest is spare, for a busy machine.
 */
const HOST_WAIT_TIMEOUT_MS = 18_000;

/** After all other plugins, so that what is recorded is what the host will do. */
const LAST = -1_000;

/**
 * Registers all hooks of the host that coordination needs, and the service that starts and stops it; the handlers are
 * loaded at the first use.
 */
export function registerHostHooks(api: OpenClawPluginApi): void {
  const handlers = createOnceLoader(async () => (await import("./hook-handlers.ts")).createHookHandlers(api));
  const spawns = { matcher: ["sessions_spawn"] as const, priority: LAST, timeoutMs: HOST_TIMEOUT_MS };
  api.on("before_tool_call", async (event, ctx) => (await handlers()).beforeSpawn(event, ctx), spawns);
  api.on("after_tool_call", async (event, ctx) => (await handlers()).afterSpawn(event, ctx), spawns);
  const calls = { priority: LAST, timeoutMs: HOST_WAIT_TIMEOUT_MS };
  api.on("before_tool_call", async (event, ctx) => (await handlers()).beforeCall(event, ctx), calls);
  api.on("after_tool_call", async (event, ctx) => (await handlers()).afterCall(event, ctx), calls);
  api.on("subagent_ended", async (event) => (await handlers()).subagentEnded(event));
  api.on("before_prompt_build", async (event, ctx) => (await handlers()).beforePromptBuild(event, ctx), {
    timeoutMs: HOST_WAIT_TIMEOUT_MS,
  });
  api.on("after_compaction", async (event, ctx) => (await handlers()).compacted(event, ctx));
  api.on("agent_end", async (event, ctx) => (await handlers()).agentEnded(event, ctx));
  registerGates(api, async (spanOf) => (await handlers()).gates(spanOf));
  registerObservation(api, async () => (await handlers()).observation);
  registerUsage(api, async () => (await handlers()).usage);
  registerChatGuard(api, async () => (await handlers()).chatGuard);
  api.registerService({
    id: "coordination",
    start: async () => (await handlers()).start(),
    stop: async () => (await handlers()).stop(),
  });
}
