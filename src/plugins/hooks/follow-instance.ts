/** Owns: hearing of the end of the instance of a plugin that registered something. */
import type { HooksLifecycle } from "./hook-types.ts";

type OnEnd = (ending: "reloaded" | "disabled") => void;

/** Who is told of the end of each instance, by the name under which the host knows them. */
const followersOf = new WeakMap<HooksLifecycle, Map<string, Set<OnEnd>>>();

/**
 * Calls `onEnd` each time the host tells that a plugin's instance ends. All that follow it by one id are told
 * together; the returned function stops that, except for the first of them, which stays.
 */
export function followInstance(lifecycle: HooksLifecycle, id: string, onEnd: OnEnd): () => void {
  const byId = followersOf.get(lifecycle) ?? new Map<string, Set<OnEnd>>();
  const others = byId.get(id);
  if (others) {
    others.add(onEnd);
    return () => void others.delete(onEnd);
  }
  const followers = new Set([onEnd]);
  followersOf.set(lifecycle, byId.set(id, followers));
  listenForEnd(lifecycle, id, (ending) => {
    // Registrations in spite of the end are followed anew.
    if (byId.get(id) === followers) byId.delete(id);
    for (const follow of followers) follow(ending);
  });
  // The first one stays: through it a registry hears that the plugin was disabled after all.
  return () => undefined;
}

/**
 * Listens for the end of an instance in every way that the host may tell it: by its signal and disposal, and by the
 * clean-up, which only some instances hear but which is all that an older host has.
 */
function listenForEnd(lifecycle: HooksLifecycle, id: string, onEnd: OnEnd): void {
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
