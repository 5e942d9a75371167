/** Attacks on questions, held results and surfaces of the gateway. Owns: playing them. Does not own: judging it. */
import { createHmac, randomUUID } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { METHODS } from "../../src/plugins/openclaw/declarations/method-declarations.ts";
import { createPageClient, readLive, sendRequest, signIn } from "../openwop/page-scene.ts";
import { connectOnUse } from "../support/gateway-client.ts";
import type { Json } from "../support/gateway.ts";
import { textOf, type ToolCall, type Turn } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import {
  createChild,
  doubtedTaskOf,
  labelOf,
  readResults,
  secretOf,
  sessionOf,
  start,
  WAIT_MS_MAX,
  waitUntilSaid,
  WEBHOOK_SECRET,
  type Arm,
} from "./attacks-stage.ts";
import type { OpenedCoordination } from "./stage.ts";
import { call } from "./writes-stage.ts";

export const VAULT = "attacked-vault";
export const [FIRST, SECOND] = [`${VAULT}:escalation-1`, `${VAULT}:escalation-2`];
export const VAULT_OUTPUT = "the plans of the vault";

const createTool = (name: string, args: object): ToolCall => ({ name, args: args as Json });
const approve = (questionId: string): ToolCall =>
  createTool("coordination_answer", { questionId, answer: "approve" });

/** A step that asks people twice, and answers itself. */
const ASKING: readonly Turn[] = [
  call(
    createTool("coordination_escalate", { kind: "approval", question: "May I dig?", waitMs: 0 }),
    createTool("coordination_escalate", { kind: "approval", question: "May I blast?", waitMs: 0 }),
  ),
  call(
    approve(FIRST),
    createTool("coordination_answer", { questionId: FIRST, deny: true }),
    createTool("coordination_report", { outcome: "completed", outputs: { found: VAULT_OUTPUT } }),
  ),
];

