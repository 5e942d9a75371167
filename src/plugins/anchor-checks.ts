/**
 * Owns: making an anchor of a ledger, signing it, and holding a ledger against one. Does not own: the chains of hashes below the
 * heads, which `verify` walks. Load it lazily.
 *
 * 1. Event n of a run has a hash over it and all before it. Where that is the anchor's, and the chain holds, so are they all.
 * 2. Events are numbered over all runs, so the heads at an earlier number are found again after the ledger grew.
 */
import { createHash } from "node:crypto";
import { CoordinationError } from "../agents/coordination/contracts/errors.ts";
import {
  ANCHOR_HEADS_MAX,
  createAnchor,
  createAnchorError,
  formatHeadLine,
  formatSignedText,
  parseAnchor,
  type AnchorContent,
  type LedgerAnchor,
  type RunHead,
} from "../agents/coordination/contracts/ledger-anchor.ts";
import { readAnchorFile, writeAnchorFile } from "../infra/tokens/anchor-file.ts";
import {
  createSigningKeyFiles,
  isSignedBy,
  parsePublicKey,
  readSigningKey,
  type SigningKey,
} from "../infra/tokens/signing-key.ts";
import type { LedgerReader } from "./ledger-reader.ts";

const PAGE = 500;
const PROBLEMS_MAX = 200;

export { createSigningKeyFiles, readSigningKey };

/** A place where the ledger is not what the anchor says. */
export interface AnchorProblem {
  readonly kind:
    "anchor_ledger_differs" | "anchor_run_missing" | "anchor_run_shortened" | "anchor_run_rewritten";
  readonly message: string;
  readonly runId?: string;
  readonly sequence?: number;
}

/** The part of a ledger's reader that anchors need. */
type HeadsReader = Pick<LedgerReader, "heads">;

/** Hears of how many runs were looked at. */
type OnProgress = (runs: number) => void;

export interface AnchorRequest {
  /** As of this number of events, for instance the one before the ledger was proven. */
  readonly events: number;
  readonly madeAtMs: number;
  readonly key?: SigningKey;
  readonly onProgress?: OnProgress;
}

/**
 * Creates an anchor of the ledger as it was at a number of events: the digest of the last hash of each run, and these
 * hashes themselves where they are few; signed where there is a key.
 */
export async function makeAnchor(reader: HeadsReader, request: AnchorRequest): Promise<LedgerAnchor> {
  const { events, madeAtMs, key, onProgress } = request;
  const { runs, headsSha256, heads } = await computeHeadsDigest(reader, { events, onProgress });
  const content: AnchorContent = {
    madeAt: new Date(madeAtMs).toISOString(),
    runs,
    events,
    headsSha256,
    ...(runs <= ANCHOR_HEADS_MAX && { heads }),
  };
  return key ? signAnchor(createAnchor(content), key) : createAnchor(content);
}

function signAnchor(anchor: LedgerAnchor, { publicKey, sign }: SigningKey): LedgerAnchor {
  const keyed = { ...anchor, publicKey };
  return { ...keyed, signature: sign(formatSignedText(keyed)) };
}

interface HeadsDigest {
  /** False where a run grew after so many events and was then removed, and nobody named its head of then. */
  readonly isOfThen: boolean;
  /** How many of the runs were removed. */
  readonly pruned: number;
  readonly runs: number;
  readonly headsSha256: string;
  /** The first of them, at most as many as an anchor names. */
  readonly heads: readonly RunHead[];
}

interface DigestRequest {
  readonly events: number;
  /** The heads that an anchor names: they speak for removed runs that grew later. */
  readonly named?: readonly RunHead[] | undefined;
  readonly onProgress?: OnProgress | undefined;
}

/**
 * Returns the digest over the heads of all runs as of a number of events, the first of these heads, and whether all
 * are of then: a removed run that grew later and is not named counts by its newest head.
 */
async function computeHeadsDigest(
  { heads: reads }: HeadsReader,
  { events, named = [], onProgress }: DigestRequest,
): Promise<HeadsDigest> {
  const headsOfThen = new Map(named.map((head) => [head.runId, head]));
  const digest = createHash("sha256");
  const heads: RunHead[] = [];
  const counts = { runs: 0, pruned: 0, unnamed: 0 };
  for await (const page of readHeadPages(reads, events)) {
    for (const { ordinal: _ordinal, pruned, ...newest } of page) {
      const headOfThen = pruned === "grown" ? headsOfThen.get(newest.runId) : newest;
      const head = headOfThen ?? newest;
      digest.update(formatHeadLine(head));
      if (counts.runs < ANCHOR_HEADS_MAX) heads.push(head);
      counts.runs += 1;
      counts.pruned += pruned ? 1 : 0;
      counts.unnamed += headOfThen ? 0 : 1;
    }
    onProgress?.(counts.runs);
  }
  const { runs, pruned, unnamed } = counts;
  return { isOfThen: unnamed === 0, pruned, runs, headsSha256: digest.digest("hex"), heads };
}

