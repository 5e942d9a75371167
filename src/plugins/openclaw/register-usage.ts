/**
 * Owns: which hooks of the host tell what model calls use, and where the operator's budget stops a child. Counting is
 * synchronous and needs no ledger; everything else is loaded with the first count.
 *
 * The budget of a coordination is that under which it was opened, whatever the configuration says now: children are always looked
 * up. Sessions that nobody spawned are never stopped, so that their calls do not wait for the ledger.
 */
import type { SessionKey } from "../../agents/coordination/contracts/ids.ts";
import type { HookContext, HookEvent, OpenClawPluginApi } from "./host/sdk.ts";
import { createSessionParents } from "./privileges/session-parents.ts";
import { noteModelAnswer, noteModelCall } from "./runtime-access/provider-turns.ts";
import { runUnawaited } from "./runtime-access/run-quietly.ts";
import { accessUsageBook } from "./runtime-access/usage-memory.ts";
import { readUsage } from "./usage/read-usage.ts";
import type { UsageHandlers } from "./usage/usage-handlers.ts";

const HOST_TIMEOUT_MS = 10_000;

/** A call waits until the host has ended its run; the handler gives up before this. */
const HOST_CALL_TIMEOUT_MS = 18_000;

/** Before our other hooks: a call that is stopped claims nothing and is recorded nowhere else. */
const BEFORE_OURS = -900;

/**
 * Registers the host hooks that count what model calls use, tell the providers' lanes of the calls, and stop a child
 * whose budget is spent.
 */
export function registerUsage(api: OpenClawPluginApi, handlers: () => Promise<UsageHandlers>): void {
  const { isChild } = createSessionParents(api);
  const isOfChild = ({ sessionKey }: { readonly sessionKey?: string | undefined }): boolean =>
    sessionKey !== undefined && isChild(sessionKey);
  api.on("model_call_started", (event, { sessionKey, trace }) => {
    if (sessionKey) noteCallBegin(sessionKey as SessionKey, event.runId, trace?.traceId);
    noteModelCall(event);
  });
  api.on("before_message_write", (event: HookEvent<"before_message_write">, ctx: MessageContext) => {
    const usage = ctx.sessionKey ? readUsage(event.message) : undefined;
    noteModelAnswer(event, ctx);
    const run = usage && accessUsageBook().addUsage(ctx.sessionKey as SessionKey, usage);
    if (run && run.dueAtMs === undefined)
      runUnawaited(api, "before_message_write", async () => (await handlers()).noted(run));
    return undefined;
  });
  api.on(
    "before_agent_run",
    async (_, ctx) => (isOfChild(ctx) ? (await handlers()).beforeRun(ctx) : undefined),
    {
      timeoutMs: HOST_TIMEOUT_MS,
    },
  );
  api.on(
    "before_tool_call",
    async (_, ctx) => (isOfChild(ctx) ? (await handlers()).beforeCall(ctx) : undefined),
    {
      priority: BEFORE_OURS,
      timeoutMs: HOST_CALL_TIMEOUT_MS,
    },
  );
}

type MessageContext = HookContext<"before_message_write">;

function noteCallBegin(session: SessionKey, runId: string, traceId: string | undefined): void {
  accessUsageBook().beginCall({ session, runId, ...(traceId && { traceId }) });
}
