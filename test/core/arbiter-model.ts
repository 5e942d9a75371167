/**
 * Owns: who may hold what, told as simply as it can be: the claims that count at a time, and the one rule that orders them. Steps are
 * of one plan; each of its slots has a priority of its own and runs one step after another.
 */
import { PRIORITIES } from "../../src/agents/coordination/contracts/envelope.ts";
import { LEASE_MS } from "./arbiter-scene.ts";

export const SLOTS = ["low", "normal", "high"] as const;
export type Slot = (typeof SLOTS)[number];

/** One is in the next. */
export const PATHS = ["d/e/f", "d/e", "d"] as const;

export interface ModelClaim {
  readonly slot: Slot;
  readonly path: string;
  readonly token: number;
  expiresAtMs: number;
}

export interface Model {
  claims: ModelClaim[];
  lastToken: number;
}

const isCoveringPath = (above: string, below: string): boolean =>
  above === below || below.startsWith(`${above}/`);
const isOverlappingPath = (one: string, other: string): boolean =>
  isCoveringPath(one, other) || isCoveringPath(other, one);

export function listActiveClaims(model: Model, now: number): ModelClaim[] {
  return model.claims.filter(({ expiresAtMs }) => expiresAtMs > now);
}

/** The request of a step, if it stands alone. Changes the model where it is granted. */
export function request(
  model: Model,
  strategy: "owner_wins" | "priority_wins",
  { slot, path, now }: { readonly slot: Slot; readonly path: string; readonly now: number },
): "granted" | "refused" {
  const live = listActiveClaims(model, now);
  const others = live.filter((claim) => claim.slot !== slot && isOverlappingPath(claim.path, path));
  const heldClaim = live.find((claim) => claim.slot === slot && isCoveringPath(claim.path, path));
  const mine = heldClaim?.token ?? model.lastToken + 1;
  const rank = (of: Slot): number => (strategy === "priority_wins" ? PRIORITIES.indexOf(of) : 0);
  const isBeaten = others.some(
    (other) => rank(other.slot) > rank(slot) || (rank(other.slot) === rank(slot) && other.token < mine),
  );
  if (isBeaten) return "refused";
  const losers = new Set(others);
  model.claims = model.claims.filter((claim) => !losers.has(claim));
  if (heldClaim) {
    if (heldClaim.expiresAtMs - now <= LEASE_MS / 2) heldClaim.expiresAtMs = now + LEASE_MS;
    return "granted";
  }
  model.lastToken += 1;
  model.claims = model.claims.filter((claim) => claim.slot !== slot || claim.path !== path);
  model.claims.push({ slot, path, token: model.lastToken, expiresAtMs: now + LEASE_MS });
  return "granted";
}
