/** Owns: changes of claims as the suite makes them, and appends that bring them. */
import type { ClaimChange, ClaimEntry } from "../../src/agents/coordination/contracts/claim-entry.ts";
import type { CoordinationId, EpochMs, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { ClaimIndex } from "../../src/agents/coordination/ports/claim-index.ts";
import { openRun, spawnOf, type Author } from "../support/ledger-fixtures.ts";
import type { Open, StoreFixture, TestedStore } from "./ledger-store-tested.ts";

export const claimConflict = { code: "CLAIM_CONFLICT" };

/** The time of the stores: before most claims end. */
export const EARLY_MS = 1;

export async function openEarly(open: Open): Promise<StoreFixture> {
  const tested = await open();
  tested.clock.set(EARLY_MS);
  return tested;
}

const EXPIRES_AT_MS = 2_000 as EpochMs;

/** The change by which a run acquires a claim. */
export type AcquiredClaim = ClaimChange & { kind: "acquired" };

export function createAcquired(
  token: number,
  resource: string,
  fields: Partial<AcquiredClaim> = {},
): AcquiredClaim {
  const stepId = "step-1" as StepId;
  const acquiredAtMs = 1_000 as EpochMs;
  const expiresAtMs = EXPIRES_AT_MS;
  return {
    kind: "acquired",
    token,
    resource,
    stepId,
    priority: "normal",
    acquiredAtMs,
    expiresAtMs,
    ...fields,
  };
}

export function createRenewed(token: number, expiresAtMs: number): ClaimChange {
  return { kind: "renewed", token, expiresAtMs: expiresAtMs as EpochMs };
}

export function createReleased(token: number): ClaimChange {
  return { kind: "released", token };
}

export function entryOf(runId: CoordinationId, { kind: _, ...claim }: AcquiredClaim): ClaimEntry {
  return { ...claim, runId };
}

export function listAll(store: ClaimIndex): Promise<readonly ClaimEntry[]> {
  return store.claims({ after: 0, limit: 10_000 });
}

export async function readLastToken(store: ClaimIndex): Promise<number> {
  return (await store.overlapping({ resource: "nothing", atMs: 0 as EpochMs, limit: 0 })).lastToken;
}

/** A coordination that is in the ledger, with no claims. */
export async function beginRun(store: TestedStore, name: string): Promise<Author> {
  const { author, request } = openRun(name);
  await store.append(request);
  return author;
}

/** Appends claim changes with a spawn; what was refused is forgotten by the author, too. */
export async function change(store: TestedStore, author: Author, ...claims: ClaimChange[]): Promise<void> {
  const spawn = spawnOf(`call-${author.state.nextSequence}`);
  await store.append({ ...author.propose(spawn), claims });
  author.append(spawn);
}
