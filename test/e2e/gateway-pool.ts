/**
 * Owns: running gateways that go from one test file to the next. A start with its first turn costs half a minute, most of it
 * compiling; another configuration costs a few seconds. The ledger and the workspace of a file are deleted behind it, and the
 * host's own sessions stay, so files that share session keys or ids of plans would meet each other.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inject } from "vitest";
import { startGateway, type Gateway, type Json } from "../support/gateway.ts";
import type { GatewayOptions } from "../support/gateway-config.ts";
import type { ScriptedModel } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";

/** Two, because some stories are played in two at once. Each takes about 1 GB of memory, and next to no time while nobody uses it. */
const IDLE_MAX = 2;

let edits = 0;

/** The flag off, and a number that differs each time: the host does nothing about an edit that changes nothing. */
const createOffConfig = (): Json => {
  edits += 1;
  return { coordination: { phase1: { enabled: false, sweepMs: 10_000 + edits } } };
};

const QUIET_MS = 2_000;

interface IdleGateway {
  readonly gateway: Gateway;
  /** The environment of the process, which cannot be changed any more. */
  readonly env: string;
}

const idle: IdleGateway[] = [];

/** Takes a gateway that another file has returned, with the configuration of the options, or starts one. */
export async function takeGateway(options: GatewayOptions): Promise<Gateway> {
  const found = idle.findIndex(({ env }) => env === nameEnv(options));
  const [kept] = found < 0 ? [] : idle.splice(found, 1);
  if (!kept) return startGateway({ ...options, home: mkdtempSync(join(inject("homesDir"), "home-")) });
  if (await isReconfigured(kept.gateway, options)) return kept.gateway;
  await kept.gateway.dispose();
  return takeGateway(options);
}

/** Keeps the gateway for the next who takes one, unless it was stopped or is still at work. Its model has to answer until then. */
export async function returnGateway(
  gateway: Gateway,
  options: GatewayOptions,
  model: ScriptedModel,
): Promise<void> {
  const { plugin, modelBaseUrl, configPatch } = options;
  const { agents } = (configPatch ?? {}) as { readonly agents?: { readonly entries?: Json } };
  const isOff = (): Promise<boolean> =>
    isReconfigured(gateway, { plugin, modelBaseUrl, pluginConfig: createOffConfig() });
  const isKept =
    idle.length < IDLE_MAX &&
    gateway.isRunning() &&
    // The host refuses a reload while agents are at work, and does not try again by itself.
    ((await isOff()) || ((await isQuiet(model)) && (await isOff()))) &&
    (await isQuiet(model));
  if (!isKept) return gateway.dispose();
  rmSync(join(gateway.stateDir, "coordination"), { recursive: true, force: true });
  clearWorkspace(join(gateway.home, "workspace"), Object.keys(agents?.entries ?? {}));
  idle.push({ gateway, env: nameEnv(options) });
}

/** The host refuses to work in a folder that was not empty once and is now: a file of no meaning stays. */
function clearWorkspace(folder: string, agents: readonly string[]): void {
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true });
  for (const name of ["", ...agents]) {
    mkdirSync(join(folder, name), { recursive: true });
    writeFileSync(join(folder, name, ".stays"), "");
  }
}

/** The host tells parents of their children's ends when it is about to: the next file's model would be asked. */
async function isQuiet({ requests }: ScriptedModel): Promise<boolean> {
  const isAtRest = (): boolean => Date.now() - (requests.at(-1)?.receivedAt ?? 0) > QUIET_MS;
  const waiting = waitFor(isAtRest, { what: "the agents to be at rest", timeoutMs: 30_000, everyMs: 100 });
  return waiting.then(() => true, sayNotKept);
}

/** A gateway that cannot be handed on is replaced, which costs a start and fails no test. */
function sayNotKept(error: unknown): false {
  console.error(`a gateway does not take another configuration, or is not quiet: ${String(error)}`);
  return false;
}

const nameEnv = ({ env = {} }: GatewayOptions): string => JSON.stringify(Object.entries(env).toSorted());

async function isReconfigured(gateway: Gateway, options: GatewayOptions): Promise<boolean> {
  try {
    const { words, isApplied } = await gateway.reconfigure(options);
    if (!isApplied) return sayNotKept(words);
    await waitUntilServed(gateway, isEnabled(options));
    return true;
  } catch (error) {
    return sayNotKept(error);
  }
}

function isEnabled({ pluginConfig }: GatewayOptions): boolean {
  const { coordination } = (pluginConfig ?? {}) as { coordination?: { phase1?: { enabled?: boolean } } };
  return coordination?.phase1?.enabled === true;
}

/** Waits until the gateway serves the plugin's methods, or no longer serves them. */
export async function waitUntilServed(gateway: Gateway, enabled = true): Promise<void> {
  await waitFor(async () => (await isServingMethods(gateway)) === enabled, {
    what: `the plugin to be served with the flag ${enabled ? "on" : "off"}`,
    timeoutMs: 30_000,
  });
}

export async function isServingMethods(gateway: Gateway): Promise<boolean> {
  try {
    await gateway.call("coordination.questions");
    return true;
  } catch (error) {
    if (error instanceof Error && error.message.includes("unknown method")) return false;
    throw error;
  }
}
