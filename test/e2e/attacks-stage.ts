/**
 * One gateway in which the same attacks are played twice: with the flag off and with the flag on. Owns: its configuration, and
 * the names that keep the two apart. Does not own: the attacks.
 */
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Json } from "../support/gateway.ts";
import { startOtlpCollector, type OtlpCollector } from "../support/otlp-collector.ts";
import { isAnnounce, type Rule, type SpawnArgs, type Turn } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { createPluginConfig, PHASE1, type Stage } from "./stage.ts";
import { begin, childOf, openWritesStage, ownerOf, resultsOf } from "./writes-stage.ts";

export const WEBHOOK_SECRET = "a-secret-of-both-sides-5c";
export const QUIET_SECRET = "a-secret-of-the-quiet-one-9d";
export const OPENWOP_TOKEN = "the-openwop-token-of-the-attacks";

/** How many children a tree may have, and how deep it may be. */
export const SPAWNS_MAX = 5;
export const DEPTH_MAX = 3;

/** A turn of the host took half a minute, on a machine with other work. */
export const WAIT_MS_MAX = 180_000;

/** A gateway to attack, and the webhook and the collector to which it sends. */
export interface AttackStage {
  readonly stage: Stage;
  /** Bodies that the webhook was sent. */
  readonly notices: readonly string[];
  readonly collector: OtlpCollector;
  readonly phase1: Json;
  readonly close: () => Promise<void>;
}

/** One of the two times. Everything in it has its own names: the host keeps its sessions over the switch. */
export interface Arm {
  readonly stage: Stage;
  readonly name: "off" | "on";
}

/** Said by a model alone: a script would be in the task, which the parent wrote. */
export const secretOf = ({ name }: Arm): string => `raw-result-of-${name}-5d1e`;
export const doubtedTaskOf = ({ name }: Arm): string => `Look for the vein, ${name}.`;

const RULES: readonly Rule[] = (["off", "on"] as const).map((name) => {
  const arm = { name } as Arm;
  return {
    when: (text) => text.includes(doubtedTaskOf(arm)) && !text.includes("SCRIPT:") && !isAnnounce(text),
    turns: [{ say: `It is ${secretOf(arm)}.\n{"confidence": 0.4}` }],
  };
});

const SPAWNING: Json = {
  agents: { defaults: { subagents: { maxSpawnDepth: 5, maxChildrenPerAgent: 20 } } },
};

export async function openAttacked(): Promise<AttackStage> {
  const notices: string[] = [];
  const receiver = createReceiver(notices);
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  const collector = await startOtlpCollector();
  const { port } = receiver.address() as AddressInfo;
  const phase1 = createPhase1(`http://127.0.0.1:${port}/hook`, collector.url);
  const pluginConfig = createPluginConfig({ ...PHASE1, ...phase1, enabled: false });
  const stage = await openWritesStage({}, { pluginConfig, configPatch: SPAWNING }, RULES);
  return {
    stage,
    notices,
    collector,
    phase1,
    close: async () => {
      await stage.close();
      await collector[Symbol.asyncDispose]();
      receiver.closeAllConnections();
      receiver.close();
    },
  };
}

function createPhase1(url: string, endpoint: string): Json {
  const ops = { url, secret: WEBHOOK_SECRET, allowPrivate: true };
  const quiet = { url, secret: QUIET_SECRET, allowPrivate: true, answers: false };
  return {
    budget: { spawns: SPAWNS_MAX, depth: DEPTH_MAX },
    escalations: { notify: [{ channel: "webhook:ops" }], webhooks: { ops, quiet } },
    metrics: { enabled: true },
    telemetry: { enabled: true, endpoint },
    openwop: { enabled: true, tokens: [{ token: OPENWOP_TOKEN }] },
  };
}

function createReceiver(notices: string[]): Server {
  return createServer((request: IncomingMessage, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      notices.push(Buffer.concat(chunks).toString("utf8"));
      response.writeHead(204).end();
    });
  });
}

export const labelOf = ({ name }: Arm, label: string): string => `${name}-${label}`;
export const sessionOf = (arm: Arm, label: string): string => ownerOf(labelOf(arm, label));

/** A child of the arm, with settings of its spawn. */
export function createChild(
  arm: Arm,
  label: string,
  turns: readonly Turn[],
  fields: Omit<SpawnArgs, "task"> = {},
): SpawnArgs {
  return { ...childOf(labelOf(arm, label), ...turns), ...fields };
}

/** Runs a turn of a session of the arm. */
export const start = (arm: Arm, label: string, ...turns: readonly Turn[]): Promise<unknown> =>
  begin(arm.stage, labelOf(arm, label), ...turns);

/** The results of a session's calls, as its model read them. */
export const readResults = (arm: Arm, label: string): string[] => resultsOf(arm.stage, labelOf(arm, label));

const hasSaid = ({ stage, name }: Arm, label: string): boolean =>
  stage.model.requests.some(({ turn }) => turn.say === `${name}-${label} is at its end`);

/** Waits until the models of all these agents have said their last words. */
export async function waitUntilSaid(arm: Arm, ...labels: readonly string[]): Promise<void> {
  await waitFor(() => labels.every((label) => hasSaid(arm, label)), {
    what: `${arm.name}: ${labels.join(" and ")}`,
    timeoutMs: WAIT_MS_MAX,
    everyMs: 250,
  });
}
