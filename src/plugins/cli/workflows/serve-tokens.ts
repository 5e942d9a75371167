/** Owns: which bearer tokens `serve` knows, and whose each is. */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";

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

/** @throws CoordinationError `INPUT_INVALID` where there is none, because nobody could ask then. */
export function readTokens(
  { token, tokens }: TokenOptions,
  { OPENWOP_API_KEY: fromEnvironment }: Readonly<Record<string, string | undefined>>,
): TenantToken[] {
  const only = token ?? fromEnvironment;
  const known = [
    ...(only ? [{ tenant: "default", token: only }] : []),
    ...(tokens === undefined ? [] : inFile(tokens)),
  ];
  if (known.length > 0) return known;
  throw new CoordinationError(
    "INPUT_INVALID",
    "there is no token: give one with --token, with OPENWOP_API_KEY, or several with --tokens FILE",
  );
}

function inFile(file: string): TenantToken[] {
  const parsed = fileSchema.safeParse(jsonIn(file));
  if (!parsed.success)
    throw new CoordinationError(
      "INPUT_INVALID",
      `${file}: expected JSON of the form {"<tenant>": "<token>"} or {"<tenant>": {"token": "<token>", "scopes": []}}`,
    );
  return Object.entries(parsed.data).flatMap(([tenant, given]) =>
    (Array.isArray(given) ? given : [given]).map((each) => ofTenant(tenant, each)),
  );
}

function ofTenant(tenant: string, given: z.output<typeof tokenSchema>): TenantToken {
  if (typeof given === "string") return { tenant, token: given };
  const { token, principal, scopes } = given;
  return {
    tenant,
    token,
    ...(principal !== undefined && { principal }),
    ...(scopes && { scopes }),
  };
}

function jsonIn(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    throw new CoordinationError("INPUT_INVALID", `${file}: the file cannot be read as JSON`, { cause });
  }
}
