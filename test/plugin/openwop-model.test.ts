import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { ChatRequest } from "../../src/agents/coordination/ports/outbound.ts";
import type { HostRuntime } from "../../src/plugins/openclaw/host/host-runs.ts";
import { createHostChatModel } from "../../src/plugins/openclaw/openwop/openwop-model.ts";
import {
  createRequestContexts,
  type ContextEntry,
} from "../../src/plugins/openclaw/openwop/request-contexts.ts";
import { logLines } from "./question-stage.ts";

const { signal } = new AbortController();
const ASK: ChatRequest = { messages: [{ role: "user", content: "What now?" }], maxTokens: 50, signal };
const WHOLE = { text: "Go on.", provider: "mock", model: "large", stopReason: "stop", usage: {} };

const enterHere: ContextEntry = (work) => work();

function createChat(answer: () => object = () => WHOLE, contexts: readonly ContextEntry[] = [enterHere]) {
  const requests: Readonly<Record<string, unknown>>[] = [];
  const { logger, lines } = logLines();
  const enterAll = async function* () {
    await Promise.resolve();
    yield* contexts;
  };
  const agents = { entries: { main: { default: true }, critic: {} } };
  const runtime = {
    config: { current: () => ({ agents }) },
    llm: {
      complete: (input: (typeof requests)[number]) => {
        requests.push(input);
        return Promise.resolve().then(answer);
      },
    },
  };
  return {
    requests: requests,
    lines,
    model: createHostChatModel(runtime as unknown as HostRuntime, logger, enterAll),
  };
}

describe("a node of a workflow that asks the host's model", () => {
  it("asks what it is told to, and for no more", async () => {
    const { requests, model } = createChat(() => ({
      ...WHOLE,
      usage: { inputTokens: 10, outputTokens: 5 },
    }));
    expect(await model.complete({ ...ASK, system: "You decide.", temperature: 0.5, model: "m" })).toEqual({
      kind: "answered",
      text: "Go on.",
      finishReason: "stop",
      model: "large",
      provider: "mock",
      usage: { inputTokens: 10, outputTokens: 5 },
    });
    expect(requests).toEqual([
      {
        messages: ASK.messages,
        systemPrompt: "You decide.",
        temperature: 0.5,
        model: "m",
        maxTokens: 50,
        signal,
        purpose: "coordination.openwop",
      },
    ]);
  });

  it.each([
    [BOUNDS.replyCharsMax, "stop"],
    [BOUNDS.replyCharsMax + 1, "length"],
  ])("is told that an answer was cut where it is too long: %d characters", async (chars, finishReason) => {
    const { model } = createChat(() => ({ ...WHOLE, text: "x".repeat(chars) }));
    const answer = await model.complete(ASK);
    expect(answer).toMatchObject({ text: "x".repeat(BOUNDS.replyCharsMax), finishReason });
  });

  it.each([
    ["none", undefined, undefined],
    ["one that the host does not know", "vendor.supervisor", undefined],
    ["the one that the host would take", "agent:main", undefined],
    ["another one of the host's", "agent:Critic", "critic"],
  ])("names the host's agent where the workflow names %s", async (_which, agentId, named) => {
    const { requests, model } = createChat();
    await model.complete({ ...ASK, ...(agentId !== undefined && { agentId }) });
    expect(requests[0]?.["agentId"]).toBe(named);
  });

  it.each([
    ['{"kind":"terminate"}', { kind: "terminate" }],
    ['```json\n{"kind":"terminate"}\n```', { kind: "terminate" }],
    ["I would rather not.", undefined],
  ])("reads %s as JSON where a schema is asked for", async (text, object) => {
    const { requests, model } = createChat(() => ({ ...WHOLE, text }));
    const schema = { name: "decision", schema: { type: "object" } };
    const answer = await model.complete({ ...ASK, schema });
    expect(answer).toMatchObject({ kind: "answered", text });
    expect("object" in answer ? answer.object : undefined).toEqual(object);
    expect(String(requests[0]?.["systemPrompt"])).toContain('{"type":"object"}');
  });

  it.each([
    ["aborted", "aborted"],
    ["error", "unavailable"],
  ])("is not answered where the call ends as %s", async (stopReason, code) => {
    const { model } = createChat(() => ({ ...WHOLE, stopReason }));
    expect(await model.complete(ASK)).toMatchObject({ kind: "unknown", code });
  });

  it.each([
    ["goes on in another context where the plugins of one are gone", {}, "answered", 2],
    ["does not ask again where the host refuses", { code: "NOT_ALLOWED" }, "unknown", 1],
  ])("%s", async (_what, fields, kind, calls) => {
    let requestCount = 0;
    const { model } = createChat(() => {
      requestCount += 1;
      if (requestCount === 1) throw Object.assign(new Error("retired"), fields);
      return WHOLE;
    }, [enterHere, enterHere]);
    expect((await model.complete(ASK)).kind).toBe(kind);
    expect(requestCount).toBe(calls);
  });

  it("is told of a refusal of the host by its code, and the log has nothing of what was asked", async () => {
    const error = Object.assign(new Error("no: What now?"), { code: "NOT_ALLOWED" });
    const { model, lines } = createChat(() => {
      throw error;
    });
    expect(await model.complete(ASK)).toMatchObject({
      kind: "unknown",
      code: "unavailable",
      message: "the host's model gave no answer (NOT_ALLOWED)",
    });
    expect(lines).toMatchObject([{ level: "warn", fields: { error: "Error", code: "NOT_ALLOWED" } }]);
    expect(JSON.stringify(lines)).not.toContain("What now?");
  });
});

