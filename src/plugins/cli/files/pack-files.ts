/**
 * Owns: reading what a manifest of a pack refers to. A reference is a path below the pack; what leads out of it, by its words or
 * by a link, is refused, and so is what is larger than a prompt or a schema can be.
 */
import { realpath } from "node:fs/promises";
import { isAbsolute, join, sep } from "node:path";
import { AGENT_BOUNDS } from "../../../agents/coordination/contracts/workflows/agent-manifest.ts";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { listSchemaProblems } from "../../../agents/coordination/plan/output-schema.ts";
import { formatBytes } from "../../../agents/coordination/std/quantities.ts";
import { readTextFile } from "./read-text-file.ts";

export interface PackPlace {
  /** The pack's own, with links resolved. */
  readonly folder: string;
  readonly agentId: string;
  /** The key of the manifest. */
  readonly key: string;
}

/** @throws CoordinationError `INPUT_INVALID` */
export async function readPackFile(place: PackPlace, ref: string): Promise<string> {
  const file = await fileOf(place, ref);
  const bytesMax = AGENT_BOUNDS.packFileBytesMax;
  const createTooLargeError = (): CoordinationError =>
    createInputError(place, ref, `has more than ${formatBytes(bytesMax)}`);
  const text = await readTextFile(file, { bytesMax, tooLarge: createTooLargeError }).catch(
    (cause: unknown) => {
      if (cause instanceof CoordinationError && cause.message.startsWith(file))
        throw createInputError(place, ref, cause.message.slice(file.length + 2));
      throw cause;
    },
  );
  if (text.trim() === "") throw createInputError(place, ref, "is empty");
  return text;
}

/** Reads a JSON Schema that values can be held against. @throws CoordinationError `INPUT_INVALID` */
export async function readPackSchema(place: PackPlace, ref: string): Promise<Record<string, unknown>> {
  const text = await readPackFile(place, ref);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new CoordinationError("INPUT_INVALID", describeProblem(place, ref, "is no JSON"), { cause });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw createInputError(place, ref, "is no JSON Schema: it must be an object");
  const problems = listSchemaProblems(value, placeOf(place, ref));
  if (problems.length > 0) throw new CoordinationError("INPUT_INVALID", problems.join("; "));
  return value as Record<string, unknown>;
}

async function fileOf(place: PackPlace, ref: string): Promise<string> {
  const path = pathOf(place, ref);
  const named = join(place.folder, path);
  const real = await realpath(named).catch((cause: unknown) => {
    const { code = "?" } = cause as NodeJS.ErrnoException;
    throw createInputError(place, ref, code === "ENOENT" ? "is not there" : `cannot be read (${code})`);
  });
  if (!real.startsWith(`${place.folder}${sep}`)) throw createInputError(place, ref, "leads out of the pack");
  return real;
}

/** References are URIs: what is escaped there is not in a path. */
function pathOf(place: PackPlace, ref: string): string {
  let path: string;
  try {
    path = decodeURIComponent(ref);
  } catch {
    throw createInputError(place, ref, "is no path");
  }
  const parts = path.split(/[/\\]/);
  const isOut = isAbsolute(path) || parts.includes("..") || /^[A-Za-z][A-Za-z0-9+.-]*:/.test(path);
  if (isOut || path.includes("\0")) throw createInputError(place, ref, "leads out of the pack");
  return path;
}

function describeProblem(place: PackPlace, ref: string, fault: string): string {
  return `${placeOf(place, ref)} ${fault}`;
}

function placeOf({ agentId, key }: PackPlace, ref: string): string {
  return `agent ${agentId}: ${key}: ${ref.slice(0, 200)}`;
}

function createInputError(place: PackPlace, ref: string, fault: string): CoordinationError {
  return new CoordinationError("INPUT_INVALID", describeProblem(place, ref, fault));
}
