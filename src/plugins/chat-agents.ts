/**
 * Owns: agents of manifests as people reach them in a chat: asking one, seeing what came of it, and answering what it waits for.
 * It is the run of every other entry point, with `chat-mention` as its source (RFC 0077 §B).
 *
 * M1 The principal is the sender, and the tenant is the gateway's. The text of a message is the task, and nothing else.
 * M2 A message that a channel delivers again, also after a crash, is the run that it was.
 * M3 Only runs that began in a chat are seen and answered there. An answer that people have to agree to is not told before.
 */
import { hash, randomUUID } from "node:crypto";
import type { CoordinationId } from "../agents/coordination/contracts/ids.ts";
import { hasRunEnded } from "../agents/coordination/contracts/workflows/workflow-summary.ts";
import { awaitSettledRun } from "../agents/coordination/runtime/workflow-host/agents/run-agent.ts";
import type {
  HostAnswer,
  Caller,
  RunSnapshot,
  WorkflowHost,
} from "../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { findShownQuestion } from "./openwop/runs/run-question.ts";

export interface ChatSender {
  /** The host's name for the channel and for the sender in it, as `CHANNEL:SENDER`. */
  readonly principal: string;
  /** Scopes of tools that the sender's agents may use. */
  readonly scopes: readonly string[];
  readonly sessionKey?: string | undefined;
}

export interface AskedByChat {
  readonly sender: ChatSender;
  readonly agentId: string;
  readonly text: string;
  /** The channel's name for the message and for the place where it was written; absent where it has none. */
  readonly message?: readonly string[];
  readonly wait: ChatWait;
}

export interface ChatWait {
  /** How long whoever asks can wait; the run takes as long as it takes. */
  readonly ms: number;
  /** Hears of it when they waited no longer. */
  readonly late?: (run: ChatRun) => void;
}

/** A run as far as it is. */
export type ChatRun = { readonly runId: string; readonly agentId: string } & ChatOutcome;

type ChatOutcome =
  | { readonly kind: "working" }
  | { readonly kind: "answered"; readonly result: unknown }
  | { readonly kind: "waits"; readonly doubt?: ConfidenceGap; readonly isAnswerable: boolean }
  | { readonly kind: "failed"; readonly code: string; readonly message: string }
  | { readonly kind: "cancelled" };

/** How sure an agent is, and how sure it would have to be. */
interface ConfidenceGap {
  readonly observed: number;
  readonly threshold: number;
}

export type ChatRefusal =
  | { readonly kind: "refused"; readonly message: string }
  /** So many of the sender's runs, or of all, go on already. */
  | { readonly kind: "busy" }
  | { readonly kind: "unknown_run" }
  | { readonly kind: "same_session" }
  | { readonly kind: "not_waiting" };

export interface RunAnswer {
  readonly sender: ChatSender;
  readonly runId: string;
  readonly answer: "approve" | "deny";
  /** The session that asked is not where it may be answered. */
  readonly isOtherSessionNeeded: boolean;
  readonly wait: ChatWait;
}

export interface ChatAgents {
  readonly agentIds: () => readonly string[];
  ask(request: AskedByChat): Promise<ChatRun | ChatRefusal>;
  /** Returns a run of the sender's own. */
  look(sender: ChatSender, runId: string): Promise<ChatRun | ChatRefusal>;
  answer(answerRequest: RunAnswer): Promise<ChatRun | ChatRefusal>;
  /** Ends all waiting; the runs go on. */
  close(): void;
}

/** The host of workflows, and the tenant of the runs that chats begin. */
interface ChatDependencies {
  readonly host: ChatHost;
  readonly tenant: string;
}

/** The methods of the host of workflows that chats need. */
type ChatHost = Pick<WorkflowHost, "agents" | "create" | "events" | "resolve" | "snapshot" | "watch">;

/** The runs that chats began, and the means to begin more. */
interface ChatState extends ChatDependencies {
  readonly closing: AbortSignal;
  /** By principal. */
  readonly atWork: Map<string, number>;
}

const RUNS_MAX = 64;
const RUNS_OF_ONE_MAX = 4;

/**
 * Creates what lets people talk to the workflow host's agents in a chat: ask an agent, look at a run of their own, and
 * answer its question.
 */
export function createChatAgents(dependencies: ChatDependencies): ChatAgents {
  const closing = new AbortController();
  const chats: ChatState = { ...dependencies, closing: closing.signal, atWork: new Map() };
  return {
    agentIds: () => chats.host.agents().map(({ agentId }) => agentId),
    ask: (request) => askAgent(chats, request),
    look: (sender, runId) => readOwnRun(chats, sender, runId),
    answer: (answerRequest) => answerChatRun(chats, answerRequest),
    close: () => closing.abort(),
  };
}

function createChatCaller({ tenant }: ChatState, { principal, scopes }: ChatSender): Caller {
  return { tenant, principal, scopes };
}

