/**
 * Owns: sending a page of spans in requests that the collector takes, and leaving out spans that it does not take. Whoever takes no
 * request at all, as a collector that speaks https alone, refuses no span: all of them are kept for later.
 */
import type { Logger } from "../../agents/coordination/ports/logger.ts";
import type { Span } from "../../agents/coordination/telemetry/span.ts";
import type { SendOutcome, SpanSender } from "../../infra/otlp/otlp-sender.ts";

export interface SendDependencies {
  readonly sender: SpanSender;
  readonly logger: Logger;
  /** False: another process exports by now, and no further request is made. */
  readonly isExporting: () => boolean;
}

/** In one request. */
const SPANS_MAX = 512;
/** After so many refused spans without one that was taken, the collector is asked whether it takes anything. */
const REFUSED_MAX = 16;
const SENT: SendOutcome = { kind: "sent" };

interface RefusedSpan {
  readonly span: string | undefined;
  readonly why: string;
}

/** A page that is being sent, and the spans of it that were refused. */
interface PageSending extends SendDependencies {
  /** Spans that were refused in requests of their own. */
  readonly refused: RefusedSpan[];
  /** True as soon as the collector took a request: where it refuses others, it is for the spans in them. */
  hasTaken: boolean;
}

/**
 * Sends a page's spans and returns whether they were sent, failed or are refused: the collector took no request.
 * Refused spans are left out while others are taken. `sent` also once another process exports.
 */
export async function sendSpanPage(
  dependencies: SendDependencies,
  spans: readonly Span[],
): Promise<SendOutcome> {
  const sending: PageSending = { ...dependencies, refused: [], hasTaken: false };
  for (let at = 0; at < spans.length; at += SPANS_MAX) {
    const sent = await sendSpans(sending, spans.slice(at, at + SPANS_MAX));
    if (sent.kind !== "sent") return sent;
  }
  const proven = await confirmRefusals(sending);
  if (proven.kind !== "sent" || !dependencies.isExporting()) return proven;
  for (const refused of sending.refused)
    dependencies.logger.warn({ ...refused }, "the collector refused a span: it is left out");
  return SENT;
}

/**
 * Sends spans in one request, and a refused request in halves, so that one span that the collector does not take does
 * not hold up the others. Sends nothing, and returns `sent`, once another process exports.
 */
async function sendSpans(sending: PageSending, spans: readonly Span[]): Promise<SendOutcome> {
  if (!sending.isExporting()) return SENT;
  const sent = await sending.sender.send(spans);
  if (sent.kind === "sent") noteTaken(sending, sent);
  if (sent.kind !== "refused") return sent;
  if (spans.length === 1) {
    sending.refused.push({ span: spans[0]?.name, why: sent.why });
    return sending.refused.length < REFUSED_MAX ? SENT : confirmRefusals(sending);
  }
  const half = Math.ceil(spans.length / 2);
  const first = await sendSpans(sending, spans.slice(0, half));
  return first.kind === "sent" ? sendSpans(sending, spans.slice(half)) : first;
}

/** Notes that a request was taken. Spans that the collector left out of it are not sent again, as OTLP says. */
function noteTaken(sending: PageSending, { leftOut }: Extract<SendOutcome, { readonly kind: "sent" }>): void {
  sending.hasTaken = true;
  if (leftOut) sending.logger.warn({ ...leftOut }, "the collector left out spans of a request that it took");
}

/**
 * Returns `refused` where the collector takes no request at all, so that the refusals are not about the spans. It
 * takes a request without spans, as OTLP says, if it takes any.
 */
async function confirmRefusals(sending: PageSending): Promise<SendOutcome> {
  const newest = sending.refused.at(-1);
  if (sending.hasTaken || !newest || !sending.isExporting()) return SENT;
  const sent = await sending.sender.send([]);
  if (sent.kind === "sent") sending.hasTaken = true;
  if (sent.kind !== "refused") return sent;
  return { kind: "refused", why: `the collector refuses every request, as one of https does: ${newest.why}` };
}
