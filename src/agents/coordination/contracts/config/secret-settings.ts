/** Owns: which values of a configuration are secret, so that whoever compares two configurations leaves them out. */
import { isRecord } from "../../std/is-record.ts";

/** Places whose values the environment of each process may fill in, so that they say nothing of what is written. `*`: any name. */
const SECRETS = [
  "ledger.password",
  "escalations.webhooks.*.secret",
  "gates.verifiers.*.env.*",
  "acpAgents.*.env.*",
  "openwop.tokens.token",
  "openwop.peerTokens.*",
  "telemetry.headers.*",
];
const PLACES = [...SECRETS, ...SECRETS.map((place) => `policies.packs.*.settings.${place}`)].map((place) =>
  place.split("."),
);

/**
 * Returns a copy of the configuration below `coordination.phase1` with empty texts in place of its secrets; `place`
 * names the settings around `value`.
 */
export function leaveOutSecrets(value: unknown, place: readonly string[] = []): unknown {
  if (typeof value === "string") return isSecretPlace(place) ? "" : value;
  // Its items have the place of the list.
  if (Array.isArray(value)) return value.map((item) => leaveOutSecrets(item, place));
  if (!isRecord(value)) return value;
  const entries = Object.entries(value);
  return Object.fromEntries(
    entries.map(([name, member]) => [name, leaveOutSecrets(member, [...place, name])]),
  );
}

function isSecretPlace(place: readonly string[]): boolean {
  return PLACES.some(
    (secret) =>
      secret.length === place.length && secret.every((name, index) => name === "*" || name === place[index]),
  );
}
