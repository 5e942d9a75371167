/** Owns: how the page signs in, and what its session may do. */

/** The rights of a session; each follows from the scopes of whoever asked for the link. */
export interface Rights {
  readonly read: boolean;
  /** May answer questions. */
  readonly approve: boolean;
  /** May cancel, retry, release, run and fork. */
  readonly write: boolean;
  /** May read results and what agents ask: the host's right for reading sessions. */
  readonly results: boolean;
}

/** The answer of `POST ./api/session`: a link counts once. */
export interface SignedIn {
  /** Goes into the header `authorization: Bearer ...` of every further request. */
  readonly token: string;
  /** Without a request until then, the session ends. */
  readonly expiresAtMs: number;
  readonly rights: Rights;
  /** For each right that is not there: one sentence that says why, and what to do. */
  readonly refusals: Readonly<Partial<Record<keyof Rights, string>>>;
  readonly product: Product;
  /** Whoever serves this page runs workflows, so that their runs can be cancelled and forked here. */
  readonly runsWorkflows: boolean;
  /** The server's clock. */
  readonly nowMs: number;
}

export interface Product {
  readonly name: string;
  readonly version: string;
  readonly home: PageHome;
}

/** `serve` has no gateway: there the page reads, and asks for nothing that needs one. */
export type PageHome = "gateway" | "serve";

/** Every code of an error, with its HTTP status. */
export const PAGE_ERRORS = {
  /** No session, or one that has ended: sign in with a new link. */
  unauthenticated: 401,
  /** The link was used, or is too old. */
  link_spent: 401,
  forbidden: 403,
  /** The request came from a page, or under a name, that is not ours. */
  wrong_origin: 403,
  not_found: 404,
  method_not_allowed: 405,
  /** The question is not the one that was shown. */
  question_changed: 409,
  needs_gateway: 409,
  /** The request cannot be done as things are. */
  refused: 409,
  too_large: 413,
  not_json: 415,
  invalid: 422,
  plan_refused: 422,
  too_many: 429,
  failed: 500,
  /** The ledger is busy or closed, as while a gateway restarts: ask again. Or another process is this gateway now. */
  unavailable: 503,
} as const satisfies Readonly<Record<string, number>>;

export type PageErrorCode = keyof typeof PAGE_ERRORS;

/** Every answer that is not 2xx. */
export interface PageError {
  readonly error: PageErrorCode;
  /** One sentence that says what happened, and what to do. */
  readonly message: string;
}
