/**
 * Owns: the export of spans: at least once, in the order of the ledger, one process at a time. While the collector is away everything
 * waits in the ledger, and of it only one page in memory.
 */
import type { Clock, SteadyClock } from "../../agents/coordination/ports/clock.ts";
import type { ExportCursors, ExportHolder } from "../../agents/coordination/ports/export-cursors.ts";
import type { Logger } from "../../agents/coordination/ports/logger.ts";
import { addMs } from "../../agents/coordination/contracts/ids.ts";
import { describeError } from "../../agents/coordination/std/describe-error.ts";
import { waitFor } from "../../agents/coordination/std/wait-for.ts";
import type { Span } from "../../agents/coordination/telemetry/span.ts";
import type { SpanSender } from "../../infra/otlp/otlp-sender.ts";
import type { ExportedLedger, FollowedSpans } from "./followed-spans.ts";

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

const NAME = "otlp";
const POLL_MS = 1_000;
/** A process that is not heard of for so long has stopped, and another one exports. */
const LEASE_MS = 10_000;
const TELL_MS = 3_000;
const BACKOFF_MS = [1_000, 2_000, 5_000, 10_000, 30_000, 60_000] as const;
const ARRIVALS_MAX = 500;
/** A request that takes longer is left alone: what it sent is sent again later. */
const CLOSE_MS = 2_000;
/** In one request. */
const SPANS_MAX = 512;

/** Spans that were projected, and are not sent yet. */
interface Page {
  readonly spans: readonly Span[];
  readonly reached: number;
}

interface Exporting {
  readonly dependencies: SpanExportDependencies;
  /** Behind which the export goes on; absent while another process exports. */
  position?: number;
  /** When this process told last that it is there, by its steady clock. */
  toldAtMs: number;
  /** Another process that had it, and since when it is known to have told nothing more. */
  seen?: ExportHolder & { readonly atMs: number };
  page?: Page;
  failures: number;
}

export function createSpanExport(dependencies: SpanExportDependencies): SpanExport {
  const exporting: Exporting = { dependencies, toldAtMs: 0, failures: 0 };
  let cancelWait: (() => void) | undefined;
  let isClosed = false;
  let turn: Promise<void> = Promise.resolve();
  const work = (): void => {
    turn = exportNext(exporting).then((waitMs) => {
      if (!isClosed) cancelWait = dependencies.clock.wakeAt(addMs(dependencies.clock.now(), waitMs), work);
    });
  };
  return {
    start: work,
    close: async () => {
      isClosed = true;
      cancelWait?.();
      await Promise.race([turn, waitFor(dependencies.clock, CLOSE_MS)]);
      await releaseExport(exporting);
    },
  };
}

/** Gives the export back, where this process has it. Whoever is not told waits for a lease. */
async function releaseExport({ dependencies, position }: Exporting): Promise<void> {
  if (position === undefined) return;
  try {
    const cursors = await dependencies.cursors();
    await cursors.release({ name: NAME, holder: dependencies.holder });
  } catch (error) {
    dependencies.logger.debug({ why: describeError(error) }, "the export of spans could not be given back");
  }
}

/** Exports the next page. Returns how long to wait for the next one. */
async function exportNext(exporting: Exporting): Promise<number> {
  try {
    if (!(await holdExport(exporting))) return LEASE_MS / 3;
    const page = exporting.page ?? (await readPage(exporting));
    if (!page) return POLL_MS;
    exporting.page = page;
    await sendPage(exporting.dependencies, page.spans);
    await advanceTo(exporting, page.reached);
    delete exporting.page;
    noteCollector(exporting);
    return 0;
  } catch (error) {
    return noteFailure(exporting, describeError(error));
  }
}

/** True where this process exports. */
async function holdExport(exporting: Exporting): Promise<boolean> {
  const { dependencies, position, toldAtMs } = exporting;
  if (position === undefined) return takeExport(exporting);
  if (dependencies.steady.elapsedMs() - toldAtMs < TELL_MS) return true;
  return advanceTo(exporting, position);
}

/** Notes how far the export came, and that this process is there. False: another one has taken it over. */
async function advanceTo(exporting: Exporting, position: number): Promise<boolean> {
  const { dependencies } = exporting;
  const cursors = await dependencies.cursors();
  exporting.toldAtMs = dependencies.steady.elapsedMs();
  const isOurs = await cursors.advance({ name: NAME, holder: dependencies.holder, position });
  if (isOurs) exporting.position = position;
  else {
    // Whoever has it now may come further than the page that waits here.
    delete exporting.position;
    delete exporting.page;
  }
  return isOurs;
}

/** Takes the export where nobody has it, or who has it is silent. */
async function takeExport(exporting: Exporting): Promise<boolean> {
  const { dependencies } = exporting;
  const cursors = await dependencies.cursors();
  const holder = await cursors.holder(NAME);
  const silent = holder && findSilent(exporting, holder);
  if (holder && !silent) return false;
  const from = await (await dependencies.ledger()).newestPosition();
  exporting.toldAtMs = dependencies.steady.elapsedMs();
  const request = { name: NAME, holder: dependencies.holder, from, ...(silent && { silent }) };
  const position = await cursors.take(request);
  if (position !== undefined) exporting.position = position;
  return position !== undefined;
}

/** Returns who has the export where they have told nothing for a whole lease by the clock of this process. */
function findSilent(exporting: Exporting, holder: ExportHolder): ExportHolder | undefined {
  const { dependencies, seen } = exporting;
  const elapsedMs = dependencies.steady.elapsedMs();
  if (seen?.holder === holder.holder && seen.beats === holder.beats)
    return elapsedMs - seen.atMs >= LEASE_MS ? holder : undefined;
  exporting.seen = { ...holder, atMs: elapsedMs };
  return undefined;
}

async function readPage({ dependencies, position = 0 }: Exporting): Promise<Page | undefined> {
  const ledger = await dependencies.ledger();
  const { items, reached } = await ledger.readArrivals({ after: position, limit: ARRIVALS_MAX });
  if (reached <= position) return undefined;
  return { spans: await dependencies.spans.project(ledger, items), reached };
}

async function sendPage(dependencies: SpanExportDependencies, spans: readonly Span[]): Promise<void> {
  for (let at = 0; at < spans.length; at += SPANS_MAX)
    await sendSpans(dependencies, spans.slice(at, at + SPANS_MAX));
}

/** A request that the collector refuses is sent in halves, so that one span that it does not take does not hold up the others. */
async function sendSpans(dependencies: SpanExportDependencies, spans: readonly Span[]): Promise<void> {
  const sent = await dependencies.sender.send(spans);
  if (sent.kind === "sent") return;
  if (sent.kind === "unavailable") throw new Error(sent.why);
  if (spans.length === 1) {
    dependencies.logger.warn(
      { why: sent.why, span: spans[0]?.name },
      "the collector refused a span: it is left out",
    );
    return;
  }
  const half = Math.ceil(spans.length / 2);
  await sendSpans(dependencies, spans.slice(0, half));
  await sendSpans(dependencies, spans.slice(half));
}

function noteFailure(exporting: Exporting, why: string): number {
  const { logger } = exporting.dependencies;
  const waitMs = BACKOFF_MS[Math.min(exporting.failures, BACKOFF_MS.length - 1)] ?? POLL_MS;
  if (exporting.failures === 0) logger.warn({ why }, "spans cannot be exported: they wait in the ledger");
  exporting.failures += 1;
  return waitMs;
}

function noteCollector(exporting: Exporting): void {
  if (exporting.failures > 0) exporting.dependencies.logger.info({}, "spans are exported again");
  exporting.failures = 0;
}
