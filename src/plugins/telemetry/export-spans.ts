/**
 * Owns: the export of spans: at least once, in the order of the ledger, one process at a time. While the collector is away everything
 * waits in the ledger, and of it only one page in memory.
 */
import type { Clock, SteadyClock } from "../../agents/coordination/ports/clock.ts";
import type { ExportCursors, ExportHolder } from "../../agents/coordination/ports/export-cursors.ts";
import type { Logger } from "../../agents/coordination/ports/logger.ts";
import { addMs, SPAN_EXPORT } from "../../agents/coordination/contracts/ids.ts";
import { describeError } from "../../agents/coordination/std/describe-error.ts";
import { waitForDuration, waitWithin } from "../../agents/coordination/std/wait-for.ts";
import type { Span } from "../../agents/coordination/telemetry/span.ts";
import type { SpanSender } from "../../infra/otlp/otlp-sender.ts";
import type { ExportedLedger, FollowedSpans } from "./followed-spans.ts";
import { sendSpanPage } from "./send-page.ts";

export interface SpanExportDependencies {
  readonly ledger: () => Promise<ExportedLedger>;
  readonly cursors: () => Promise<ExportCursors>;
  readonly spans: FollowedSpans;
  /** Where spans go. */
  readonly sender: SpanSender;
  readonly clock: Clock;
  readonly steady: SteadyClock;
  readonly logger: Logger;
  /** Names this process. */
  readonly holder: string;
}

export interface SpanExport {
  start(): void;
  /** Ends after the request under way, unless that takes too long. */
  close(): Promise<void>;
}

const POLL_MS = 1_000;
/** A process that is not heard of for so long has stopped, and another one exports. */
const LEASE_MS = 10_000;
/** The process that exports tells so often that it is there, also while it sends and while it waits for the collector. */
const TELL_MS = 3_000;
/** A wait that the collector asks for counts up to this. */
const ASKED_MS_MAX = 3_600_000;
const BACKOFF_MS = [1_000, 2_000, 5_000, 10_000, 30_000, 60_000] as const;
const ARRIVALS_MAX = 500;
/** A request that takes longer is left alone: what it sent is sent again later. */
const CLOSE_MS = 2_000;

/** Spans that were projected, and are not sent yet. */
interface SpanPage {
  readonly spans: readonly Span[];
  readonly reached: number;
}

/** The state of the export of this process. */
interface ExportState {
  readonly dependencies: SpanExportDependencies;
  /** Behind which the export goes on; absent while another process exports. */
  position?: number;
  /** When this process told last that it is there, by its steady clock. */
  toldAtMs: number;
  /** Another process that had it, and since when it is known to have told nothing more. */
  seen?: ExportHolder & { readonly atMs: number };
  page?: SpanPage;
  failures: number;
  /** Before then nothing is sent, by the steady clock, because the newest try failed. */
  retryAtMs: number;
  isClosed: boolean;
}

/**
 * Creates the export that sends the spans of new events page by page while this process holds it; `close` waits a
 * bounded time for the page under way and gives the export back.
 */
export function createSpanExport(dependencies: SpanExportDependencies): SpanExport {
  const exporting: ExportState = { dependencies, toldAtMs: 0, failures: 0, retryAtMs: 0, isClosed: false };
  let cancelWait: (() => void) | undefined;
  let turn: Promise<void> = Promise.resolve();
  const work = (): void => {
    turn = exportNextPage(exporting).then((waitMs) => {
      if (!exporting.isClosed)
        cancelWait = dependencies.clock.wakeAt(addMs(dependencies.clock.now(), waitMs), work);
    });
  };
  return {
    start: work,
    close: async () => {
      exporting.isClosed = true;
      cancelWait?.();
      await Promise.race([turn, waitForDuration(dependencies.clock, CLOSE_MS)]);
      await releaseExport(exporting);
    },
  };
}

/**
 * Gives the export of spans back where this process holds it, so that another one can go on at once; a failure is
 * logged, and others then wait for a lease.
 */
