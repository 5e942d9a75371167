/** Two gateways over one ledger file, whose steps race for the same file; their calls to the store come in seeded orders. */
import { describe, expect, it } from "vitest";
import type { ClaimEntry } from "../../src/agents/coordination/contracts/claim-entry.ts";
import type { CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { ResourceFiles } from "../../src/agents/coordination/ports/resource-files.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import type { WriteAnswer } from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import { createRandom } from "../support/random.ts";
import type { FakeClock } from "../support/fake-clock.ts";
import { OWNER } from "../support/fake-clock-host.ts";
import { openTestLedger, createTempFolder } from "../support/temp-ledger.ts";
import { createOutputCall, read, write } from "./arbiter-calls.ts";
import {
  createHost,
  createRealSceneFiles,
  spawnChild,
  startCoordinator,
  type Host,
  type SceneFiles,
  type Store,
} from "./arbiter-scene.ts";

const SEEDS = 40;

/** Lets one waiting call through at a time. */
interface Interleaver {
  readonly pass: <T>(work: () => Promise<T>) => Promise<T>;
  /** Runs until the work is done. */
  during<T>(work: Promise<T>): Promise<T>;
}

function createInterleaver(seed: number): Interleaver {
  const next = createRandom(seed);
  const waiting: (() => void)[] = [];
  let isOn = false;
  return {
    pass: async (work) => {
      if (isOn) await new Promise<void>((resolve) => waiting.push(resolve));
      return work();
    },
    during: async (work) => {
      isOn = true;
      let isOver = false;
      const completion = work.finally(() => (isOver = true));
      while (!isOver) {
        await new Promise((resolve) => setImmediate(resolve));
        const [go] = waiting.splice(Math.floor(next() * waiting.length), 1);
        go?.();
      }
      isOn = false;
      for (const go of waiting) go();
      return completion;
    },
  };
}

interface Gateway {
  readonly coordinator: Coordinator;
  readonly store: Store & { close(): Promise<void> };
  readonly host: Host;
}

interface Race extends AsyncDisposable {
  readonly files: SceneFiles;
  readonly gateways: readonly Gateway[];
  readonly order: Interleaver;
  readonly clock: FakeClock;
  /** The first or the second. */
  readonly arbiter: (gateway: number) => Coordinator["arbiter"];
  claims(): Promise<readonly ClaimEntry[]>;
  sees(gateway: number, session: SessionKey): Promise<unknown>;
  spawn(gateway: number, words: { readonly task: string; readonly source?: SessionKey }): Promise<SessionKey>;
}

async function race(seed: number, conflicts: { readonly strategy?: "merge_if_safe" } = {}): Promise<Race> {
  const folder = createTempFolder();
  const files = createRealSceneFiles();
  const order = createInterleaver(seed);
  const { clock, ...rest } = createHost();
  const gateways: Gateway[] = [];
  for (const name of ["p", "q"]) {
    const store = await openTestLedger(folder.file("ledger.sqlite"), { clock });
    const outside: Host = { ...rest, clock };
    const coordinator = startCoordinator({
      store: slowStore(store, order),
      host: outside,
      name,
      conflicts,
      files: { ...files, files: slowFiles(files.files, order) },
    });
    gateways.push({ coordinator, store, host: outside });
  }
  const [first, second] = gateways as [Gateway, Gateway];
  const pickGateway = (index: number): Gateway => (index === 0 ? first : second);
  const pickArbiter: Race["arbiter"] = (index) => pickGateway(index).coordinator.arbiter;
  return {
    files,
    gateways,
    order,
    clock,
    arbiter: pickArbiter,
    claims: () => first.store.claims({ after: 0, limit: 100 }),
    sees: async (index, session) => {
      const call = read(files, session, "notes.md");
      await pickArbiter(index).request(call);
      await pickArbiter(index).callEnded(call.callKey);
    },
    spawn: (index, words) =>
      spawnChild(pickGateway(index).coordinator, pickGateway(index).host.observer, words),
    [Symbol.asyncDispose]: async () => {
      for (const { coordinator } of gateways) await coordinator.stop();
      const { problems } = await verifyLedger(first.store);
      for (const { store } of gateways) await store.close();
      files[Symbol.dispose]();
      folder[Symbol.dispose]();
      expect(problems).toEqual([]);
      expect(rest.lines.filter(({ level }) => level === "error")).toEqual([]);
    },
  };
}

function slowStore(store: Store, { pass }: Interleaver): Store {
  return {
    ...store,
    append: (request) => pass(() => store.append(request)),
    overlapping: (query) => pass(() => store.overlapping(query)),
    find: (name) => pass(() => store.find(name)),
    read: (runId, range) => pass(() => store.read(runId, range)),
  };
}

function slowFiles(files: ResourceFiles, { pass }: Interleaver): ResourceFiles {
  return { ...files, look: (resource) => pass(() => files.look(resource)) };
}

async function askAndRun(
  { arbiter: of }: Race,
  index: number,
  call: ReturnType<typeof write>,
): Promise<WriteAnswer> {
  const arbiter = of(index);
  const answer = await arbiter.request(call);
  if (answer.kind !== "granted" && answer.kind !== "free") return answer;
  call.tools(answer.kind === "granted" ? answer.params : undefined);
  await arbiter.callEnded(call.callKey);
  return answer;
}

/** Claims that each process believes a coordination to hold. */
async function listHeldIn({ gateways }: Race, runIds: readonly string[]): Promise<unknown[]> {
  return Promise.all(
    gateways.map(async ({ coordinator, store }) => {
      const views = await Promise.all(runIds.map((runId) => coordinator.view(runId as CoordinationId)));
      return {
        steps: views.map((view) => view?.steps.map(({ status }) => status)),
        claims: await store.claims({ after: 0, limit: 100 }),
      };
    }),
  );
}

describe("of two gateways over one ledger", () => {
  it.each([
    ["the same file", "notes.md", "notes.md"],
    ["a folder and a file in it", "notes.md", "notes.md/.."],
  ])(`one step wins %s, in whatever order they come (${SEEDS} orders)`, async (_, one, other) => {
    const winners = new Set<number>();
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      await using r = await race(seed);
      r.files.put("notes.md", "v0");
      const a = await r.spawn(0, { task: "a" });
      const b = await r.spawn(1, { task: "b", source: "agent:main:other" as SessionKey });
      const calls = [write(r.files, a, { [one]: "a" }), createOutputCall(r.files, b, other)] as const;
      const answers = await r.order.during(
        Promise.all(calls.map((call, index) => r.arbiter(index).request(call))),
      );
      const kinds = answers.map(({ kind }) => kind);
      expect(kinds.toSorted(), `seed ${seed}`).toEqual(["granted", "refused"]);
      winners.add(kinds.indexOf("granted"));
      const [p, q] = await listHeldIn(r, ["p-1", "q-1"]);
      expect(p).toEqual(q);
      expect(await r.claims()).toHaveLength(1);
    }
    // Looking at a folder takes no time, so whoever wants it is always first.
    if (one === other) expect(winners.size).toBe(2);
  });

  it(`four steps take turns, each under a later token (${SEEDS / 2} orders)`, async () => {
    for (let seed = 1; seed <= SEEDS / 2; seed += 1) {
      await using r = await race(seed);
      r.files.put("notes.md", "v0");
      const steps = await Promise.all(
        [0, 1, 0, 1].map((gateway, index) =>
          r.spawn(gateway, { task: `t${index}`, source: (gateway ? `${OWNER}-2` : OWNER) as SessionKey }),
        ),
      );
      const tokens: number[] = [];
      const left = new Map(steps.entries());
      for (let round = 1; round <= 8 && left.size > 0; round += 1) {
        const answers = await r.order.during(
          Promise.all(
            [...left].map(async ([index, session]) => {
              await r.sees(index % 2, session);
              const answer = await askAndRun(
                r,
                index % 2,
                write(r.files, session, { "notes.md": `${index}` }),
              );
              return { index, session, answer };
            }),
          ),
        );
        const won = answers.filter(({ answer }) => answer.kind === "granted");
        expect(won.length, `seed ${seed}`).toBeLessThanOrEqual(1);
        tokens.push(...(await r.claims()).map(({ token }) => token));
        for (const { index, session } of won) {
          expect(r.files.text("notes.md")).toBe(`${index}`);
          left.delete(index);
          await r.gateways[index % 2]?.coordinator.endChild(session, { outcome: "completed" });
        }
      }
      expect(tokens).toEqual([1, 2, 3, 4]);
    }
  });

  it(`both keep their claims where their changes can be merged (${SEEDS / 2} orders)`, async () => {
    for (let seed = 1; seed <= SEEDS / 2; seed += 1) {
      await using r = await race(seed, { strategy: "merge_if_safe" });
      r.files.put("notes.md", "one\n-\ntwo\n");
      const a = await r.spawn(0, { task: "a" });
      const b = await r.spawn(1, { task: "b", source: "agent:main:other" as SessionKey });
      for (const [index, session] of [a, b].entries()) await r.sees(index, session);
      // One after the other: at the same moment two gateways can lose a change (ADR 0009).
      const first = await r.order.during(askAndRun(r, 0, write(r.files, a, { "notes.md": "ONE\n-\ntwo\n" })));
      const then = await r.order.during(askAndRun(r, 1, write(r.files, b, { "notes.md": "one\n-\nTWO\n" })));
      expect([first.kind, then.kind]).toEqual(["granted", "granted"]);
      expect(r.files.text("notes.md")).toBe("ONE\n-\nTWO\n");
      expect(await r.claims()).toHaveLength(2);
    }
  });

  it("an operator's release in one is known in the other", async () => {
    await using r = await race(1);
    r.files.put("notes.md", "v0");
    const a = await r.spawn(0, { task: "a" });
    const b = await r.spawn(1, { task: "b", source: "agent:main:other" as SessionKey });
    await askAndRun(r, 0, write(r.files, a, { "notes.md": "a" }));
    expect(await r.arbiter(1).release(1)).toEqual({ runId: "p-1" });
    await r.sees(1, b);
    expect((await askAndRun(r, 1, write(r.files, b, { "notes.md": "b" }))).kind).toBe("granted");
    expect((await askAndRun(r, 0, write(r.files, a, { "notes.md": "a" }))).kind).toBe("refused");
    expect(r.files.text("notes.md")).toBe("b");
  });

  it("each hears of what a step of the other changed since its own saw it", async () => {
    await using r = await race(1);
    r.files.put("notes.md", "v0");
    const [a, b] = [
      await r.spawn(0, { task: "a" }),
      await r.spawn(1, { task: "b", source: "agent:main:other" as SessionKey }),
    ];
    for (let round = 1; round <= 3; round += 1) {
      await r.sees(0, a);
      await r.sees(1, b);
      r.clock.jump(r.clock.now() + 70_000);
      expect((await askAndRun(r, 0, write(r.files, a, { "notes.md": `a${round}` }))).kind).toBe("granted");
      r.clock.jump(r.clock.now() + 70_000);
      const answer = await askAndRun(r, 1, write(r.files, b, { "notes.md": "b" }));
      expect(answer).toMatchObject({ kind: "refused" });
      expect("sentence" in answer && answer.sentence).toContain("changed by step-1 of coordination p-1");
      expect(r.files.text("notes.md")).toBe(`a${round}`);
    }
  });
});
