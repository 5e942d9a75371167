/**
 * The real gateway whose ledger lies on a disk that fails: at one operation after the other, once or from there on, wholly or by half,
 * while an agent spawns and an operator submits a plan. `GATEWAY_DISK_FAULTS` says at how many operations.
 */
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  buildFailingDisk,
  canFailDisks,
  openFailingDisk,
  type DiskFault,
  type FailingDisk,
} from "../crash/failing-disk.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import type { Json } from "../support/gateway.ts";
import { renderScript } from "../support/scripted-model.ts";
import { ownerOf, planOf, runPlan, stepOf } from "./gates-stage.ts";
import { hasEnded, openStage, type OpenedCoordination, type Stage } from "./stage.ts";

const FAULTS = chooseCampaignSize("GATEWAY_DISK_FAULTS", { short: 8, long: 120 });

const spawning = renderScript(
  { spawn: [{ label: "child", task: renderScript({ say: "result" }) }] },
  { say: "ok" },
);

const createPlan = (coordinationId: string): Json =>
  planOf(coordinationId, [stepOf("only", renderScript({ say: '{"v":1}' }))], {
    failurePolicy: { retryBudget: 2, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
    defaults: { retry: { budget: 1, backoffMs: 200 }, timeoutMs: 20_000 },
  });

describe.runIf(canFailDisks())("a gateway whose ledger lies on a disk that fails", () => {
  let stage: Stage;
  let disk: FailingDisk;
  const accepted: string[] = [];
  const refused: string[] = [];

  beforeAll(async () => {
    const home = mkdtempSync(join(tmpdir(), "coordination-gateway-"));
    mkdirSync(join(home, "state"));
    const env = buildFailingDisk(join(home, "state", "coordination"));
    disk = openFailingDisk(env);
    stage = await openStage({ isFresh: true, home, env });
  });

  afterAll(() => stage.close());

  const waitForPlan = (coordinationId: string): Promise<OpenedCoordination> =>
    stage.until(ownerOf(coordinationId), hasEnded, 90_000);

  async function submitPlan(coordinationId: string): Promise<void> {
    try {
      await runPlan(stage, createPlan(coordinationId));
      accepted.push(coordinationId);
    } catch (error) {
      refused.push(String(error));
    }
  }

  /** Has an agent spawn and a plan submitted while the disk fails. Returns how many operations there were, and failed. */
  async function playOn(
    fault: DiskFault | undefined,
    name: string,
  ): Promise<ReturnType<FailingDisk["disarm"]>> {
    disk.arm(fault);
    const turn = await stage.gateway.agent({
      sessionKey: `agent:main:spawner-of-${name}`,
      message: spawning,
    });
    expect(turn).toMatchObject({ status: "ok", text: "ok" });
    await submitPlan(name);
    return disk.disarm();
  }

  it("answers every turn and every request, and keeps each plan that it accepted", async () => {
    disk.arm();
    await playOn(undefined, "sound");
    await waitForPlan("sound");
    const { operations } = disk.disarm();
    expect(operations).toBeGreaterThan(FAULTS / 2);
    let failures = 0;
    for (const [index, fault] of listFaults(operations).entries())
      failures += (await playOn(fault, `fault-${index}`)).failures;
    expect(failures).toBeGreaterThan(FAULTS / 2);
    for (const id of accepted) expect(await waitForPlan(id)).toMatchObject({ status: "success" });
    const codes = refused.map((error) => /LEDGER_[A-Z]+/u.exec(error)?.[0] ?? error);
    expect(new Set([...codes, "LEDGER_FULL", "LEDGER_UNAVAILABLE"]).size).toBe(2);
  });

  it("has a ledger that verifies, and coordinates the next spawn", async () => {
    await stage.gateway.agent({ sessionKey: "agent:main:after", message: spawning });
    expect(await stage.until("agent:main:after", hasEnded)).toMatchObject({ status: "success" });
    expect((await stage.verify()).problems).toEqual([]);
  });
});

/** As many faults as the campaign has, spread over the operations of a play, each kind in its turn. */
function listFaults(operations: number): readonly DiskFault[] {
  const kinds: readonly Omit<DiskFault, "at">[] = [
    { error: "EIO", isLasting: false, isPartial: false },
    { error: "ENOSPC", isLasting: true, isPartial: false },
    { error: "ENOSPC", isLasting: false, isPartial: true },
    { error: "EIO", isLasting: true, isPartial: false },
  ];
  return Array.from({ length: FAULTS }, (_, index) => ({
    ...kinds[index % kinds.length]!,
    at: 1 + Math.floor((index * operations) / FAULTS),
  }));
}
