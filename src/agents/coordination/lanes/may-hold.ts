/** Owns: how many places of all lanes together one session and one agent may hold. */

/** Absent: no cap. */
export interface HoldingCaps {
  readonly perSessionMax?: number | undefined;
  readonly perAgentMax?: number | undefined;
}

/** How many places are held now. */
export interface HeldPlaces {
  readonly ofSession: number;
  readonly ofAgent: number;
}

/**
 * True when a session and an agent that hold so many places of all lanes together may hold one more under the caps for
 * each.
 */
export function canHoldPlace(
  { perSessionMax = Infinity, perAgentMax = Infinity }: HoldingCaps,
  { ofSession, ofAgent }: HeldPlaces,
): boolean {
  return ofSession < perSessionMax && ofAgent < perAgentMax;
}
