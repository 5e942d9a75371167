/**
 * Owns: proving a whole ledger: the stored bytes (the store's part), then the log's meaning, by folding every run again.
 *
 * L2 gapless, L3 causes are earlier events, L4 the log folds, L5 the projection is what is stored, D5 one terminal
 * event; and what is kept beside the log is what the log says.
 */
import { isCoordinationError } from "../contracts/errors.ts";
import type { CoordinationId } from "../contracts/ids.ts";
import { isFact, type OpenWopDraft, type RunEvent } from "../contracts/run-event.ts";
import type { Reference } from "../contracts/summary.ts";
import { evolve } from "../ledger/evolve.ts";
import { unopened, type Coordination } from "../ledger/state.ts";
import { referencesOf, summarize } from "../ledger/summary.ts";
import { project } from "../openwop/project.ts";
import type { LedgerStore, RunEntry, StoredProblem } from "../ports/ledger-store.ts";

const PAGE = 500;
const PROBLEMS_MAX = 200;
/** A run that grows during each of so many readings is reported as it was read last. */
const GROWTHS_MAX = 5;

export interface Verification {
  readonly ok: boolean;
  readonly coordinations: number;
  readonly events: number;
  readonly problems: readonly StoredProblem[];
}

/** `onProgress` hears of every coordination that was checked. */
export async function verifyLedger(
  store: LedgerStore,
  onProgress: (done: { readonly coordinations: number; readonly events: number }) => void = () => undefined,
): Promise<Verification> {
  const problems: StoredProblem[] = [...(await store.inspect())];
  let coordinations = 0;
  let events = 0;
  for await (const entry of allRuns(store, problems)) {
    problems.push(...(await verifyGrowingRun(store, entry)));
    coordinations += 1;
    events += entry.length;
    onProgress({ coordinations, events });
    if (problems.length >= PROBLEMS_MAX) break;
  }
  return { ok: problems.length === 0, coordinations, events, problems: problems.slice(0, PROBLEMS_MAX) };
}

async function* allRuns(store: LedgerStore, problems: StoredProblem[]): AsyncGenerator<RunEntry> {
  let after: RunEntry | undefined;
  for (;;) {
    const page = await pageOf(store, after).catch((error: unknown) => {
      problems.push({
        kind: "index_differs",
        message: `the list of coordinations is unreadable: ${messageOf(error)}`,
      });
      return [];
    });
    yield* page;
    after = page.at(-1);
    if (page.length < PAGE) return;
  }
}

function pageOf(store: LedgerStore, after: RunEntry | undefined): Promise<RunEntry[]> {
  return store.list({ limit: PAGE, ...(after && { after }) });
}

/** What was appended while the run was read is no damage: it is checked again as it is then. */
async function verifyGrowingRun(store: LedgerStore, entry: RunEntry): Promise<StoredProblem[]> {
  let checked = entry;
  for (let tries = 1; ; tries += 1) {
    const problems = await verifyRun(store, checked);
    if (problems.length === 0 || tries >= GROWTHS_MAX) return problems;
    const newest = await entryOf(store, checked);
    if (newest === undefined || newest.length === checked.length) return problems;
    checked = newest;
  }
}

async function entryOf(store: LedgerStore, { runId, ordinal }: RunEntry): Promise<RunEntry | undefined> {
  const page = await store.list({ limit: PAGE, idPrefix: runId }).catch(() => []);
  return page.find((entry) => entry.ordinal === ordinal);
}

async function verifyRun(store: LedgerStore, entry: RunEntry): Promise<StoredProblem[]> {
  const { runId } = entry;
  const check = newCheck(runId);
  try {
    for await (const event of eventsOf(store, runId)) checkEvent(check, event);
    checkReferences(check, runId, await store.references(runId));
  } catch (error) {
    const kind = isUnreadable(error) ? "event_unreadable" : "fold_failed";
    return [
      ...check.problems,
      { kind, message: messageOf(error), runId, sequence: check.state.nextSequence },
    ];
  }
  checkEnd(check, entry);
  return check.problems;
}

