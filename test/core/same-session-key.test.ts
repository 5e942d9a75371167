/** Owns: that the same session key in two gateways with one ledger is two sessions: each has coordinations of its own. */
import { afterEach, describe, expect, it } from "vitest";
import type { CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { listChildrenOfSession } from "../../src/agents/coordination/runtime/children-of-session.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import type { SpawnRequest } from "../../src/agents/coordination/runtime/spawns/admit-spawn.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { OWNER, spawnOf } from "../support/fake-clock-host.ts";
import { openTestLedger, createTempFolder } from "../support/temp-ledger.ts";
import { write } from "./arbiter-calls.ts";
import {
  createHost,
  createValueFiles,
  hashRequest,
  spawnChild,
  startCoordinator,
  type Host,
  type SceneFiles,
} from "./arbiter-scene.ts";

interface Pair {
  readonly a: Coordinator;
  readonly b: Coordinator;
  readonly host: Host;
  readonly files: SceneFiles;
  readonly store: Awaited<ReturnType<typeof openTestLedger>>;
  /** By gateway, in the order of opening. */
  readonly listHomes: () => Promise<readonly (string | undefined)[]>;
}

let close: (() => Promise<void>) | undefined;

async function openPair(
  names: readonly [string | undefined, string | undefined] = ["a", "b"],
): Promise<Pair> {
  const folder = createTempFolder();
  const host = createHost();
  const files = createValueFiles();
  const store = await openTestLedger(folder.file("ledger.sqlite"), host);
  const start = (gateway: string | undefined, name: string): Coordinator =>
    startCoordinator({ store, host, files, name, settings: gateway === undefined ? {} : { gateway } });
  const pair = { a: start(names[0], "a"), b: start(names[1], "b") };
  close = async () => {
    await pair.a.stop();
    await pair.b.stop();
    const { problems } = await verifyLedger(store);
    await store.close();
    folder[Symbol.dispose]();
    expect(problems).toEqual([]);
  };
  const listHomes = async () =>
    (await store.list({ limit: 10, order: "oldest" })).map(({ summary }) => summary.gateway);
  return { ...pair, host, files, store, listHomes };
}

afterEach(async () => {
  const closing = close;
  close = undefined;
  await closing?.();
});

const spawn = ({ host }: Pair, coordinator: Coordinator, task: string): Promise<SessionKey> =>
  spawnChild(coordinator, host.observer, { task });

const ask = (coordinator: Coordinator, question: string) =>
  coordinator.ask({ askedBy: OWNER, agentId: "main", kind: "clarification", question });

describe("of two gateways with one ledger", () => {
  it("each opens a coordination of its own for the same session on the same trace", async () => {
    const pair = await openPair();
    for (const [index, coordinator] of [pair.a, pair.b, pair.a].entries())
      await spawn(pair, coordinator, `t${index}`);
    expect(await pair.listHomes()).toEqual(["a", "b"]);
    expect((await pair.a.view("a-1" as CoordinationId))?.gateway).toBe("a");
  });

  it("neither joins the other's coordination where there is no trace", async () => {
    const pair = await openPair();
    const withoutTrace = (task: string): SpawnRequest => {
      const { traceId: _, ...request } = hashRequest(spawnOf({ task }));
      return request;
    };
    await pair.a.admitSpawn(withoutTrace("a"));
    await pair.b.admitSpawn(withoutTrace("b"));
    expect(await pair.listHomes()).toEqual(["a", "b"]);
  });

  it("each keeps the questions of a session that coordinates nothing apart", async () => {
    const pair = await openPair();
    expect(await ask(pair.a, "Which mill?")).toMatchObject({ questionId: "a-1:escalation-1" });
    expect(await ask(pair.b, "Which vein?")).toMatchObject({ questionId: "b-1:escalation-1" });
    expect(await ask(pair.b, "Which ore?")).toMatchObject({ questionId: "b-1:escalation-2" });
  });

  it("a session takes part only in what its own gateway opened", async () => {
    const pair = await openPair();
    await spawn(pair, pair.a, "t");
    expect(await pair.a.arbiter.concerns(OWNER)).toBe(true);
    expect(await pair.b.arbiter.concerns(OWNER)).toBe(false);
    const call = write(pair.files, OWNER, { "notes.md": "o" });
    expect(await pair.b.arbiter.request(call)).toEqual({ kind: "free" });
    await pair.b.arbiter.callEnded(call.callKey);
    expect(await pair.store.claims({ after: 0, limit: 10 })).toEqual([]);
  });

  it("a child takes part wherever its coordination was opened", async () => {
    const pair = await openPair();
    const child = await spawn(pair, pair.a, "t");
    expect(await pair.b.arbiter.concerns(child)).toBe(true);
    expect(await pair.b.envelopeForChild(child)).toMatchObject({ coordinationId: "a-1" });
  });

  it("a session is told only of the children that its own gateway spawned for it", async () => {
    const pair = await openPair();
    await spawn(pair, pair.a, "t");
    const listIn = (coordinator: Coordinator, gateway: string) =>
      listChildrenOfSession(
        { findRuns: (query) => pair.store.findRuns(query), view: (id) => coordinator.view(id), gateway },
        OWNER,
      );
    expect(await listIn(pair.a, "a")).toHaveLength(1);
    expect(await listIn(pair.b, "b")).toHaveLength(0);
    await spawn(pair, pair.b, "t");
    expect((await listIn(pair.b, "b")).map(({ coordinationId }) => coordinationId)).toEqual(["b-1"]);
  });

  it("a session cancels nothing of another gateway, and answers none of its questions", async () => {
    const pair = await openPair();
    const child = await spawn(pair, pair.a, "t");
    const asking = { askedBy: child, to: "parent", agentId: "main", kind: "clarification" } as const;
    await pair.a.ask({ ...asking, question: "Which?" });
    const answer = { questionId: "a-1:escalation-1", session: OWNER, text: "That." };
    expect(await pair.b.answerChild(answer)).toMatchObject({ kind: "refused", code: "NOT_FOUND" });
    const cancelling = { coordinationId: "a-1" as CoordinationId, askedBy: OWNER, by: "agent" } as const;
    expect(await pair.b.cancel(cancelling)).toMatchObject({ kind: "refused", code: "NOT_OWNER" });
    expect(await pair.a.answerChild(answer)).toMatchObject({ kind: "accepted" });
    expect(await pair.a.cancel(cancelling)).toMatchObject({ kind: "accepted" });
  });
});

describe("a gateway with a ledger of its own", () => {
  it("writes no name into its logs, and finds what it opened", async () => {
    const pair = await openPair([undefined, undefined]);
    await spawn(pair, pair.a, "t");
    await spawn(pair, pair.b, "u");
    expect(await pair.listHomes()).toEqual([undefined]);
    const [event] = await pair.store.read("a-1" as CoordinationId, { from: 0, limit: 1 });
    expect(event?.payload).not.toHaveProperty("gateway");
  });

  it("goes on with what it opened before it shared the ledger", async () => {
    const pair = await openPair([undefined, "b"]);
    await spawn(pair, pair.a, "t");
    expect(await pair.b.arbiter.concerns(OWNER)).toBe(true);
  });
});
