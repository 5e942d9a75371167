/**
 * Owns: which session a model call belongs to, which sessions are gated, and what they said. Module instances of the plugin and the
 * runs under way outlive a reload, so this lies on `globalThis`. No truth: hooks fill it in before every model call.
 */
import { createHmac, randomBytes } from "node:crypto";
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import { convertToBasisPointsDown } from "../../../agents/coordination/gates/stated-confidence.ts";
import type { GatedSession } from "../../../agents/coordination/runtime/held-results/withhold-text.ts";
import {
  createWithheldTexts,
  type WithheldTexts,
} from "../../../agents/coordination/runtime/environment/withheld-texts.ts";
import { createRecent, type Recent } from "../host/recent.ts";

export interface GatedNow extends GatedSession {
  /** Its newest message states a low confidence: every part of it is kept back. */
  readonly isDoubted?: boolean;
  /** The ledger does not say yet what the session is. */
  readonly isProvisional?: true;
}

export interface GateMemory {
  /** The session of a run, by the span that its model calls have as parent. */
  readonly spans: Recent<SessionKey>;
  readonly gated: Recent<GatedNow>;
  readonly texts: WithheldTexts;
  /** Makes the names of texts that are kept back; the one that outlives the process, once a coordinator has opened. */
  key: Uint8Array;
}

const KEY = Symbol.for("openclaw-coordination.gate-memory.2");
/** Before the key of the state folder is read. */
const KEY_BYTES = 32;
const SPANS_MAX = 20_000;
const SESSIONS_MAX = 10_000;

type Holder = { [KEY]?: GateMemory };

export function accessGateMemory(): GateMemory {
  const existing = (globalThis as Holder)[KEY];
  if (existing) return existing;
  const memory: GateMemory = {
    spans: createRecent<SessionKey>(SPANS_MAX),
    gated: createRecent<GatedNow>(SESSIONS_MAX),
    texts: createWithheldTexts((session, text) =>
      createHmac("sha256", memory.key).update(`${session}\0${text}`).digest("hex"),
    ),
    key: randomBytes(KEY_BYTES),
  };
  (globalThis as Holder)[KEY] = memory;
  return memory;
}

/** Notes what the agent has just reported, because that decides at once what it may say. */
export function noteReported(session: string, confidence: number | undefined): void {
  const { gated } = accessGateMemory();
  const gatedSession = gated.get(session);
  if (!gatedSession) return;
  const { reported: _, ...rest } = gatedSession;
  const stated =
    confidence === undefined ? {} : { reported: { confidence: convertToBasisPointsDown(confidence) } };
  gated.set(session, { ...rest, ...stated });
}
