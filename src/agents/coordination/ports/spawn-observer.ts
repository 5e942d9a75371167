/** Owns: the port to the children that models spawn: asking the host about one, giving it its envelope, stopping it. */
import type { CoordinationEnvelope } from "../contracts/envelope.ts";
import type { ContentRef } from "../contracts/fact-fields.ts";
import type { EpochMs, SessionKey } from "../contracts/ids.ts";
import type { Cancellation, Observation } from "../contracts/observation.ts";

/** The spawn to ask about: by its child where that is known, else by what was asked for. */
export interface SpawnQuery {
  readonly sourceSession: SessionKey;
  readonly input: ContentRef;
  readonly dispatchedAtMs: EpochMs;
  readonly childSessionKey?: SessionKey;
  /**
   * When the last turn of the child had ended, and the last step that it spawned; 0 where nothing is known of either.
   * Absent while one of them is at work: then the end of its first turn is not its end.
   */
  readonly quietSinceMs?: EpochMs | undefined;
  /** Children that belong to other steps and are not the answer. */
  readonly taken: ReadonlySet<SessionKey>;
}

/** Asks the host about spawns of its models, binds envelopes to them and stops them. */
export interface SpawnObserver {
  /** Asks the host's own records about a spawn; never throws. */
  observe(query: SpawnQuery): Promise<Observation>;
  /** Writes the envelope where the host keeps the child session's data. Safe to repeat. */
  bind(envelope: CoordinationEnvelope): Promise<void>;
  /** Stops the child of a spawn and what it spawned in turn. */
  stop(query: SpawnQuery): Promise<Cancellation>;
}