/** A page that holds an unreadable event is read one by one, so that the events before it are checked and it is located. */
async function* eventsOf(store: LedgerStore, runId: CoordinationId): AsyncGenerator<RunEvent> {
  let limit = PAGE;
  for (let from = 0; ;) {
    const page = await store.read(runId, { from, limit }).catch((error: unknown) => {
      if (limit === 1 || !isUnreadable(error)) throw error;
      return undefined;
    });
    if (!page) {
      limit = 1;
      continue;
    }
    yield* page;
    if (page.length < limit) return;
    from += page.length;
  }
}

function isUnreadable(error: unknown): boolean {
  return isCoordinationError(error) && error.code === "EVENT_UNREADABLE";
}

interface Check {
  state: Coordination;
  /** L5: what must come next. */
  expected: OpenWopDraft[];
  readonly seen: Set<string>;
  readonly references: (Reference & { readonly sequence: number })[];
  readonly problems: StoredProblem[];
}

function newCheck(runId: CoordinationId): Check {
  return { state: unopened(runId), expected: [], seen: new Set(), references: [], problems: [] };
}

function checkEvent(check: Check, event: RunEvent): void {
  const { eventId, runId, sequence, type, causationId } = event;
  const differs = (message: string): void => {
    check.problems.push({ kind: "projection_differs", message, runId, sequence });
  };
  if (causationId !== undefined && !check.seen.has(causationId)) {
    differs(`L3: ${eventId} is caused by ${causationId}, which is not an earlier event`);
  }
  check.seen.add(eventId);
  check.references.push(...referencesOf(event).map((reference) => ({ ...reference, sequence })));
  const [expected, ...rest] = check.expected;
  if (isFact(event)) {
    if (expected) differs(`L5: ${expected.type} is missing before ${eventId} (${type})`);
    check.state = evolve(check.state, event);
    check.expected = check.state.kind === "unopened" ? [] : project(event, check.state);
    return;
  }
  if (!expected) differs(`L5: ${eventId} (${type}) follows from no fact`);
  else if (!sameDraft(expected, event))
    differs(`L5: ${eventId} (${type}) is not the projection of the fact before it`);
  check.expected = rest;
  check.state = evolve(check.state, event);
}

function sameDraft(expected: OpenWopDraft, stored: RunEvent): boolean {
  return (
    expected.type === stored.type &&
    expected.nodeId === stored.nodeId &&
    expected.causationId === stored.causationId &&
    JSON.stringify(expected.payload) === JSON.stringify(stored.payload)
  );
}

/** References are a function of the log: the same ones, in the same order, and no others. */
function checkReferences(
  { problems, references }: Check,
  runId: CoordinationId,
  stored: readonly Reference[],
): void {
  const length = Math.max(references.length, stored.length);
  for (let index = 0; index < length; index += 1) {
    const expected = references[index];
    const actual = stored[index];
    if (expected && actual?.name === expected.name && actual.stepId === expected.stepId) continue;
    const message = expected
      ? `the reference ${expected.name} is missing, changed or out of order`
      : `the reference ${String(actual?.name)} follows from no event`;
    problems.push({
      kind: "index_differs",
      message,
      runId,
      ...(expected && { sequence: expected.sequence }),
    });
    return;
  }
}

function checkEnd({ state, expected, problems }: Check, { runId, length, summary }: RunEntry): void {
  const [pending] = expected;
  const sequence = state.nextSequence;
  if (pending)
    problems.push({
      kind: "projection_differs",
      message: `L5: ${pending.type} is missing at the end`,
      runId,
      sequence,
    });
  if (length !== sequence) {
    problems.push({
      kind: sequence < length ? "event_missing" : "event_forged",
      message: `the log has ${sequence} events, its run counts ${length}`,
      runId,
      sequence,
    });
  }
  if (state.kind === "unopened" || JSON.stringify(summarize(state)) !== JSON.stringify(summary)) {
    problems.push({ kind: "index_differs", message: "the summary is not what the log folds to", runId });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
