/**
 * Owns: the secrets that a host of runs knows, so that they can be masked: those of its options, of the configuration, and of
 * the environment. They stay in memory, and are never logged.
 *
 * K1 The name of a secret stands in masked texts, and callers may write it: it tells the kind, and not where the secret is from.
 */
import type { Phase1Config } from "../agents/coordination/contracts/config/config.ts";
import type { Secrets } from "../agents/coordination/runtime/workflow-host/records/mask-secrets.ts";
import { isRecord } from "../agents/coordination/std/is-record.ts";
import { resolveVariable } from "../infra/http/tokens.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** A secret as it is written, with the kind that it is called by. */
type FoundSecret = readonly [kind: string, text: string | undefined];

export interface ServedSecrets {
  readonly tokens: readonly { readonly token: string }[];
  readonly peerTokens: Readonly<Record<string, string>>;
  readonly model?: { readonly apiKey?: string };
  readonly environment: Environment;
}

/**
 * Returns the secrets that a host in a process of its own knows, by names that tell their kind: its bearer tokens,
 * those of peers, the key of the model and what its environment has.
 */
export function collectServedSecrets(options: ServedSecrets): Secrets {
  const { tokens, peerTokens, model, environment } = options;
  return nameSecrets(environment, [
    ...tokens.map(({ token }): FoundSecret => ["bearer-token", token]),
    ...Object.values(peerTokens).map((token): FoundSecret => ["peer-token", token]),
    ["model-key", model?.apiKey],
    ...findEnvironmentSecrets(environment),
  ]);
}

export interface GatewaySecrets {
  readonly config: Phase1Config;
  /** OpenClaw's own configuration. */
  readonly hostConfig: unknown;
  readonly environment: Environment;
}

/**
 * Returns the secrets that a host within a gateway knows, by names that tell their kind, from the configuration of the
 * plugin, that of the host, and the environment.
 */
export function collectGatewaySecrets({ config, hostConfig, environment }: GatewaySecrets): Secrets {
  const { openwop, escalations, acpAgents, gates, telemetry } = config;
  const { tokens, peerTokens } = openwop;
  const programs = [...Object.values(acpAgents), ...Object.values(gates.verifiers)];
  return nameSecrets(environment, [
    ...tokens.map(({ token }): FoundSecret => ["bearer-token", token]),
    ...Object.values(peerTokens).map((token): FoundSecret => ["peer-token", token]),
    ...Object.values(escalations.webhooks).flatMap(findWebhookSecrets),
    ...Object.values(telemetry.headers).map((header): FoundSecret => ["telemetry-header", header]),
    ...programs.flatMap((program) => ("env" in program ? findEnvironmentSecrets(program.env) : [])),
    ...findConfiguredSecrets(hostConfig),
    ...findEnvironmentSecrets(environment),
  ]);
}

/**
 * Returns the found secrets under names such as `model-key-1`, each secret once and numbered by kind; references to
 * variables are replaced by their values, and empty ones are left out.
 */
export function nameSecrets(environment: Environment, found: readonly FoundSecret[]): Secrets {
  const counts = new Map<string, number>();
  const named = new Map<string, string>();
  const knownSecrets = new Set<string>();
  for (const [kind, text] of found) {
    const secret = text === undefined ? undefined : resolveVariable(text, (name) => environment[name]);
    if (secret === undefined || secret === "" || knownSecrets.has(secret)) continue;
    knownSecrets.add(secret);
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    named.set(`${kind}-${count}`, secret);
  }
  return named;
}

const WEBHOOK_KEY = "whsec_";

function findWebhookSecrets({
  url,
  secret,
}: {
  readonly url: string;
  readonly secret: string;
}): FoundSecret[] {
  const key = secret.startsWith(WEBHOOK_KEY) ? secret.slice(WEBHOOK_KEY.length) : undefined;
  return [["webhook-secret", secret], ["webhook-secret", key], ...findUrlPassword(url)];
}

function findUrlPassword(text: string): FoundSecret[] {
  const password = URL.parse(text)?.password ?? "";
  return password === "" ? [] : [["url-password", decodePercent(password)]];
}

function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** `SERVICE_API_KEY`, `SERVICE_TOKEN`; in other variables are paths, addresses and modes. */
const SECRET_VARIABLE =
  /(?:^|_|^PG)(?:API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|SIGNING_KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIALS?)$/iu;

function findEnvironmentSecrets(environment: Environment): FoundSecret[] {
  return Object.entries(environment).flatMap(([name, value]): FoundSecret[] =>
    SECRET_VARIABLE.test(name) ? [["environment", value]] : [],
  );
}

/** `apiKey`, `botToken`, `clientSecret`; not `maxTokens`, `tokenizer`. */
const SECRET_MEMBER =
  /(?:api_?key|access_?key|secret_?key|private_?key|signing_?key|secret|token|password|passwd|credential|authorization)$/iu;
const CONFIG_DEPTH_MAX = 32;

/**
 * Finds the members with names of secrets that are texts or references to variables of the environment, at most 32
 * levels deep.
 */
function findConfiguredSecrets(value: unknown, depth = 0): FoundSecret[] {
  if (depth > CONFIG_DEPTH_MAX || typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, member]): FoundSecret[] =>
    !Array.isArray(value) && SECRET_MEMBER.test(name)
      ? [["configured", readConfiguredText(member)], ...findConfiguredSecrets(member, depth + 1)]
      : findConfiguredSecrets(member, depth + 1),
  );
}

function readConfiguredText(member: unknown): string | undefined {
  if (typeof member === "string") return member;
  if (!isRecord(member) || member["source"] !== "env" || typeof member["id"] !== "string") return undefined;
  return `\${${member["id"]}}`;
}

/** Lists the key of interrupt tokens in the forms that texts may have it in, so that they are masked. */
export function listKeyForms(key: Uint8Array): (readonly [name: string, form: string])[] {
  const bytes = Buffer.from(key);
  return (["hex", "base64", "base64url"] as const).map((form) => [
    `signing-key-${form}`,
    bytes.toString(form),
  ]);
}