describe("an agent that has tools", () => {
  const tools = [{ name: "measure", description: "Measures.", parameters: { type: "object" } }];
  const CALL = '{"tool_calls":[{"name":"measure","arguments":{"at":1}}]}';

  it("is told of them in words, and asks for calls in JSON", async () => {
    const { requests, model } = createChat(() => ({ ...WHOLE, text: CALL }));
    const answer = await model.complete({ ...ASK, system: "Dig.", tools });
    expect(answer).toMatchObject({ text: "", toolCalls: [{ name: "measure", args: { at: 1 } }] });
    expect(requests[0]?.["systemPrompt"]).toMatch(/^Dig\.[\s\S]*tool_calls[\s\S]*"measure"/u);
  });

  it("answers with whatever is no such JSON", async () => {
    const text = '{"result":"deep","confidence":1}';
    const { model } = createChat(() => ({ ...WHOLE, text }));
    const answer = await model.complete({ ...ASK, tools });
    expect(answer).toMatchObject({ text });
    expect(answer).not.toHaveProperty("toolCalls");
  });

  it("is told what came back in a message of its own", async () => {
    const { requests, model } = createChat();
    const toolCalls = [{ callId: "c1", name: "measure", args: { at: 1 } }];
    const back = { role: "tool", callId: "c1", name: "measure", content: "three" } as const;
    await model.complete({ ...ASK, tools, messages: [{ role: "assistant", content: "", toolCalls }, back] });
    expect(requests[0]?.["messages"]).toEqual([
      { role: "assistant", content: CALL },
      { role: "user", content: '{"tool_result":{"name":"measure","content":"three"}}' },
    ]);
  });

  it("calls none where none was offered, whatever it says", async () => {
    const { model } = createChat(() => ({ ...WHOLE, text: CALL }));
    expect(await model.complete(ASK)).not.toHaveProperty("toolCalls");
  });
});

describe("the contexts to ask in", () => {
  const client = new AsyncLocalStorage<string>();
  const readContext = (): string | undefined => client.getStore();

  it("are that of the newest request, then none", async () => {
    const contexts = createRequestContexts();
    client.run("older", contexts.came);
    client.run("newest", contexts.came);
    const seen: (string | undefined)[] = [];
    for await (const enter of contexts.all(signal)) seen.push(enter(readContext));
    expect(seen).toEqual(["newest", undefined]);
  });

  it("are that of the next request where none came yet, which is not waited for for ever", async () => {
    const contexts = createRequestContexts(60_000);
    const asking = contexts.all(signal);
    expect((await asking.next()).done).toBe(false);
    const next = asking.next();
    client.run("late", contexts.came);
    const late = await next;
    expect(late.done ? undefined : late.value(readContext)).toBe("late");
    const controller = new AbortController();
    const other = createRequestContexts(60_000).all(controller.signal);
    await other.next();
    const over = other.next();
    controller.abort();
    expect((await over).done).toBe(true);
  });
});
