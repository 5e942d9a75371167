/** Owns: every limit of the server of the operator's page: requests, sign-in links, sessions, streams, listings. */

/** Every limit of the page's server, by name. */
export const PAGE_BOUNDS = {
  bodyBytesMax: 1_000_000,
  bodyDepthMax: 64,
  bodyValuesMax: 50_000,
  idCharsMax: 600,
  queryCharsMax: 300,
  /** A link of an address counts once, and no longer than this. */
  linkMs: 5 * 60_000,
  linksMax: 100,
  /** Renewed by each request. */
  sessionMs: 12 * 3_600_000,
  sessionsMax: 200,
  /** Attempts to sign in with what is no link, of all callers together, in a minute. */
  wrongLinksMax: 60,
  streamsMax: 100,
  streamsOfSessionMax: 8,
  runsDefault: 50,
  runsMax: 200,
  /** Bounds the objective of each coordination in a listing. */
  listedCharsMax: 1_000,
  /** Entries that one search looks at before it answers with what it found. */
  lookedAtMax: 2_000,
  eventsDefault: 200,
  eventsMax: 1_000,
  /** Bounds the events of one answer together. */
  eventsCharsMax: 4_000_000,
  /** Unless only open ones are listed, which somebody may have to answer. */
  questionsDefault: 50,
  questionsMax: 500,
  claimsMax: 1_000,
  /** Coordinations that the measures are counted of. */
  measuredMax: 2_000,
  textCharsMax: 200_000,
  /** How often the ledger is looked at for changes while a client follows. */
  pollMs: 50,
  pollEventsMax: 500,
  /** Events behind the newest one that a client is still told one by one. */
  behindMax: 20_000,
  beatMs: 10_000,
  /** A client that leaves more than this unread is cut off, and resumes. */
  unreadBytesMax: 1_000_000,
  healthMs: 2_000,
  hourEventsMax: 100_000,
} as const;
