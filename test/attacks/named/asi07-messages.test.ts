/** Owns: messages between agents and hosts that are forged, replayed, or of somebody else (ASI07). */
import { afterAll, beforeAll, expect, it } from "vitest";
import { openAttackedHost, readJson, STRANGER, type Answer, type AttackedHost } from "./serve-scene.ts";

let host: AttackedHost;

beforeAll(async () => {
  host = await openAttackedHost({ a2a: true });
});
afterAll(() => host[Symbol.asyncDispose]());

/** Starts a run that waits for a yes, and returns the signed token that may give it. */
async function startGated(): Promise<{ readonly runId: string; readonly token: string }> {
  const runId = await host.miner.start("gated");
  const { interrupt } = await host.miner.until(runId, "waiting-approval");
  return { runId, token: interrupt?.interruptToken ?? expect.fail("the question has no token") };
}

const ACCEPT = { resumeValue: { action: "accept" } };

const answerByToken = (token: string, body: unknown = ACCEPT): Promise<Answer> =>
  host.send(`/v1/interrupts/${token}`, { method: "POST", token: "", body });

const readStatus = async (runId: string): Promise<string> => (await host.miner.snapshot(runId)).status;

function changeLetter(text: string, at: number): string {
  return `${text.slice(0, at)}${text[at] === "A" ? "B" : "A"}${text.slice(at + 1)}`;
}

it("ASI07-1 an interrupt token with a changed letter", async () => {
  const { runId, token } = await startGated();
  for (const forged of [
    changeLetter(token, token.length - 3),
    changeLetter(token, 5),
    `${token}xx`,
    token.slice(1),
    `${token}.`,
  ])
    expect((await answerByToken(forged)).status).toBe(404);
  expect(await readStatus(runId)).toBe("waiting-approval");
});

it("ASI07-2 an interrupt token that is used twice", async () => {
  const { runId, token } = await startGated();
  expect((await answerByToken(token)).status).toBe(200);
  await host.miner.until(runId, "completed");
  const second = await answerByToken(token, { resumeValue: { action: "reject" } });
  expect([second.status, readJson(second)["error"]]).toEqual([409, "interrupt_already_resolved"]);
  expect(await readStatus(runId)).toBe("completed");
});

it("ASI07-3 the claims of one interrupt token under the signature of another", async () => {
  const [first, second] = [await startGated(), await startGated()];
  const [claims] = first.token.split(".");
  const [, ...signature] = second.token.split(".");
  expect(signature).not.toEqual([]);
  expect((await answerByToken([claims, ...signature].join("."))).status).toBe(404);
  expect(await readStatus(first.runId)).toBe("waiting-approval");
  expect(await readStatus(second.runId)).toBe("waiting-approval");
});

it("ASI07-4 an interrupt token whose claims name another run and are signed by no key", async () => {
  const { runId, token } = await startGated();
  const [claims = ""] = token.split(".");
  const payload = JSON.parse(Buffer.from(claims, "base64url").toString()) as Record<string, unknown>;
  const forged = Buffer.from(JSON.stringify({ ...payload, expiresAt: 9e15 })).toString("base64url");
  for (const signature of ["", "AA", Buffer.alloc(32).toString("base64url")])
    expect((await answerByToken(`${forged}.${signature}`)).status).toBe(404);
  expect(await readStatus(runId)).toBe("waiting-approval");
});

it("ASI07-5 an interrupt token used as a bearer token", async () => {
  const { runId, token } = await startGated();
  for (const path of [`/v1/runs/${runId}`, `/v1/runs/${runId}/events`, "/v1/host/workspace/files"])
    expect((await host.send(path, { token })).status).toBe(401);
  const cancelled = await host.send(`/v1/runs/${runId}/cancel`, { method: "POST", token, body: {} });
  expect(cancelled.status).toBe(401);
  expect(await readStatus(runId)).toBe("waiting-approval");
});

it("ASI07-6 an answer to a run of another tenant, by its id", async () => {
  const { runId } = await startGated();
  const answer = await host.stranger.resolve(runId, "gate", { action: "accept" });
  expect([answer.status, answer.body["error"]]).toEqual([404, "not_found"]);
  expect(await readStatus(runId)).toBe("waiting-approval");
});