/** Yields the heads of all runs as of a number of events, page by page. */
async function* readHeadPages(
  reads: HeadsReader["heads"],
  events: number,
): AsyncGenerator<Awaited<ReturnType<HeadsReader["heads"]["page"]>>> {
  for (let after = 0; ;) {
    const page = await reads.page({ events, after, limit: PAGE });
    yield page;
    after = page.at(-1)?.ordinal ?? after;
    if (page.length < PAGE) return;
  }
}

/** The text of an anchor file, and the PEM text of the key that it has to be signed with. */
export interface AnchorTexts {
  readonly name: string;
  readonly text: string;
  readonly publicKey?: { readonly name: string; readonly text: string };
}

/**
 * Returns the anchor in a text, once its signature, its named heads and the given key match, where there are any.
 * @throws CoordinationError `INPUT_INVALID` for what is no anchor, was changed, or is not signed with the key
 */
export function readAnchor({ name, text, publicKey }: AnchorTexts): LedgerAnchor {
  const anchor = parseAnchor(text, name);
  assertAnchorUnchanged(anchor, name);
  if (publicKey) assertSigner(anchor, name, publicKey);
  return anchor;
}

/**
 * Throws where an anchor's signature or the heads that it names do not match it. It cannot tell of an unsigned anchor
 * that names no heads, or whose digest was made anew.
 */
function assertAnchorUnchanged(anchor: LedgerAnchor, name: string): void {
  const { heads, headsSha256, runs, publicKey, signature } = anchor;
  if (publicKey !== undefined && signature !== undefined) {
    if (!isSignedBy({ text: formatSignedText(anchor), publicKey, signature }))
      throw createAnchorError(name, "was changed after it was signed: the signature does not match");
  }
  if (!heads) return;
  const digest = createHash("sha256");
  for (const head of heads) digest.update(formatHeadLine(head));
  if (heads.length !== runs || digest.digest("hex") !== headsSha256)
    throw createAnchorError(name, "was changed after it was made: its runs do not match their digest");
}

function assertSigner(
  anchor: LedgerAnchor,
  name: string,
  publicKey: { readonly name: string; readonly text: string },
): void {
  const expected = parsePublicKey(publicKey.text, publicKey.name);
  if (anchor.publicKey === undefined)
    throw createAnchorError(name, `is not signed, so ${publicKey.name} proves nothing about it`);
  if (anchor.publicKey !== expected)
    throw createAnchorError(name, `is signed with another key than ${publicKey.name}`);
}

/** How much of a ledger was compared with an anchor. */
export interface AnchorCoverage {
  /** How many runs of the anchor were pruned since, or before it. */
  readonly pruned: number;
  /** False where only runs that it names were compared, because others grew after it and were then pruned. */
  readonly isDigestCompared: boolean;
  /** There are more problems than are listed. */
  readonly isCut?: true;
}

/** How a ledger is, held against an anchor. */
export interface AnchorCheck extends AnchorCoverage {
  /** Things that the anchor names and the ledger does not hold. */
  readonly problems: readonly AnchorProblem[];
}

/** How a check is followed while it goes on. */
export interface AnchorWatch {
  /** Each problem is added to them as it is found, so that what was found before an error is there. */
  readonly problems?: AnchorProblem[];
  readonly onProgress?: OnProgress;
}

/**
 * Compares the ledger with an anchor and returns at most 200 problems where the ledger no longer holds what the anchor
 * names, and whether the digest could be compared. A run that was pruned since is no problem.
 */
export async function checkAnchor(
  reader: HeadsReader,
  anchor: LedgerAnchor,
  { problems = [], onProgress }: AnchorWatch = {},
): Promise<AnchorCheck> {
  const { events, heads: named = [] } = anchor;
  problems.push(...(await findLedgerShortening(reader, anchor)));
  const isCut = await addNamedProblems(reader, named, { problems, onProgress });
  const ledgerDigest = await computeHeadsDigest(reader, { events, named, onProgress });
  const { pruned, isOfThen: isDigestCompared } = ledgerDigest;
  // Named runs may all be there, and others between them that were not.
  if (problems.length === 0 && isDigestCompared) problems.push(...findDigestProblem(ledgerDigest, anchor));
  return { problems, pruned, isDigestCompared, ...(isCut && { isCut }) };
}

