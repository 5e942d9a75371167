/** Questions told and answered by signed requests, and the flag turned while a result is held. */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { signWebhookMessage } from "../../src/infra/webhook/webhook-signature.ts";
import type { Json } from "../support/gateway.ts";
import {
  listUnique,
  startOtlpCollector,
  type CollectedSpan,
  type OtlpCollector,
} from "../support/otlp-collector.ts";
import { textOf } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { hasEnded, stepNamed, type OpenedCoordination } from "./stage.ts";
import { turnFlagOrRestart } from "./turn-flag.ts";
import {
  answer,
  findChildOfStep,
  expectKept,
  expectSound,
  factsOf,
  HELD_BACK,
  openGateStage,
  ownerOf,
  waitForQuestion,
  askToReadAfterwards,
  spawnFrom,
  countTimesRead,
  waitUntilAnnounced,
  WAIT_MS_MAX,
  type OpenQuestion,
  type GateStage,
} from "./gates-stage.ts";

const SECRET = "a-secret-of-both-sides-3f";

interface Notice {
  readonly headers: IncomingMessage["headers"];
  readonly bytes: string;
}

let receiver: Server;
let collector: OtlpCollector;
let stage: GateStage;
const notices: Notice[] = [];

function createPhase1(fields: Json = {}): Json {
  const { port } = receiver.address() as AddressInfo;
  const ops = { url: `http://127.0.0.1:${port}/hook`, secret: SECRET, allowPrivate: true };
  const telemetry = { enabled: true, endpoint: collector.url };
  return { escalations: { notify: [{ channel: "webhook:ops" }], webhooks: { ops } }, telemetry, ...fields };
}

beforeAll(async () => {
  receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      notices.push({ headers: request.headers, bytes: Buffer.concat(chunks).toString("utf8") });
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  collector = await startOtlpCollector();
  stage = await openGateStage(createPhase1());
});

afterAll(async () => {
  await stage.close();
  await collector[Symbol.asyncDispose]();
  receiver.closeAllConnections();
  receiver.close();
});

const secretOf = (label: string): string => `doubted-result-of-${label}-e20b`;
const endedOf = (label: string): Promise<OpenedCoordination> =>
  stage.until(ownerOf(label), hasEnded, WAIT_MS_MAX);

async function spawnDoubting(label: string): Promise<OpenQuestion & { readonly child: string }> {
  await spawnFrom(stage, label, [{ say: `It is ${secretOf(label)}.\n{"confidence": 0.4}` }]);
  const question = await waitForQuestion(stage, label);
  const child = findChildOfStep(question.state, label);
  await waitUntilAnnounced(stage, child);
  return { ...question, child };
}

interface QuestionBody {
  readonly question: Json;
  readonly answer: { readonly answerToken: string; readonly choices: readonly string[] };
}

async function noticeOf(questionId: string): Promise<Notice & { readonly body: QuestionBody }> {
  const notice = await waitFor(() => notices.find(({ bytes }) => bytes.includes(questionId)), {
    what: `the notice of ${questionId}`,
    timeoutMs: WAIT_MS_MAX,
  });
  return { ...notice, body: JSON.parse(notice.bytes) as QuestionBody };
}

interface SignatureFields {
  readonly name?: string;
  readonly secret?: string;
  readonly id?: string;
  readonly atMs?: number;
}

/** Sends what a system of the operator's would send. */
async function postAnswer(
  body: object,
  signed: SignatureFields = {},
): Promise<{ status: number; body: Json }> {
  const { name = "ops", secret = SECRET, id = randomUUID(), atMs = Date.now() } = signed;
  const bytes = JSON.stringify(body);
  const timestamp = String(Math.floor(atMs / 1_000));
  const signature = signWebhookMessage(secret, { id, timestamp, body: Buffer.from(bytes) });
  const headers = {
    "content-type": "application/json",
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": signature,
  };
  const url = `http://127.0.0.1:${stage.gateway.port}/coordination/answers/${name}`;
  const response = await fetch(url, { method: "POST", headers, body: bytes });
  return { status: response.status, body: (await response.json().catch(() => ({}))) as Json };
}

