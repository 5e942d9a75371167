/** Owns: a gateway that is killed, with OpenWOP and contested files, and models that keep certain agents at work until then. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Rule } from "../support/scripted-model.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { openGateStage, type GateStage } from "./gates-stage.ts";
import { createSourceRule, isAbout } from "./plan-forks-stage.ts";
import { TOKEN_OF_ENVIRONMENT } from "./stage.ts";

export const LEFT_PLAN = "plan-at-kill";
export const FORK_SOURCE = "fork-source-at-kill";
export const KILLED_FORK = "fork-at-kill";
export const HELPER = "core.crash.helper";
export const SLOW_REQUEST = "Take your time over the kill.";
export const GATED_WORKFLOW = "crash-gated";

export interface CrashStage extends GateStage {
  /** Kills the gateway, and lets the models answer the agents that they kept at work. */
  readonly killForGood: () => Promise<void>;
}

/** Every agent that is at work at the kill has this much time to be killed in. */
const HANGING_MS = 280_000;

const CONFLICTS = {
  overrides: [{ resource: "manual/**", strategy: "manual_review" }],
  // People have not answered when the gateway is killed, however slow the host is.
  reviewMs: 60_000,
};

const OPTIONS = {
  extraPluginPaths: [join(import.meta.dirname, "fixtures", "writing-tools")],
  // Agents that wait to be killed keep nobody else waiting.
  configPatch: { agents: { defaults: { maxConcurrent: 8, subagents: { maxConcurrent: 16 } } } },
};

export async function openCrashStage(): Promise<CrashStage> {
  const folder = writeDefinitions();
  let isKilled = false;
  const hangUntilKilled = (when: Rule["when"]): Rule => ({
    when: (text, request) => !isKilled && when(text, request),
    turns: [{ say: "never", delayMs: HANGING_MS }],
  });
  const openwop = {
    enabled: true,
    tokens: [{ token: TOKEN_OF_ENVIRONMENT }],
    workflows: [join(folder, "workflows")],
    agents: [join(folder, "agents")],
  };
  const stage = await openGateStage({ openwop, conflicts: CONFLICTS }, OPTIONS, [
    createSourceRule(FORK_SOURCE),
    hangUntilKilled((_, request) => isAbout(request, KILLED_FORK, "c")),
    hangUntilKilled((_, request) => isAbout(request, LEFT_PLAN, "two")),
    hangUntilKilled((text) => text === SLOW_REQUEST),
    { when: (text) => text === SLOW_REQUEST, turns: [{ say: "It took a while.", delayMs: 4_000 }] },
  ]);
  const closeStage = stage.close.bind(stage);
  return Object.assign(stage, {
    killForGood: async () => {
      isKilled = true;
      await stage.gateway.kill9();
    },
    close: async () => {
      await closeStage();
      rmSync(folder, { recursive: true, force: true });
    },
  });
}

/** Returns the folder with a workflow that waits for an approval, and with an agent that chats can mention. */
function writeDefinitions(): string {
  const folder = mkdtempSync(join(tmpdir(), "coordination-crash-"));
  const nodes = [createNode("gate", "core.approvalGate", { title: "Go on?" }), createNode("after")];
  const agent = {
    agentId: HELPER,
    persona: "Helper",
    modelClass: "general",
    systemPrompt: "You are the helper of a gateway that is killed.",
    toolAllowlist: [],
  };
  writeDefinition(join(folder, "workflows"), GATED_WORKFLOW, createWorkflow(GATED_WORKFLOW, { nodes }));
  writeDefinition(join(folder, "agents"), HELPER, agent);
  return folder;
}

function writeDefinition(folder: string, id: string, definition: object): void {
  mkdirSync(folder);
  writeFileSync(join(folder, `${id}.json`), JSON.stringify(definition));
}