/** Begins the plan of the vault; answers with the error where there is nobody who runs plans. */
export async function playAsking(arm: Arm): Promise<string | undefined> {
  const { stage } = arm;
  const child = createChild(arm, "asks", ASKING);
  const plan = {
    coordinationId: VAULT,
    objective: "ask",
    ownerSession: sessionOf(arm, "vault"),
    conflictPolicy: {},
    failurePolicy: { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
    steps: [{ stepId: "asks", agent: "main", task: child.task }],
  };
  const refusal = await stage.gateway.call("coordination.plan.run", { plan }).then(() => undefined, String);
  if (refusal !== undefined) await start(arm, "vault", { spawn: [child] });
  await waitUntilSaid(arm, "asks");
  return refusal;
}

/** A session that has nothing to do with the vault. */
export async function playStranger(arm: Arm): Promise<void> {
  const forged = { sessionKey: sessionOf(arm, "vault"), stepId: "asks", coordinationId: VAULT };
  const plan = `{"plan":{"objective":"o","ownerSession":"${sessionOf(arm, "vault")}","__proto__":{"admin":true},"steps":[{"stepId":"a","task":"t"}]}}`;
  await start(arm, "stranger", {
    ...call(
      createTool("coordination_status", { coordinationId: VAULT }),
      createTool("coordination_status", { coordinationId: VAULT, outputsOf: "asks" }),
      createTool("coordination_result", { coordinationId: VAULT, stepId: "asks" }),
      createTool("coordination_status", { ownerSession: sessionOf(arm, "vault") }),
      createTool("coordination_report", { outcome: "completed", outputs: { found: "lead" }, ...forged }),
      createTool("coordination_report", { outcome: "completed", outputs: { found: "lead" } }),
      createTool("coordination_progress", { line: "half way", ...forged }),
      approve(FIRST),
    ),
    callRaw: { name: "coordination_plan", args: plan },
  });
}

/** A child that doubts its result, and the results of tools that look for it. */
export interface DoubtedChild {
  readonly child: string;
  /** The results of the host's tools that show sessions, as the parent and as a stranger read them. */
  readonly shown: readonly string[];
  readonly state?: OpenedCoordination;
}

/** A child that doubts its result, and two who look for it by the tools of the host. */
export async function playDoubted(arm: Arm): Promise<DoubtedChild> {
  const { stage } = arm;
  const session = sessionOf(arm, "doubts");
  await start(arm, "doubts", {
    spawn: [{ label: labelOf(arm, "doubted"), task: doubtedTaskOf(arm) }],
  });
  const [spawned = "{}"] = readResults(arm, "doubts");
  const { childSessionKey: child, runId } = JSON.parse(spawned) as Record<
    "childSessionKey" | "runId",
    string
  >;
  const isTold = (): boolean =>
    stage.model.requests.some(({ matched, body }) => {
      const last = textOf(body.messages.at(-1) ?? { role: "" });
      return matched === "announce" && last.includes(child);
    });
  const isAnnounced = {
    what: `${arm.name}: the announcement of the doubted`,
    timeoutMs: WAIT_MS_MAX,
    everyMs: 250,
  };
  await waitFor(isTold, isAnnounced);
  const looks = call(
    createTool("sessions_history", { sessionKey: child, includeTools: true }),
    createTool("sessions_list", { messageLimit: 5, limit: 50 }),
    createTool("sessions_search", { query: "vein" }),
    createTool("subagents", { action: "list" }),
    createTool("agents_wait", { ids: [runId] }),
  );
  await stage.gateway.agent({ sessionKey: session, message: createChild(arm, "looks", [looks]).task });
  await start(arm, "looks-too", looks);
  const shown = [...readResults(arm, "looks"), ...readResults(arm, "looks-too")];
  if (arm.name === "off") return { child, shown };
  return { child, shown, state: await stage.until(session, ({ escalations }) => escalations.size > 0) };
}

export const findSecret = (arm: Arm, texts: readonly string[]): boolean[] =>
  texts.map((text) => text.includes(secretOf(arm)));

const hash = (text: string, secret: string, encoding: "base64" | "base64url"): string =>
  createHmac("sha256", secret).update(text).digest(encoding);

export const writeAnswer = (questionId: string, fields: Json = {}): string =>
  JSON.stringify({
    questionId,
    answer: "approve",
    answerToken: hash(`answer:${questionId}`, WEBHOOK_SECRET, "base64url"),
    ...fields,
  });

interface SignatureFields {
  readonly secret?: string;
  readonly id?: string;
  readonly atMs?: number;
}

export function sign(
  body: string,
  { secret = WEBHOOK_SECRET, id = randomUUID(), atMs = Date.now() }: SignatureFields = {},
): Record<string, string> {
  const seconds = String(Math.floor(atMs / 1_000));
  const signature = hash(`${id}.${seconds}.${body}`, secret, "base64");
  return { "webhook-id": id, "webhook-timestamp": seconds, "webhook-signature": `v1,${signature}` };
}

export interface Reply {
  readonly status: number;
  readonly text: string;
}

const addressOf = ({ stage }: Arm, path: string): string => `http://127.0.0.1:${stage.gateway.port}${path}`;

/** Sends an answer as a system of the operator's would. */
export async function post(
  arm: Arm,
  body: string,
  headers: Record<string, string>,
  name = "ops",
): Promise<number> {
  const { status } = await fetch(addressOf(arm, `/coordination/answers/${name}`), {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body,
  });
  return status;
}

interface RequestFields {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a request with any headers. */
export async function send(arm: Arm, path: string, sent: RequestFields = {}): Promise<Reply> {
  const answer = await sendRequest(addressOf(arm, ""), { path, ...sent });
  return { status: answer.status, text: answer.body };
}

/** Calls a method as an operator does; answers with the error where it is refused. */
export const askOperator = ({ stage }: Arm, method: string, params: Json): Promise<string> =>
  stage.gateway.call(method, params).then((answer) => JSON.stringify(answer), String);

/** The gateway's answers to each method of ours, without a token and with wrong ones. */
export async function callWithoutToken({ stage }: Arm): Promise<string[]> {
  const { port, token } = stage.gateway;
  const answers: string[] = [];
  for (const wrong of ["", "x", `${token}x`]) {
    const client = connectOnUse(port, wrong);
    for (const method of Object.keys(METHODS)) {
      const request = { method, params: {}, timeoutMs: 10_000 };
      answers.push(await client.request(request).then(() => "answered", String));
    }
    client.close();
  }
  return answers;
}

const OPENWOP_RUNS = "/coordination/openwop/v1/runs/x";
const TAB = "/coordination/page-tab";
const METRICS = "/coordination/metrics";
const PAGE_RUNS = "/coordination/page/api/runs";
const PAGE_SESSION = "/coordination/page/api/session";

/** Addresses of ours without a token, and with a wrong one. */
export async function tryAddresses(arm: Arm): Promise<Reply[]> {
  const wrong = { authorization: `Bearer ${arm.stage.gateway.token}x` };
  const replies = [TAB, METRICS, PAGE_RUNS, OPENWOP_RUNS].flatMap((path) => [
    send(arm, path),
    send(arm, path, { headers: wrong }),
  ]);
  return Promise.all(replies);
}

/** Names that lead here: whoever owns the name owns the page that asks. */
export const tryRebound = (arm: Arm): Promise<Reply[]> =>
  Promise.all(
    ["GET", "POST"].map((method) =>
      send(arm, method === "GET" ? PAGE_RUNS : PAGE_SESSION, {
        method,
        headers: { host: "rebound.evil.example", authorization: `Bearer ${arm.stage.gateway.token}` },
      }),
    ),
  );

/** Pages of others, in a browser that is signed in here. */
export const tryForeign = (arm: Arm): Promise<number[]> =>
  Promise.all(
    ["https://evil.example", "http://localhost:1"].map(async (origin) => {
      const headers = { origin, "content-type": "application/json" };
      const answer = await fetch(addressOf(arm, PAGE_SESSION), { method: "POST", headers, body: "{}" });
      return answer.status;
    }),
  );

/** All that the operator's page lists of a coordination, and the first of its live stream. */
export async function readPage({ stage }: Arm, coordinationId: string): Promise<string[]> {
  const { address } = (await stage.gateway.call("coordination.page.link")) as { address: string };
  const [baseUrl = "", link = ""] = address.split("/#link=");
  const client = createPageClient(baseUrl, await signIn(baseUrl, link));
  const paths = [
    "runs",
    "questions",
    "health",
    `runs/${coordinationId}`,
    `runs/${coordinationId}/events?limit=1000`,
  ];
  const bodies = await Promise.all(paths.map((path) => client.ask(path)));
  const leaving = new AbortController();
  const live = readLive(baseUrl, client, { signal: leaving.signal, lastEventId: "0" });
  const first = await live.next();
  leaving.abort();
  return [...bodies.map((body) => JSON.stringify(body)), JSON.stringify(first.value)];
}

/** The files and folders of the state folder that other users may read or write. */
export function listModes({ stage }: Arm, folder: string): string[] {
  const path = join(stage.gateway.stateDir, folder);
  return readdirSync(path)
    .filter((name) => statSync(join(path, name)).isFile() && (statSync(join(path, name)).mode & 0o077) !== 0)
    .map((name) => `${name} ${(statSync(join(path, name)).mode & 0o777).toString(8)}`);
}