/**
 * Begins a run of an agent, and returns how it stands when it settles or the sender waits no longer; a refusal where
 * it may not begin, or too many runs are at work.
 */
async function askAgent(chats: ChatState, request: AskedByChat): Promise<ChatRun | ChatRefusal> {
  const { sender, wait } = request;
  if (!takeRunPlace(chats, sender)) return { kind: "busy" };
  let settled: Promise<ChatRun> | undefined;
  try {
    const begun = await startChatRun(chats, request);
    if (begun.kind === "refused") return begun;
    // It counts for as long as it is at work, also when nobody waits for it any more.
    settled = waitUntilSettled(chats, createChatCaller(chats, sender), begun.run).finally(() =>
      releaseRunPlace(chats, sender),
    );
    return await waitForSettledRun(wait, settled, begun.run);
  } finally {
    if (!settled) releaseRunPlace(chats, sender);
  }
}

/** Counts one more run of the sender; false where the sender, or all together, have as many as they may. */
function takeRunPlace({ atWork }: ChatState, { principal }: ChatSender): boolean {
  const ownRuns = atWork.get(principal) ?? 0;
  const all = [...atWork.values()].reduce((sum, each) => sum + each, 0);
  if (ownRuns >= RUNS_OF_ONE_MAX || all >= RUNS_MAX) return false;
  atWork.set(principal, ownRuns + 1);
  return true;
}

function releaseRunPlace({ atWork }: ChatState, { principal }: ChatSender): void {
  const left = (atWork.get(principal) ?? 1) - 1;
  if (left > 0) atWork.set(principal, left);
  else atWork.delete(principal);
}

/** Returns the id of the run: the same message that is delivered again has the same one (M2). */
function nameChatRun({ tenant }: ChatState, { sender, agentId, text, message }: AskedByChat): CoordinationId {
  if (!message) return `run-${randomUUID()}` as CoordinationId;
  const { principal, sessionKey = "" } = sender;
  const digest = hash("sha256", JSON.stringify([tenant, principal, sessionKey, ...message, agentId, text]));
  return `run-${digest.slice(0, 32)}` as CoordinationId;
}

interface BegunRun {
  readonly runId: string;
  readonly agentId: string;
}

/** A run that was begun for a chat. */
interface BegunChat {
  readonly kind: "begun";
  readonly run: BegunRun;
}

async function startChatRun(
  chats: ChatState,
  request: AskedByChat,
): Promise<BegunChat | (ChatRefusal & { readonly kind: "refused" })> {
  const { sender, agentId, text } = request;
  const { sessionKey } = sender;
  const created = await chats.host.create(createChatCaller(chats, sender), {
    workflowId: "",
    agent: { agentId, source: "chat-mention" },
    transport: "rest",
    runId: nameChatRun(chats, request),
    inputs: readChatTask(chats, agentId, text),
    ...(sessionKey !== undefined && { metadata: { chat: { sessionKey } } }),
  });
  if (created.kind === "refused") return { kind: "refused", message: created.message };
  return { kind: "begun", run: { runId: created.value.runId, agentId } };
}

/** Waits for what the run comes to or waits for, or for how it stands when all waiting ends. */
async function waitUntilSettled(
  chats: ChatState,
  caller: Caller,
  { runId, agentId }: BegunRun,
): Promise<ChatRun> {
  const snapshot = unwrapAnswered(
    await awaitSettledRun(chats.host, runId, { caller, signal: chats.closing }),
  );
  return snapshot
    ? describeChatRun(chats, caller, { agentId, snapshot })
    : { kind: "working", runId, agentId };
}

/** Reads a task from a chat message. For an agent with schemas the message may be the JSON that they ask for. */
function readChatTask({ host }: ChatState, agentId: string, text: string): Readonly<Record<string, unknown>> {
  const agent = host.agents().find((each) => each.agentId === agentId);
  return (agent?.hasHandoffSchemas ? parseJsonObject(text) : undefined) ?? { task: text };
}

function parseJsonObject(text: string): Readonly<Record<string, unknown>> | undefined {
  if (!text.startsWith("{")) return undefined;
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
}

/** Returns what the run came to, or that it goes on after the time is over; then `late` hears of its outcome. */
async function waitForSettledRun(
  { ms, late }: ChatWait,
  settled: Promise<ChatRun>,
  run: BegunRun,
): Promise<ChatRun> {
  let timer: NodeJS.Timeout | undefined;
  const passed = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  try {
    const inTime = await Promise.race([settled, passed]);
    if (inTime) return inTime;
  } finally {
    clearTimeout(timer);
  }
  // An error from now on is in the run. A run that still works then is one of a host that stops.
  settled.then(
    (outcome) => outcome.kind !== "working" && late?.(outcome),
    () => undefined,
  );
  return { kind: "working", ...run };
}

interface ChatSnapshot {
  readonly agentId: string;
  readonly snapshot: RunSnapshot;
}

