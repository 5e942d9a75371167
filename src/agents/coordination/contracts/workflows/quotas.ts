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

export const QUOTA_MAX = 1_000_000_000_000;
export const QUOTA_NAMES = Object.keys(DEFAULT_QUOTAS) as readonly (keyof Quotas)[];