/** Returns a problem where the ledger has fewer events than the anchor. */
async function findLedgerShortening(
  { heads }: HeadsReader,
  { events }: LedgerAnchor,
): Promise<AnchorProblem[]> {
  const newest = await heads.newestNumber();
  if (newest >= events) return [];
  const message = `the ledger has ${newest} events, and had ${events} when the anchor was made`;
  return [{ kind: "anchor_ledger_differs", message }];
}

interface NamedWatch {
  readonly problems: AnchorProblem[];
  readonly onProgress: OnProgress | undefined;
}

/**
 * Adds a problem for each named run that is not as it was; returns true where there are more than it added. Where none
 * of the runs is there, one problem stands for all.
 */
async function addNamedProblems(
  reader: HeadsReader,
  heads: readonly RunHead[],
  { problems, onProgress }: NamedWatch,
): Promise<boolean> {
  const before = problems.length;
  let missing = 0;
  let isCut = false;
  for (const [index, head] of heads.entries()) {
    const problem = await findRunProblem(reader, head);
    if (problem?.kind === "anchor_run_missing") missing += 1;
    if (problem && problems.length < PROBLEMS_MAX) problems.push(problem);
    else if (problem) isCut = true;
    onProgress?.(index + 1);
  }
  if (missing === 0 || missing < heads.length) return isCut;
  const message = `none of the ${heads.length} runs of the anchor is there: another ledger, or all were removed`;
  problems.splice(before, problems.length, { kind: "anchor_ledger_differs", message });
  return false;
}

async function findRunProblem({ heads }: HeadsReader, head: RunHead): Promise<AnchorProblem | undefined> {
  const { runId, events, hash } = head;
  const sequence = events - 1;
  const storedHash = await heads.hashAt({ runId, sequence });
  if (!storedHash) {
    const message = `the run is not there, and had ${events} events when the anchor was made`;
    return { kind: "anchor_run_missing", message, runId };
  }
  // Only the newest hash of a pruned run is left.
  if (storedHash.isPruned && storedHash.length > events) return undefined;
  if (storedHash.hash === undefined) {
    const message = `the run has ${storedHash.length} events, and had ${events} when the anchor was made`;
    return { kind: "anchor_run_shortened", message, runId, sequence: storedHash.length };
  }
  if (storedHash.hash === hash) return undefined;
  const message = `event ${sequence} has not the hash that the anchor names: it, or one before it, was rewritten`;
  return { kind: "anchor_run_rewritten", message, runId, sequence };
}

function findDigestProblem(found: HeadsDigest, { events, runs, headsSha256 }: LedgerAnchor): AnchorProblem[] {
  if (found.runs === runs && found.headsSha256 === headsSha256) return [];
  const message =
    `the ${found.runs} runs up to event ${events} do not have the digest that the anchor has over its ${runs}: ` +
    "some were rewritten, removed or added, or it is another ledger";
  return [{ kind: "anchor_ledger_differs", message }];
}

/**
 * Writes an anchor to a file, over another only where that is unchanged, not newer, not signed with another key, and
 * the ledger still holds what it names. @throws CoordinationError
 */
export async function saveAnchor(reader: HeadsReader, path: string, anchor: LedgerAnchor): Promise<void> {
  const older = readAnchorFile(path);
  if (older) {
    assertAnchorUnchanged(older, path);
    await assertReplaceable({ reader, path, older, anchor });
  }
  writeAnchorFile(path, anchor, { replaces: older !== undefined });
}

/** An anchor, and the older one in the file that it is to replace. */
interface AnchorReplacement {
  readonly reader: HeadsReader;
  readonly path: string;
  readonly older: LedgerAnchor;
  readonly anchor: LedgerAnchor;
}

async function assertReplaceable({ reader, path, older, anchor }: AnchorReplacement): Promise<void> {
  if (older.events > anchor.events || older.madeAt > anchor.madeAt)
    throw createAnchorError(path, "holds a newer anchor, which is not replaced; name another file");
  if (older.publicKey !== undefined && older.publicKey !== anchor.publicKey)
    throw createAnchorError(
      path,
      "holds an anchor that is signed with another key; pass that key with --sign",
    );
  const {
    problems: [problem],
  } = await checkAnchor(reader, older);
  if (!problem) return;
  const place = problem.runId === undefined ? "" : `${problem.runId}: `;
  throw new CoordinationError(
    "INPUT_INVALID",
    `${path} holds an anchor that the ledger does not match, which is not replaced (${place}${problem.message}); ` +
      "run `verify --anchor` with it",
  );
}
