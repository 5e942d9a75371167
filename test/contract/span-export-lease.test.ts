/** Owns: that one process keeps the export of spans while it works, however long the collector takes, and that one that lost it knows. */
import { setImmediate as othersTurn } from "node:timers/promises";
import { hash } from "node:crypto";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ExportCursors } from "../../src/agents/coordination/ports/export-cursors.ts";
import type { Logger } from "../../src/agents/coordination/ports/logger.ts";
import type { OpenedLedger } from "../../src/infra/ledger/opened-ledger.ts";
import type { SendOutcome, SpanSender } from "../../src/infra/otlp/otlp-sender.ts";
import { createSpanExport, type SpanExport } from "../../src/plugins/telemetry/export-spans.ts";
import { createFollowedSpans } from "../../src/plugins/telemetry/followed-spans.ts";
import { recordLedger, RESEARCH } from "../cli/recorded-ledger.ts";
import { createFakeClock, type FakeClock } from "../support/fake-clock.ts";
import { createTempFolder, openTestLedger, type TempFolder } from "../support/temp-ledger.ts";

const NAME = "otlp";
const AWAY: SendOutcome = { kind: "unavailable", why: "it is away" };
const WAITS_IN_LEDGER = "spans cannot be exported: they wait in the ledger";
let folder: TempFolder;
let ledgers = 0;

beforeAll(() => {
  folder = createTempFolder();
});

afterAll(() => {
  folder[Symbol.dispose]();
});

/** Lets everybody finish who waits for the ledger: its appends take turns of the event loop. */
async function settleLedger(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await othersTurn();
}

interface LoggedExport {
  readonly exporting: SpanExport;
  readonly log: string[];
}

interface Stage extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly ledger: OpenedLedger;
  /** The path of the ledger. */
  readonly place: string;
  /** Adds a process that exports, whose collector answers so. Calls that `slower` does not have are those of the ledger. */
  add(holder: string, send: SpanSender["send"], slower?: Partial<ExportCursors>): LoggedExport;
  findHolder(): Promise<string | undefined>;
}

/** A ledger of which nothing is exported yet. */
async function openStage(): Promise<Stage> {
  const file = folder.file(`ledger-${(ledgers += 1)}.sqlite`);
  await recordLedger(file, [RESEARCH]);
  const ledger = await openTestLedger(file);
  await ledger.exports.take({ name: NAME, holder: "before", from: 0 });
  await ledger.exports.release({ name: NAME, holder: "before" });
  const clock = createFakeClock(undefined, settleLedger);
  const exporters: SpanExport[] = [];
  return {
    clock,
    ledger,
    place: file,
    add: (holder, send, slower) => {
      const log: string[] = [];
      const note: Logger["info"] = (_, message) => void log.push(message);
      const exporting = createSpanExport({
        ledger: () => Promise.resolve(ledger),
        cursors: () => Promise.resolve({ ...ledger.exports, ...slower }),
        spans: createFollowedSpans(
          (text) => hash("sha256", text),
          () => undefined,
        ),
        sender: { send },
        clock,
        steady: clock.steady,
        logger: { debug: () => undefined, info: note, warn: note, error: note },
        holder,
      });
      exporters.push(exporting);
      exporting.start();
      return { exporting, log };
    },
    findHolder: async () => (await ledger.exports.holder(NAME))?.holder,
    [Symbol.asyncDispose]: async () => {
      const closing = Promise.all(exporters.map((exporting) => exporting.close()));
      await clock.advance(5_000);
      await closing;
      await ledger.close();
    },
  };
}

/** Takes the export away from who has it, as a process does to which the other one seems silent. */
async function takeAway({ exports }: OpenedLedger, holder: string): Promise<number | undefined> {
  const silent = await exports.holder(NAME);
  if (!silent) throw new Error("nobody has the export");
  return exports.take({ name: NAME, holder, from: 0, silent });
}

function changeDatabase(path: string, statement: string): void {
  const database = new Database(path);
  database.exec(statement);
  database.close();
}

