/** Owns: the A2A server of `serve`, as an unmodified client of the official library sees it. */
import {
  Role,
  TaskState,
  type Message,
  type SendMessageRequest,
  type StreamResponse,
  type Task,
} from "@a2a-js/sdk";
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  type Client,
} from "@a2a-js/sdk/client";
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { importsOf, listSourceFiles } from "../architecture/read-imports.ts";
import { waitFor } from "../support/wait-for.ts";
import { openMcpWorld, OTHER_TOKEN, TOKEN, type McpWorld } from "./mcp-world.ts";

let world: McpWorld;
beforeAll(async () => {
  world = await openMcpWorld({ a2a: true });
});
afterAll(() => world[Symbol.asyncDispose]());

function connect(token = TOKEN): Promise<Client> {
  const options = {
    fetchImpl: (input: string | URL | Request, init: RequestInit = {}) => {
      const headers = new Headers(init.headers);
      headers.set("authorization", `Bearer ${token}`);
      return fetch(input, { ...init, headers });
    },
  };
  const factory = new ClientFactory({
    // The SDK declares the options of both as classes, and exports neither.
    transports: [new JsonRpcTransportFactory(options)],
    cardResolver: new DefaultAgentCardResolver(options),
  });
  return factory.createFromUrl(world.baseUrl);
}

interface SentMessage {
  readonly text?: string;
  readonly data?: unknown;
  readonly skillId?: string;
  readonly taskId?: string;
  readonly contextId?: string;
  readonly messageId?: string;
  readonly returnImmediately?: boolean;
}

function createRequest({
  text,
  data,
  skillId,
  taskId = "",
  contextId = "",
  messageId = randomUUID(),
  returnImmediately = false,
}: SentMessage): SendMessageRequest {
  const plain = { metadata: undefined, filename: "", mediaType: "" };
  const parts: Message["parts"] = [
    ...(text === undefined ? [] : [{ ...plain, content: { $case: "text" as const, value: text } }]),
    ...(data === undefined ? [] : [{ ...plain, content: { $case: "data" as const, value: data } }]),
  ];
  const message: Message = {
    messageId,
    contextId,
    taskId,
    role: Role.ROLE_USER,
    parts,
    metadata: skillId === undefined ? undefined : { skillId },
    extensions: [],
    referenceTaskIds: [],
  };
  const configuration = { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately };
  return { tenant: "", message, configuration, metadata: undefined };
}

async function send(client: Client, message: SentMessage): Promise<Task> {
  const answer = await client.sendMessage(createRequest(message));
  if (!("status" in answer)) throw new Error("the answer is no task");
  return answer;
}

const stateOf = ({ status }: Pick<Task, "status">) => status && TaskState[status.state];