async function releaseExport(exporting: ExportState): Promise<void> {
  const { dependencies, position } = exporting;
  if (position === undefined) return;
  delete exporting.position;
  try {
    const cursors = await dependencies.cursors();
    await cursors.release({ name: SPAN_EXPORT, holder: dependencies.holder });
  } catch (error) {
    dependencies.logger.debug({ why: describeError(error) }, "the export of spans could not be given back");
  }
}

/** Exports the next page. Returns after how many milliseconds to come back. */
async function exportNextPage(exporting: ExportState): Promise<number> {
  try {
    if (!(await takeOrRenewExport(exporting))) return LEASE_MS / 3;
    const leftMs = exporting.retryAtMs - exporting.dependencies.steady.elapsedMs();
    if (leftMs > 0) return Math.min(leftMs, TELL_MS);
    const { page, failure } = await renewDuring(exporting, sendNextPage(exporting));
    if (failure) return noteFailure(exporting, failure);
    if (!page) return POLL_MS;
    if (!isExporting(exporting) || !(await recordPosition(exporting, page.reached))) return LEASE_MS / 3;
    delete exporting.page;
    noteRecovery(exporting);
    return 0;
  } catch (error) {
    return noteFailure(exporting, { why: describeError(error) });
  }
}

/**
 * Takes the export of spans, or tells in time that this process still has it; returns false where it is another's, as
 * nothing may be sent whose export could not be noted.
 */
async function takeOrRenewExport(exporting: ExportState): Promise<boolean> {
  const { dependencies, position, toldAtMs } = exporting;
  if (position === undefined) return takeExport(exporting);
  return dependencies.steady.elapsedMs() - toldAtMs < TELL_MS || recordPosition(exporting, position);
}

/**
 * True while this process holds the export of spans; false once another one has taken it over, or this one has given
 * it back.
 */
function isExporting({ position }: ExportState): boolean {
  return position !== undefined;
}

/**
 * Returns the result of `work`, and meanwhile tells regularly that this process still has the export, until another
 * one has taken that over.
 */
async function renewDuring<Result>(exporting: ExportState, work: Promise<Result>): Promise<Result> {
  const { clock } = exporting.dependencies;
  const settled = Promise.allSettled([work]).then(() => true);
  while (isExporting(exporting) && !(await waitWithin(clock, TELL_MS, settled, false)))
    await renewExport(exporting);
  return work;
}

/**
 * Tells the ledger that this process still exports. A failure is logged and not thrown, so that the work under way
 * goes on.
 */
async function renewExport(exporting: ExportState): Promise<void> {
  const { dependencies, position } = exporting;
  try {
    if (position !== undefined) await recordPosition(exporting, position);
  } catch (error) {
    dependencies.logger.debug({ why: describeError(error) }, "the export of spans could not tell of itself");
  }
}

/**
 * Records in the ledger how far this process has exported spans, and that it still does; returns false, and gives up
 * the export here, where another one has taken it over or this one gave it back.
 */
async function recordPosition(exporting: ExportState, position: number): Promise<boolean> {
  const { dependencies } = exporting;
  const toldAtMs = dependencies.steady.elapsedMs();
  // Where this fails, the next turn tells before it sends anything.
  exporting.toldAtMs = -Infinity;
  const cursors = await dependencies.cursors();
  const isOurs = await cursors.advance({ name: SPAN_EXPORT, holder: dependencies.holder, position });
  // This process may have given it back meanwhile.
  if (isOurs && isExporting(exporting)) {
    exporting.position = position;
    exporting.toldAtMs = toldAtMs;
    return true;
  }
  delete exporting.position;
  exporting.failures = 0;
  exporting.retryAtMs = 0;
  return false;
}

/**
 * Takes the export of spans where nobody has it, or its holder has been silent for a lease; returns false where it
 * stays another's, or this process is closing.
 */