describe("a webhook", () => {
  const label = "hooked";
  let request: OpenQuestion & { readonly child: string };
  let approval: object;

  beforeAll(async () => {
    request = await spawnDoubting(label);
    const { body } = await noticeOf(request.questionId);
    const { answerToken } = body.answer;
    approval = { questionId: request.questionId, answerToken, answer: "approve", by: { id: "ada" } };
  });

  it("is told of a question by a signed request that holds nothing of the result", async () => {
    const { headers, bytes, body } = await noticeOf(request.questionId);
    const [id, timestamp] = [String(headers["webhook-id"]), String(headers["webhook-timestamp"])];
    const expected = signWebhookMessage(SECRET, { id, timestamp, body: Buffer.from(bytes) });
    expect(headers["webhook-signature"]).toBe(expected);
    expect(body.question).toMatchObject({ cause: "confidence", confidence: { measured: 0.4, floor: 0.7 } });
    expect(body.answer.choices).toEqual(["approve", "deny", "answer"]);
    expect(bytes).not.toContain(secretOf(label));
    await stage.until(
      ownerOf(label),
      ({ escalations }) => escalations.first()?.notified?.get(0) === "delivered",
    );
  });

  it("has an address and a secret that the host's settings do not show", async () => {
    const shown = JSON.stringify(await stage.gateway.call("config.get", {}));
    expect(shown).toContain("webhook:ops");
    expect(shown).not.toContain(SECRET);
    expect(shown).not.toContain("/hook");
  });

  it("is refused where its answer is forged, stale, or brings the wrong token, and the question stays open", async () => {
    const statuses = [
      await postAnswer(approval, { secret: "a-secret-of-nobody-here" }),
      await postAnswer(approval, { name: "other" }),
      await postAnswer(approval, { atMs: Date.now() - 600_000 }),
      await postAnswer({ ...approval, answerToken: "guessed" }),
    ].map(({ status }) => status);
    expect(statuses).toEqual([401, 401, 401, 403]);
    const [state] = await stage.of(ownerOf(label));
    expect(state?.openQuestions.size).toBe(1);
    expectKept(stage, secretOf(label), request.child);
  });

  it("releases the result by a signed answer, and the same request again is a replay", async () => {
    const id = randomUUID();
    expect(await postAnswer(approval, { id })).toMatchObject({
      status: 200,
      body: { resolution: "approved" },
    });
    expect(await postAnswer(approval, { id })).toMatchObject({ status: 409 });
    const state = await endedOf(label);
    const [answered] = await factsOf(stage, state, "escalation.answered");
    expect(answered).toMatchObject({ through: "webhook:ops", by: { kind: "person", id: "ada" } });
    expect(countTimesRead(await askToReadAfterwards(stage, label), secretOf(label))).toBe(1);
    await expectSound(stage, state);
  });

  it("has its question in the trace of the coordination, which a collector is sent while the gateway runs", async () => {
    const { coordinationId } = await endedOf(label);
    const isRoot = ({ attributes }: CollectedSpan): boolean =>
      attributes["coordination.id"] === coordinationId;
    const root = await waitFor(() => collector.spans.find(isRoot), {
      what: "the root of the trace",
      timeoutMs: WAIT_MS_MAX,
    });
    const spans = listUnique(collector.spans).filter(({ traceId }) => traceId === root.traceId);
    const findChild = ({ spanId }: CollectedSpan, name: string): CollectedSpan | undefined =>
      spans.find((span) => span.parentSpanId === spanId && span.name.startsWith(name));
    const attempt = findChild(root, "invoke_agent") ?? root;
    expect(attempt.attributes["coordination.outcome"]).toBe("held");
    expect(findChild(attempt, "coordination.gate")?.attributes).toMatchObject({
      "coordination.gate.released": "approved",
      "coordination.confidence": 0.4,
    });
    const question = findChild(attempt, "coordination.question confidence");
    expect(question?.attributes["coordination.question.resolution"]).toBe("approved");
    expect(question?.events).toContain("coordination.question.notified");
    expect(collector.problems).toEqual([]);
    expect(JSON.stringify(collector.spans)).not.toContain(secretOf(label));
  });

  it("is told that it comes late where somebody else was first, and that is recorded", async () => {
    const second = "late";
    const { questionId } = await spawnDoubting(second);
    const { body } = await noticeOf(questionId);
    const { answerToken } = body.answer;
    await answer(stage, questionId, "deny");
    const late = await postAnswer({ questionId, answerToken, answer: "approve" });
    expect(late.status).toBe(409);
    const state = await endedOf(second);
    expect(stepNamed(state, second).phase).toMatchObject({ status: "failed", error: { code: "withheld" } });
    const answers = await factsOf(stage, state, "escalation.answered");
    expect(answers).toMatchObject([
      { answer: "deny", through: "gateway" },
      { answer: "approve", through: "webhook:ops", refused: "closed" },
    ]);
    await expectSound(stage, state);
  });
});

describe("the flag", () => {
  const turn = (enabled: boolean): Promise<void> =>
    turnFlagOrRestart(stage, { enabled, phase1: createPhase1() });

  it("turned off and on again while a result is held: the question stays, and the result is kept", async () => {
    const label = "switched";
    const { questionId, child } = await spawnDoubting(label);
    await turn(false);
    const off = await postAnswer({ questionId, answer: "approve" });
    expect(off.status).toBe(404);
    await askToReadAfterwards(stage, label);
    expectKept(stage, secretOf(label), child);
    await turn(true);
    expect(await answer(stage, questionId, "approve")).toMatchObject({ resolution: "approved" });
    const state = await endedOf(label);
    expect(countTimesRead(await askToReadAfterwards(stage, label), secretOf(label))).toBe(1);
    await expectSound(stage, state);
  });

  it("off: what a child states holds nothing back, and nothing is transformed", async () => {
    const label = "unheld";
    await turn(false);
    await spawnFrom(stage, label, [{ say: `It is ${secretOf(label)}.\n{"confidence": 0.1}` }]);
    const announced = await waitFor(
      () =>
        stage.model.requests.find(({ body }) => {
          const last = textOf(body.messages.at(-1) ?? { role: "" });
          return last.includes("[Internal task completion event]") && last.includes(secretOf(label));
        }),
      { what: "the announcement", timeoutMs: WAIT_MS_MAX },
    );
    expect(JSON.stringify(announced.body)).not.toContain(HELD_BACK);
    expect(await stage.of(ownerOf(label))).toEqual([]);
  });
});
