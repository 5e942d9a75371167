/** Owns: in how many requests a page of spans is sent where the collector refuses them. */
import { describe, expect, it } from "vitest";
import type { Span } from "../../src/agents/coordination/telemetry/span.ts";
import type { SendOutcome } from "../../src/infra/otlp/otlp-sender.ts";
import { sendSpanPage } from "../../src/plugins/telemetry/send-page.ts";
import { quietLogger } from "../support/ledger-fixtures.ts";

const REFUSED: SendOutcome = { kind: "refused", why: "Bad Request (status 400)" };

const SPANS: readonly Span[] = Array.from({ length: 500 }, (_, index) => ({
  traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
  spanId: index.toString(16).padStart(16, "1"),
  name: `span ${index}`,
  startMs: 1,
  endMs: 2,
  attributes: {},
  events: [],
  droppedEvents: 0,
  links: [],
}));

/** Sends all spans to a collector that answers so. */
async function sendAll(
  answer: (spans: readonly Span[]) => SendOutcome,
  isExporting: (requests: number) => boolean = () => true,
): Promise<{ readonly requests: number; readonly sent: SendOutcome; readonly leftOut: number }> {
  let requests = 0;
  let leftOut = 0;
  const sent = await sendSpanPage(
    {
      sender: {
        send: (spans) => {
          requests += 1;
          return Promise.resolve(answer(spans));
        },
      },
      logger: { ...quietLogger, warn: () => void (leftOut += 1) },
      isExporting: () => isExporting(requests),
    },
    SPANS,
  );
  return { requests, sent, leftOut };
}

describe("a page of spans", () => {
  it("is given up after few requests where the collector refuses all of them", async () => {
    const { requests, sent, leftOut } = await sendAll(() => REFUSED);
    expect(requests).toBeLessThan(50);
    expect(sent).toMatchObject({ kind: "refused", why: expect.stringContaining("https") as string });
    expect(leftOut).toBe(0);
  });

  it("is sent whole but for many spans that the collector refuses", async () => {
    const isRefused = ({ spanId }: Span): boolean => Number.parseInt(spanId.slice(-2), 16) % 2 === 0;
    const { sent, leftOut } = await sendAll((spans) =>
      spans.some((span) => isRefused(span)) ? REFUSED : { kind: "sent" },
    );
    expect(sent.kind).toBe("sent");
    expect(leftOut).toBe(SPANS.filter((span) => isRefused(span)).length);
  });

  it("is not sent on once another process exports", async () => {
    const { requests, leftOut } = await sendAll(
      () => REFUSED,
      (count) => count < 3,
    );
    expect(requests).toBe(3);
    expect(leftOut).toBe(0);
  });
});
