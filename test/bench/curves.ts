/**
 * How cost grows with the claims that steps hold on one tree of files, and with the open questions of one coordination: the
 * same coordinator on a ledger file, measured at each size as it grows.
 */
import type { CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { WriteCall } from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import { nameChildSession, OWNER, spawnRequest, testCoordinator } from "../support/ledger-fixtures.ts";
import { createTempFolder, openTestLedger, type TempFolder } from "../support/temp-ledger.ts";
import { findMedian, round, timeWork, type BenchOptions, type BenchRow } from "./bench-row.ts";

const CLAIMS = { full: [100, 1_000, 10_000, 100_000], quick: [100, 1_000] } as const;
const QUESTIONS = { full: [10, 100, 1_000], quick: [10, 100] } as const;
/** So many are held by the claims of one call. */
const CLAIMS_PER_CALL = 100;
const HOLDERS = 20;
const REPEATS = 25;
/** A hundred times the rows are one or two levels more of a b-tree. */
const FLAT_RATIO = 1.5;

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  using folder = createTempFolder();
  return [
    ...(await measureClaims(folder, CLAIMS[quick ? "quick" : "full"])),
    ...(await measureQuestions(folder, QUESTIONS[quick ? "quick" : "full"])),
  ];
}

interface DisposableCoordinator extends AsyncDisposable {
  readonly coordinator: Coordinator;
}

async function openCoordinator(folder: TempFolder, name: string): Promise<DisposableCoordinator> {
  const store = await openTestLedger(folder.file(`${name}.sqlite`), { clock: systemClock });
  let coordinations = 0;
  const coordinator = testCoordinator({
    store,
    clock: systemClock,
    newCoordinationId: () => `co-${name}-${(coordinations += 1)}` as CoordinationId,
    conflicts: { leaseMs: 24 * 3_600_000 },
    workspace: folder.path,
    gates: { escalations: { openMax: 2_000 } },
  });
  await coordinator.start();
  const close = async (): Promise<void> => {
    await coordinator.stop();
    await store.close();
  };
  return { coordinator, [Symbol.asyncDispose]: close };
}

/** Median milliseconds by what was measured, at each size. */
type Curves<Name extends string> = ReadonlyMap<number, Readonly<Record<Name, number>>>;

async function measureClaims(folder: TempFolder, sizes: readonly number[]): Promise<BenchRow[]> {
  await using open = await openCoordinator(folder, "claims");
  const { coordinator } = open;
  const sessions: SessionKey[] = [];
  for (let index = 0; index <= HOLDERS; index += 1) sessions.push(await spawnChild(coordinator, index));
  const [late = OWNER, ...holders] = sessions;
  const curves = new Map<number, Record<"free" | "held", number>>();
  let claims = 0;
  for (const size of sizes) {
    for (; claims < size; claims += CLAIMS_PER_CALL) {
      const session = holders[(claims / CLAIMS_PER_CALL) % holders.length] ?? late;
      const names = Array.from({ length: CLAIMS_PER_CALL }, (_, index) => `src/d${claims}/f${index}`);
      await rule(coordinator, createWrite(folder, session, names), "granted");
    }
    curves.set(size, {
      free: await measureMedian((index) =>
        rule(coordinator, createWrite(folder, late, [`new/${size}-${index}`]), "granted"),
      ),
      held: await measureMedian(() => rule(coordinator, createWrite(folder, late, ["src/d0/f7"]), "refused")),
    });
  }
  return [
    createCurveRow(curves, "free", "a ruling on a file that nobody holds, by the claims on one tree"),
    createCurveRow(curves, "held", "a ruling on a file that somebody holds, by the claims on one tree"),
  ];
}

