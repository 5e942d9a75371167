/** Owns: what becomes of ACP agents whose gateway was killed, or drives nothing more. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createGatewayOwnerId } from "../../src/agents/coordination/runtime/ownership/gateway-owner.ts";
import { isGone } from "../contract/acp-scene.ts";
import { killGateway } from "../contract/killed-gateway.ts";
import { AGENT, plan, step } from "../core/planned-world.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema } from "../support/postgres-server.ts";
import { createScriptedRunner } from "../support/scripted-runner.ts";
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

it("a gateway that another process has replaced ends its ACP agents, whose plans others take over", async () => {
  using temporary = createTempFolder();
  await using schema = await createTestSchema();
  const store = await openTestPostgres(schema.url);
  const program = join(import.meta.dirname, "../support/acp-agent.ts");
  const pidFile = temporary.file("pids");
  const env = { ACP_PIDS: pidFile, SCRIPT: "hang" };
  const coder = { command: process.execPath, args: [program], cwd: temporary.path, env };
  const coordinator = await composeWith({
    temporary,
    phase1: { acpAgents: { coder }, gateway: { leaseMs: 1_000 } },
    runner: createScriptedRunner(),
    onEvents: () => undefined,
    workingFolder: "agent",
    shared: { place: schema.url, gateway: "office" },
  });
  try {
    await coordinator.start();
    await coordinator.submitPlan({ plan: plan([step("build", { agent: "coder" })]), ownerAgent: AGENT });
    const agent = await waitFor(() => Number(readFileSync(pidFile, "utf8")), { what: "the agent's start" });
    expect(isGone(agent)).toBe(false);
    const other = { id: createGatewayOwnerId("office", "other-process") };
    const isGoneAfterBeat = async (): Promise<boolean> => {
      await store.owners.beat(other);
      return isGone(agent);
    };
    await waitFor(isGoneAfterBeat, { what: "the end of the agent" });
  } finally {
    await coordinator.close();
    await store.close();
  }
});
