/** Owns: a scripted model, the real gateway with the plugin, and eyes on the ledger, for every end-to-end test. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { inject } from "vitest";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { fold } from "../../src/agents/coordination/ledger/evolve.ts";
import type { Coordination, Step } from "../../src/agents/coordination/ledger/state.ts";
import type { RunEntry } from "../../src/agents/coordination/ports/ledger-store.ts";
import { verifyLedger, type Verification } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { openLedgerForReading, type LedgerReader } from "../../src/plugins/ledger-reader.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";
import type { GatewayOptions } from "../support/gateway-config.ts";
import { startScriptedModel, type Rule, type ScriptedModel } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { returnGateway, takeGateway } from "./gateway-pool.ts";

export interface Stage {
  readonly model: ScriptedModel;
  gateway: Gateway;
  /** The path or the URL of the ledger. */
  readonly ledgerPath: string;
  /** All coordinations of a session, oldest first, folded. */
  of(sessionKey: string): Promise<OpenedCoordination[]>;
  /** The session's newest coordination once it satisfies the condition. */
  until(
    sessionKey: string,
    condition: (state: OpenedCoordination) => boolean,
    timeoutMs?: number,
  ): Promise<OpenedCoordination>;
  events(state: OpenedCoordination): Promise<RunEvent[]>;
  verify(): Promise<Verification>;
  hasLedger(): boolean;
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** A coordination that was opened, whether it has ended or not. */
export type OpenedCoordination = Exclude<Coordination, { kind: "unopened" }>;

/** Fast settling, so that tests need not wait for quiet time. */
export const PHASE1 = { enabled: true, settleMs: 1_000, acknowledgeMs: 5_000, sweepMs: 2_000 } as const;

export function createPluginConfig(phase1: Record<string, unknown> = PHASE1) {
  return { coordination: { phase1 } };
}

/** A secret that a configuration can name as `${COORDINATION_E2E_TOKEN}`. */
export const TOKEN_OF_ENVIRONMENT = "e2e-token-of-the-default-tenant";

/** The same environment for every gateway, so that each can serve every file. */
const ENVIRONMENT = {
  /** Fixtures load sources of ours from here: the host copies the fixtures before it loads them. */
  COORDINATION_E2E_SOURCE: new URL("../../src/", import.meta.url).href,
  COORDINATION_E2E_TOKEN: TOKEN_OF_ENVIRONMENT,
};

export interface StageOptions extends Partial<GatewayOptions> {
  /** Starts a process of its own, which no other file uses: one that is killed, stopped or given a broken ledger. */
  readonly isFresh?: boolean;
  /** The place of the ledger, where the configuration names one that is not in the state folder. */
  readonly ledgerUrl?: string;
}

export async function openStage(
  { isFresh = false, ledgerUrl, ...options }: StageOptions = {},
  rules: readonly Rule[] = [],
): Promise<Stage> {
  const model = await startScriptedModel({ rules });
  const base: GatewayOptions = {
    modelBaseUrl: model.baseUrl,
    plugin: { kind: "path", dir: inject("pluginDir") },
    pluginConfig: createPluginConfig(),
    ...options,
    env: { ...ENVIRONMENT, ...options.env },
  };
  const gateway = isFresh ? await startGateway(base) : await takeGateway(base);
  const ledgerPath = ledgerUrl ?? join(gateway.stateDir, "coordination", "ledger.sqlite");
  const stage: Stage = {
    model,
    gateway,
    ledgerPath,
    of: (sessionKey) => readLedger(ledgerPath, (ledger) => coordinationsOf(ledger, sessionKey)),
    until: (sessionKey, condition, timeoutMs = 60_000) =>
      waitFor(
        async () => {
          const newest = (await stage.of(sessionKey)).at(-1);
          return newest && condition(newest) ? newest : undefined;
        },
        { what: `the coordination of ${sessionKey}`, timeoutMs, everyMs: 100 },
      ),
    events: ({ coordinationId }) =>
      readLedger(ledgerPath, (ledger) => ledger.read(coordinationId, { from: 0, limit: 10_000 })),
    verify: () => readLedger(ledgerPath, verifyLedger),
    hasLedger: () => existsSync(join(gateway.stateDir, "coordination")),
    restart: async () => {
      stage.gateway = await startGateway({ ...base, home: gateway.home });
    },
    close: async () => {
      if (isFresh) await stage.gateway.dispose();
      else await returnGateway(stage.gateway, base, model);
      await model.close();
    },
  };
  return stage;
}

async function readLedger<T>(path: string, work: (ledger: LedgerReader) => Promise<T>): Promise<T> {
  const ledger = await openLedgerForReading(path);
  try {
    return await work(ledger);
  } finally {
    await ledger.close();
  }
}

async function coordinationsOf(ledger: LedgerReader, sessionKey: string): Promise<OpenedCoordination[]> {
  const entries = (await ledger.list({ limit: 1_000 })).filter(
    ({ summary }) => summary.ownerSession === sessionKey,
  );
  return Promise.all(entries.toReversed().map((entry) => foldRun(ledger, entry)));
}

async function foldRun(ledger: LedgerReader, { runId }: RunEntry): Promise<OpenedCoordination> {
  const state = fold(runId, await ledger.read(runId, { from: 0, limit: 10_000 }));
  if (state.kind === "unopened") throw new Error(`${runId} has no events`);
  return state;
}

export const hasEnded = (state: OpenedCoordination): boolean => state.kind === "ended";

export function stepNamed(state: OpenedCoordination, name: string): Step {
  const step = [...state.steps.values()].find(({ spec }) => spec.name === name);
  if (!step) throw new Error(`no step is named ${name}`);
  return step;
}
