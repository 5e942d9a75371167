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
import { findRuntime, type ChildAtWork, type SharedRuntime } from "../runtime-access/shared-runtime.ts";

export interface ObserveHandlers {
  beforeRun(ctx: HookContext<"before_agent_run">): Promise<HookResult<"before_agent_run">>;
  runInput(event: HookEvent<"llm_input">, ctx: HookContext<"llm_input">): void;
  modelCallStarted(event: HookEvent<"model_call_started">): void;
  beforeFinalize(event: HookEvent<"before_agent_finalize">): Promise<undefined>;
}

/** Further names are cut: a host offers some hundreds at most. */
const TOOLS_MAX = 2_000;

/**
 * Creates the handlers of host hooks that note how a child really runs: its tools, its model and its folder, to
 * compare them with what was asked.
 */
export function createObserveHandlers(dependencies: ChildHooks): ObserveHandlers {
  return {
    beforeRun: (ctx) => dependencies.quietly("before_agent_run", (runtime) => checkBeforeRun(runtime, ctx)),
    runInput: ({ tools = [] }, { sessionKey }) => {
      const children = findRuntime()?.children;
      const child = sessionKey === undefined ? undefined : children?.get(sessionKey);
      if (child && sessionKey) children?.set(sessionKey, { ...child, toolNames: listToolNames(tools) });
    },
    modelCallStarted: ({ sessionKey, provider, model }) => {
      if (sessionKey !== undefined) noteChildModel(dependencies, sessionKey, `${provider}/${model}`);
    },
    beforeFinalize: ({ sessionKey, cwd }) =>
      dependencies.quietly("before_agent_finalize", async (runtime) => {
        const child = sessionKey === undefined ? undefined : runtime.children.get(sessionKey);
        if (!child || !sessionKey) return undefined;
        const folder = cwd === undefined ? {} : { folder: runtime.names.folderOf(cwd) };
        await recordObservation(runtime, sessionKey, { ...child, ran: { ...child.ran, ...folder } });
        return undefined;
      }),
  };
}

/** Notes how a child is about to run, and blocks the run where the operator refuses what differs from the request. */
async function checkBeforeRun(
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

/** Records the model of a child's call where it is new; with the first call of a run all that is known of it. */
function noteChildModel(dependencies: ChildHooks, session: string, model: string): void {
  const child = findRuntime()?.children.get(session);
  if (child?.recorded?.model === model) return;
  if (child) recordChildRun(dependencies, session, { ...child, ran: { ...child.ran, model } });
  else if (dependencies.isChild(session)) void learnChildFromCall(dependencies, session, model);
}

/**
 * Asks the ledger whether a session is a child, and records its model. After a reload in the middle of a run, and
 * where the host lets nobody hear of runs, a call is all that tells of a child.
 */
async function learnChildFromCall(dependencies: ChildHooks, session: string, model: string): Promise<void> {
  const watched = await dependencies.quietly("model_call_started", async (runtime) =>
    (await runtime.coordinator()).childWatch.find(session as SessionKey),
  );
  if (watched) recordChildRun(dependencies, session, { watched, ran: { ...watched.ran, model } });
}

/** Records how a child runs, in memory and in the ledger; its words are kept back where a mismatch holds them. */
function recordChildRun(dependencies: ChildHooks, session: string, child: ChildAtWork): void {
  findRuntime()?.children.set(session, child);
  const isHeld = child.watched.isHeldOnMismatch && hasChildDifferences(child);
  if (isHeld) keepEverythingBack(session);
  const recordChild = (): Promise<true | undefined> =>
    dependencies.quietly("model_call_started", (runtime) => recordObservation(runtime, session, child));
  // The agent's words must not count before the ledger has why they are held.
  if (isHeld) accessGateMemory().texts.keeping(session as SessionKey, "model", recordChild);
  else void recordChild();
}

/** True where the child runs otherwise than was asked. */
function hasChildDifferences({ watched, ran }: ChildAtWork): boolean {
  return findChildDifferences(watched.asked, ran).length > 0;
}

/** Writes to the ledger how a child runs, and notes in memory that it is written. */
async function recordObservation(runtime: SharedRuntime, session: string, child: ChildAtWork): Promise<true> {
  const { watched, ran, toolNames } = child;
  const { childWatch } = await runtime.coordinator();
  await childWatch.observe(watched, { ran, ...(toolNames && { toolNames }) });
  const newest = runtime.children.get(session);
  // Another call may have been noted meanwhile.
  if (newest) runtime.children.set(session, { ...newest, recorded: ran });
  return true;
}

/** Lists the names of at most 2,000 tools, sorted, each once. */
function listToolNames(tools: readonly unknown[]): string[] {
  const names = tools
    .slice(0, TOOLS_MAX)
    .map((tool) => (typeof tool === "string" ? tool : (tool as { readonly name?: unknown } | null)?.name))
    .filter((name) => typeof name === "string");
  return [...new Set(names)].toSorted();
}