it("ASI07-7 orders to a run of another tenant: cancel, pause, resume, fork", async () => {
  const { runId } = await startGated();
  for (const order of ["/cancel", ":pause", ":resume", ":fork"]) {
    const body = order === ":fork" ? { mode: "replay" } : {};
    const answer = await host.send(`/v1/runs/${runId}${order}`, { method: "POST", token: STRANGER, body });
    expect([order, answer.status]).toEqual([order, 404]);
  }
  expect(await readStatus(runId)).toBe("waiting-approval");
});

it("ASI07-8 an idempotency key of another tenant", async () => {
  const headers = { "idempotency-key": "order-4711" };
  const first = await host.miner.post("/v1/runs", { workflowId: "echo" }, headers);
  const second = await host.stranger.post("/v1/runs", { workflowId: "echo" }, headers);
  expect([first.status, second.status]).toEqual([201, 201]);
  expect(second.headers["openwop-idempotent-replay"]).toBe("false");
  expect(second.body["runId"]).not.toBe(first.body["runId"]);
});

it("ASI07-9 an idempotency key of the own tenant with another body", async () => {
  const headers = { "idempotency-key": "order-4712" };
  const first = await host.miner.post("/v1/runs", { workflowId: "echo" }, headers);
  const second = await host.miner.post("/v1/runs", { workflowId: "slow" }, headers);
  expect([second.status, second.body["error"]]).toEqual([409, "idempotency_key_mismatch"]);
  expect(JSON.stringify(second.body)).not.toContain(String(first.body["runId"]));
});

const askAgent = async (method: string, params: unknown, token?: string): Promise<Record<string, unknown>> =>
  readJson(
    await host.send("/v1/a2a", {
      method: "POST",
      ...(token !== undefined && { token }),
      headers: { "a2a-version": "1.0" },
      body: { jsonrpc: "2.0", id: 1, method, params },
    }),
  );

it("ASI07-10 an A2A task of another tenant: read, cancelled, answered, joined to a context", async () => {
  const { runId: id } = await startGated();
  const answer = { messageId: "m-1", role: "ROLE_USER", taskId: id, parts: [{ text: "accept" }] };
  for (const [method, params] of [
    ["GetTask", { id }],
    ["GetTask", { id, tenant: "miners" }],
    ["CancelTask", { id }],
    ["SendMessage", { message: answer }],
    ["SendMessage", { tenant: "miners", message: answer }],
  ] as const) {
    const { error, result } = await askAgent(method, params, STRANGER);
    expect([method, result, error]).toMatchObject([method, undefined, { message: "There is no such task." }]);
  }
  const { result } = await askAgent("ListTasks", { contextId: id }, STRANGER);
  expect(result).toMatchObject({ tasks: [] });
  expect(await readStatus(id)).toBe("waiting-approval");
});

it("ASI07-11 an A2A message of another tenant sent again under the same id", async () => {
  const createMessage = (skillId: string) => ({
    message: { messageId: "shared-id", role: "ROLE_USER", parts: [{ text: "x" }], metadata: { skillId } },
  });
  const ids = [];
  for (const token of [undefined, STRANGER]) {
    const { result } = await askAgent("SendMessage", createMessage("echo"), token);
    ids.push((result as { task: { id: string } }).task.id);
  }
  expect(new Set(ids).size).toBe(2);
});

it("ASI07-12 a push notification to an address of the attacker's", async () => {
  const { runId: taskId } = await startGated();
  const config = { taskId, id: "c", url: "http://169.254.169.254/steal", token: "t" };
  const { error, result } = await askAgent("CreateTaskPushNotificationConfig", config);
  expect(result).toBeUndefined();
  expect(error).toMatchObject({ message: expect.stringContaining("calls nobody back") as string });
});

it("ASI07-13 a parent of another host that claims rights by its header", async () => {
  const { runId } = await startGated();
  const parent = JSON.stringify({
    runId,
    hostId: host.baseUrl,
    causationId: `${runId}:0`,
    eventId: `${runId}:0`,
    tenant: "miners",
    wellKnownUrl: `${host.baseUrl}/.well-known/openwop`,
  });
  const headers = { "openwop-parent": parent, traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01` };
  for (const path of [`/v1/runs/${runId}`, `/v1/runs/${runId}/ancestry`, `/v1/runs/${runId}/events`])
    expect((await host.send(path, { token: STRANGER, headers })).status).toBe(404);
});
