/**
 * Owns: what a node may ask for before the outputs of its child run are merged: a verdict (OpenWOP RFC 0090), a checksum and
 * people's approval (RFC 0063). Workflows come from callers over a network: nothing here names a program or a file.
 */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { criterionKeySchema, remoteCheckSchema, type Check } from "../verification.ts";
import { WORKFLOW_BOUNDS } from "./workflow-bounds.ts";

const name = z.string().min(1).max(WORKFLOW_BOUNDS.nameCharsMax);
const keys = z
  .array(name)
  .max(BOUNDS.criteriaMax)
  .transform((kinds) => [...new Set(kinds)]);
const waitMs = z.int().min(1).max(BOUNDS.durationMsMax);

/** How long checks may take together where the node does not say. */
const VERIFY_MS = 60_000;
const REVISIONS_MAX = 1_000;
const PROMPT_CHARS_MAX = 20_000;

const verifierSchema = z.object({
  /** Whose verdict it is. */
  agentId: z.string().min(3).max(WORKFLOW_BOUNDS.nameCharsMax),
  /** Keys of what is looked at. */
  criteria: keys.default([]),
  /** Checks by key. A critic model rules on the criteria that none of them looks at. */
  checks: z
    .record(criterionKeySchema, remoteCheckSchema)
    .refine((checks) => Object.keys(checks).length <= BOUNDS.checksPerStepMax, "too many checks")
    .optional(),
  /** The model of the critic. */
  model: name.optional(),
  /** The critic's instructions. With checks beside it, the critic is asked as well. */
  systemPrompt: z.string().min(1).max(PROMPT_CHARS_MAX).optional(),
  /** For all checks together; then there is no verdict. */
  timeoutMs: waitMs.default(VERIFY_MS),
  /** How often a worker may be sent back before people are asked; the loop's own limit holds in any case. */
  revisionsMax: z.int().min(0).max(REVISIONS_MAX).optional(),
  /** The input by which a worker that is sent back learns the keys of what it did not meet. */
  revisionInput: name.default("revisionCriteria"),
  /** The agent that did the work may rule on it. */
  allowSelfVerification: z.boolean().default(false),
  /** When nobody has answered, the answer is no. Absent: people are waited for. */
  approvalTimeoutMs: waitMs.optional(),
  /** The fate of a run that would end although a verdict was not met: people are asked, or it fails. */
  onUnresolved: z.enum(["ask", "fail"]).default("ask"),
});
/** Who verifies the outputs of a child, and by which checks. */
export type VerifierConfig = z.output<typeof verifierSchema>;

const attestationSchema = z.object({
  checksum: z.boolean().default(false),
  algorithm: z.literal("sha256").default("sha256"),
  requireApproval: z.boolean().default(false),
  /** Scopes that the child run has at most. */
  principalScope: z.array(name).max(BOUNDS.criteriaMax).optional(),
  approvalTimeoutMs: waitMs.optional(),
});
/** Whether the outputs of a child are signed for, and by whom. */
export type AttestationConfig = z.output<typeof attestationSchema>;

/** The gate between a completed child and its outputs in the parent. */
export interface ChildGate {
  readonly verifier?: VerifierConfig;
  readonly attestation?: AttestationConfig;
}

const gateSchema = z.object({
  verifier: verifierSchema.optional(),
  outputAttestation: attestationSchema.optional(),
});

/** The gate of a child as it was read, or what is wrong with it. */
export type GateReading =
  | { readonly ok: true; readonly gate: ChildGate | undefined }
  /** A gate that was misunderstood would open too early. */
  | { readonly ok: false; readonly problems: readonly string[] };

/**
 * Returns the problem of a verifier whose critic is asked about a criterion with a name that is not allowed;
 * `undefined` when all names are.
 */
export function findCriteriaProblem({ criteria }: VerifierConfig): string | undefined {
  return criteria.every((key) => criterionKeySchema.safeParse(key).success)
    ? undefined
    : "verifier: a critic's criteria are named by letters, digits and ._:@/-";
}

/**
 * Returns the gate that a workflow node's configuration puts before the outputs of its child run, `undefined` as the
 * gate where it names none; or what is wrong with it.
 */
export function readChildGate(config: Readonly<Record<string, unknown>>): GateReading {
  const { verifier, outputAttestation } = config;
  const parsed = gateSchema.safeParse({ verifier, outputAttestation });
  if (!parsed.success)
    return {
      ok: false,
      problems: parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`),
    };
  const { verifier: read, outputAttestation: attestation } = parsed.data;
  const gate = { ...(read && { verifier: read }), ...(attestation && { attestation }) };
  return { ok: true, gate: read || attestation ? gate : undefined };
}

/** The criterion of a critic for which none is named. */
const ANY_CRITERION = "acceptable";
const RUBRIC = "Rule whether these outputs of a run are what a careful person would accept and build on.";

/**
 * Lists a verifier's checks with their keys, at least one. A critic model is one of them where it has instructions,
 * where no check is stated, or for criteria that no other check looks at.
 */
export function listVerifierChecks({
  agentId,
  criteria,
  checks = {},
  systemPrompt,
}: VerifierConfig): readonly (readonly [key: string, check: Check])[] {
  const stated = Object.entries(checks).map(([key, check]): [string, Check] => [
    key,
    check.kind === "model" ? { ...check, agent: agentId } : check,
  ]);
  const covered = new Set(
    stated.flatMap(([key, check]) => (check.kind === "model" ? check.criteria : [key])),
  );
  const criteriaForCritic =
    systemPrompt === undefined ? criteria.filter((key) => !covered.has(key)) : criteria;
  if (stated.length > 0 && systemPrompt === undefined && criteriaForCritic.length === 0) return stated;
  const critic: Check = {
    kind: "model",
    agent: agentId,
    rubric: systemPrompt ?? RUBRIC,
    criteria: criteriaForCritic.length > 0 ? criteriaForCritic : [ANY_CRITERION],
  };
  // Not a record: a check may have the same key.
  return [...stated, [CRITIC_KEY, critic]];
}

const CRITIC_KEY = "critic";
