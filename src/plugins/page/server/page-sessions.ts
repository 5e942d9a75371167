/**
 * Owns: who is signed in to the page. A link is minted for somebody with rights, counts once, and becomes a session.
 *
 * P1 Links and tokens are 256 random bits, kept as their hash only, in memory only. P2 Nothing of a session outlives the process.
 * P3 A link counts once, and for five minutes. P4 Numbers are bounded: the oldest link goes, and the session that follows nothing and
 * made the oldest last request.
 */
import { hash, randomBytes } from "node:crypto";
import type { Clock } from "../../../agents/coordination/ports/clock.ts";
import type { Rights } from "../contract/session.ts";
import { PAGE_BOUNDS } from "./page-bounds.ts";

export interface PageSession {
  readonly rights: Rights;
  /** Streams that are open. */
  streams: number;
  expiresAtMs: number;
}

export type SignInOutcome =
  | { readonly kind: "signed_in"; readonly token: string; readonly session: PageSession }
  | { readonly kind: "spent" }
  /** Too many links that do not count were tried in the last minute. */
  | { readonly kind: "too_many" };

export interface PageSessions {
  /** Returns the text of a link that counts once. */
  mintLink(rights: Rights): string;
  signIn(link: string): SignInOutcome;
  /** The session of a token, which it renews; `undefined` for one that is not known, or has ended. */
  find(token: string): PageSession | undefined;
  isAlive(session: PageSession): boolean;
}

/** The rights that a link gives, and until when it can be used. */
interface SignInLink {
  readonly rights: Rights;
  readonly expiresAtMs: number;
}

const MINUTE_MS = 60_000;

/**
 * Creates the memory of one-time links and of the sessions that sign in by them; links work once and for a short time,
 * and wrong ones are limited each minute.
 */
export function createPageSessions(clock: Clock): PageSessions {
  const links = new Map<string, SignInLink>();
  const sessions = new Map<string, PageSession>();
  const wrongLinks = { sinceMs: 0, count: 0 };
  const isGuessing = (now: number): boolean => {
    if (now - wrongLinks.sinceMs >= MINUTE_MS) Object.assign(wrongLinks, { sinceMs: now, count: 0 });
    return wrongLinks.count >= PAGE_BOUNDS.wrongLinksMax;
  };
  return {
    mintLink: (rights) => {
      const now = clock.now();
      removeExpired(links, now);
      const [oldest] = links.keys();
      if (oldest !== undefined && links.size >= PAGE_BOUNDS.linksMax) links.delete(oldest);
      const link = createSecret();
      links.set(hashSecret(link), { rights, expiresAtMs: now + PAGE_BOUNDS.linkMs });
      return link;
    },
    signIn: (link) => {
      const now = clock.now();
      removeExpired(links, now);
      removeExpired(sessions, now);
      const name = hashSecret(link);
      const knownLink = links.get(name);
      if (!knownLink) {
        if (isGuessing(now)) return { kind: "too_many" };
        wrongLinks.count += 1;
        return { kind: "spent" };
      }
      links.delete(name);
      if (sessions.size >= PAGE_BOUNDS.sessionsMax) endIdlestSession(sessions, now);
      const token = createSecret();
      const session = { rights: knownLink.rights, streams: 0, expiresAtMs: now + PAGE_BOUNDS.sessionMs };
      sessions.set(hashSecret(token), session);
      return { kind: "signed_in", token, session };
    },
    find: (token) => {
      const session = sessions.get(hashSecret(token));
      const now = clock.now();
      if (!session || session.expiresAtMs <= now) return undefined;
      session.expiresAtMs = now + PAGE_BOUNDS.sessionMs;
      return session;
    },
    isAlive: ({ expiresAtMs }) => expiresAtMs > clock.now(),
  };
}

/**
 * Ends the session without an open stream whose last request is the oldest. There is always one without a stream,
 * because a server has fewer streams than sessions.
 */
function endIdlestSession(sessions: Map<string, PageSession>, now: number): void {
  const idle = [...sessions].filter(([, { streams }]) => streams === 0);
  const [idlest] = idle.toSorted(([, a], [, b]) => a.expiresAtMs - b.expiresAtMs);
  if (!idlest) return;
  const [name, session] = idlest;
  // A stream that it is just opening ends with the next beat.
  session.expiresAtMs = now;
  sessions.delete(name);
}

function createSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** Returns the hash by which a secret is looked up, which leaks nothing of it by the time that takes. */
function hashSecret(secret: string): string {
  return hash("sha256", secret);
}

function removeExpired(entries: Map<string, { readonly expiresAtMs: number }>, now: number): void {
  for (const [name, { expiresAtMs }] of entries) if (expiresAtMs <= now) entries.delete(name);
}
