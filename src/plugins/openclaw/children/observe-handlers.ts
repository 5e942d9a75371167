/**
 * Owns: the hooks that tell what a child really is: before a run its agent, folder, level of thinking and model, with the run's
 * input its tools, with each call its model, with its last words the folder that its tools had.
 *
 * H2 a handler never throws into the host. H3 what was asked says the ledger. A call of a model that is known costs a comparison;
 * only what is new is brought to the disk.
 */
import type { ChildRun } from "../../../agents/coordination/contracts/fact-fields.ts";
import type { AgentId, SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import {
  describeRefusedDifference,
  findChildDifferences,
} from "../../../agents/coordination/gates/child-differences.ts";
import type { HookContext, HookEvent, HookResult } from "../host/sdk.ts";
import { formatSentence } from "../host/spawn-result.ts";
import { accessGateMemory } from "../runtime-access/gate-memory.ts";
import { keepEverythingBack } from "../runtime-access/keep-back.ts";
import type { ChildHooks } from "../runtime-access/run-quietly.ts";
import { findRuntime, type ChildNow, type SharedRuntime } from "../runtime-access/shared-runtime.ts";

export interface ObserveHandlers {
  beforeRun(ctx: HookContext<"before_agent_run">): Promise<HookResult<"before_agent_run">>;
  runInput(event: HookEvent<"llm_input">, ctx: HookContext<"llm_input">): void;
  modelCallStarted(event: HookEvent<"model_call_started">): void;
  beforeFinalize(event: HookEvent<"before_agent_finalize">): Promise<undefined>;
}

/** Further names are cut: a host offers some hundreds at most. */
const TOOLS_MAX = 2_000;

export function createObserveHandlers(dependencies: ChildHooks): ObserveHandlers {
  return {
    beforeRun: (ctx) => dependencies.quietly("before_agent_run", (runtime) => ruleOnRun(runtime, ctx)),
    runInput: ({ tools = [] }, { sessionKey }) => {
      const children = findRuntime()?.children;
      const child = sessionKey === undefined ? undefined : children?.get(sessionKey);
      if (child && sessionKey) children?.set(sessionKey, { ...child, toolNames: namesOf(tools) });
    },
    modelCallStarted: ({ sessionKey, provider, model }) => {
      if (sessionKey !== undefined) noteCall(dependencies, sessionKey, `${provider}/${model}`);
    },
    beforeFinalize: ({ sessionKey, cwd }) =>
      dependencies.quietly("before_agent_finalize", async (runtime) => {
        const child = sessionKey === undefined ? undefined : runtime.children.get(sessionKey);
        if (!child || !sessionKey) return undefined;
        const folder = cwd === undefined ? {} : { folder: runtime.names.folderOf(cwd) };
        await record(runtime, sessionKey, { ...child, ran: { ...child.ran, ...folder } });
        return undefined;
      }),
  };
}

/** Notes what the host says before a run, and stops a run that would not be as it was asked where the operator wants that. */
async function ruleOnRun(
  runtime: SharedRuntime,
  { sessionKey, agentId, modelProviderId, modelId }: HookContext<"before_agent_run">,
): Promise<HookResult<"before_agent_run">> {
  if (!sessionKey) return undefined;
  const { childWatch } = await runtime.coordinator();
  const watched = await childWatch.find(sessionKey as SessionKey);
  if (!watched) {
    runtime.children.delete(sessionKey);
    return undefined;
  }
  const { names, folderOf } = runtime;
  const agent = agentId ?? watched.asked.agentId;
  const thinking = names.thinkingOf({
    sessionKey,
    agentId: agent,
    provider: modelProviderId,
    model: modelId,
  });
  const ran: ChildRun = {
    agentId: agent as AgentId,
    folder: names.folderOf(folderOf(sessionKey, agent)),
    ...(modelProviderId && modelId && { model: `${modelProviderId}/${modelId}` }),
    ...(thinking !== undefined && { thinking }),
  };
  runtime.children.set(sessionKey, { watched, ran });
  const differences = findChildDifferences(watched.asked, ran);
  if (runtime.config.truth.onMismatch !== "refuse" || differences.length === 0) return undefined;
  // The fact first: whoever is told of the refusal finds it there.
  await childWatch.observe(watched, { ran, refused: true });
  const sentence = formatSentence(differences.map(describeRefusedDifference).join("; "));
  return { outcome: "block", reason: sentence, message: sentence };
}

/** With the first call of a run all that is known of it is recorded, with others only another model. */
function noteCall(dependencies: ChildHooks, session: string, model: string): void {
  const child = findRuntime()?.children.get(session);
  if (child?.recorded?.model === model) return;
  if (child) recordCall(dependencies, session, { ...child, ran: { ...child.ran, model } });
  else if (dependencies.isChild(session)) void learnFromCall(dependencies, session, model);
}

/** After a reload in the middle of a run, and where the host lets nobody hear of runs, a call is all that tells of a child. */
async function learnFromCall(dependencies: ChildHooks, session: string, model: string): Promise<void> {
  const watched = await dependencies.quietly("model_call_started", async (runtime) =>
    (await runtime.coordinator()).childWatch.find(session as SessionKey),
  );
  if (watched) recordCall(dependencies, session, { watched, ran: { ...watched.ran, model } });
}

function recordCall(dependencies: ChildHooks, session: string, child: ChildNow): void {
  findRuntime()?.children.set(session, child);
  const isHeld = child.watched.isHeldOnMismatch && hasDifferences(child);
  if (isHeld) keepEverythingBack(session);
  const recordChild = (): Promise<true | undefined> =>
    dependencies.quietly("model_call_started", (runtime) => record(runtime, session, child));
  // The agent's words must not count before the ledger has why they are held.
  if (isHeld) accessGateMemory().texts.keeping(session as SessionKey, "model", recordChild);
  else void recordChild();
}

function hasDifferences({ watched, ran }: ChildNow): boolean {
  return findChildDifferences(watched.asked, ran).length > 0;
}

async function record(runtime: SharedRuntime, session: string, child: ChildNow): Promise<true> {
  const { watched, ran, toolNames } = child;
  const { childWatch } = await runtime.coordinator();
  await childWatch.observe(watched, { ran, ...(toolNames && { toolNames }) });
  const newest = runtime.children.get(session);
  // Another call may have been noted meanwhile.
  if (newest) runtime.children.set(session, { ...newest, recorded: ran });
  return true;
}

function namesOf(tools: readonly unknown[]): string[] {
  const names = tools
    .slice(0, TOOLS_MAX)
    .map((tool) => (typeof tool === "string" ? tool : (tool as { readonly name?: unknown } | null)?.name))
    .filter((name) => typeof name === "string");
  return [...new Set(names)].toSorted();
}
