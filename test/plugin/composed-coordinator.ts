/** Owns: a coordinator as the plugin composes it, with its real ledger, git and files; only the agents are scripted. */
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { ModelClient } from "../../src/agents/coordination/ports/model-client.ts";
import { createOwnerTurns } from "../../src/agents/coordination/runtime/environment/owner-turns.ts";
import { createWithheldTexts } from "../../src/agents/coordination/runtime/environment/withheld-texts.ts";
import { createUsageBook } from "../../src/agents/coordination/runtime/usage/usage-book.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import { composeCoordinator, type RunningCoordinator } from "../../src/plugins/compose.ts";
import { createHookHost } from "../../src/plugins/hooks/hook-host.ts";
import { createFakeClockHost } from "../support/fake-clock-host.ts";
import type { ScriptedRunner } from "../support/scripted-runner.ts";
import type { TempFolder } from "../support/temp-ledger.ts";

const doNothing = (): void => undefined;
const logger = { debug: doNothing, info: doNothing, warn: doNothing, error: doNothing };
const channel = { notify: () => Promise.resolve({ kind: "delivered", tries: 1 } as const) };

export interface ToCompose {
  readonly temporary: TempFolder;
  readonly phase1?: object;
  readonly runner: ScriptedRunner;
  readonly onEvents: (events: readonly RunEvent[]) => void;
  /** The name of the folder in which agents work where nothing else is said. */
  readonly workingFolder: string;
  /** The URL of a ledger on a server, and what the gateway is called there. Absent: a file of its own. */
  readonly shared?: { readonly place: string; readonly gateway: string };
}

export function composeWith({
  temporary,
  phase1 = {},
  runner,
  onEvents,
  workingFolder,
  shared,
}: ToCompose): Promise<RunningCoordinator> {
  const ledgerPath = temporary.file("ledger.sqlite");
  return composeCoordinator({
    ledgerPath,
    place: shared?.place ?? ledgerPath,
    gateway: shared?.gateway ?? "one",
    config: parsePluginConfig({ coordination: { phase1 } }),
    secrets: new Map(),
    observer: createFakeClockHost(systemClock),
    runners: { subagent: runner, owner: runner },
    onPlan: doNothing,
    onReplaced: doNothing,
    onEvents,
    workspaceOf: () => temporary.file("workspace"),
    workingFolderOf: () => temporary.file(workingFolder),
    logger,
    hooks: createHookHost({ clock: systemClock, logger }),
    model: { complete: () => Promise.reject(new Error("no model")) } satisfies ModelClient,
    withheld: createWithheldTexts((session, text) => `${session}:${text}`),
    usage: createUsageBook("test"),
    turns: createOwnerTurns(),
    channels: { host: channel, chat: channel },
    takeAnswer: () => Promise.resolve(undefined),
    stopShowing: () => Promise.resolve(),
  });
}
