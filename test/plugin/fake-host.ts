/** The part of the host's plugin API that the hook handlers touch, answering in this process. */
import type { OpenClawPluginApi } from "../../src/plugins/openclaw/host/sdk.ts";

export interface FakeHost {
  readonly api: OpenClawPluginApi;
  /** Lines of the plugin in the host's log, by level. */
  readonly lines: { readonly level: string; readonly text: string }[];
  /** Session entries that were patched, by session key. */
  readonly entries: Map<string, Record<string, unknown>>;
}

/** A host that keeps nothing on disk: it cannot name its state folder. */
export function createHostWithoutState(): FakeHost {
  const failNaming = (): never => {
    throw new Error("there is no state folder");
  };
  return createFakeHost({ stateDir: failNaming });
}

export function createFakeHost(options: {
  readonly stateDir: string | (() => string);
  readonly phase1?: Record<string, unknown>;
  readonly rows?: readonly unknown[];
}): FakeHost {
  const lines: FakeHost["lines"] = [];
  const entries: FakeHost["entries"] = new Map();
  const log = (level: string) => (text: string) => {
    lines.push({ level, text });
  };
  const { stateDir, phase1 = {}, rows = [] } = options;
  const recordPatch = (patch: { sessionKey: string; update: (entry: object) => Record<string, unknown> }) => {
    entries.set(patch.sessionKey, {
      ...entries.get(patch.sessionKey),
      ...patch.update(entries.get(patch.sessionKey) ?? {}),
    });
    return Promise.resolve(null);
  };
  const api = {
    pluginConfig: { coordination: { phase1: { enabled: true, ...phase1 } } },
    logger: { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") },
    runtime: {
      state: { resolveStateDir: () => (typeof stateDir === "string" ? stateDir : stateDir()) },
      tasks: { async: { runs: { bindSession: () => ({ list: () => Promise.resolve(rows) }) } } },
      config: { current: () => ({}) },
      agent: {
        session: {
          patchSessionEntry: recordPatch,
          getSessionEntry: ({ sessionKey }: { sessionKey: string }) => entries.get(sessionKey),
        },
        resolveAgentWorkspaceDir: () => (typeof stateDir === "string" ? stateDir : stateDir()),
      },
    },
  };
  return { api: api as unknown as OpenClawPluginApi, lines, entries };
}
