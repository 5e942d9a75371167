/**
 * Owns: the listing of coordinations and workflow runs, the newest first, a page at a time.
 *
 * Both are read in their own order and merged by time. A search looks at a bounded number of entries and then answers with what it
 * found and where to go on, so that no request holds the process for long however large the ledger is.
 */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { AgentId, SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import { hasRunEnded } from "../../../agents/coordination/contracts/workflows/workflow-summary.ts";
import type { LedgerFilter, RunPlace, RunsQuery } from "../../../agents/coordination/ports/ledger-queries.ts";
import type { ReportedLedger } from "../../reports/reported-ledger.ts";
import { addDrivingGateways } from "../../reports/gateway-report.ts";
import { readKeptText, type RunEntry } from "../../reports/find-coordination.ts";
import {
  createCoordinationReport,
  createWorkflowReport,
  type WorkflowEntry,
} from "../../reports/run-report.ts";
import type { ListedCoordination, ListedRun, ListedWorkflow, RunKind, RunsPage } from "../contract/runs.ts";
import { PAGE_BOUNDS } from "./page-bounds.ts";
import type { PageRequest } from "./page-dependencies.ts";
import { readQueryChoice, readQueryMoment, readQueryNumber, readQueryText } from "./read-query.ts";
import { readRunNotes } from "./run-notes.ts";

/** The runs that a request asks for. */
interface RunSearch {
  readonly filter: LedgerFilter;
  readonly kind: RunKind | undefined;
  readonly state: string | undefined;
  /** In lower case. */
  readonly text: string | undefined;
  readonly limit: number;
}

/**
 * Returns one page of coordinations and workflow runs that match the search in the request, the newest first, with a
 * cursor where there may be more; it looks at a bounded number of them. @throws CoordinationError `INPUT_INVALID` for
 * a query that is none
 */
export async function listRunsPage(reader: ReportedLedger, request: PageRequest): Promise<RunsPage> {
  const search = readSearch(request);
  const sources = createListingSources(reader, search, readCursor(readQueryText(request, "cursor")));
  const runs: ListedRun[] = [];
  let lookedAt = 0;
  while (runs.length < search.limit && lookedAt < PAGE_BOUNDS.lookedAtMax) {
    const candidate = await takeNewestCandidate(sources);
    if (!candidate) break;
    lookedAt += 1;
    const listed = await createListedRun(reader, candidate, search);
    if (listed) runs.push(listed);
  }
  const page = { runs: await addDrivingGateways(reader, runs) };
  if (!(await hasNextEntry(sources))) return page;
  const isCut = runs.length < search.limit;
  return {
    ...page,
    nextCursor: formatCursor(sources),
    ...(isCut && { lookedAt }),
  };
}

/** Reads from the query which runs are wanted, and how many. */
function readSearch(request: PageRequest): RunSearch {
  const agent = readQueryText(request, "agent");
  const session = readQueryText(request, "session");
  const since = readQueryMoment(request, "since");
  const until = readQueryMoment(request, "until");
  const filter: LedgerFilter = {
    ...(agent !== undefined && { agent: agent as AgentId }),
    ...(session !== undefined && { session: session as SessionKey }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  };
  return {
    filter,
    kind: readQueryChoice(request, "kind", ["coordination", "plan", "run"]),
    state: readQueryText(request, "state"),
    text: readQueryText(request, "text")?.toLowerCase(),
    limit: readQueryNumber(request, "limit", { min: 1, max: PAGE_BOUNDS.runsMax }) ?? PAGE_BOUNDS.runsDefault,
  };
}

/** An entry of a listing that may be the next one. */
type NextEntry =
  | { readonly kind: "coordination"; readonly entry: RunEntry }
  | { readonly kind: "run"; readonly entry: WorkflowEntry };

/** One of the two listings: what was read of it and not taken, and where it stands. */
interface ListingSource<Entry, Place> {
  ready: Entry[];
  /** After which entry it goes on; absent before the first. */
  place: Place | undefined;
  isOver: boolean;
  read(place: Place | undefined): Promise<{ readonly entries: Entry[]; readonly isLast: boolean }>;
  placeOf(entry: Entry): Place;
}

/** The listings of coordinations and of workflow runs, which are merged into one. */
interface ListingSources {
  readonly coordinations: ListingSource<RunEntry, RunPlace>;
  readonly workflows: ListingSource<WorkflowEntry, { readonly ordinal: number }>;
}

const READ_AT_ONCE = 100;
/**
 * Clocks of processes that share a ledger are taken to be no further apart. Runs lie in the order in which they were
 * recorded, with the times of those clocks: where all that were read at once are older than a time by this, so are those
 * behind them. Forks tell nothing of that: they have the times of their sources.
 */
const CLOCKS_APART_MS = 3_600_000;

/** Creates the two listings of a search, at the places of the cursor; one that cannot match is over. */
function createListingSources(
  reader: ReportedLedger,
  { filter, kind, state }: RunSearch,
  cursor: ListingCursor,
): ListingSources {
  const status: Partial<RunsQuery> =
    state === undefined ? {} : { status: state === "running" ? "running" : "ended" };
  const oldestMs = (filter.since ?? 0) - CLOCKS_APART_MS;
  const isOfAgents = filter.agent !== undefined || filter.session !== undefined;
  return {
    coordinations: {
      ready: [],
      place: cursor.coordinations,
      isOver: kind === "run" || cursor.coordinations === null,
      read: async (after) => {
        const page = await reader.findRuns({
          filter,
          ...status,
          limit: READ_AT_ONCE,
          ...(after && { after }),
        });
        return { entries: [...page.items], isLast: page.next === undefined };
      },
      placeOf: ({ summary, ordinal }) => ({ startedAtMs: summary.createdAtMs, ordinal }),
    } as ListingSource<RunEntry, RunPlace>,
    workflows: {
      ready: [],
      place: cursor.workflows,
      // Workflow runs have no agents or sessions of OpenClaw.
      isOver: (kind !== undefined && kind !== "run") || isOfAgents || cursor.workflows === null,
      read: async (after) => {
        const entries = await reader.workflows.list({ limit: READ_AT_ONCE, ...(after && { after }) });
        const areOlder = entries.every(
          ({ origin, summary }) => origin === undefined && summary.createdAtMs < oldestMs,
        );
        return { entries, isLast: entries.length < READ_AT_ONCE || areOlder };
      },
      placeOf: ({ ordinal }) => ({ ordinal }),
    } as ListingSource<WorkflowEntry, { readonly ordinal: number }>,
  };
}

/** Takes the newest entry of both listings; `undefined` when there is none. */
async function takeNewestCandidate({
  coordinations,
  workflows,
}: ListingSources): Promise<NextEntry | undefined> {
  const coordination = await readNextEntry(coordinations);
  const workflow = await readNextEntry(workflows);
  if (coordination && (!workflow || coordination.summary.createdAtMs >= workflow.summary.createdAtMs)) {
    takeEntry(coordinations, coordination);
    return { kind: "coordination", entry: coordination };
  }
  if (!workflow) return undefined;
  takeEntry(workflows, workflow);
  return { kind: "run", entry: workflow };
}

async function hasNextEntry({ coordinations, workflows }: ListingSources): Promise<boolean> {
  return (await readNextEntry(coordinations)) !== undefined || (await readNextEntry(workflows)) !== undefined;
}

/** Returns the next entry of a listing without taking it; reads on where none is ready. */
async function readNextEntry<Entry, Place>(source: ListingSource<Entry, Place>): Promise<Entry | undefined> {
  if (source.ready.length === 0 && !source.isOver) {
    const { entries, isLast } = await source.read(source.place);
    source.ready = entries;
    source.isOver = isLast;
  }
  return source.ready[0];
}

/** Takes the first ready entry out of a listing, which goes on after it. */
function takeEntry<Entry, Place>(source: ListingSource<Entry, Place>, entry: Entry): void {
  source.ready = source.ready.slice(1);
  source.place = source.placeOf(entry);
}

/** Returns the entry as it is listed, or `undefined` where it is not what is wanted. */
async function createListedRun(
  reader: ReportedLedger,
  candidate: NextEntry,
  wanted: RunSearch,
): Promise<ListedRun | undefined> {
  if (candidate.kind === "run") return createListedWorkflow(candidate.entry, wanted);
  const { entry } = candidate;
  const { status, ownerSession } = entry.summary;
  if (!isInState(wanted.state, status, status !== "running")) return undefined;
  const objective = await readKeptText(reader, entry.summary.objective);
  if (!hasFieldContaining(wanted.text, [entry.runId, ownerSession, objective ?? ""])) return undefined;
  const notes = await readRunNotes(reader, entry);
  if (wanted.kind !== undefined && notes.kind !== wanted.kind) return undefined;
  return createListedCoordination(entry, objective, notes);
}

function createListedCoordination(
  entry: RunEntry,
  objective: string | null,
  notes: Awaited<ReturnType<typeof readRunNotes>>,
): ListedCoordination {
  const { kind, endedAtMs, questions, conflicts } = notes;
  return {
    ...createCoordinationReport(entry, objective && objective.slice(0, PAGE_BOUNDS.listedCharsMax)),
    kind,
    id: entry.runId,
    ...(endedAtMs !== undefined && { endedAtMs }),
    questions,
    conflicts,
  };
}

/** Returns a workflow run as it is listed, or `undefined` where it is not what is wanted. */
function createListedWorkflow(
  entry: WorkflowEntry,
  { filter, state, text }: RunSearch,
): ListedWorkflow | undefined {
  const { status, createdAtMs, workflowId } = entry.summary;
  const { since = 0, until = Number.POSITIVE_INFINITY } = filter;
  if (createdAtMs < since || createdAtMs >= until) return undefined;
  if (!isInState(state, status, hasRunEnded(status))) return undefined;
  return hasFieldContaining(text, [entry.runId, workflowId]) ? createWorkflowListing(entry) : undefined;
}

/** Returns a workflow run as the listing of runs shows it, from its entry in the ledger alone. */
export function createWorkflowListing(entry: WorkflowEntry): ListedWorkflow {
  return {
    ...createWorkflowReport(entry),
    kind: "run",
    id: entry.runId,
    createdAtMs: entry.summary.createdAtMs,
  };
}

/**
 * True where no state is asked for, it is the status itself, or it is `running` or `ended` and the work goes on or has
 * ended.
 */
function isInState(state: string | undefined, status: string, hasEnded: boolean): boolean {
  if (state === undefined || state === status) return true;
  if (state === "ended") return hasEnded;
  return state === "running" && !hasEnded;
}

/** True where a field contains the text, which is in lower case, or no text is asked for. */
function hasFieldContaining(text: string | undefined, fields: readonly string[]): boolean {
  return text === undefined || fields.some((field) => field.toLowerCase().includes(text));
}

/** Where both listings go on; `null`: it is over. */
interface ListingCursor {
  readonly coordinations?: RunPlace | null;
  readonly workflows?: { readonly ordinal: number } | null;
}

function formatCursor({ coordinations, workflows }: ListingSources): string {
  const isOver = ({ isOver: isRead, ready }: ListingSource<unknown, unknown>): boolean =>
    isRead && ready.length === 0;
  const { startedAtMs, ordinal } = coordinations.place ?? {};
  const places = [
    isOver(coordinations) ? null : [startedAtMs, ordinal],
    isOver(workflows) ? null : [workflows.place?.ordinal],
  ];
  return Buffer.from(JSON.stringify(places)).toString("base64url");
}

/** @throws CoordinationError `INPUT_INVALID` */
function readCursor(text: string | undefined): ListingCursor {
  if (text === undefined) return {};
  try {
    const [runs, workflows] = JSON.parse(Buffer.from(text, "base64url").toString()) as unknown[];
    return { ...readCoordinationPlace(runs), ...readWorkflowPlace(workflows) };
  } catch {
    throw new CoordinationError("INPUT_INVALID", "cursor: expected the nextCursor of a page before");
  }
}

/** Reads where coordinations go on: `null` is over; no place where the text has none. */
function readCoordinationPlace(value: unknown): ListingCursor {
  if (value === null) return { coordinations: null };
  const [startedAtMs, ordinal] = value as unknown[];
  if (typeof startedAtMs !== "number" || typeof ordinal !== "number") return {};
  return { coordinations: { startedAtMs, ordinal } };
}

function readWorkflowPlace(value: unknown): ListingCursor {
  if (value === null) return { workflows: null };
  const [ordinal] = value as unknown[];
  return typeof ordinal === "number" ? { workflows: { ordinal } } : {};
}
