import { describe, expect, it } from "vitest";
import type { Contestant } from "../../src/agents/coordination/contracts/arbitration.ts";
import type { EpochMs, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { CoordinationView } from "../../src/agents/coordination/runtime/log/coordination-view.ts";
import type { RunningCoordinator } from "../../src/plugins/compose.ts";
import {
  coordinationStatusSchema,
  buildStatusReport,
} from "../../src/plugins/openclaw/plans/coordination-status.ts";
import { METHODS } from "../../src/plugins/openclaw/declarations/method-declarations.ts";
import type { UsePlans } from "../../src/plugins/openclaw/runtime-access/plan-access.ts";
import { createPlanMethods } from "../../src/plugins/openclaw/plans/plan-methods.ts";
import {
  nameChildSession,
  contentOf,
  OWNER,
  spawnRequest,
  testCoordinator,
} from "../support/ledger-fixtures.ts";
import {
  createManualClock,
  openTestLedger,
  createTempFolder,
  TEST_EPOCH_MS,
} from "../support/temp-ledger.ts";
import { START, stepView, viewOf } from "./stub-plans.ts";

const METHOD = "coordination.claims.release";
const QUEUE = { resource: "queue:mail" };

/** A coordination with a step that holds `queue:mail`, on a real ledger. */
async function openHolding(path: string) {
  const clock = createManualClock();
  const store = await openTestLedger(path, { clock });
  const coordinator = testCoordinator({ store, clock, newCoordinationId: () => "co-1" as never });
  for (const name of ["first", "second"]) {
    const admission = await coordinator.admitSpawn(spawnRequest({ call: name, trace: "trace" }));
    if (admission.kind !== "admitted") throw new Error(admission.reason);
    const { coordinationId, stepId } = admission.envelope;
    await coordinator.confirmSpawn(
      { coordinationId, stepId, sourceSession: OWNER, toolCallId: name },
      { childSessionKey: nameChildSession(name), childRunId: `run-${name}` },
    );
  }
  const write = async (name: string): Promise<string> => {
    const callKey = `call of ${name}`;
    const session = nameChildSession(name);
    const targets = [{ at: QUEUE, replaces: true }];
    const { kind } = await coordinator.arbiter.request({
      session,
      tool: "send",
      callKey,
      targets,
      reads: [],
    });
    await coordinator.arbiter.callEnded(callKey);
    return kind;
  };
  const running = { ...coordinator, reads: store } as unknown as RunningCoordinator;
  const runtime = { coordinator: () => Promise.resolve(running) };
  const use: UsePlans = (work) => work(running, runtime as never);
  const release = (params: unknown) => createPlanMethods(use)(METHOD, params);
  const close = async (): Promise<void> => {
    await coordinator.stop();
    await store.close();
  };
  return { write, release, close, store };
}

describe(METHOD, () => {
  it("needs the scope of who may cancel", () => {
    expect(METHODS[METHOD]).toBe(METHODS["coordination.cancel"]);
  });

  it("ends the claim, so that others get the resource, and its step's next write is ruled on anew", async () => {
    using folder = createTempFolder();
    const { write, release, close, store } = await openHolding(folder.file("ledger.sqlite"));
    expect(await write("first")).toBe("granted");
    expect(await write("second")).toBe("refused");
    expect(await release({ token: 1 })).toEqual({
      ok: true,
      payload: { token: 1, coordinationId: "co-1", stepId: "step-1", resource: "queue:mail" },
    });
    expect(await write("second")).toBe("granted");
    expect(await write("first")).toBe("refused");
    const log = await store.read("co-1" as never, { from: 0, limit: 1_000 });
    const released = log.filter(({ type }) => type === "claim.released");
    expect(released).toMatchObject([{ payload: { token: 1, stepId: "step-1", because: "operator" } }]);
    await close();
  });

  it("of a claim that is not there says so, whether it has ended or never was, and records nothing", async () => {
    using folder = createTempFolder();
    const { write, release, close, store } = await openHolding(folder.file("ledger.sqlite"));
    await write("first");
    await release({ token: 1 });
    const [before] = await store.list({ limit: 1 });
    for (const token of [1, 2, 9_000_000_000])
      expect(await release({ token })).toEqual({
        ok: false,
        error: {
          code: "REQUEST_REFUSED",
          message: `there is no claim ${token}; it has ended already, or there never was one`,
          details: { refusal: "NO_SUCH_CLAIM" },
        },
      });
    expect(await store.list({ limit: 1 })).toEqual([before]);
    await close();
  });

  it("does not end the claim after the one that is named", async () => {
    using folder = createTempFolder();
    const { write, release, close } = await openHolding(folder.file("ledger.sqlite"));
    await write("first");
    await release({ token: 1 });
    await write("second");
    expect(await release({ token: 1 })).toMatchObject({ ok: false });
    expect(await write("first")).toBe("refused");
    await close();
  });

  it.each([[{}], [{ token: 0 }], [{ token: "1" }], [{ token: 1.5 }], [{ token: 1, more: 1 }], [[]], [5]])(
    "refuses %j",
    async (params) => {
      const use: UsePlans = () => Promise.reject(new Error("it must not be asked"));
      expect(await createPlanMethods(use)(METHOD, params)).toMatchObject({
        ok: false,
        error: { code: "INPUT_INVALID" },
      });
    },
  );
});

type Conflict = CoordinationView["conflicts"][number];

function createConflict(number: number, fields: Partial<Conflict> = {}): Conflict {
  const claim = (stepId: string): Contestant => ({
    stepId: stepId as StepId,
    priority: "normal",
    claimedSequence: 1,
  });
  return {
    conflictId: `co-1:conflict-${number}`,
    resource: "file:/repo/notes.md",
    claims: [claim("a"), claim("b")],
    contest: { requester: "b", cause: "overlap", strategy: "owner_wins", from: "default", atMs: START },
    detectedEventId: `co-1:${number}`,
    ...fields,
  } as Conflict;
}

const RESOLUTION = { strategy: "owner_wins", winner: "a", losers: ["b"], because: "lease-holder" };
const WON = { resolution: { conflictId: "co-1:conflict-1", ...RESOLUTION } } as Partial<Conflict>;

describe("what a session is told of conflicts and claims", () => {
  const readConflicts = (fields: Partial<CoordinationView>) =>
    coordinationStatusSchema.parse(buildStatusReport(viewOf([stepView("a")], fields)));

  it("is nothing where there are none", () => {
    const status = readConflicts({});
    expect(status).not.toHaveProperty("conflicts");
    expect(status).not.toHaveProperty("claims");
  });

  it("is who asked, who got it and why, or until when people may answer", () => {
    const open = createConflict(2, {
      contest: { ...createConflict(2).contest, reviewByMs: START + 60_000 } as never,
    });
    const { conflicts } = readConflicts({ conflicts: [createConflict(1, WON), open] });
    expect(conflicts).toEqual({
      total: 2,
      open: 1,
      newest: [
        {
          conflictId: "co-1:conflict-2",
          resource: "file:/repo/notes.md",
          status: "open",
          requester: "b",
          detectedAt: "2026-01-02T03:04:05.000Z",
          openUntil: "2026-01-02T03:05:05.000Z",
        },
        {
          conflictId: "co-1:conflict-1",
          resource: "file:/repo/notes.md",
          status: "resolved",
          requester: "b",
          detectedAt: "2026-01-02T03:04:05.000Z",
          winner: "a",
          because: "lease-holder",
        },
      ],
    });
  });

  it("names no step of another coordination as a winner (H3)", () => {
    const foreign = { ...WON.resolution, winnerCoordinationId: "co-2" };
    const status = readConflicts({ conflicts: [createConflict(1, { resolution: foreign as never })] });
    expect(status.conflicts?.newest[0]).not.toHaveProperty("winner");
    expect(JSON.stringify(status)).not.toContain("co-2");
  });

  it("is what is claimed, since when and until when", () => {
    const claim = { token: 4, stepId: "a", resource: "queue:mail", priority: "normal" };
    const times = { acquiredAtMs: START, expiresAtMs: (START + 1_000) as EpochMs };
    expect(readConflicts({ claims: [{ ...claim, ...times }] as never }).claims).toEqual({
      total: 1,
      newest: [
        {
          token: 4,
          resource: "queue:mail",
          stepId: "a",
          since: "2026-01-02T03:04:05.000Z",
          until: "2026-01-02T03:04:06.000Z",
        },
      ],
    });
  });

  it("is short, however many there are and however long their names", () => {
    const resource = `file:/${"x".repeat(1_000)}/notes.md`;
    const conflicts = Array.from({ length: 10_000 }, (_, index) =>
      createConflict(index, { ...WON, resource }),
    );
    const claims = Array.from({ length: 10_000 }, (_, index) => ({
      token: index + 1,
      stepId: "a",
      resource,
      priority: "normal",
      acquiredAtMs: TEST_EPOCH_MS,
      expiresAtMs: TEST_EPOCH_MS,
    }));
    const status = readConflicts({ conflicts, claims: claims as never });
    expect(status.conflicts).toMatchObject({ total: 10_000, open: 0 });
    expect(status.conflicts?.newest[0]?.conflictId).toBe("co-1:conflict-9999");
    expect(status.conflicts?.newest[0]?.resource).toMatch(/^…x+\/notes\.md$/u);
    expect(status.claims?.newest.map(({ token }) => token)).toEqual([10_000, 9_999, 9_998, 9_997, 9_996]);
    expect(JSON.stringify(status).length).toBeLessThan(6_000);
  });

  it("holds nothing of the objective or the tasks", () => {
    const status = readConflicts({ conflicts: [createConflict(1, WON)], objective: contentOf("secret").ref });
    expect(JSON.stringify(status)).not.toMatch(/secret|sha256/u);
  });
});
