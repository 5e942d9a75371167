/** Owns: the collaborators that the modules of the runtime share. */
import type { PrivilegesConfig } from "../../contracts/config/privileges-config.ts";
import { assertInvariant } from "../../contracts/errors.ts";
import type { ContentRef, RunnerKind, StepAdmitted } from "../../contracts/fact-fields.ts";
import type { AgentId, CoordinationId, SessionKey } from "../../contracts/ids.ts";
import type { AgentRunner } from "../../ports/agent-runner.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ContentStore } from "../../ports/content-store.ts";
import type { LedgerStore } from "../../ports/ledger-store.ts";
import type { Logger } from "../../ports/logger.ts";
import type { OutputContract } from "../../ports/output-contract.ts";
import type { Worktrees } from "../../ports/worktrees.ts";
import type { TurnsByName } from "../../std/turns-by-name.ts";
import type { ForkSources } from "../log/carried-results.ts";
import type { GateDependencies } from "./gate-dependencies.ts";
import type { OwnerTurns } from "./owner-turns.ts";
import type { WithheldTexts } from "./withheld-texts.ts";
import type { PlanSnapshot } from "../log/plan-snapshot.ts";
import type { PluginHooks } from "./plugin-hooks.ts";
import type { PlanSource } from "../log/plan-source.ts";
import type { RunLog } from "../log/run-log.ts";
import type { PolicyBook } from "./policy-rules.ts";
import type { HomeGateways } from "../ownership/home-gateway.ts";

/** The operator's settings for the coordinations of this process. */
export interface RuntimeSettings {
  /** How long a step may run when the spawn or the plan names no limit of its own. */
  readonly stepTimeoutMs: number;
  /** Quiet time after which a coordination without open steps ends. */
  readonly settleMs: number;
  /** How long a spawn may stay unconfirmed by the host. */
  readonly acknowledgeMs: number;
  /** How often open steps are compared with the host's records. */
  readonly sweepMs: number;
  /** How long texts are kept; 0 keeps none. */
  readonly contentMs: number;
  /** How long a question to people stays open. */
  readonly escalateMs: number;
  /** Waiting this long counts as much as one level of priority. */
  readonly agingMs: number;
  /** How much of a child's result its parent is shown. */
  readonly parentCharsMax: number;
  /** How many steps of one owner session, and of one agent, run at once. */
  readonly perSessionMax?: number;
  readonly perAgentMax?: number;
  /** The name of this gateway, where several share the ledger. Absent: this is the only one. */
  readonly gateway?: string;
  /** The gateway whose own ledger this one was: it opened what names no gateway. */
  readonly movedFrom?: string;
}

/** The collaborators that running plans needs. */
export interface PlanDependencies {
  readonly runners: Readonly<Record<PlanRunner, AgentRunner>>;
  /** Loaded when the first output has a contract. */
  readonly contract: () => Promise<OutputContract>;
  /** Names a text by its sha256. */
  readonly refOf: (text: string) => ContentRef;
  /** Returns the kind of runner for the steps of an agent. */
  readonly runnerOf: (agent: AgentId) => PlanRunner;
  /** The operator's bounds on children, by agent; absent: whatever the host lets them. */
  readonly privileges?: PrivilegesConfig;
  /** Packs that hold for single agents, channels or sessions. Absent: there are none. */
  readonly policies?: PolicyBook;
  /** Keeps apart the attempts of steps that ask for it. */
  readonly worktrees: Worktrees;
  /** The folder in which an agent works where nothing else is said. */
  readonly folderOf: (agent: AgentId) => string;
  /** Hears of every change of a plan, and of every open plan after a restart. */
  readonly onPlan?: (snapshot: PlanSnapshot) => void;
}

/** Sessions of the host's own ACP backend are spawned by models only. */
export type PlanRunner = Exclude<RunnerKind, "acp">;

/** Returns the runner of a plan's step. Throws where the step was admitted for a session of the host's ACP backend. */
export function chooseRunner({ runners }: PlanDependencies, { stepId, runner }: StepAdmitted): AgentRunner {
  assertInvariant(runner !== "acp", `step ${stepId} is of a plan and cannot run in ${runner}`);
  return runners[runner];
}

/** The dependencies, with those that the runtime adds for itself. */
export interface RuntimeDependencies extends PlanDependencies, GateDependencies {
  /** Hooks of other authors' plugins, which are asked before a plan begins. */
  readonly hooks?: PluginHooks;
  /** Texts that were kept back and are on their way to the disk. */
  readonly withheld: WithheldTexts;
  readonly store: LedgerStore;
  readonly content: ContentStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: RuntimeSettings;
  readonly runs: RunLog;
  /** The turns of sessions that are under way. */
  readonly turns: Pick<OwnerTurns, "isUnderWaySince">;
  /** Records what sessions used, or one of them, and the ledger does not have yet. */
  readonly usage: { flush(session?: SessionKey): Promise<void> };
  readonly plans: PlanSource;
  readonly forks: ForkSources;
  /** Finds work that has to wait for another gateway. Absent: no other one reaches the ledger. */
  readonly homes?: HomeGateways;
  /** Opening and removing worktrees, by their names. */
  readonly worktreeTurns: TurnsByName;
  /** Looks at a coordination soon. Every append leads to a look by itself. */
  readonly lookAt: (runId: CoordinationId) => void;
  /** A step's child waits for other work: its place in the lane is free. */
  readonly giveBack: (runId: CoordinationId, stepId: string) => void;
}
