/** Owns: which bearer tokens `serve` knows, and whose each is. */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";

interface TokenOptions {
  readonly token?: string;
  readonly tokens?: string;
}

export interface TenantToken {
  readonly tenant: string;
  readonly token: string;
}

const fileSchema = z.record(z.string().min(1).max(128), z.string().min(1));

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
      `${file}: expected JSON of the form {"<tenant>": "<token>"}`,
    );
  return Object.entries(parsed.data).map(([tenant, secret]) => ({ tenant, token: secret }));
}

function jsonIn(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    throw new CoordinationError("INPUT_INVALID", `${file}: the file cannot be read as JSON`, { cause });
  }
}
