/** Owns: that spans reach a collector: all of them, in requests that are valid, whatever the collector does meanwhile. */
import { hash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Logger } from "../../src/agents/coordination/ports/logger.ts";
import { createCoordinationSpans } from "../../src/agents/coordination/telemetry/project-coordination.ts";
import { steadyClock } from "../../src/infra/clock/steady-clock.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import type { OpenedLedger } from "../../src/infra/ledger/opened-ledger.ts";
import { createOtlpSender } from "../../src/infra/otlp/otlp-sender.ts";
import { startTelemetry } from "../../src/plugins/compose-telemetry.ts";
import { createSpanExport, type SpanExport } from "../../src/plugins/telemetry/export-spans.ts";
import { createFollowedSpans } from "../../src/plugins/telemetry/followed-spans.ts";
import { recordLedger, RESEARCH } from "../cli/recorded-ledger.ts";
import { quietLogger } from "../support/ledger-fixtures.ts";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { listUnique, startOtlpCollector, type OtlpCollector } from "../support/otlp-collector.ts";
import { createTempFolder, openTestLedger, type TempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";

const hashText = (text: string): string => hash("sha256", text);
let folder: TempFolder;
let expectedIds: string[];
let ledgers = 0;

beforeAll(async () => {
  folder = createTempFolder();
  await using exported = await recordExport("http://127.0.0.1:9");
  const events = await exported.ledger.read(RESEARCH.id as CoordinationId, { from: 0, limit: 10_000 });
  const projection = createCoordinationSpans(hashText);
  expectedIds = events.flatMap((event) => projection.take(event)).map(({ spanId }) => spanId);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

interface ExportScene extends AsyncDisposable {
  /** The path of the ledger. */
  readonly place: string;
  readonly ledger: OpenedLedger;
  readonly exporting: SpanExport;
  readonly log: string[];
  /** The objects beside the messages of the log. */
  readonly details: object[];
  /** The positions at which it began. */
  readonly begins: (number | undefined)[];
}

/** A recorded ledger with an export of all of it, which is not started yet. */
async function recordExport(endpoint: string, from: "first" | "new" = "first"): Promise<ExportScene> {
  const file = folder.file(`ledger-${(ledgers += 1)}.sqlite`);
  await recordLedger(file, [RESEARCH]);
  const ledger = await openTestLedger(file);
  if (from === "first") {
    await ledger.exports.take({ name: "otlp", holder: "before", from: 0 });
    await ledger.exports.release({ name: "otlp", holder: "before" });
  }
  const log: string[] = [];
  const details: object[] = [];
  const note =
    (level: string): Logger["info"] =>
    (fields, message) => {
      log.push(`${level} ${message}`);
      details.push(fields);
    };
  const headers = { "x-key": "s3cret" };
  const sender = createOtlpSender({ endpoint, headers, version: "1.2.3", sendMs: 3_000 });
  const begins: (number | undefined)[] = [];
  const take: OpenedLedger["exports"]["take"] = async (request) => {
    const position = await ledger.exports.take(request);
    begins.push(position);
    return position;
  };
  const exporting = createSpanExport({
    ledger: () => Promise.resolve(ledger),
    cursors: () => Promise.resolve({ ...ledger.exports, take }),
    spans: createFollowedSpans(hashText, (runId) => void log.push(`damaged ${runId}`)),
    sender,
    clock: systemClock,
    steady: steadyClock,
    logger: { debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") },
    holder: "test",
  });
  const dispose = async (): Promise<void> => {
    await exporting.close();
    await ledger.close();
  };
  return { place: file, ledger, exporting, log, details, begins, [Symbol.asyncDispose]: dispose };
}

async function waitUntilExported({ spans }: OtlpCollector, count = expectedIds.length): Promise<void> {
  await waitFor(() => listUnique(spans).length === count, { what: "the spans", timeoutMs: 30_000 });
}

const sortIds = (spans: OtlpCollector["spans"]): string[] => spans.map(({ spanId }) => spanId).toSorted();

describe("an export of spans", () => {
  it.each(["collector:4318", "ftp://collector.example"])("to %s is refused with its place", (endpoint) => {
    const coordination = { phase1: { telemetry: { endpoint } } };
    expect(() => parsePluginConfig({ coordination })).toThrow("phase1.telemetry.endpoint: expected");
  });

  it("brings each span once, valid, with the headers and the name of the service", async () => {
    await using collector = await startOtlpCollector();
    await using exported = await recordExport(collector.url);
    exported.exporting.start();
    await waitUntilExported(collector);
    expect(sortIds(collector.spans)).toEqual(expectedIds.toSorted());
    expect(collector.problems).toEqual([]);
    expect(collector.headers[0]).toMatchObject({ "x-key": "s3cret" });
    expect(new Set(collector.spans.map(({ service }) => service))).toEqual(
      new Set(["openclaw-coordination"]),
    );
    expect(exported.log).toEqual([]);
  });

  it("begins with what is appended after it was switched on", async () => {
    await using collector = await startOtlpCollector();
    await using exported = await recordExport(collector.url, "new");
    exported.exporting.start();
    await waitFor(() => exported.begins.length > 0, { what: "the export to begin", timeoutMs: 10_000 });
    await exported.exporting.close();
    expect(exported.begins).toEqual([await exported.ledger.newestPosition()]);
    expect(collector.requests).toBe(0);
  });

  it("waits as long as the collector asks for, also longer than a request may take, and sends again", async () => {
    await using collector = await startOtlpCollector();
    await using exported = await recordExport(collector.url);
    const times: number[] = [];
    collector.answer = () => {
      times.push(performance.now());
      return times.length === 1 ? { status: 429, headers: { "retry-after": "4" } } : undefined;
    };
    exported.exporting.start();
    await waitUntilExported(collector);
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(3_950);
    expect(sortIds(listUnique(collector.spans))).toEqual(expectedIds.toSorted());
    expect(exported.details[0]).toEqual({
      why: "the collector answered 429 Too Many Requests",
      waitMs: 4_000,
    });
  });

  it("tells of spans that the collector left out of a request that it took, and does not send them again", async () => {
    await using collector = await startOtlpCollector();
    await using exported = await recordExport(collector.url);
    const why = `too old\n\u001b[2J${"x".repeat(1_000)}`;
    collector.answer = () => ({ status: 200, rejected: { spans: 3, why } });
    exported.exporting.start();
    await waitFor(() => exported.log.length > 0, { what: "what it says of it", timeoutMs: 10_000 });
    await exported.exporting.close();
    expect(exported.log).toEqual(["warn the collector left out spans of a request that it took"]);
    expect(exported.details).toEqual([{ count: 3, why: `too old  [2J${"x".repeat(288)}` }]);
    const position = await exported.ledger.exports.take({ name: "otlp", holder: "next", from: 0 });
    expect(position).toBe(await exported.ledger.newestPosition());
  });

  it("loses nothing while the collector fails or is away, and says so once", async () => {
    await using collector = await startOtlpCollector();
    await using exported = await recordExport(collector.url);
    let failures = 0;
    collector.answer = () => ((failures += 1) <= 2 ? { status: 500 } : undefined);
    exported.exporting.start();
    await waitUntilExported(collector);
    await waitFor(() => exported.log.length === 2, { what: "what it says of it", timeoutMs: 10_000 });
    expect(exported.log).toEqual([
      "warn spans cannot be exported: they wait in the ledger",
      "info spans are exported again",
    ]);
  });

  it("projects again what it could not finish, whole", async () => {
    await using exported = await recordExport("http://127.0.0.1:9");
    const { ledger } = exported;
    const spans = createFollowedSpans(hashText, () => undefined);
    const { items } = await ledger.readArrivals({ after: 0, limit: 10_000 });
    const part = Math.floor(items.length * 0.8);
    const project = async (arrivals: typeof items): Promise<string[]> =>
      (await spans.project(ledger, arrivals)).map(({ spanId }) => spanId);
    const first = await project(items.slice(0, part));
    expect(first.length).toBeGreaterThan(1);
    // The page failed behind this run, or another process exported meanwhile and came less far.
    expect(await project(items.slice(0, part))).toEqual(first);
    expect([...first, ...(await project(items.slice(part)))]).toEqual(expectedIds);
  });

  it("tells once of a run whose log is damaged, and exports the others", async () => {
    const file = folder.file("damaged.sqlite");
    await recordLedger(file, [RESEARCH, { ...RESEARCH, id: "co-sound", trace: "another" }]);
    const ofRun = `run_key = (select run_key from run where run_id = '${RESEARCH.id}')`;
    forge(file, `update event set payload = '{' where type = 'step.completed' and ${ofRun}`);
    const ledger = await openTestLedger(file);
    const damaged: string[] = [];
    const spans = createFollowedSpans(hashText, (runId) => void damaged.push(runId));
    const { items } = await ledger.readArrivals({ after: 0, limit: 10_000 });
    const projected = await spans.project(ledger, items);
    expect(projected.length).toBeGreaterThan(0);
    await spans.project(ledger, items);
    expect(damaged).toEqual([RESEARCH.id]);
    await ledger.close();
  });

  it("reads of a chain of coordinations the one before only", async () => {
    const file = folder.file("chain.sqlite");
    const chain = Array.from({ length: 5 }, (_, id) => ({ ...RESEARCH, id: `co-0000000${id}` }));
    await recordLedger(file, chain);
    const ledger = await openTestLedger(file);
    const { items } = await ledger.readArrivals({ after: 0, limit: 10_000 });
    const last = items.filter(({ runId }) => runId === "co-00000004");
    const readIds = new Set<string>();
    const read: typeof ledger.read = (runId, range) => {
      readIds.add(runId);
      return ledger.read(runId, range);
    };
    const spans = await createFollowedSpans(hashText, () => undefined).project({ ...ledger, read }, last);
    expect([...readIds].toSorted()).toEqual(["co-00000003", "co-00000004"]);
    expect(spans.at(-1)?.links).toHaveLength(1);
    await ledger.close();
  });

  it("goes on with the others where the collector refuses one", async () => {
    await using collector = await startOtlpCollector();
    await using exported = await recordExport(collector.url);
    const refused = expectedIds[2];
    collector.answer = (spans) =>
      spans.some(({ spanId }) => spanId === refused) ? { status: 400 } : undefined;
    exported.exporting.start();
    await waitUntilExported(collector, expectedIds.length - 1);
    expect(exported.log).toEqual(["warn the collector refused a span: it is left out"]);
  });

  it("goes on with the others also where the collector takes no request without spans", async () => {
    await using collector = await startOtlpCollector();
    await using exported = await recordExport(collector.url);
    const refused = expectedIds[2];
    collector.answer = (spans) =>
      spans.length === 0 || spans.some(({ spanId }) => spanId === refused) ? { status: 400 } : undefined;
    exported.exporting.start();
    await waitUntilExported(collector, expectedIds.length - 1);
    await waitFor(() => exported.log.length > 0, { what: "what it says of it", timeoutMs: 10_000 });
    expect(exported.log).toEqual(["warn the collector refused a span: it is left out"]);
  });

  it("keeps all spans where the collector refuses everything, as one that takes https alone does", async () => {
    await using collector = await startOtlpCollector();
    await using exported = await recordExport(collector.url);
    const takeAll = collector.answer;
    collector.answer = () => ({ status: 400 });
    exported.exporting.start();
    await waitFor(() => exported.log.length > 0, { what: "what it says of it", timeoutMs: 10_000 });
    expect(exported.log).toEqual(["warn spans cannot be exported: they wait in the ledger"]);
    collector.answer = takeAll;
    await waitUntilExported(collector);
    expect(sortIds(listUnique(collector.spans))).toEqual(expectedIds.toSorted());
  });

  it("goes on as soon as the collector takes a newer span, where it takes no request without spans", async () => {
    await using collector = await startOtlpCollector();
    await using exported = await recordExport(collector.url);
    const refused = new Set(expectedIds);
    collector.answer = (spans) =>
      spans.length === 0 || spans.some(({ spanId }) => refused.has(spanId)) ? { status: 400 } : undefined;
    exported.exporting.start();
    await waitFor(() => exported.log.length > 0, { what: "what it says of it", timeoutMs: 10_000 });
    await recordLedger(exported.place, [{ ...RESEARCH, id: "co-newer", trace: "another" }]);
    await waitUntilExported(collector);
    await waitFor(() => exported.log.length === expectedIds.length + 2, { what: "all", timeoutMs: 10_000 });
    expect(exported.log.at(-2)).toBe("warn the collector refused a span: it is left out");
  });

  it("goes on behind a page of which the collector takes no span, where it takes a request without spans", async () => {
    await using collector = await startOtlpCollector();
    await using exported = await recordExport(collector.url);
    collector.answer = (spans) => (spans.length > 0 ? { status: 400 } : undefined);
    exported.exporting.start();
    const leftOut = expectedIds.map(() => "warn the collector refused a span: it is left out");
    await waitFor(() => exported.log.length === leftOut.length, { what: "the refusals", timeoutMs: 10_000 });
    await exported.exporting.close();
    expect(exported.log).toEqual(leftOut);
    const position = await exported.ledger.exports.take({ name: "otlp", holder: "next", from: 0 });
    expect(position).toBe(await exported.ledger.newestPosition());
  });

  it("ends within seconds where the collector does not answer, and the next one sends all of it", async () => {
    await using collector = await startOtlpCollector();
    await using exported = await recordExport(collector.url);
    collector.answer = "hang";
    exported.exporting.start();
    await waitFor(() => collector.requests > 0, { what: "a request", timeoutMs: 10_000 });
    const began = performance.now();
    await exported.exporting.close();
    expect(performance.now() - began).toBeLessThan(5_000);
    const position = await exported.ledger.exports.take({ name: "otlp", holder: "next", from: 99 });
    expect(position).toBe(0);
  });

  it("is ended whole within seconds, too: nobody waits for the request that was given up", async () => {
    await using collector = await startOtlpCollector();
    await using exported = await recordExport(collector.url);
    collector.answer = "hang";
    const { place, ledger } = exported;
    const telemetry = startTelemetry({
      place,
      logger: quietLogger,
      cursors: () => Promise.resolve(ledger.exports),
      endpoint: collector.url,
      version: "1.2.3",
    });
    await waitFor(() => collector.requests > 0, { what: "a request", timeoutMs: 10_000 });
    const began = performance.now();
    await telemetry.close();
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(await ledger.exports.holder("otlp")).toBeUndefined();
  }, 60_000);
});
