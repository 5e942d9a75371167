/** Owns: which bearer tokens `serve` knows, and whose each is. */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { readSystemErrorCode } from "../../../platform/system-error.ts";
import { describeReadFault } from "../files/named-path.ts";
import { parseFilePath } from "../terminal/run-command.ts";

interface TokenOptions {
  readonly token?: string;
  readonly tokens?: string;
}

export interface TenantToken {
  readonly tenant: string;
  readonly token: string;
  readonly principal?: string;
  readonly scopes?: readonly string[];
}

const name = z.string().min(1).max(128);
const tokenSchema = z.union([
  z.string().min(1),
  z.strictObject({
    token: z.string().min(1),
    principal: name.optional(),
    scopes: z.array(name).max(100).optional(),
  }),
]);
const fileSchema = z.record(name, z.union([tokenSchema, z.array(tokenSchema).min(1).max(100)]));

/**
 * Returns the bearer tokens of those who may call the served host, each with its tenant, from `--token`, `--tokens` or
 * the environment. @throws CoordinationError `INPUT_INVALID` where there is none, because nobody could ask then
 */
export function readTenantTokens(
  { token, tokens }: TokenOptions,
  { OPENWOP_API_KEY: fromEnvironment }: Readonly<Record<string, string | undefined>>,
): TenantToken[] {
  // Who has one for calling other hosts means by --tokens all who may ask.
  const only = token ?? (tokens === undefined ? fromEnvironment : undefined);
  const knownTokens = [
    ...(only ? [{ tenant: "default", token: only }] : []),
    ...(tokens === undefined ? [] : readTokensFile(parseFilePath(tokens, "--tokens"))),
  ];
  if (knownTokens.length > 0) return knownTokens;
  throw new CoordinationError(
    "INPUT_INVALID",
    "there is no token: give one with --token, with OPENWOP_API_KEY, or several with --tokens FILE",
  );
}

const EXPECTED_TOKENS =
  'expected JSON of the form {"<tenant>": "<token>"} or {"<tenant>": {"token": "<token>", "scopes": []}}';

function readTokensFile(file: string): TenantToken[] {
  const parsed = fileSchema.safeParse(parseJsonFile(file));
  if (!parsed.success) throw new CoordinationError("INPUT_INVALID", `${file}: ${EXPECTED_TOKENS}`);
  return Object.entries(parsed.data).flatMap(([tenant, entries]) =>
    (Array.isArray(entries) ? entries : [entries]).map((each) => createTenantToken(tenant, each)),
  );
}

function createTenantToken(tenant: string, entry: z.output<typeof tokenSchema>): TenantToken {
  if (typeof entry === "string") return { tenant, token: entry };
  const { token, principal, scopes } = entry;
  return {
    tenant,
    token,
    ...(principal !== undefined && { principal }),
    ...(scopes && { scopes }),
  };
}

function parseJsonFile(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    const isRead = readSystemErrorCode(cause) === undefined;
    const problem = isRead ? `this is not JSON, ${EXPECTED_TOKENS}` : describeReadFault(cause);
    throw new CoordinationError("INPUT_INVALID", `${file}: ${problem}`, { cause });
  }
}
