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
import {
  admit,
  DELIVERY,
  dispatch,
  failStep,
  finish,
  nameSessionOfAttempt,
  openPlan,
  planStep,
  startStep,
  type StepFields,
} from "../core/planned-scene.ts";
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

async function openEmpty() {
  const folder = createTempFolder();
  const store = await openTestLedger(folder.file("ledger.sqlite"));
  return {
    store,
    [Symbol.asyncDispose]: async () => {
      await store.close();
      folder[Symbol.dispose]();
    },
  };
}

/** A ledger with such a family, which counts how often the log of the parent was read from its beginning. */
async function openFamily() {
  const { store, ...ledger } = await openEmpty();
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
    ...ledger,
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
      const bindings = index % 2 === 1 ? ["privilege"] : [];
      expect(await family.store.pruned.listBindings(nameSubmitter(index))).toEqual(bindings);
      expect(await family.store.pruned.listBindings(nameWorker(index))).toEqual(bindings);
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
    expect(await store.pruned.listBindings(nameWorker(0))).toEqual([]);
    expect(await store.pruned.listBindings(nameWorker(1))).toEqual(["privilege"]);
    await store.close();
  });
});

/** Appends a plan of one step that runs and ends, and prunes it. */
async function prunePlan(
  store: OpenedLedger,
  submitter: SessionKey,
  fields: StepFields,
  ...end: readonly Command[]
): Promise<void> {
  const open = { ...openPlan({ steps: 1 }), ownerSession: submitter } as Command;
  const settle: Command = { type: "settleCoordination" };
  const begin = [open, admit(planStep("a", fields)), dispatch("a"), startStep("a")];
  const author = createAuthor("plan");
  await store.append(author.append(...begin, ...end, settle, dispatch(DELIVERY), finish(DELIVERY), settle));
  await addCoordination(store, "newest", { isOpen: true });
  expect(await prune(store)).toMatchObject({ runs: 1 });
}

describe("pruning the plan of a session", () => {
  const HIDDEN = nameChildSession("hidden");

  it.each<[string, SessionKey, string[]]>([
    ["keeps its step bound where only the host knows who spawned the session", HIDDEN, ["privilege"]],
    ["keeps nothing bound where nobody spawned the session", OWNER, []],
  ])("%s", async (_, submitter, bindings) => {
    await using ledger = await openEmpty();
    const { store } = ledger;
    await prunePlan(store, submitter, { sourceSession: submitter }, finish("a"));
    expect(await store.pruned.listBindings(nameSessionOfAttempt("a"))).toEqual(bindings);
  });

  it("keeps both that a gate and that privileges held an earlier attempt", async () => {
    await using ledger = await openEmpty();
    const { store } = ledger;
    const fields = { retryBudget: 1, backoffMs: 0, gate: { threshold: 1 }, privilege: READ_ONLY };
    await prunePlan(
      store,
      OWNER,
      fields,
      failStep("a"),
      dispatch("a", 2),
      startStep("a", 2),
      finish("a", 2, { stated: { confidence: 10_000 } }),
    );
    expect(await store.pruned.listBindings(nameSessionOfAttempt("a", 1))).toEqual(["gate", "privilege"]);
    expect(await store.pruned.listBindings(nameSessionOfAttempt("a", 2))).toEqual(["privilege"]);
  });

  it("leaves to the host what holds a child of a session whose spawner only the host knows", async () => {
    await using ledger = await openEmpty();
    const { store } = ledger;
    await addFamilyMember(store, "spawner", { owner: HIDDEN, spawns: [{ child: nameWorker(0) }] });
    await addCoordination(store, "newest", { isOpen: true });
    expect(await prune(store)).toMatchObject({ runs: 1 });
    expect(await store.pruned.listBindings(nameWorker(0))).toEqual([]);
  });
});