describe("the agent card", () => {
  it("shows the workflows as skills, and how to reach them, to everybody", async () => {
    const card = (await (await fetch(`${world.baseUrl}/.well-known/agent-card.json`)).json()) as Record<
      string,
      unknown
    >;
    expect(card).toMatchObject({
      supportedInterfaces: [
        { url: `${world.baseUrl}/v1/a2a`, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
        { url: `${world.baseUrl}/v1/a2a`, protocolVersion: "0.3" },
      ],
      capabilities: { streaming: true, pushNotifications: false },
      url: `${world.baseUrl}/v1/a2a`,
      protocolVersion: "0.3.0",
    });
    expect((card["skills"] as { readonly id: string }[]).map(({ id }) => id)).toEqual([
      "echo",
      "gated",
      "slow",
      "status",
    ]);
    const [echo] = card["skills"] as { readonly description: string }[];
    expect(echo?.description).toContain('"properties":{"word":{"type":"string","default":"none"}');
  });

  it("is not there, and neither is the server, where nobody wants it", async () => {
    await using plain = await openMcpWorld();
    expect((await fetch(`${plain.baseUrl}/.well-known/agent-card.json`)).status).toBe(404);
    const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
    expect((await fetch(`${plain.baseUrl}/v1/a2a`, { method: "POST", headers, body: "{}" })).status).toBe(
      404,
    );
    const code = /^plugins\/a2a\//u;
    const importers = listSourceFiles()
      .filter((file) => file.endsWith(".ts") && !code.test(file))
      .flatMap((file) => importsOf(file))
      .filter(({ target, kind }) => kind === "value" && code.test(target));
    expect(importers.map(({ file }) => file)).toEqual([]);
  });
});

describe("a message", () => {
  it("runs the workflow that it names, with its data as inputs, and the task has the outputs", async () => {
    const client = await connect();
    const task = await send(client, { skillId: "echo", data: { word: "hello" } });
    expect(stateOf(task)).toBe("TASK_STATE_COMPLETED");
    const snapshot = await world.ask(`/v1/runs/${task.id}`);
    expect(snapshot).toMatchObject({ workflowId: "echo", inputs: { word: "hello" }, status: "completed" });
    expect(task.artifacts[0]?.parts[0]?.content?.value).toEqual(snapshot["outputs"]);
    const read = await client.getTask({ tenant: "", id: task.id });
    expect(read).toEqual(task);
  });

  it("gives its text to the input that is made for one", async () => {
    const task = await send(await connect(), { skillId: "echo", text: "hi" });
    expect(await world.ask(`/v1/runs/${task.id}`)).toMatchObject({ inputs: { word: "hi" } });
  });

  it("that is an answer continues the task that waits for it", async () => {
    const client = await connect();
    const waiting = await send(client, { skillId: "gated", text: "go" });
    expect(stateOf(waiting)).toBe("TASK_STATE_INPUT_REQUIRED");
    const [words, question] = waiting.status?.message?.parts ?? [];
    expect(words?.content?.value).toBe("The run waits at gate for an answer (approval).");
    expect(question?.content?.value).toMatchObject({ nodeId: "gate", asked: { title: "Dig?" } });
    expect(JSON.stringify(waiting)).not.toContain("interruptToken");
    await expect(send(client, { taskId: waiting.id, text: "perhaps" })).rejects.toThrow(/accept/);
    expect(stateOf(await client.getTask({ tenant: "", id: waiting.id }))).toBe("TASK_STATE_INPUT_REQUIRED");
    const ended = await send(client, { taskId: waiting.id, text: "accept" });
    expect(stateOf(ended)).toBe("TASK_STATE_COMPLETED");
    await expect(send(client, { taskId: waiting.id, text: "accept" })).rejects.toThrow("waits for no answer");
  });

  it("that is sent twice is one task", async () => {
    const client = await connect();
    const message = { skillId: "echo", data: { word: "once" }, messageId: "m-1" };
    const first = await send(client, message);
    expect((await send(client, message)).id).toBe(first.id);
    expect((await send(client, { ...message, messageId: "m-2" })).id).not.toBe(first.id);
  });

  it("is refused with everything that is wrong with it", async () => {
    const client = await connect();
    await expect(send(client, { text: "x" })).rejects.toThrow(
      "metadata.skillId of the message: expected the id of a skill, one of echo, gated, slow, status",
    );
    await expect(send(client, { skillId: "no-such", text: "x" })).rejects.toThrow("metadata.skillId");
    await expect(send(client, { skillId: "echo", data: { word: 7, times: [] } })).rejects.toThrow(
      "inputs.word: expected string, got number; inputs.times: expected string, got array",
    );
    await expect(send(client, { skillId: "echo", data: [1] })).rejects.toThrow(
      "a part of a message here is a text, or data that is an object",
    );
    await expect(send(client, { skillId: "echo", text: "x", contextId: "c".repeat(300) })).rejects.toThrow(
      "message.contextId: it has more than 256 characters",
    );
    const push = createRequest({ skillId: "echo", text: "x" });
    const taskPushNotificationConfig = {
      tenant: "",
      id: "",
      taskId: "",
      url: "http://evil.example",
      token: "",
      authentication: undefined,
    };
    if (push.configuration) push.configuration = { ...push.configuration, taskPushNotificationConfig };
    await expect(client.sendMessage(push)).rejects.toThrow("This host calls nobody back");
  });

  it("keeps its context: tasks of one context are listed by it", async () => {
    const client = await connect();
    const first = await send(client, { skillId: "echo", text: "a", contextId: "talk-1" });
    await send(client, { skillId: "echo", text: "b", contextId: "talk-2" });
    expect(first.contextId).toBe("talk-1");
    const { tasks } = await client.listTasks({
      tenant: "",
      contextId: "talk-1",
      status: TaskState.TASK_STATE_UNSPECIFIED,
      pageToken: "",
      statusTimestampAfter: undefined,
    });
    expect(tasks.map(({ id }) => id)).toEqual([first.id]);
    const waiting = await send(client, { skillId: "gated", text: "go", contextId: "talk-1" });
    await expect(send(client, { taskId: waiting.id, contextId: "talk-2", text: "accept" })).rejects.toThrow(
      "of another context",
    );
  });
});

describe("a stream", () => {
  it("tells the task, what it asks, and after the answer its outputs and its end", async () => {
    const client = await connect();
    const first = await Array.fromAsync(
      client.sendMessageStream(createRequest({ skillId: "gated", text: "go" })),
    );
    expect(first.map(describeEvent).at(-1)).toMatch(/TASK_STATE_INPUT_REQUIRED$/);
    const [opening] = first;
    const taskId = opening?.payload?.$case === "task" ? opening.payload.value.id : "";
    const rest = await Array.fromAsync(client.sendMessageStream(createRequest({ taskId, text: "accept" })));
    expect(rest.map(describeEvent).at(-1)).toMatch(/TASK_STATE_COMPLETED$/);
    await expect(Array.fromAsync(client.resubscribeTask({ tenant: "", id: taskId }))).rejects.toThrow(
      "read it with GetTask",
    );
  });

  it("is joined by others, and ends with the cancelling of its task, once", async () => {
    const client = await connect();
    const task = await send(client, { skillId: "slow", text: "go", returnImmediately: true });
    const events: string[] = [];
    const following = (async () => {
      for await (const event of client.resubscribeTask({ tenant: "", id: task.id }))
        events.push(describeEvent(event));
    })();
    await waitFor(() => events.length > 0, { what: "the first event" });
    const cancelled = await client.cancelTask({ tenant: "", id: task.id, metadata: undefined });
    expect(["TASK_STATE_CANCELED", "TASK_STATE_WORKING"]).toContain(stateOf(cancelled));
    await following;
    expect(events.at(-1)).toBe("statusUpdate TASK_STATE_CANCELED");
    await expect(client.cancelTask({ tenant: "", id: task.id, metadata: undefined })).rejects.toThrow(
      "The task is cancelled.",
    );
  });

  it("that its client leaves leaves the task going on", async () => {
    const client = await connect();
    let taskId = "";
    for await (const event of client.sendMessageStream(createRequest({ skillId: "slow", text: "go" }))) {
      if (event.payload?.$case === "task") taskId = event.payload.value.id;
      break;
    }
    expect(stateOf(await client.getTask({ tenant: "", id: taskId }))).toBe("TASK_STATE_WORKING");
    await client.cancelTask({ tenant: "", id: taskId, metadata: undefined });
  });
});

function describeEvent({ payload }: StreamResponse): string {
  switch (payload?.$case) {
    case "task":
    case "statusUpdate":
      return `${payload.$case} ${stateOf(payload.value) ?? ""}`;
    default:
      return payload?.$case ?? "nothing";
  }
}

describe("whoever asks the A2A server", () => {
  it("needs a token, and sees no task of another tenant", async () => {
    const ours = await connect();
    const theirs = await connect(OTHER_TOKEN);
    const { id } = await send(ours, { skillId: "gated", text: "go" });
    await expect(theirs.getTask({ tenant: "", id })).rejects.toThrow("There is no such task.");
    await expect(theirs.getTask({ tenant: "miners", id })).rejects.toThrow("There is no such task.");
    await expect(theirs.cancelTask({ tenant: "", id, metadata: undefined })).rejects.toThrow(
      "There is no such task.",
    );
    await expect(send(theirs, { taskId: id, text: "accept" })).rejects.toThrow("There is no such task.");
    await expect(Array.fromAsync(theirs.resubscribeTask({ tenant: "", id }))).rejects.toThrow(
      "There is no such task.",
    );
    const refused = await post({}, { token: "wrong" });
    expect([refused.status, await refused.json()]).toMatchObject([401, { jsonrpc: "2.0", id: null }]);
    expect(refused.headers.get("www-authenticate")).toContain("Bearer");
  });

  it("gets an answer to what is no message, or of a revision that is not spoken", async () => {
    expect((await post({ hello: "there" })).status).toBe(400);
    const unknown = await post({ jsonrpc: "2.0", id: 1, method: "NoSuch", params: {} });
    expect(await unknown.json()).toMatchObject({ id: 1, error: { code: -32_601 } });
    const later = await post(
      { jsonrpc: "2.0", id: 1, method: "GetTask", params: { id: "x" } },
      { version: "9.9" },
    );
    expect(await later.json()).toMatchObject({
      id: 1,
      error: { message: expect.stringContaining("1.0 and 0.3") as string },
    });
    const huge = await post({
      jsonrpc: "2.0",
      id: 1,
      method: "SendMessage",
      params: { x: "x".repeat(10_000_000) },
    });
    expect(huge.status).toBe(413);
  });

  it.each([
    ["0.3", "tasks/get", {}, "id: expected the id of a task"],
    ["0.3", "tasks/resubscribe", { id: 7 }, "id: expected the id of a task"],
    ["0.3", "tasks/pushNotificationConfig/set", {}, "params: they are not of the form"],
    ["1.0", "SendMessage", { configuration: { historyLength: { toString: "" } } }, "params: "],
  ])("is told what is wrong with params: %s %s %j", async (version, method, params, words) => {
    const answered = await post({ jsonrpc: "2.0", id: 1, method, params }, { version });
    const text = await answered.text();
    expect(text).toContain(words);
    expect(text).not.toContain("-32603");
  });

  it("may speak revision 0.3 of the protocol", async () => {
    const message = {
      kind: "message",
      role: "user",
      messageId: "old-1",
      parts: [{ kind: "text", text: "hi" }],
      metadata: { skillId: "gated" },
    };
    const params = { message, configuration: { blocking: true } };
    const sent = await post(
      { jsonrpc: "2.0", id: 7, method: "message/send", params },
      { version: undefined },
    );
    const { result } = (await sent.json()) as { readonly result: { readonly id: string } };
    expect(result).toMatchObject({ kind: "task", status: { state: "input-required" } });
    const answer = {
      ...message,
      messageId: "old-2",
      taskId: result.id,
      parts: [{ kind: "text", text: "accept" }],
    };
    const ended = await post(
      { jsonrpc: "2.0", id: 8, method: "message/send", params: { ...params, message: answer } },
      { version: undefined },
    );
    expect(await ended.json()).toMatchObject({
      id: 8,
      result: { id: result.id, status: { state: "completed" } },
    });
    const read = await post(
      { jsonrpc: "2.0", id: 9, method: "tasks/get", params: { id: result.id } },
      { version: undefined },
    );
    expect(await read.json()).toMatchObject({ result: { kind: "task", id: result.id } });
  });
});

interface PostOptions {
  readonly token?: string;
  /** `undefined`: the header is left out. */
  readonly version?: string | undefined;
}

function post(body: unknown, posting: PostOptions = {}): Promise<Response> {
  const { token = TOKEN } = posting;
  const version = "version" in posting ? posting.version : "1.0";
  return fetch(`${world.baseUrl}/v1/a2a`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      ...(version !== undefined && { "a2a-version": version }),
    },
    body: JSON.stringify(body),
  });
}
