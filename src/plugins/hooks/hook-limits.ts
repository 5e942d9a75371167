/**
 * Owns: every limit on hooks of plugin authors, by name. The folder loads nothing from outside of it, so that it runs in the
 * plugin of an author as it is; where a limit is one of the contracts too, a test holds them together.
 */
export const HOOK_KINDS = ["arbitrate", "verify", "decide", "escalate", "observe"] as const;
/** One of the five hooks. */
export type HookKind = (typeof HOOK_KINDS)[number];

/** How long one call of a hook may take: when it states nothing, and at most. */
export const HOOK_BUDGETS_MS: Readonly<Record<HookKind, { readonly usual: number; readonly most: number }>> =
  {
    arbitrate: { usual: 5_000, most: 10_000 },
    verify: { usual: 60_000, most: 600_000 },
    decide: { usual: 5_000, most: 10_000 },
    escalate: { usual: 10_000, most: 60_000 },
    observe: { usual: 1_000, most: 10_000 },
  };

/** How many hooks there may be, and how long each may take (docs/hooks.md). */
export const HOOK_LIMITS = {
  pluginsMax: 64,
  /** Registrations of one plugin: the host loads each more than once, and again after every change. */
  registrationsMax: 16,
  /** `plugin:ID` is the key of a check, which has 64 characters. */
  pluginIdCharsMax: 57,
  priorityMax: 1_000_000,
  agentsMax: 256,
  agentIdCharsMax: 250,
  criteriaMax: 64,
  keyCharsMax: 64,
  reasonCharsMax: 300,
  answerCharsMax: 200_000,
  answererCharsMax: 128,
  /** To one notice of a question. */
  answersMax: 16,
  /** Asked one after the other, all plugins together: a tool call waits for them. */
  arbitrateMsMax: 10_000,
  /** The host loads a plugin again within this time: its gates wait for it. */
  reloadMs: 3_000,
  /**
   * The gates of a plugin that is not back by then let nothing through, until so long after its end. Questions and events wait for
   * it as long.
   */
  gatesClosedMs: 300_000,
  /** Events that an observer has not been told yet; beyond them it loses the newest. */
  observedMax: 1_000,
} as const;
