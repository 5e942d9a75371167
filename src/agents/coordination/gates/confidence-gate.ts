/**
 * Owns: whether a stated confidence lets something through. In basis points throughout.
 *
 * G1 missing evidence holds where it is demanded, and what cannot be read is never taken for a number. Equal to what is demanded
 * passes. Absence alone never holds (OpenWOP RFC 0039; `agent.decided` of run-event-payloads.schema.json).
 */
import type { StatedConfidence } from "../contracts/commands.ts";

export type ConfidenceVerdict =
  | { readonly outcome: "pass"; readonly measured?: number; readonly required: number }
  | {
      readonly outcome: "hold";
      readonly reason: "low" | "missing" | "unreadable";
      readonly measured?: number;
      readonly required: number;
    };

export function ruleOnConfidence(
  { confidence, confidenceUnreadable }: StatedConfidence,
  { required, isDemanded }: { readonly required: number; readonly isDemanded: boolean },
): ConfidenceVerdict {
  if (confidenceUnreadable) return { outcome: "hold", reason: "unreadable", required };
  if (confidence === undefined)
    return isDemanded ? { outcome: "hold", reason: "missing", required } : { outcome: "pass", required };
  return confidence < required
    ? { outcome: "hold", reason: "low", measured: confidence, required }
    : { outcome: "pass", measured: confidence, required };
}
