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

const folder = useStateFolder();

const nameHealthFile = (): string => join(folder.path, "coordination", "health.json");
const createBusyError = (detail: string) => new CoordinationError("LEDGER_BUSY", detail);

/** Creates the record of a gateway, whose clock the test sets. */
function createRecord() {
  const host = createFakeHost({ stateDir: folder.path });
  const times = { now: Date.now() };
  const record = createHealthRecord({
    logger: createHostLogger(host.api.logger),
    sink: createHealthSink(nameHealthFile(), () => undefined),
    before: readHealthBeside(nameHealthFile()),
    isReportedByAnother: () => false,
    now: () => times.now,
  });
  const listErrors = (): string[] =>
    host.lines.filter(({ level }) => level === "error").map(({ text }) => text);
  const readMessage = (): string | undefined => readHealthBeside(nameHealthFile())?.failure?.message;
  return { record, times, listErrors, readMessage };
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