describe("the process that exports spans", () => {
  it("keeps the export while a request takes longer than the lease, and goes on behind it", async () => {
    await using stage = await openStage();
    const request = Promise.withResolvers<SendOutcome>();
    stage.add("slow", () => request.promise);
    await stage.clock.advance(1_000);
    let others = 0;
    stage.add("other", () => {
      others += 1;
      return Promise.resolve({ kind: "sent" });
    });
    await stage.clock.advance(29_000);
    expect(await stage.findHolder()).toBe("slow");
    expect(others).toBe(0);
    request.resolve({ kind: "sent" });
    await settleLedger();
    await stage.clock.advance(1_000);
    expect(await takeAway(stage.ledger, "next")).toBe(await stage.ledger.newestPosition());
  });

  it("keeps it while the collector is away, and asks the collector less and less often", async () => {
    await using stage = await openStage();
    let requests = 0;
    const { log } = stage.add("waiting", () => {
      requests += 1;
      return Promise.resolve(AWAY);
    });
    await stage.clock.advance(1_000);
    stage.add("other", () => Promise.resolve({ kind: "sent" }));
    await stage.clock.advance(300_000);
    expect(await stage.findHolder()).toBe("waiting");
    // After 0, 1, 3, 8, 18, 48 and 108 s, and then once in a minute.
    expect(requests).toBe(10);
    expect(log).toEqual([WAITS_IN_LEDGER]);
  });

  it("moves nothing on when it lost the export during a request, and begins where the next one stopped", async () => {
    await using stage = await openStage();
    const requests = [Promise.withResolvers<SendOutcome>(), Promise.withResolvers<SendOutcome>()];
    let sentCount = 0;
    const { log } = stage.add("slow", () => {
      sentCount += 1;
      return requests[sentCount - 1]?.promise ?? Promise.resolve(AWAY);
    });
    await stage.clock.advance(1_000);
    requests[0]?.resolve(AWAY);
    await settleLedger();
    await stage.clock.advance(2_000);
    expect(log).toEqual([WAITS_IN_LEDGER]);
    expect(sentCount).toBe(2);
    expect(await takeAway(stage.ledger, "next")).toBe(0);
    requests[1]?.resolve({ kind: "sent" });
    await settleLedger();
    expect(log).toEqual([WAITS_IN_LEDGER]);
    expect(await stage.findHolder()).toBe("next");
    await stage.ledger.exports.release({ name: NAME, holder: "next" });
    await stage.clock.advance(4_000);
    // A new turn as the exporter, of which it says anew that the collector is away.
    expect(log).toEqual([WAITS_IN_LEDGER, WAITS_IN_LEDGER]);
  });

  it("says nothing of a request that failed after it had lost the export", async () => {
    await using stage = await openStage();
    const request = Promise.withResolvers<SendOutcome>();
    const { log } = stage.add("slow", () => request.promise);
    await stage.clock.advance(1_000);
    await takeAway(stage.ledger, "next");
    await stage.clock.advance(4_000);
    request.resolve(AWAY);
    await settleLedger();
    expect(log).toEqual([]);
  });

  it("sends nothing again while the ledger can be read but does not take how far it came", async () => {
    await using stage = await openStage();
    changeDatabase(
      stage.place,
      "create trigger refuse before update of position on export_cursor begin select raise(abort, 'full'); end",
    );
    let requests = 0;
    const { log } = stage.add("sending", () => {
      requests += 1;
      return Promise.resolve({ kind: "sent" });
    });
    await settleLedger();
    await stage.clock.advance(300_000);
    expect(requests).toBe(1);
    expect(log).toEqual([WAITS_IN_LEDGER]);
    changeDatabase(stage.place, "drop trigger refuse");
    await stage.clock.advance(60_000);
    expect(requests).toBe(2);
    expect(log.at(-1)).toBe("spans are exported again");
    expect(await takeAway(stage.ledger, "next")).toBe(await stage.ledger.newestPosition());
  });

  it("sends nothing more once it was closed, though it was telling of itself meanwhile", async () => {
    await using stage = await openStage();
    const request = Promise.withResolvers<SendOutcome>();
    const answer = Promise.withResolvers<undefined>();
    let requests = 0;
    const send = (): Promise<SendOutcome> => {
      requests += 1;
      return request.promise;
    };
    const { exporting } = stage.add("slow", send, {
      advance: async (progress) => {
        const isOurs = await stage.ledger.exports.advance(progress);
        await answer.promise;
        return isOurs;
      },
    });
    await stage.clock.advance(3_000);
    const closing = exporting.close();
    await stage.clock.advance(2_000);
    await closing;
    expect(await stage.findHolder()).toBeUndefined();
    answer.resolve(undefined);
    await settleLedger();
    request.resolve({ kind: "refused", why: "too large" });
    await settleLedger();
    expect(requests).toBe(1);
  });

  it("gives the export back, and sends nothing, where it got it only after it was closed", async () => {
    await using stage = await openStage();
    const answer = Promise.withResolvers<undefined>();
    let requests = 0;
    const send = (): Promise<SendOutcome> => {
      requests += 1;
      return Promise.resolve({ kind: "sent" });
    };
    const { exporting } = stage.add("slow", send, {
      take: async (request) => {
        await answer.promise;
        return stage.ledger.exports.take(request);
      },
    });
    await settleLedger();
    const closing = exporting.close();
    await stage.clock.advance(2_000);
    await closing;
    answer.resolve(undefined);
    await settleLedger();
    expect(requests).toBe(0);
    expect(await stage.findHolder()).toBeUndefined();
  });
});