async function takeExport(exporting: ExportState): Promise<boolean> {
  const { dependencies } = exporting;
  const cursors = await dependencies.cursors();
  const holder = await cursors.holder(SPAN_EXPORT);
  const silent = holder && findSilentHolder(exporting, holder);
  if (holder && !silent) return false;
  const from = await (await dependencies.ledger()).newestPosition();
  exporting.toldAtMs = dependencies.steady.elapsedMs();
  const request = { name: SPAN_EXPORT, holder: dependencies.holder, from, ...(silent && { silent }) };
  const position = await cursors.take(request);
  if (position === undefined) return false;
  exporting.position = position;
  // Whoever had it meanwhile may have come further than a page that was projected before.
  delete exporting.page;
  if (exporting.isClosed) await releaseExport(exporting);
  return isExporting(exporting);
}

/**
 * Returns the holder of the export where it has told nothing for a whole lease by this process's clock; else notes
 * when it was seen, and returns `undefined`.
 */
function findSilentHolder(exporting: ExportState, holder: ExportHolder): ExportHolder | undefined {
  const { dependencies, seen } = exporting;
  const elapsedMs = dependencies.steady.elapsedMs();
  if (seen?.holder === holder.holder && seen.beats === holder.beats)
    return elapsedMs - seen.atMs >= LEASE_MS ? holder : undefined;
  exporting.seen = { ...holder, atMs: elapsedMs };
  return undefined;
}

/** Projects the next arrivals behind the export's position into spans; `undefined` where nothing arrived. */
async function projectNextPage({ dependencies, position = 0 }: ExportState): Promise<SpanPage | undefined> {
  const ledger = await dependencies.ledger();
  const { items, reached } = await ledger.readArrivals({ after: position, limit: ARRIVALS_MAX });
  if (reached <= position) return undefined;
  return { spans: await dependencies.spans.project(ledger, items), reached };
}

/** Why spans could not be sent, and how long to wait. */
interface ExportFailure {
  readonly why: string;
  /** How long the collector asks to wait. */
  readonly retryAfterMs?: number;
}

/** The fate of the next page. Neither: there is none. */
interface SentPage {
  /** The page, as far as it was sent. */
  readonly page?: SpanPage;
  /** Why the collector did not take it. */
  readonly failure?: ExportFailure;
}

/** Sends the page that was kept, or the next one; says what was sent, and why the collector did not take it. */
async function sendNextPage(exporting: ExportState): Promise<SentPage> {
  const { sender, logger } = exporting.dependencies;
  const page = exporting.page ?? (await projectNextPage(exporting));
  if (!page) return {};
  exporting.page = page;
  const dependencies = { sender, logger, isExporting: () => isExporting(exporting) };
  const sent = await sendSpanPage(dependencies, page.spans);
  if (sent.kind === "sent" || !isExporting(exporting)) return { page };
  // Read again, a page that was not full may have newer spans in it: one that the collector takes shows that it refuses the others
  // by themselves.
  if (sent.kind === "refused") delete exporting.page;
  return { failure: sent };
}

/** Notes a failure, logs the first of several, and returns after how many milliseconds to come back. */
function noteFailure(exporting: ExportState, { why, retryAfterMs = 0 }: ExportFailure): number {
  const { logger, steady } = exporting.dependencies;
  const backoffMs = BACKOFF_MS[Math.min(exporting.failures, BACKOFF_MS.length - 1)] ?? POLL_MS;
  const waitMs = Math.max(backoffMs, Math.min(retryAfterMs, ASKED_MS_MAX));
  if (exporting.failures === 0)
    logger.warn({ why, waitMs }, "spans cannot be exported: they wait in the ledger");
  exporting.failures += 1;
  exporting.retryAtMs = steady.elapsedMs() + waitMs;
  return exporting.position === undefined ? waitMs : Math.min(waitMs, TELL_MS);
}

function noteRecovery(exporting: ExportState): void {
  if (exporting.failures > 0) exporting.dependencies.logger.info({}, "spans are exported again");
  exporting.failures = 0;
}
