/** Owns: the part of the conformance suite about what lies beside the logs: definitions, requests with a key. */
import { expect, it } from "vitest";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { KeyedRequest } from "../../src/agents/coordination/ports/workflow-store.ts";
import { timeAt, definitionOf, NOW, type Open } from "./workflow-store-tested.ts";

export function describeDefinitions(open: Open): void {
  it("are kept under their hash, for whoever opens the ledger later, and once", async () => {
    await using tested = await open();
    const definition = definitionOf("wf");
    await tested.store.putDefinition(definition);
    await tested.store.putDefinition(definition);
    const later = await tested.ledger.open();
    expect(await later.workflows.definition(definition.sha256)).toBe(definition.text);
    await later.close();
    expect(await tested.store.definition("0".repeat(64))).toBeUndefined();
    expect(await tested.store.registered("acme", "wf")).toBeUndefined();
  });

  it("are registered by tenant and workflow id, and the newest counts, also one that was there before", async () => {
    await using tested = await open();
    const { store } = tested;
    const createRegistration = (name: string, tenant: string) => ({
      ...definitionOf(name),
      tenant,
      workflowId: "wf",
    });
    const [one, two] = [createRegistration("one", "acme"), createRegistration("two", "acme")];
    for (const definition of [one, one, two, two, createRegistration("theirs", "other"), one, one]) {
      await store.putDefinition(definition);
      expect(await store.registered(definition.tenant, "wf")).toEqual(definition);
    }
    expect(await store.registered("other", "wf")).toEqual(createRegistration("theirs", "other"));
    expect(await store.registered("nobody", "wf")).toBeUndefined();
    expect(await store.registered("acme", "none")).toBeUndefined();
    for (const { sha256, text } of [one, two]) expect(await store.definition(sha256)).toBe(text);
  });

  it("are refused under a hash that is not theirs", async () => {
    await using tested = await open();
    const definition = { ...definitionOf("wf", "acme"), sha256: "0".repeat(64) };
    await expect(tested.store.putDefinition(definition)).rejects.toMatchObject({
      name: "InvariantViolation",
    });
    expect(await tested.store.definition(definition.sha256)).toBeUndefined();
  });
}

const KEY = { tenant: "acme", endpoint: "POST /v1/runs", key: "key-1" };
const ANSWER = { status: 201, body: '{"runId":"run-1"}' };

function createKeyedRequest(subject: string, more: Partial<KeyedRequest> = {}): KeyedRequest {
  const { now = NOW } = more;
  const leaseUntilMs = (now + 1_000) as EpochMs;
  return { ...KEY, digest: "digest", subject, now, leaseUntilMs, ...more };
}

function matchBegun(subject: string): { readonly kind: "new"; readonly subject: string } {
  return { kind: "new", subject };
}

export function describeRequests(open: Open): void {
  describeOneKey(open);
  describeLeases(open);
  describeForgetting(open);
}

function describeOneKey(open: Open): void {
  it("are new once, then in flight, then answered for good", async () => {
    await using tested = await open();
    const { requests } = tested.store;
    expect(await requests.begin(createKeyedRequest("run-1"))).toEqual(matchBegun("run-1"));
    expect(await requests.begin(createKeyedRequest("run-2"))).toEqual({ kind: "in_flight" });
    await requests.finish(KEY, ANSWER);
    await requests.finish(KEY, { status: 500, body: "{}" });
    await requests.release(KEY);
    const later = await tested.ledger.open();
    for (const now of [NOW, timeAt(1_000_000)])
      expect(await later.workflows.requests.begin(createKeyedRequest("run-3", { now }))).toEqual({
        kind: "answered",
        answer: ANSWER,
      });
    await later.close();
  });

  it("are a mismatch where something else is asked with the key, whatever became of the first", async () => {
    await using tested = await open();
    const { requests } = tested.store;
    await requests.begin(createKeyedRequest("run-1"));
    const beginOther = (now: EpochMs) =>
      requests.begin(createKeyedRequest("run-2", { digest: "other", now }));
    expect(await beginOther(NOW)).toEqual({ kind: "mismatch" });
    expect(await beginOther(timeAt(2_000))).toEqual({ kind: "mismatch" });
    await requests.finish(KEY, ANSWER);
    expect(await beginOther(timeAt(2_000))).toEqual({ kind: "mismatch" });
  });

  it("are told apart by tenant, endpoint and key", async () => {
    await using tested = await open();
    const { requests } = tested.store;
    await requests.begin(createKeyedRequest("run-1"));
    await requests.finish(KEY, ANSWER);
    for (const [index, more] of [{ tenant: "b" }, { endpoint: "POST /v1/mcp" }, { key: "key-2" }].entries())
      expect(await requests.begin(createKeyedRequest(`run-${index}`, more))).toEqual(
        matchBegun(`run-${index}`),
      );
    await requests.finish({ ...KEY, key: "never began" }, ANSWER);
    expect(await requests.begin(createKeyedRequest("run-9", { key: "never began" }))).toEqual(
      matchBegun("run-9"),
    );
  });

  it("begin once however many stores begin them at the same time", async () => {
    await using tested = await open();
    const other = await tested.ledger.open();
    for (let round = 0; round < 20; round += 1) {
      const key = `round-${round}`;
      const stores = [tested.store, other.workflows, tested.store, other.workflows];
      const all = await Promise.all(
        stores.map(({ requests }, index) => requests.begin(createKeyedRequest(`run-${index}`, { key }))),
      );
      expect(all.map(({ kind }) => kind).toSorted()).toEqual(["in_flight", "in_flight", "in_flight", "new"]);
    }
    await other.close();
  });
}

