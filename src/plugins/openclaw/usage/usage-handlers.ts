/**
 * Owns: the hooks by which the operator's budget stops a child: before a run, and before a call of a tool, which is where
 * the host can be kept from calling the model again.
 *
 * H2 a handler never throws into the host. Where the ledger does not answer, the child goes on.
 */
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import type { RunCount } from "../../../agents/coordination/runtime/usage/usage-book.ts";
import type { HookContext, HookResult } from "../host/sdk.ts";
import { createCallRefusal } from "../runtime-access/refuse-call.ts";
import type { RunQuietly } from "../runtime-access/run-quietly.ts";
import type { SharedRuntime } from "../runtime-access/shared-runtime.ts";

/** The host ends a run that is cancelled within some tenths of a second, or some seconds when it is busy; after this its model is asked again. */
const ABORT_MS_MAX = 15_000;

export interface UsageHandlers {
  /** A run has used something that is not recorded yet. */
  readonly noted: (run: RunCount) => void;
  beforeRun(ctx: HookContext<"before_agent_run">): Promise<HookResult<"before_agent_run">>;
  beforeCall(ctx: HookContext<"before_tool_call">): Promise<HookResult<"before_tool_call">>;
}

/**
 * Creates the handlers of host hooks that record the usage of model calls, and that block the runs and tool calls of a
 * child whose budget is spent.
 */
export function createUsageHandlers(runQuietly: RunQuietly): UsageHandlers {
  return {
    noted: (run) => {
      void runQuietly("usage", async (runtime) => (await runtime.coordinator()).usageRecorder.noted(run));
    },
    beforeRun: async ({ sessionKey }) => {
      if (!sessionKey) return undefined;
      const stop = await runQuietly("before_agent_run", async (runtime) =>
        (await runtime.coordinator()).usageRecorder.stopChild(sessionKey as SessionKey, "run"),
      );
      if (!stop) return undefined;
      return { outcome: "block", reason: stop.sentence, message: stop.sentence, category: "cost_limit" };
    },
    beforeCall: async ({ sessionKey, abortSignal }) => {
      if (!sessionKey) return undefined;
      const sentence = await runQuietly("before_tool_call", (runtime) =>
        cancelStepOverBudget(runtime, sessionKey as SessionKey),
      );
      if (sentence === undefined) return undefined;
      await waitForAbort(abortSignal);
      return createCallRefusal("call", sentence);
    },
  };
}

/** Cancels the step of a child whose budget is spent, and returns why; `undefined` while it may go on. */
async function cancelStepOverBudget(
  runtime: SharedRuntime,
  session: SessionKey,
): Promise<string | undefined> {
  const coordinator = await runtime.coordinator();
  const stop = await coordinator.usageRecorder.stopChild(session, "call");
  if (!stop) return undefined;
  const { coordinationId, reached, sentence } = stop;
  await coordinator.cancel({ coordinationId, stepId: reached.stepId, by: "budget" });
  return sentence;
}

/** Waits until the host has ended the run, at most 15 seconds, so that it does not ask the model once more. */
async function waitForAbort(signal: AbortSignal | undefined): Promise<void> {
  if (!signal || signal.aborted) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ABORT_MS_MAX);
    const onAbort = (): void => {
      clearTimeout(timer);
      resolve();
    };
    signal.addEventListener("abort", onAbort, { once: true });
  });
}
