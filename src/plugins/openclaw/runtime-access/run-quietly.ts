/** Owns: running the work of a hook so that no failure of it reaches the host (H2). */
import { isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";
import type { OpenClawPluginApi } from "../host/sdk.ts";
import { reportFailure } from "./report-failure.ts";
import type { SharedRuntime } from "./shared-runtime.ts";

/** Work that needs the runtime. */
type RuntimeWork<T> = (runtime: SharedRuntime) => Promise<T>;

/** Runs the work of a hook, which is named in the log. It never throws, and gives `undefined` where the work fails. */
export type RunQuietly = <T>(hook: string, work: RuntimeWork<T>) => Promise<T | undefined>;

/** Work of hooks that differs for the sessions of children. */
export interface ChildHooks {
  readonly quietly: RunQuietly;
  /** True for a session that an agent spawned. */
  readonly isChild: (session: string) => boolean;
}

/**
 * Creates the function that runs a hook's work through `use` and returns its result; a failure is reported and makes
 * the result `undefined`.
 */
export function createRunQuietly(
  api: OpenClawPluginApi,
  use: <T>(work: RuntimeWork<T>) => Promise<T>,
): RunQuietly {
  return async (hook, work) => {
    try {
      return await use(work);
    } catch (error) {
      await reportHookFailure(api, hook, error);
      return undefined;
    }
  };
}

/** Reports a failure; a stopped plugin is no news. */
async function reportHookFailure(api: OpenClawPluginApi, hook: string, error: unknown): Promise<void> {
  if (isStopError(error)) return;
  const failure = await reportFailure(api, error, 0);
  if (!failure) api.logger.error(`coordination: ${hook} failed: ${describeError(error)}`);
}

/**
 * Runs the work of a hook whose end nobody waits for. A failure is logged: a rejection that nobody handles would end the
 * gateway.
 */
export function runUnawaited(api: OpenClawPluginApi, hook: string, work: () => Promise<void>): void {
  void work().catch((error: unknown) => {
    api.logger.error(`coordination: ${hook} failed: ${describeError(error)}`);
  });
}

/** True of the `LEDGER_CLOSED` error, by which work fails because the plugin is stopped. */
export function isStopError(error: unknown): boolean {
  return isCoordinationError(error) && error.code === "LEDGER_CLOSED";
}
