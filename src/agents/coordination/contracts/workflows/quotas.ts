/** Owns: how much of a host one tenant may take, so that no tenant ends it for the others. */

export interface Quotas {
  /** Runs of a tenant that have not ended. */
  readonly liveRuns: number;
  /** Characters that the events of these runs take. */
  readonly liveChars: number;
  /** Forks that a tenant may ask for in a minute. */
  readonly forksPerMinute: number;
  /** Runs that come of one request: its children, theirs, and forks of all of them. */
  readonly runsPerRequest: number;
  /** Calls of models, tools and other hosts that are under way for a tenant. */
  readonly workAtOnce: number;
  /** Event streams that a tenant has open. */
  readonly streams: number;
  /** Event streams of one address. */
  readonly addressStreams: number;
  /** Requests of one address that are not answered yet. */
  readonly addressRequests: number;
}

/** Quotas where the operator sets none. */
export const DEFAULT_QUOTAS: Quotas = {
  liveRuns: 10_000,
  liveChars: 512_000_000,
  forksPerMinute: 120,
  runsPerRequest: 10_000,
  workAtOnce: 1_000,
  streams: 5_000,
  addressStreams: 5_000,
  addressRequests: 1_000,
};

/** The most that an operator may set. */
export const QUOTA_MAX = 1_000_000_000_000;
/** All quotas by their names. */
export const QUOTA_NAMES = Object.keys(DEFAULT_QUOTAS) as readonly (keyof Quotas)[];

/** The refusal of a caller that has reached a quota: it names the quota and its limit. */
export interface QuotaRefusal {
  readonly kind: "refused";
  readonly code: "rate_limited";
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

const REACHED: Readonly<Record<keyof Quotas, readonly [what: string, remedy: string]>> = {
  liveRuns: ["runs of this tenant that have not ended", "Cancel some, or wait until some have ended"],
  liveChars: [
    "characters in the events of this tenant's runs that have not ended",
    "Cancel some of the runs, or wait until some have ended",
  ],
  forksPerMinute: ["forks of this tenant in a minute", "Wait and try again"],
  runsPerRequest: [
    "runs that come of one request, its children and forks",
    "Check whether a workflow calls itself, or start a run of its own",
  ],
  workAtOnce: ["calls that are under way for this tenant's runs", "Wait until some have ended"],
  streams: ["streams of this tenant", "Close some"],
  addressStreams: ["streams of this address", "Close some"],
  addressRequests: ["requests of this address that are not answered", "Wait for some of the answers"],
};

/**
 * Returns the refusal for a caller of the workflow API that has reached a quota: it names the quota, its limit, and
 * what to do.
 */
export function createQuotaRefusal(quotas: Quotas, quota: keyof Quotas, retryAfter = 1): QuotaRefusal {
  const [subject, remedy] = REACHED[quota];
  const limit = quotas[quota];
  // The protocol has no word for an address, which may be anybody's.
  const scope = quota.startsWith("address") ? "global" : "tenant";
  return {
    kind: "refused",
    code: "rate_limited",
    message: `The quota ${quota} is reached: at most ${limit} ${subject}. ${remedy}, or ask the operator for more.`,
    details: { quota, limit, retryAfter, scope },
  };
}
