/** Owns: what becomes of ACP agents whose gateway was killed, or drives nothing more. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { expect, it } from "vitest";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { createGatewayOwnerId } from "../../src/agents/coordination/runtime/ownership/gateway-owner.ts";
import { isGone } from "../contract/acp-scene.ts";
import { killGateway } from "../contract/killed-gateway.ts";
import { AGENT, plan, PLAN_ID, step } from "../core/planned-world.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema } from "../support/postgres-server.ts";
import { createScriptedRunner, endDone, type ScriptedRunner } from "../support/scripted-runner.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";
import { composeWith } from "./composed-coordinator.ts";

it.skipIf(process.platform !== "linux")(
  "a gateway that starts ends the ACP agents that it left, though nobody asks for their attempts",
  async () => {
    using temporary = createTempFolder();
    const [agent = 0] = await killGateway(temporary, "stubborn never", { notesName: "acp-agents" });
    expect(isGone(agent)).toBe(false);
    const coordinator = await composeWith({
      temporary,
      runner: createScriptedRunner(),
      onEvents: () => undefined,
      workingFolder: "agent",
    });
    try {
      await waitFor(() => isGone(agent), { what: "the end of the agent" });
    } finally {
      await coordinator.close();
      if (!isGone(agent)) process.kill(-agent, "SIGKILL");
    }
  },
);

/** Ends what another step did, which cannot be recorded until the returned function is called. */
async function holdRecordUp(url: string, runner: ScriptedRunner): Promise<() => Promise<void>> {
  const locker = new pg.Client({ connectionString: url });
  await locker.connect();
  await locker.query("begin; lock table event in share mode");
  runner.end("check", endDone());
  return () => locker.end();
}

it.each([
  ["at once", () => Promise.resolve(() => Promise.resolve())],
  ["also while the ledger takes nothing of what it still records", holdRecordUp],
])(
  "a gateway that another process has replaced ends its ACP agents %s: others take over their plans",
  async (_, delayRecord) => {
    using temporary = createTempFolder();
    await using schema = await createTestSchema();
    const store = await openTestPostgres(schema.url);
    const program = join(import.meta.dirname, "../support/acp-agent.ts");
    const pidFile = temporary.file("pids");
    const env = { ACP_PIDS: pidFile, SCRIPT: "hang" };
    const coder = { command: process.execPath, args: [program], cwd: temporary.path, env };
    const runner = createScriptedRunner(() => "work");
    const coordinator = await composeWith({
      temporary,
      phase1: { acpAgents: { coder }, gateway: { leaseMs: 1_000 } },
      runner,
      onEvents: () => undefined,
      workingFolder: "agent",
      shared: { place: schema.url, gateway: "office" },
    });
    let endDelay = (): Promise<void> => Promise.resolve();
    let events: readonly RunEvent[];
    try {
      await coordinator.start();
      const steps = [step("check"), step("build", { agent: "coder" })];
      await coordinator.submitPlan({ plan: plan(steps), ownerAgent: AGENT });
      const agent = await waitFor(() => Number(readFileSync(pidFile, "utf8")), {
        what: "the agent's start",
      });
      await waitFor(() => runner.orders.length > 0, { what: "the other agent's start" });
      expect(isGone(agent)).toBe(false);
      endDelay = await delayRecord(schema.url, runner);
      const other = { id: createGatewayOwnerId("office", "other-process") };
      const isGoneAfterBeat = async (): Promise<boolean> => {
        await store.owners.beat(other);
        return isGone(agent);
      };
      await waitFor(isGoneAfterBeat, { what: "the end of the agent" });
    } finally {
      await endDelay();
      await coordinator.close();
      events = await store.read(PLAN_ID, { from: 0, limit: 1_000 });
      await store.close();
    }
    // The gateway that takes the plan over finds the step at work, and says itself what became of it.
    const ofStep = events.filter(({ nodeId, type }) => nodeId === "build" && type.startsWith("step."));
    expect(ofStep.at(-1)?.type).toBe("step.acknowledged");
  },
);
