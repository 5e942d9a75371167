import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { EpochMs, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { StoredProblem } from "../../src/agents/coordination/ports/ledger-store.ts";
import { verifyLedger, type Verification } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import type { SqliteLedger } from "../../src/infra/sqlite/sqlite-ledger-store.ts";
import { contentOf, openRun, runIdOf, spawnOf, type Author } from "../support/ledger-fixtures.ts";
import { buildLedger, forge, verify } from "../support/ledger-fixtures-damage.ts";
import { openTestLedger, createTempFolder, TEST_EPOCH_MS } from "../support/temp-ledger.ts";
import { nameWorkflowRun } from "./workflow-store-tested.ts";

const folder = createTempFolder();
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
      "a claim that lasts longer",
      "update claim set expires_at_ms = expires_at_ms + 1 where token = 1",
      { ...index, runId: "co-2" },
    ],
    [
      "a claim as it was before it was renewed",
      "update claim set expires_at_ms = expires_at_ms - 1 where token = 1",
      { ...index, runId: "co-2" },
    ],
    [
      "a claim on another resource",
      "update claim set resource = 'file:/project' where token = 1",
      { ...index, runId: "co-2" },
    ],
    [
      "a claim of another step",
      "update claim set step_id = '@owner' where token = 1",
      { ...index, runId: "co-2" },
    ],
    [
      "a claim of another priority",
      "update claim set priority = 'critical' where token = 1",
      { ...index, runId: "co-2" },
    ],
    [
      "a claim of another time",
      "update claim set acquired_at_ms = acquired_at_ms - 1 where token = 1",
      { ...index, runId: "co-2" },
    ],
    [
      "a claim that points at another run",
      "update claim set run_key = 1 where token = 3",
      { ...index, runId: "co-1" },
    ],
    ["a claim with another token", "update claim set token = 2 where token = 1", { ...index, runId: "co-2" }],
    ["a removed claim", "delete from claim where token = 1", { ...index, runId: "co-2" }],
    ["all claims removed", "delete from claim", { ...index, runId: "co-2" }],
    [
      "a claim that was released",
      `insert into claim (token, resource, run_key, step_id, priority, acquired_at_ms, expires_at_ms)
       values (2, 'file:/project/b.ts', 2, 'step-1', 'normal', 1, 2)`,
      { ...index, runId: "co-2" },
    ],
    [
      "an added claim, in a coordination that has none",
      `insert into claim (token, resource, run_key, step_id, priority, acquired_at_ms, expires_at_ms)
       values (2, 'file:/project/b.ts', 1, 'step-1', 'normal', 1, 2)`,
      { ...index, runId: "co-1" },
    ],
    [
      "a claim of no run",
      `insert into claim (token, resource, run_key, step_id, priority, acquired_at_ms, expires_at_ms)
       values (2, 'file:/project/b.ts', 77, 'step-1', 'normal', 1, 2)`,
      index,
    ],
    [
      "a newest token below a claim",
      "update claim_token set newest = 2",
      { ...index, message: "claim 3 is newer than the newest that was counted" },
    ],
    [
      "a newest token that was lowered with the claims",
      "update claim_token set newest = 1; delete from claim where token = 3",
      { ...index, message: "claim 3 was acquired, but the ledger counts 1" },
    ],
    [
      "a newest token that was raised",
      "update claim_token set newest = 4",
      { ...index, message: "the ledger counts 4 claims, its logs hold 3 of them" },
    ],
    [
      "a newest token that was removed",
      "delete from claim_token",
      { ...index, message: "the newest token of claims is not one number" },
    ],
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

  it("is reported at the newest event about a claim, once, and nothing else with it", async () => {
    const { problems } = await verifyForged("update claim set expires_at_ms = 0 where token = 1");
    expect(problems).toHaveLength(1);
    const store = await openTestLedger(intact, { mode: "read" });
    const [event] = await store.read(runIdOf(2), { from: problems[0]?.sequence ?? -1, limit: 1 });
    await store.close();
    expect(event).toMatchObject({ type: "claim.renewed", payload: { token: 1 } });
  });

  it("heals where a text is stored again", async () => {
    writeFileSync(damaged, whole);
    forge(damaged, "update content set text = 'damaged'");
    const store = await openTestLedger(damaged);
    const contents = [contentOf("task of a")];
    await store.append({ ...openRun("new").request, contents });
    expect(await store.get(contents[0]!.ref.sha256)).toBe("task of a");
    await store.close();
  });
});

