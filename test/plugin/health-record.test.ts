/** Owns: when a failure of the gateway is said in the log, and what the file beside the ledger says of it meanwhile. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { createHealthSink, readHealthBeside } from "../../src/plugins/ledger-reader.ts";
import { createHealthRecord } from "../../src/plugins/openclaw/host/health-record.ts";
import { createHostLogger } from "../../src/plugins/openclaw/host/host-logger.ts";
import { createFakeHost } from "./fake-host.ts";
import { useStateFolder } from "./stopped-handlers.ts";

/** The same file as another module: OpenClaw loads the plugin's modules more than once. */
const COPY: string = new URL("../../src/plugins/openclaw/host/health-record.ts?copy", import.meta.url).href;

const folder = useStateFolder();

const nameHealthFile = (): string => join(folder.path, "coordination", "health.json");
const createBusyError = (detail: string) => new CoordinationError("LEDGER_BUSY", detail);

/** Creates the record of a gateway, whose clock the test sets. */
function createRecord({ create = createHealthRecord, isReportedByAnother = false } = {}) {
  const host = createFakeHost({ stateDir: folder.path });
  const times = { now: Date.now() };
  const record = create({
    logger: createHostLogger(host.api.logger),
    sink: createHealthSink(nameHealthFile(), () => undefined),
    ledgerPath: nameHealthFile(),
    before: readHealthBeside(nameHealthFile()),
    isReportedByAnother: () => isReportedByAnother,
    now: () => times.now,
  });
  const listErrors = (): string[] =>
    host.lines.filter(({ level }) => level === "error").map(({ text }) => text);
  const readMessage = (): string | undefined => readHealthBeside(nameHealthFile())?.failure?.message;
  const listWarnings = (): string[] =>
    host.lines.filter(({ level }) => level === "warn").map(({ text }) => text);
  return { record, times, listErrors, listWarnings, readMessage };
}

describe("a failure whose words change from call to call", () => {
  it("is in the log once, and its newest words come into the file every few seconds", () => {
    const { record, times, listErrors, readMessage } = createRecord();
    record.failed(createBusyError("no answer within 7997 ms"), 0);
    times.now += 1_000;
    record.failed(createBusyError("no answer within 7996 ms"), 0);
    expect(readMessage()).toBe("no answer within 7997 ms");
    times.now += 9_000;
    record.failed(createBusyError("no answer within 7995 ms"), 0);
    expect(readMessage()).toBe("no answer within 7995 ms");
    expect(listErrors()).toEqual([expect.stringContaining("7997 ms")]);
  });

  it("is in the log again for each spawn, and once coordination had worked meanwhile", () => {
    const { record, listErrors } = createRecord();
    record.failed(createBusyError("first"), 0);
    record.failed(createBusyError("of a spawn"), 1);
    record.succeeded();
    record.failed(createBusyError("second"), 0);
    record.failed(createBusyError("third"), 0);
    expect(listErrors()).toEqual([
      expect.stringMatching(/DEGRADED: first/u),
      expect.stringMatching(/UNCOORDINATED: of a spawn/u),
      expect.stringMatching(/DEGRADED: second/u),
    ]);
  });

  it("is in the log of a process that finds it in the file of an earlier one", () => {
    mkdirSync(join(folder.path, "coordination"));
    const failure = { code: "LEDGER_BUSY", message: "before", atMs: 1 };
    writeFileSync(nameHealthFile(), JSON.stringify({ state: "degraded", failure, uncoordinatedSpawns: 0 }));
    const { record, listErrors, readMessage } = createRecord();
    for (const detail of ["now", "then"]) record.failed(createBusyError(detail), 0);
    expect(listErrors()).toEqual([expect.stringContaining("now")]);
    expect(readMessage()).toBe("now");
  });

  it("is in the log once, also where the clock is set back to before the process began", () => {
    const first = createRecord();
    first.times.now = 1_000;
    first.record.failed(createBusyError("first"), 0);
    first.record.failed(createBusyError("second"), 0);
    // As after a failure to begin, which leaves no record to the next call.
    const second = createRecord();
    second.record.failed(createBusyError("third"), 0);
    expect([...first.listErrors(), ...second.listErrors()]).toEqual([expect.stringContaining("first")]);
  });
});

describe("a failure that is met without a runtime, so that each call makes a record of its own", () => {
  it("is in the log once, also where the calls reach different instances of the module", async () => {
    const copy = (await import(COPY)) as { createHealthRecord: typeof createHealthRecord };
    const first = createRecord();
    first.record.failed(createBusyError("first"), 0);
    const second = createRecord({ create: copy.createHealthRecord });
    second.record.failed(createBusyError("second"), 0);
    expect([...first.listErrors(), ...second.listErrors()]).toEqual([expect.stringContaining("first")]);
  });

  it("keeps the time at which it was met first, by which its line is found in the log", () => {
    const times = [1, 2, 3].map((call) => {
      const { record, times } = createRecord();
      times.now += call * 1_000;
      record.failed(createBusyError("the same"), 0);
      return readHealthBeside(nameHealthFile())?.failure?.atMs;
    });
    expect(new Set(times).size).toBe(1);
  });

  it("is in the log once until it is over, also where another process reports how the gateway is", () => {
    const meetFailure = (detail: string, spawns = 0): string[] => {
      const { record, listErrors } = createRecord({ isReportedByAnother: true });
      record.failed(createBusyError(detail), spawns);
      return listErrors();
    };
    expect(meetFailure("first")).toEqual([expect.stringContaining("first")]);
    expect(meetFailure("second")).toEqual([]);
    expect(meetFailure("of a spawn", 1)).toEqual([expect.stringContaining("of a spawn")]);
    const recovered = createRecord({ isReportedByAnother: true });
    recovered.record.succeeded();
    recovered.record.succeeded();
    expect(recovered.listWarnings()).toEqual([expect.stringContaining("works again")]);
    expect(meetFailure("third")).toEqual([expect.stringContaining("third")]);
  });
});

describe("a gateway that was replaced", () => {
  it("shows that whatever it is told afterwards, and counts its spawns", () => {
    const { record, listErrors, readMessage } = createRecord();
    const replacement = new CoordinationError("GATEWAY_REPLACED", "replaced");
    expect(record.replaced(replacement)).toBe(replacement);
    record.succeeded();
    record.failed(createBusyError("busy"), 0);
    record.failed(createBusyError("busy"), 2);
    expect(readMessage()).toBe("replaced");
    expect(readHealthBeside(nameHealthFile())).toMatchObject({ state: "degraded", uncoordinatedSpawns: 2 });
    expect(listErrors()).toHaveLength(2);
  });
});
