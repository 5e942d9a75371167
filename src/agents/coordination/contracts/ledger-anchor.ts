/**
 * Owns: the form of an anchor: what a ledger held at one moment, kept where whoever can write the ledger cannot. Does not
 * own: making one, or holding a ledger against one.
 *
 * The file is the canonical JSON of the anchor and a line feed. A signature is over the canonical JSON of the anchor
 * without its member `signature`.
 */
import { z } from "zod";
import { formatCanonicalJson } from "../std/canonical-json.ts";
import { CoordinationError } from "./errors.ts";
import { parseJsonOrNothing } from "../std/parse-json.ts";

const KIND = "openclaw-coordination-anchor";
const VERSION = 1;

/** A ledger of more runs has an anchor without `heads`, so that the file stays small. */
export const ANCHOR_HEADS_MAX = 10_000;
/** 10,000 ids of the greatest length fit. */
export const ANCHOR_BYTES_MAX = 16_000_000;

const sha256Schema = z.string().regex(/^[0-9a-f]{64}$/u);
const base64Schema = z.string().regex(/^[A-Za-z0-9+/]{40,120}={0,2}$/u);

const runHeadSchema = z.strictObject({
  runId: z.string().min(1).max(1_000),
  /** How many events the run had. */
  events: z.int().positive(),
  /** The hash of the newest of them, over it and all before it. */
  hash: sha256Schema,
});

const anchorSchema = z.strictObject({
  kind: z.literal(KIND),
  version: z.literal(VERSION),
  madeAt: z.iso.datetime(),
  runs: z.int().nonnegative(),
  /** The number of the newest event of the ledger, over all runs. */
  events: z.int().nonnegative(),
  /** Over the lines of all heads in the order of the ledger, `formatHeadLine`. */
  headsSha256: sha256Schema,
  /** In the order of the ledger. Absent where there are more than `ANCHOR_HEADS_MAX`. */
  heads: z.array(runHeadSchema).max(ANCHOR_HEADS_MAX).readonly().optional(),
  /** Ed25519: SPKI, DER, base64. */
  publicKey: base64Schema.optional(),
  /** Ed25519, base64. */
  signature: base64Schema.optional(),
});

/** The newest event of a run at the moment of the anchor. */
export type RunHead = Readonly<z.infer<typeof runHeadSchema>>;
/** The content of a ledger at one moment. */
export type LedgerAnchor = Readonly<z.infer<typeof anchorSchema>>;
/** An anchor before its kind and version are written down. */
export type AnchorContent = Omit<LedgerAnchor, "kind" | "version" | "publicKey" | "signature">;

/** Returns a ledger's anchor with this content, marked by its kind and the version that this release writes. */
export function createAnchor(content: AnchorContent): LedgerAnchor {
  return { kind: KIND, version: VERSION, ...content };
}

/**
 * Returns the line, end of line included, that stands for one run in the text whose sha256 is the `headsSha256` of a
 * ledger's anchor.
 */
export function formatHeadLine({ runId, events, hash }: RunHead): string {
  return `${formatCanonicalJson([runId, events, hash])}\n`;
}

/** Returns the text of a ledger anchor's file: its canonical JSON and an end of line. */
export function formatAnchor(anchor: LedgerAnchor): string {
  return `${formatCanonicalJson(anchor)}\n`;
}

/** Returns the text of a ledger's anchor that its signature is over: the canonical JSON of all but the signature. */
export function formatSignedText({ signature: _signature, ...signed }: LedgerAnchor): string {
  return formatCanonicalJson(signed);
}

/**
 * Returns the ledger's anchor in the text of its file; the signature is not verified here. `name`: of the file, for
 * the error. @throws CoordinationError `INPUT_INVALID`
 */
export function parseAnchor(text: string, name: string): LedgerAnchor {
  const value = parseJsonOrNothing(text);
  if (typeof value !== "object" || value === null || (value as { kind?: unknown }).kind !== KIND)
    throw createAnchorError(name, "is not an anchor of a ledger; `ledger anchor FILE` makes one");
  const { version } = value as { version?: unknown };
  if (typeof version === "number" && version > VERSION)
    throw createAnchorError(
      name,
      `is an anchor of version ${version}, and this release reads version ${VERSION}; upgrade openclaw-coordination`,
    );
  const parsed = anchorSchema.safeParse(value);
  if (!parsed.success) throw createAnchorError(name, `is a damaged anchor: ${describeIssue(parsed.error)}`);
  if ((parsed.data.signature === undefined) !== (parsed.data.publicKey === undefined))
    throw createAnchorError(name, "is a damaged anchor: it has a signature without its key, or a key alone");
  return parsed.data;
}

/** Returns, without throwing it, the `INPUT_INVALID` error of a file that is not the anchor that it should be. */
export function createAnchorError(name: string, problem: string): CoordinationError {
  return new CoordinationError("INPUT_INVALID", `${name} ${problem}`);
}

function describeIssue({ issues: [issue] }: z.ZodError): string {
  const place = issue?.path.join(".") ?? "";
  return place === "" ? "its members are not those of an anchor" : `${place} is not what an anchor has there`;
}
