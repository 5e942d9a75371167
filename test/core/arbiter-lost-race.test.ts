/** Owns: a step that wins what a step of another coordination holds, where another process or a crash comes between. */
import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { AppendRequest } from "../../src/agents/coordination/ports/ledger-store.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { createMemoryLedger } from "../support/memory-store.ts";
import { write } from "./arbiter-calls.ts";
import {
  createHost,
  createValueFiles,
  spawnChild,
  startCoordinator,
  type SceneFiles,
  type Store,
} from "./arbiter-scene.ts";

interface Takeover extends AsyncDisposable {
  readonly files: SceneFiles;
  readonly first: Coordinator;
  readonly second: Coordinator;
  /** A step of the first process that holds nothing. Another one, of another coordination, holds notes.md. */
  readonly bystander: SessionKey;
  /** A step of the second process, for which a plugin rules. */
  readonly winner: SessionKey;
  /** `onAppend` runs before each append of the second process. */
  readonly race: { onAppend: (request: AppendRequest) => Promise<void> };
  /** Appended events, of the loser's coordination and of the winner's. */
  readonly listTypes: (runId: "p-1" | "q-1") => Promise<string[]>;
  readonly listHolders: (name: string) => Promise<string[]>;
}

/** Two processes over one ledger. Plugins rule for whoever asks. */
async function openTakeover(): Promise<Takeover> {
  const files = createValueFiles();
  const host = createHost();
  const ledger = createMemoryLedger();
  const hooks = {
    hasAny: () => true,
    arbitrate: () =>
      Promise.resolve({ award: "requester", plugin: "guard", reason: "It is urgent" } as const),
    decide: () => Promise.resolve(undefined),
  };
  const race: Takeover["race"] = { onAppend: () => Promise.resolve() };
  const store = ledger.open(host.clock);
  const watched: Store = {
    ...store,
    append: async (request) => {
      await race.onAppend(request);
      return store.append(request);
    },
  };
  const start = (name: string, ofProcess: Store): Coordinator =>
    startCoordinator({ store: ofProcess, host, files, name, dependencies: { hooks } });
  const [first, second] = [start("p", ledger.open(host.clock)), start("q", watched)];
  const spawn = (coordinator: Coordinator, task: string): Promise<SessionKey> =>
    spawnChild(coordinator, host.observer, { task, source: `agent:main:owner-of-${task}` as SessionKey });
  const loser = await spawn(first, "loser");
  const call = write(files, loser, { "notes.md": "loser" });
  expect(await first.arbiter.request(call)).toEqual({ kind: "granted" });
  await first.arbiter.callEnded(call.callKey);
  return {
    files,
    first,
    second,
    race,
    bystander: await spawn(first, "bystander"),
    winner: await spawn(second, "winner"),
    listTypes: async (runId) => {
      const events = await store.read(runId as CoordinationId, { from: 0, limit: 1_000 });
      return events.map(({ type }) => type).filter((type) => /^(?:claim|conflict)\./u.test(type));
    },
    listHolders: async (name) => {
      const resource = `file:${files.folder}/${name}`;
      const { claims } = await store.overlapping({ resource, atMs: host.clock.now(), limit: 10 });
      return claims.map(({ runId, stepId }) => `${runId}/${stepId}`);
    },
    [Symbol.asyncDispose]: async () => {
      for (const coordinator of [first, second]) await coordinator.stop();
      expect((await verifyLedger(store)).problems).toEqual([]);
      files[Symbol.dispose]();
    },
  };
}

const isClaiming = ({ events }: AppendRequest): boolean =>
  events.some(({ type }) => type === "claim.acquired");
const isConflict = (type: string): boolean => type.startsWith("conflict.");

describe("a step that wins what a step of another coordination holds", () => {
  it("is recorded with the conflict, once, also where another process claims something in between", async () => {
    await using t = await openTakeover();
    let races = 0;
    t.race.onAppend = async (request) => {
      if (!isClaiming(request) || races > 0) return;
      races += 1;
      await t.first.arbiter.request(write(t.files, t.bystander, { "elsewhere.md": "bystander" }));
    };
    const answer = await t.second.arbiter.request(write(t.files, t.winner, { "notes.md": "winner" }));
    expect([answer.kind, races]).toEqual(["granted", 1]);
    expect(await t.listTypes("q-1")).toEqual(["conflict.detected", "conflict.resolved", "claim.acquired"]);
    expect(await t.listHolders("notes.md")).toEqual(["q-1/step-1"]);
  });

  it("is recorded where the process dies before the winner has its claim", async () => {
    await using t = await openTakeover();
    t.race.onAppend = (request) =>
      isClaiming(request)
        ? Promise.reject(new CoordinationError("LEDGER_UNAVAILABLE", "gone"))
        : Promise.resolve();
    await expect(
      t.second.arbiter.request(write(t.files, t.winner, { "notes.md": "winner" })),
    ).rejects.toMatchObject({ code: "LEDGER_UNAVAILABLE" });
    expect(await t.listTypes("q-1")).toEqual(["conflict.detected", "conflict.resolved"]);
    expect(await t.listTypes("p-1")).toEqual(["claim.acquired", "claim.released"]);
  });

  it("ends no claim where the conflict cannot be recorded", async () => {
    await using t = await openTakeover();
    t.race.onAppend = ({ events }) =>
      events.some(({ type }) => isConflict(type))
        ? Promise.reject(new CoordinationError("LEDGER_UNAVAILABLE", "gone"))
        : Promise.resolve();
    await expect(
      t.second.arbiter.request(write(t.files, t.winner, { "notes.md": "winner" })),
    ).rejects.toMatchObject({ code: "LEDGER_UNAVAILABLE" });
    expect(await t.listHolders("notes.md")).toEqual(["p-1/step-1"]);
  });

  it("wins against a step that claims it in between, too, by a conflict of its own", async () => {
    await using t = await openTakeover();
    let races = 0;
    t.race.onAppend = async (request) => {
      if (!isClaiming(request) || races > 0) return;
      races += 1;
      await t.first.arbiter.request(write(t.files, t.bystander, { "notes.md": "bystander" }));
    };
    await t.second.arbiter.request(write(t.files, t.winner, { "notes.md": "winner" }));
    expect((await t.listTypes("q-1")).filter(isConflict)).toHaveLength(4);
    expect(await t.listHolders("notes.md")).toEqual(["q-1/step-1"]);
  });
});
