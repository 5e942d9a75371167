/** Owns: a spawn that plugins decide about and could not be asked about, for a reason that is no time limit. */
import { expect, it, vi } from "vitest";
import type { SpawnRequest } from "../../src/agents/coordination/runtime/spawns/admit-spawn.ts";
import type { SharedRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import { findSpawnDenial } from "../../src/plugins/openclaw/spawns/spawn-decision.ts";

const request = {
  sourceSession: "agent:main:main",
  spawn: { agentId: "main", runner: "subagent" },
} as unknown as SpawnRequest;

it.each([
  { error: new Error("the hooks were closed"), says: "could not be asked", logged: 1 },
  {
    error: Object.assign(new Error("late"), { code: "LEDGER_BUSY" }),
    says: "did not answer in time",
    logged: 0,
  },
])("refuses it because the plugins $says", async ({ error, says, logged }) => {
  const logger = { info: vi.fn(), error: vi.fn() };
  const runtime = {
    logger,
    hooks: { hasAny: () => true, decide: () => Promise.reject(error) },
    gateRules: [],
    coordinator: () => Promise.reject(new Error("there is no ledger")),
  } as unknown as SharedRuntime;
  expect(await findSpawnDenial(runtime, request, Date.now() + 5_000)).toBe(
    `the plugins that decide about spawns ${says}`,
  );
  expect(logger.error.mock.calls).toHaveLength(logged);
});
