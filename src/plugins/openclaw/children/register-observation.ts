/** Owns: which hooks of the host tell what a child really is (docs/openclaw.md says why these). Their code is loaded with the first run. */
import type { OpenClawPluginApi } from "../host/sdk.ts";
import { runUnawaited } from "../runtime-access/run-quietly.ts";
import type { ObserveHandlers } from "./observe-handlers.ts";

const HOST_TIMEOUT_MS = 10_000;

/** After all other plugins, and after the gates, which wait until the ledger knows the child. */
const LAST = -1_000;

/** Registers the host hooks that observe how children run; their handlers are loaded at the first one. */
export function registerObservation(api: OpenClawPluginApi, load: () => Promise<ObserveHandlers>): void {
  let handlers: ObserveHandlers | undefined;
  const loadHandlers = async (): Promise<ObserveHandlers> => (handlers ??= await load());
  const bounded = { timeoutMs: HOST_TIMEOUT_MS, priority: LAST };
  api.on("before_agent_run", async (_, ctx) => (await loadHandlers()).beforeRun(ctx), bounded);
  api.on("llm_input", (event, ctx) => handlers?.runInput(event, ctx));
  api.on("model_call_started", (event) => {
    // At once where that is possible: the model's first words may have to be kept back.
    if (handlers) handlers.modelCallStarted(event);
    else runUnawaited(api, "model_call_started", async () => (await loadHandlers()).modelCallStarted(event));
  });
  api.on("before_agent_finalize", async (event) => (await loadHandlers()).beforeFinalize(event), bounded);
}
