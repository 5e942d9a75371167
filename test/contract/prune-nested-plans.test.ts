/** Owns: pruning coordinations whose owners are children of other coordinations. */
import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { CoordinationId, SessionKey, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { AdmittedPrivilege } from "../../src/agents/coordination/contracts/privilege.ts";
import { pruneLedger } from "../../src/agents/coordination/runtime/prune-ledger.ts";
import type { OpenedLedger } from "../../src/infra/ledger/opened-ledger.ts";
import {
  createAuthor,
  nameChildSession,
  openingOf,
  OWNER,
  runIdOf,
  spawnOf,
} from "../support/ledger-fixtures.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import { addCoordination, LATER_MS, prune } from "./prunable-ledger.ts";

const PLANS = 12;
const READ_ONLY: AdmittedPrivilege = { asked: { tools: { allow: ["read"] } } };

interface Spawn {
  readonly child: SessionKey;
  readonly privilege?: AdmittedPrivilege;
}

function createSpawn(
  { child, privilege }: Spawn,
  { owner, index, name }: { owner: SessionKey; index: number; name: string },
): Command[] {
  const spawn = { ...spawnOf(`call-${name}-${index}`), sourceSession: owner };
  const stepId = nameStep(index);
  return [
    { ...spawn, ...(privilege && { privilege }) },
    { type: "acknowledgeStep", stepId, attempt: 1, childSessionKey: child, childRunId: "r", via: "hook" },
  ];
}

/** Appends a coordination that has ended, with one step for each child. */
async function addFamilyMember(
  store: OpenedLedger,
  name: string,
  { owner, parent, spawns }: { owner: SessionKey; parent?: StepId; spawns: readonly Spawn[] },
): Promise<void> {
  const author = createAuthor(name);
  const around = parent && { coordinationId: runIdOf("parent"), stepId: parent };
  const opening = { ...openingOf(`trace-${name}`, owner), ...(around && { parent: around }) };
  const steps = spawns.flatMap((spawn, index): Command[] => [
    ...createSpawn(spawn, { owner, index, name }),
    { type: "completeStep", stepId: nameStep(index), attempt: 1, via: "hook" },
  ]);
  await store.append(author.append(opening, ...steps, { type: "settleCoordination" }));
}

const nameStep = (index: number): StepId => `step-${index + 1}` as StepId;
const nameSubmitter = (index: number): SessionKey => nameChildSession(`submitter-${index}`);
const nameWorker = (index: number): SessionKey => nameChildSession(`worker-${index}`);

/** A coordination whose children submitted a plan each; every second one has a privilege. */
async function addFamily(store: OpenedLedger): Promise<void> {
  const spawns = Array.from({ length: PLANS }, (_, index) => ({
    child: nameSubmitter(index),
    ...(index % 2 === 1 && { privilege: READ_ONLY }),
  }));
  await addFamilyMember(store, "parent", { owner: OWNER, spawns });
  for (let index = 0; index < PLANS; index += 1)
    await addFamilyMember(store, `plan-${index}`, {
      owner: nameSubmitter(index),
      parent: nameStep(index),
      spawns: [{ child: nameWorker(index) }],
    });
  await addCoordination(store, "newest", { isOpen: true });
}

/** A ledger with such a family, which counts how often the log of the parent was read from its beginning. */
async function openFamily() {
  const folder = createTempFolder();
  const store = await openTestLedger(folder.file("ledger.sqlite"));
  await addFamily(store);
  const readings = { ofParent: 0 };
  const read: typeof store.read = (runId: CoordinationId, range) => {
    if (runId === runIdOf("parent") && range.from === 0) readings.ofParent += 1;
    return store.read(runId, range);
  };
  return {
    store,
    counted: { ...store, read },
    readings,
    [Symbol.asyncDispose]: async () => {
      await store.close();
      folder[Symbol.dispose]();
    },
  };
}

describe("pruning a coordination whose children submitted plans", () => {
  it.each([true, false])(
    "reads it once for all plans, and once for itself (dry run: %s)",
    async (isDryRun) => {
      await using family = await openFamily();
      const { runs } = await pruneLedger(family.counted, { beforeMs: LATER_MS, isDryRun });
      expect(runs).toBe(PLANS + 1);
      expect(family.readings.ofParent).toBe(2);
    },
  );

  it("keeps the sessions bound that privileges above their plan bind, and no others", async () => {
    await using family = await openFamily();
    await prune(family.store);
    for (let index = 0; index < PLANS; index += 1) {
      const binding = index % 2 === 1 ? "privilege" : undefined;
      expect(await family.store.pruned.findBinding(nameSubmitter(index))).toBe(binding);
      expect(await family.store.pruned.findBinding(nameWorker(index))).toBe(binding);
    }
  });

  it("keeps a session bound whose spawner got a privilege after the coordination above was read", async () => {
    using folder = createTempFolder();
    const store = await openTestLedger(folder.file("ledger.sqlite"));
    const above = createAuthor("above");
    const append = (index: number, privilege?: AdmittedPrivilege, ...first: readonly Command[]) => {
      const spawn = { child: nameSubmitter(index), ...(privilege && { privilege }) };
      return store.append(
        above.append(...first, ...createSpawn(spawn, { owner: OWNER, index, name: "above" })),
      );
    };
    await append(0, undefined, openingOf("trace-above"));
    for (const index of [1, 0])
      await addFamilyMember(store, `plan-${index}`, {
        owner: nameSubmitter(index),
        spawns: [{ child: nameWorker(index) }],
      });
    await addCoordination(store, "newest", { isOpen: true });
    const read: typeof store.read = async (runId, range) => {
      if (runId === runIdOf("plan-1") && range.from === 0) await append(1, READ_ONLY);
      return store.read(runId, range);
    };
    const { runs } = await pruneLedger({ ...store, read }, { beforeMs: LATER_MS, isDryRun: false });
    expect(runs).toBe(2);
    expect(await store.pruned.findBinding(nameWorker(0))).toBeUndefined();
    expect(await store.pruned.findBinding(nameWorker(1))).toBe("privilege");
    await store.close();
  });
});
