/** Owns: hearing of the end of the instance of a plugin that registered something. */
import type { HooksLifecycle } from "./hook-types.ts";

/**
 * Calls `onEnd` when the instance ends, more than once where the host tells of it in several ways. The host tells every instance
 * by its signal, but only some by their clean-up; an older host has nothing else.
 */
export function followInstance(
  lifecycle: HooksLifecycle,
  id: string,
  onEnd: (ending: "reloaded" | "disabled") => void,
): void {
  const onReloaded = (): void => onEnd("reloaded");
  lifecycle.registerRuntimeLifecycle?.({
    id,
    cleanup: ({ reason }) => {
      // It is also told of sessions that are reset or deleted.
      if (reason === "disable") onEnd("disabled");
      else if (reason === "restart") onReloaded();
    },
    dispose: onReloaded,
  });
  lifecycle.onDispose?.(onReloaded);
  lifecycle.signal?.addEventListener("abort", onReloaded, { once: true });
  if (lifecycle.signal?.aborted) onReloaded();
}