function describeLeases(open: Open): void {
  it("are taken over with the first subject when their lease ends without an answer", async () => {
    await using tested = await open();
    const { requests } = tested.store;
    await requests.begin(createKeyedRequest("run-1"));
    const begin = (subject: string, ms: number) =>
      requests.begin(createKeyedRequest(subject, { now: timeAt(ms) }));
    expect(await begin("run-2", 999)).toEqual({ kind: "in_flight" });
    expect(await begin("run-3", 1_000)).toEqual(matchBegun("run-1"));
    expect(await begin("run-4", 1_999)).toEqual({ kind: "in_flight" });
    expect(await begin("run-5", 2_000)).toEqual(matchBegun("run-1"));
    await requests.finish(KEY, ANSWER);
    expect(await begin("run-6", 9_000)).toEqual({ kind: "answered", answer: ANSWER });
  });

  it("leave the key free when they are released, for whatever is asked next", async () => {
    await using tested = await open();
    const { requests } = tested.store;
    await requests.begin(createKeyedRequest("run-1"));
    await requests.release(KEY);
    expect(await requests.begin(createKeyedRequest("run-2", { digest: "other" }))).toEqual(
      matchBegun("run-2"),
    );
    await requests.release({ ...KEY, key: "another" });
    expect(await requests.begin(createKeyedRequest("run-3", { digest: "other" }))).toEqual({
      kind: "in_flight",
    });
  });

  it("are taken over at once where their lease was ended, by whoever had it, for what was asked", async () => {
    await using tested = await open();
    const { requests } = tested.store;
    const first = createKeyedRequest("run-1");
    await requests.begin(first);
    await requests.lapse({ ...first, leaseUntilMs: timeAt(999) });
    expect(await requests.begin(createKeyedRequest("run-2"))).toEqual({ kind: "in_flight" });
    await requests.lapse(first);
    expect(await requests.begin(createKeyedRequest("run-3", { digest: "other" }))).toEqual({
      kind: "mismatch",
    });
    const second = createKeyedRequest("run-4", { now: timeAt(500) });
    expect(await requests.begin(second)).toEqual(matchBegun("run-1"));
    await requests.lapse(first);
    expect(await requests.begin(createKeyedRequest("run-5"))).toEqual({ kind: "in_flight" });
    await requests.finish(KEY, ANSWER);
    await requests.lapse(second);
    expect(await requests.begin(createKeyedRequest("run-6"))).toEqual({ kind: "answered", answer: ANSWER });
  });

  it("are not freed by who lost the lease", async () => {
    await using tested = await open();
    const { requests } = tested.store;
    const first = createKeyedRequest("run-1");
    const second = createKeyedRequest("run-2", { now: timeAt(1_000) });
    await requests.begin(first);
    await requests.begin(second);
    await requests.release(first);
    expect(await requests.begin(createKeyedRequest("run-3", { now: timeAt(1_500) }))).toEqual({
      kind: "in_flight",
    });
    await requests.release(second);
    expect(await requests.begin(createKeyedRequest("run-4", { now: timeAt(1_500) }))).toEqual(
      matchBegun("run-4"),
    );
  });
}

function describeForgetting(open: Open): void {
  it("are forgotten oldest first by when they began, so many as asked for", async () => {
    await using tested = await open();
    const { requests } = tested.store;
    for (const ms of [5, 3, 1, 4, 2]) {
      await requests.begin(createKeyedRequest(`run-${ms}`, { key: `key-${ms}`, now: timeAt(ms) }));
      await requests.finish({ ...KEY, key: `key-${ms}` }, ANSWER);
    }
    expect(await requests.deleteBefore(timeAt(4), 2)).toBe(2);
    const kindOf = async (ms: number) =>
      (await requests.begin(createKeyedRequest("again", { key: `key-${ms}`, now: timeAt(9) }))).kind;
    expect(await kindOf(3)).toBe("answered");
    expect(await requests.deleteBefore(timeAt(4), 9)).toBe(1);
    expect(await requests.deleteBefore(timeAt(4), 9)).toBe(0);
    for (const ms of [1, 2, 3]) expect(await kindOf(ms)).toBe("new");
    for (const ms of [4, 5]) expect(await kindOf(ms)).toBe("answered");
  });
}