async function spawnChild(coordinator: Coordinator, index: number): Promise<SessionKey> {
  const call = `call-${index}`;
  const admission = await coordinator.admitSpawn(spawnRequest({ call, trace: "one-tree" }));
  if (admission.kind === "refused") throw new Error(admission.reason);
  const { coordinationId, stepId, sourceSession } = admission.envelope;
  const childSessionKey = nameChildSession(`00000000-0000-4000-8000-${String(index).padStart(12, "0")}`);
  const claim = { coordinationId, stepId, sourceSession, toolCallId: call };
  await coordinator.confirmSpawn(claim, { childSessionKey, childRunId: `run-${index}` });
  return childSessionKey;
}

let calls = 0;

function createWrite({ path: folder }: TempFolder, session: SessionKey, names: readonly string[]): WriteCall {
  return {
    session,
    tool: "write",
    callKey: `write-${(calls += 1)}`,
    reads: [],
    targets: names.map((path) => ({
      propose: () => ({ kind: "text", text: "x" }),
      replaces: true,
      at: { path, folder },
    })),
    rewrite: (merged) => ({ merged }),
  };
}

async function rule(
  coordinator: Coordinator,
  call: WriteCall,
  expected: "granted" | "refused",
): Promise<void> {
  const { kind } = await coordinator.arbiter.request(call);
  if (kind !== expected) throw new Error(`a write was ${kind} that should have been ${expected}`);
  await coordinator.arbiter.callEnded(call.callKey);
}

async function measureQuestions(folder: TempFolder, sizes: readonly number[]): Promise<BenchRow[]> {
  await using open = await openCoordinator(folder, "questions");
  const { coordinator } = open;
  const curves = new Map<number, Record<"question" | "answer", number>>();
  let questions = 0;
  for (const size of sizes) {
    for (; questions < size; questions += 1) await askPeople(coordinator, questions);
    const ids: string[] = [];
    const question = await measureMedian(async (index) => {
      ids.push(await askPeople(coordinator, size + index));
    });
    const answer = await measureMedian((index) => approve(coordinator, ids[index] ?? ""));
    curves.set(size, { question, answer });
  }
  return [
    createCurveRow(curves, "question", "asking people, by the open questions of the coordination"),
    createCurveRow(curves, "answer", "an answer of people, by the open questions of the coordination"),
  ];
}

async function askPeople(coordinator: Coordinator, index: number): Promise<string> {
  const found = await coordinator.ask({
    askedBy: OWNER,
    agentId: "main",
    kind: "approval",
    question: `May I do ${index}?`,
    answerMs: 24 * 3_600_000,
  });
  if (found.kind === "refused") throw new Error(found.reason);
  return found.questionId;
}

async function approve(coordinator: Coordinator, questionId: string): Promise<void> {
  const answer = { questionId, answer: "approve", by: { kind: "operator" }, through: "cli" } as const;
  const found = await coordinator.answer(answer);
  if (found.kind === "refused") throw new Error(found.reason);
}

async function measureMedian(work: (index: number) => Promise<void>): Promise<number> {
  const times: number[] = [];
  for (let index = 0; index < REPEATS; index += 1) times.push(await timeWork(() => work(index)));
  return findMedian(times);
}

function createCurveRow<Name extends string>(curves: Curves<Name>, name: Name, subject: string): BenchRow {
  const sizes = [...curves.keys()];
  const readMs = (size = Number.NaN): number => curves.get(size)?.[name] ?? Number.NaN;
  const [fewest] = sizes;
  return {
    name: `${subject}, ${format(sizes.at(-1))} to ${format(fewest)}`,
    compares: `median milliseconds of ${REPEATS} at the most by those at the fewest, each with its durable commit; details in milliseconds`,
    value: round(readMs(sizes.at(-1)) / readMs(fewest)),
    unit: "times",
    target: { is: "at most", value: FLAT_RATIO },
    detail: Object.fromEntries(sizes.map((size) => [`at${size}`, round(readMs(size))])),
  };
}

function format(count = Number.NaN): string {
  return count.toLocaleString("en");
}
