/** Owns: a gateway's chat with agents of manifests, without the gateway: the fake host, and a model in this process. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowEvent } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type { ChatAgents } from "../../src/plugins/chat-agents.ts";
import { answerChatCommand } from "../../src/plugins/openclaw/questions/answer-command.ts";
import type { CommandMessage } from "../../src/plugins/openclaw/chats/command-message.ts";
import { createHostLogger } from "../../src/plugins/openclaw/host/host-logger.ts";
import { makeRuntime } from "../../src/plugins/openclaw/runtime-access/make-runtime.ts";
import { createPlanAccess } from "../../src/plugins/openclaw/runtime-access/plan-access.ts";
import { registerMentions } from "../../src/plugins/openclaw/register-mentions.ts";
import type {
  HookContext,
  HookEvent,
  HookResult,
  OpenClawPluginApi,
} from "../../src/plugins/openclaw/host/sdk.ts";
import {
  replaceRuntime,
  type SharedRuntime,
} from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import { createChatAccess, type OpenChats } from "../../src/plugins/openclaw/runtime-access/use-chats.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { createFakeHost } from "./fake-host.ts";

export const TOKEN = "a-token-that-is-long-enough";
export const HELPER = "core.test.helper";
export const HANDING = "local.test.handing";

export const createManifest = (agentId: string, more: object = {}): object => ({
  agentId,
  persona: agentId,
  modelClass: "general",
  systemPrompt: `I am ${agentId}.`,
  ...more,
});

const AGENTS = [
  createManifest(HELPER),
  createManifest(HANDING, { toolAllowlist: ["openwop:agent.handoff"] }),
  createManifest("core.test.twin"),
  createManifest("local.test.twin"),
];

const closing: (() => Promise<void> | void)[] = [];

/** After each test. */
export async function closeChats(): Promise<void> {
  for (const close of closing.splice(0).toReversed()) await close();
}

interface ModelRequest {
  readonly systemPrompt?: string;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
}

export type Says = (request: ModelRequest) => string | Promise<string>;
type Message = Partial<HookEvent<"before_dispatch">> & Partial<HookContext<"before_dispatch">>;
type Hook = (
  event: HookEvent<"before_dispatch">,
  ctx: HookContext<"before_dispatch">,
) => Promise<HookResult<"before_dispatch">>;

export interface Chat {
  readonly stateDir: string;
  readonly askedCalls: readonly ModelRequest[];
  readonly lines: readonly { readonly level: string; readonly text: string }[];
  /** The events that the hook is registered for; none where it is not. */
  readonly hook: Hook | undefined;
  /** The reply to a message; nothing where the host has it. */
  readonly say: (content: string, message?: Message) => Promise<string | undefined>;
  readonly command: (args: string, message?: Partial<CommandMessage>) => Promise<string>;
  readonly chats: () => Promise<ChatAgents>;
  readonly runtime: SharedRuntime;
  /** Turns of sessions that were begun to tell them something. */
  readonly tellings: readonly SessionTurn[];
  readonly tellIn: OpenChats["tellIn"];
  readonly log: (runId: string) => Promise<WorkflowEvent[]>;
  readonly runIds: () => Promise<string[]>;
}

interface ChatSettings {
  readonly says?: Says;
  readonly openwop?: object;
  readonly phase1?: object;
  readonly agents?: readonly object[];
}

/** A turn that was begun to tell a session something. */
export interface SessionTurn {
  readonly sessionKey: string;
  readonly message: string;
  readonly idempotencyKey: string;
}

/** Sessions of the host in which turns can be begun. */
function createSessions(tellings: SessionTurn[]): object {
  const run = (request: SessionTurn): Promise<object> => {
    tellings.push(request);
    return Promise.resolve({ runId: request.idempotencyKey, sessionKey: request.sessionKey });
  };
  const answerNone = () => Promise.resolve(undefined);
  return {
    subagent: { run, getSessionMessages: () => Promise.resolve({ messages: [] }) },
    tasks: {
      async: { runs: { bindSession: () => ({ list: () => Promise.resolve([]), resolve: answerNone }) } },
    },
    agent: { session: { getSessionEntry: () => undefined } },
  };
}

export async function openChat({
  says = () => "Done.",
  openwop,
  phase1,
  agents = AGENTS,
}: ChatSettings = {}): Promise<Chat> {
  const folder = createTempFolder();
  closing.push(() => folder[Symbol.dispose]());
  const stateDir = folder.path;
  mkdirSync(join(stateDir, "agents"));
  agents.forEach((each, index) => {
    writeFileSync(join(stateDir, "agents", `agent-${index}.json`), JSON.stringify(each));
  });
  const on = { enabled: true, tokens: [{ token: TOKEN }], agents: ["agents"] };
  const { api, lines } = createFakeHost({ stateDir, phase1: { openwop: { ...on, ...openwop }, ...phase1 } });
  const askedCalls: ModelRequest[] = [];
  const complete = async (request: ModelRequest): Promise<object> => {
    askedCalls.push(request);
    return { text: await says(request), provider: "mock", model: "mock", stopReason: "stop", usage: {} };
  };
  const tellings: SessionTurn[] = [];
  Object.assign(api.runtime, { llm: { complete }, ...createSessions(tellings) });
  const hooks = new Map<string, Hook>();
  Object.assign(api, { on: (name: string, hook: Hook) => hooks.set(name, hook) });
  registerMentions(api);
  const runtime = makeRuntime(api);
  await replaceRuntime(runtime);
  closing.push(() => runtime.close());
  const hook = hooks.get("before_dispatch");
  const store = async () => (await runtime.coordinator()).workflows;
  return {
    stateDir,
    askedCalls: askedCalls,
    lines,
    hook,
    runtime,
    tellings: tellings,
    tellIn: (session) => (run) => {
      void createChatAccess(api)(({ tellIn }) => {
        tellIn(session)(run);
        return Promise.resolve();
      });
    },
    say: async (content, { channel = "webchat", senderId = "cli", ...message } = {}) => {
      const event = { content, channel, senderId, sessionKey: "agent:main:main", ...message };
      return (await hook?.(event, { channelId: channel, senderId, ...message }))?.text;
    },
    command: (args, message = {}) =>
      answerChatCommand(partsOf(api), {
        channel: "webchat",
        senderId: "cli",
        isAuthorizedSender: true,
        sessionKey: "agent:main:main",
        gatewayClientScopes: ["operator.write", "operator.approvals"],
        args,
        ...message,
      }),
    chats: async () => {
      const chats = await runtime.openwop?.chats();
      if (!chats) throw new Error("OpenWOP is not served");
      return chats;
    },
    log: async (runId) => (await store()).read(runId as CoordinationId, { from: 0, limit: 1_000 }),
    runIds: async () =>
      (await (await store()).list({ order: "oldest", limit: 1_000 })).map(({ runId }) => runId),
  };
}

function partsOf(api: OpenClawPluginApi) {
  return {
    use: createPlanAccess(api),
    useChats: createChatAccess(api),
    logger: createHostLogger(api.logger),
  };
}
