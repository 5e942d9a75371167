import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { StoredProblem } from "../../src/agents/coordination/ports/ledger-store.ts";
import type { Verification } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { contentOf, opened, runIdOf } from "../support/ledger-fixtures.ts";
import { buildLedger, forge, verify } from "../support/ledger-fixtures-damage.ts";
import { openTestLedger, tempFolder } from "../support/temp-ledger.ts";

const folder = tempFolder();
const intact = folder.file("intact.sqlite");
const damaged = folder.file("damaged.sqlite");
let whole: Buffer;

beforeAll(async () => {
  await buildLedger(intact);
  whole = readFileSync(intact);
});

afterAll(() => folder[Symbol.dispose]());

async function verifyForged(damage: Parameters<typeof forge>[1]): Promise<Verification> {
  writeFileSync(damaged, whole);
  forge(damaged, damage);
  return verify(damaged);
}

describe("where a damage is", () => {
  it("is told of an event that cannot be read, in the middle of a log", async () => {
    const unreadable = "update event set payload = '{}' where run_key = 1 and sequence = 10";
    const { problems } = await verifyForged(unreadable);
    expect(problems).toContainEqual(
      expect.objectContaining({ kind: "event_unreadable", runId: "co-1", sequence: 10 }),
    );
  });

  it("calls an event too many forged, and none missing", async () => {
    const length = "(select length from run where run_key = 1)";
    const columns = "run_key, sequence, type, timestamp_ms, payload, hash";
    const { problems } = await verifyForged(
      `insert into event (${columns}) values (1, ${length}, 'run.started', 1, '{"workflowId":"x"}', zeroblob(32))`,
    );
    const kinds = problems.map(({ kind }) => kind);
    expect(kinds).toContain("event_forged");
    expect(kinds).not.toContain("event_missing");
  });
});

describe("damage beside the log", () => {
  const index = { kind: "index_differs" } as const;

  const cases: readonly [string, string, Partial<StoredProblem>][] = [
    [
      "a changed summary",
      "update run set summary = json_set(summary, '$.steps.open', 7) where run_id = 'co-2'",
      { ...index, runId: "co-2" },
    ],
    ["a summary that is not JSON", "update run set summary = '{' where run_id = 'co-2'", index],
    [
      "a running coordination listed as ended",
      "update run set ended = 1 where run_id = 'co-2'",
      { ...index, runId: "co-2" },
    ],
    [
      "an ended coordination listed as running",
      "update run set ended = 0 where run_id = 'co-1'",
      { ...index, runId: "co-1" },
    ],
    [
      "a changed length",
      "update run set length = length + 1 where run_id = 'co-3'",
      { kind: "event_missing", runId: "co-3" },
    ],
    [
      "a removed reference",
      "delete from reference where name = 'child:agent:main:subagent:two-d'",
      { ...index, runId: "co-2" },
    ],
    [
      "a reference that points at another run",
      "update reference set run_key = 1 where name = 'child:agent:main:subagent:two-d'",
      { ...index, runId: "co-2" },
    ],
    [
      "a reference that points at another step",
      "update reference set step_id = 'step-2' where name = 'child:agent:main:subagent:two-d'",
      { ...index, runId: "co-2" },
    ],
    [
      "a reference that names no step any more",
      "update reference set step_id = null where name = 'child:agent:main:subagent:two-d'",
      { ...index, runId: "co-2" },
    ],
    [
      "a renamed reference",
      "update reference set name = 'child:other' where name = 'child:agent:main:subagent:two-d'",
      { ...index, runId: "co-2" },
    ],
    [
      "an added reference",
      "insert into reference (name, run_key, step_id) values ('child:agent:main:subagent:stolen', 1, 'step-1')",
      { ...index, runId: "co-1" },
    ],
    [
      "an added reference under a name that exists",
      "insert into reference (name, run_key, step_id) select name, 1, 'step-1' from reference where name = 'child:agent:main:subagent:two-d'",
      { ...index, runId: "co-1" },
    ],
    ["a reference to no run", "insert into reference (name, run_key) values ('trace:none', 77)", index],
    [
      "a changed text",
      "update content set text = text || '.' where sha256 = (select min(sha256) from content)",
      { kind: "content_changed" },
    ],
    [
      "a text under another hash",
      "update content set sha256 = replace(sha256, substr(sha256, 1, 4), 'ffff') where sha256 = (select min(sha256) from content)",
      { kind: "content_changed" },
    ],
  ];

  it.each(cases)("is reported: %s", async (_, sql, problem) => {
    const { ok, problems } = await verifyForged(sql);
    expect(ok).toBe(false);
    expect(problems).toContainEqual(expect.objectContaining(problem));
  });

  it("is reported at the event that a missing reference belongs to", async () => {
    const { problems } = await verifyForged(
      "delete from reference where name = 'child:agent:main:subagent:two-d'",
    );
    const place = problems.find(({ kind }) => kind === "index_differs");
    const store = await openTestLedger(intact, { mode: "read" });
    const [event] = await store.read(runIdOf(2), { from: place?.sequence ?? -1, limit: 1 });
    await store.close();
    expect(event).toMatchObject({ type: "step.acknowledged", payload: { childRunId: "host-d" } });
  });

  it("heals where a text is stored again", async () => {
    writeFileSync(damaged, whole);
    forge(damaged, "update content set text = 'damaged'");
    const store = await openTestLedger(damaged);
    const contents = [contentOf("task of a")];
    await store.append({ ...opened("new").request, contents });
    expect(await store.get(contents[0]!.ref.sha256)).toBe("task of a");
    await store.close();
  });
});