describe("a run whose summary cannot be read", () => {
  const workflowRunId = nameWorkflowRun("7");
  const setSummary = (runId: string, summary: string): string =>
    `update run set summary = ${summary} where run_id = '${runId}'`;

  it.each([
    ["is no JSON", runIdOf(2), "'{'"],
    ["has an unknown status", runIdOf(2), "json_set(summary, '$.status', 'asleep')"],
    ["is of another kind", runIdOf(2), "json_set(summary, '$.kind', 'workflow')"],
    ["is no JSON", workflowRunId, "'{'"],
    ["has an unknown status", workflowRunId, "json_set(summary, '$.status', 'asleep')"],
    ["is no JSON, and a fork takes its events", nameWorkflowRun("0"), "'{'"],
  ])("is told of where it %s (%s), and all else is proven", async (_, runId, summary) => {
    const sound = await verify(intact);
    const { problems, ...rest } = await verifyForged(setSummary(runId, summary));
    expect(new Set(problems.map((problem) => `${problem.kind} ${String(problem.runId)}`))).toEqual(
      new Set([`index_differs ${runId}`]),
    );
    expect(problems).toContainEqual(expect.objectContaining({ message: "the summary cannot be read" }));
    expect(rest).toEqual({ ok: false, coordinations: sound.coordinations, events: sound.events });
  });

  it("hides no other damage", async () => {
    const changeEvent = "update event set payload = '{}' where run_key = 1 and sequence = 10";
    const { problems } = await verifyForged(`${setSummary(runIdOf(2), "'{'")}; ${changeEvent}`);
    expect(problems).toContainEqual(
      expect.objectContaining({ kind: "event_unreadable", runId: "co-1", sequence: 10 }),
    );
  });

  it.each([runIdOf(2), workflowRunId])("hides no event that its log has too many (%s)", async (runId) => {
    const { problems } = await verifyForged(
      `${setSummary(runId, "'{'")};
       insert into event (run_key, sequence, type, timestamp_ms, payload, hash)
       select run_key, length, type, timestamp_ms, payload, zeroblob(32)
       from event join run using (run_key) where run_id = '${runId}' and sequence = 0`,
    );
    expect(problems).toContainEqual(
      expect.objectContaining({
        kind: "event_forged",
        runId,
        message: expect.stringContaining("goes on behind") as string,
      }),
    );
    expect(problems).not.toContainEqual(expect.objectContaining({ kind: "fold_failed" }));
  });
});

describe("claims that change while the ledger is verified", () => {
  /** Verifies while the coordination goes on: `act` runs between the reading of its log and that of its claims. */
  async function verifyWhile(act: (store: SqliteLedger, author: Author, time: number) => Promise<void>) {
    using folder = createTempFolder();
    const store = await openTestLedger(folder.file("ledger.sqlite"));
    const { author, request } = openRun("grows");
    await store.append(request);
    await store.append(author.append(createClaiming(1, "file:/a")));
    let time = 0;
    const grows: SqliteLedger = {
      ...store,
      claims: async (query) => {
        await act(store, author, ++time);
        return store.claims(query);
      },
    };
    const verification = await verifyLedger(grows);
    await store.close();
    return { ...verification, times: time };
  }

  function createClaiming(token: number, resource: string): Command {
    const expiresAtMs = (TEST_EPOCH_MS + 60_000) as EpochMs;
    return {
      type: "requestResources",
      stepId: "@owner" as StepId,
      requests: [{ resource, token, expiresAtMs }],
    };
  }

  it("are no damage", async () => {
    const result = await verifyWhile(async (store, author, time) => {
      if (time === 1) await store.append(author.append(createClaiming(2, "file:/b")));
      if (time === 2)
        await store.append(author.append({ type: "releaseClaims", because: "operator", tokens: [1] }));
    });
    expect(result).toMatchObject({ ok: true, times: 3 });
  });

  it("are no damage where another coordination that began meanwhile acquired them", async () => {
    const result = await verifyWhile(async (store, _, time) => {
      if (time > 1) return;
      const other = openRun("began");
      await store.append(other.request);
      await store.append(other.author.append(createClaiming(2, "file:/b")));
    });
    expect(result).toMatchObject({ ok: true, coordinations: 1 });
  });

  it("are damage where no event says so", async () => {
    const result = await verifyWhile(async (store, author, time) => {
      const events = author.propose(spawnOf("more"));
      if (time === 1) await store.append({ ...events, claims: [{ kind: "released", token: 1 }] });
    });
    expect(result.problems).toEqual([
      expect.objectContaining({ kind: "index_differs", message: "the claim 1 on file:/a is missing" }),
    ]);
  });
});
