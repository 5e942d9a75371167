/** Owns: instances of a plugin as the host makes and ends them, as far as hooks can tell. */
import type { CoordinationHooksApi } from "./hook-types.ts";

/** Instances of a plugin in a test, as the host would open and end them. */
export interface FakeInstances {
  readonly newest: () => CoordinationHooksApi;
  readonly open: () => CoordinationHooksApi;
  /** Ends all in the order of OpenClaw, which tells the oldest one's clean-up of the end only when the plugin is disabled. */
  readonly end: (ending: "reload" | "disable") => void;
}

/** An instance of a plugin in a test, and the ways it can end. */
interface FakeInstance {
  readonly api: CoordinationHooksApi;
  readonly cleanUp: (reason: string) => void;
  readonly dispose: () => void;
}

/**
 * Creates, for a test, a plugin whose instances can be opened and ended as the host does it at a reload or when the
 * plugin is disabled.
 */
export function createFakeInstances(pluginId: string, log: (message: string) => void): FakeInstances {
  let instances: readonly FakeInstance[] = [];
  const open = (): CoordinationHooksApi => {
    const instance = createFakeInstance(pluginId, log);
    instances = [...instances, instance];
    return instance.api;
  };
  return {
    open,
    newest: () => instances.at(-1)?.api ?? open(),
    end: (ending) => {
      const [oldest, ...others] = instances;
      instances = [];
      for (const other of others) {
        other.cleanUp("restart");
        other.dispose();
      }
      if (ending === "disable") oldest?.cleanUp("disable");
      oldest?.dispose();
    },
  };
}

function createFakeInstance(id: string, log: (message: string) => void): FakeInstance {
  const controller = new AbortController();
  const cleanUps: ((context: { reason: string }) => void)[] = [];
  const disposals: (() => void)[] = [];
  return {
    api: {
      id,
      logger: { error: log },
      lifecycle: {
        signal: controller.signal,
        onDispose: (dispose) => disposals.push(dispose),
        registerRuntimeLifecycle: (registration) => cleanUps.push((context) => registration.cleanup(context)),
      },
    },
    cleanUp: (reason) => {
      for (const cleanUp of cleanUps) cleanUp({ reason });
    },
    dispose: () => {
      controller.abort();
      for (const dispose of disposals) dispose();
    },
  };
}