async function describeChatRun(
  chats: ChatState,
  caller: Caller,
  { agentId, snapshot }: ChatSnapshot,
): Promise<ChatRun> {
  const { runId, status } = snapshot;
  const outcome = status.startsWith("waiting-")
    ? await describeWaitingRun(chats, caller, snapshot)
    : describeRunOutcome(snapshot);
  return { runId, agentId, ...outcome };
}

function describeRunOutcome(snapshot: RunSnapshot): ChatOutcome {
  const { outputs, error } = snapshot as EndedSnapshot;
  switch (snapshot.status) {
    case "completed":
      return { kind: "answered", result: outputs?.result };
    case "failed":
      return { kind: "failed", code: error?.code ?? "failed", message: error?.message ?? "" };
    case "cancelled":
      return { kind: "cancelled" };
    default:
      return { kind: "working" };
  }
}

async function describeWaitingRun(
  chats: ChatState,
  caller: Caller,
  snapshot: RunSnapshot,
): Promise<ChatOutcome> {
  const question = await findShownQuestion(chats.host, caller, snapshot);
  if (!question) return { kind: "waits", isAnswerable: false };
  const { kind } = question;
  const doubt = readDoubt(question.asked);
  return { kind: "waits", isAnswerable: isRuledQuestion(kind), ...(doubt && { doubt }) };
}

/** True for questions that people approve or deny; others take an event, or an answer in words. */
function isRuledQuestion(kind: string): boolean {
  return kind === "approval" || kind === "low-confidence";
}

/** The result or the error in the snapshot of a run that ended. */
interface EndedSnapshot {
  readonly outputs?: { readonly result?: unknown };
  readonly error?: { readonly code: string; readonly message: string };
}

function readDoubt({ observed, threshold }: Readonly<Record<string, unknown>>): ConfidenceGap | undefined {
  return typeof observed === "number" && typeof threshold === "number" ? { observed, threshold } : undefined;
}

function unwrapAnswered<T>(answered: HostAnswer<T>): T | undefined {
  return answered.kind === "done" ? answered.value : undefined;
}

/** Returns a run with its agent; `undefined` for one that did not begin in a chat (M3). */
async function findChatRun(
  chats: ChatState,
  caller: Caller,
  runId: string,
): Promise<ChatSnapshot | undefined> {
  const first = unwrapAnswered(await chats.host.events(caller, runId, { from: 0, limit: 1 }))?.events[0];
  if (first?.type !== "run.started" || !("agent" in first.payload)) return undefined;
  const { agent } = first.payload;
  const snapshot = unwrapAnswered(await chats.host.snapshot(caller, runId));
  return agent?.source === "chat-mention" && snapshot ? { agentId: agent.agentId, snapshot } : undefined;
}

async function readOwnRun(
  chats: ChatState,
  sender: ChatSender,
  runId: string,
): Promise<ChatRun | ChatRefusal> {
  const caller = createChatCaller(chats, sender);
  const chatRun = await findChatRun(chats, caller, runId);
  const { owner } = (chatRun?.snapshot ?? {}) as { readonly owner?: { readonly principal?: string } };
  if (!chatRun || owner?.principal !== sender.principal) return { kind: "unknown_run" };
  return describeChatRun(chats, caller, chatRun);
}

const ACTIONS = { approve: "accept", deny: "reject" } as const;

async function answerChatRun(chats: ChatState, answerRequest: RunAnswer): Promise<ChatRun | ChatRefusal> {
  const { sender, runId, wait } = answerRequest;
  const caller = createChatCaller(chats, sender);
  const chatRun = await findChatRun(chats, caller, runId);
  if (!chatRun) return { kind: "unknown_run" };
  if (answerRequest.isOtherSessionNeeded && mayBeOfSession(chatRun.snapshot, sender))
    return { kind: "same_session" };
  const question = hasRunEnded(chatRun.snapshot.status)
    ? undefined
    : await findShownQuestion(chats.host, caller, chatRun.snapshot);
  if (!question) return { kind: "not_waiting" };
  if (!isRuledQuestion(question.kind))
    return { kind: "refused", message: `the run waits for no approval, but for a ${question.kind}` };
  const value = { action: ACTIONS[answerRequest.answer] };
  const resolved = await chats.host.resolve(caller, question.runId, question, value);
  if (resolved.kind === "refused")
    return resolved.code === "interrupt_already_resolved"
      ? { kind: "not_waiting" }
      : { kind: "refused", message: resolved.message };
  const run = { runId, agentId: chatRun.agentId };
  return waitForSettledRun(wait, waitUntilSettled(chats, caller, run), run);
}

/**
 * True where the run may have begun in the sender's session; so it is, too, where the session of either is not known.
 */
function mayBeOfSession({ metadata }: RunSnapshot, { sessionKey }: ChatSender): boolean {
  const { chat } = (metadata ?? {}) as { readonly chat?: { readonly sessionKey?: string } };
  return sessionKey === undefined || chat?.sessionKey === undefined || chat.sessionKey === sessionKey;
}
