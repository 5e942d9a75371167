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
import { readSystemErrorCode } from "../../../platform/system-error.ts";

export interface PackPlace {
  /** The pack's own, with links resolved. */
  readonly folder: string;
  readonly agentId: string;
  /** The key of the manifest. */
  readonly key: string;
}

/**
 * Returns the text of a file that a pack of agents refers to. @throws CoordinationError `INPUT_INVALID` where it lies
 * outside of the pack, cannot be read, is empty or too large
 */
export async function readPackFile(place: PackPlace, ref: string): Promise<string> {
  const file = await resolvePackFile(place, ref);
  const bytesMax = AGENT_BOUNDS.packFileBytesMax;
  const createTooLargeError = (): CoordinationError =>
    createReferenceError(place, ref, `has more than ${formatBytes(bytesMax)}`);
  const text = await readTextFile(file, { bytesMax, tooLarge: createTooLargeError }).catch(
    (cause: unknown) => {
      if (cause instanceof CoordinationError && cause.message.startsWith(file))
        throw createReferenceError(place, ref, cause.message.slice(file.length + 2));
      throw cause;
    },
  );
  if (text.trim() === "") throw createReferenceError(place, ref, "is empty");
  return text;
}

/**
 * Returns the JSON Schema in a file that a pack of agents refers to, once it is known that values can be held against
 * it. @throws CoordinationError `INPUT_INVALID`
 */
export async function readPackSchema(place: PackPlace, ref: string): Promise<Record<string, unknown>> {
  const text = await readPackFile(place, ref);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new CoordinationError("INPUT_INVALID", describeReferenceProblem(place, ref, "is no JSON"), {
      cause,
    });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw createReferenceError(place, ref, "is no JSON Schema: it must be an object");
  const problems = listSchemaProblems(value, describeReference(place, ref));
  if (problems.length > 0) throw new CoordinationError("INPUT_INVALID", problems.join("; "));
  return value as Record<string, unknown>;
}

/** Returns the real path of the file that a reference names; refuses one that is outside of the pack. */
async function resolvePackFile(place: PackPlace, ref: string): Promise<string> {
  const path = decodeReference(place, ref);
  const named = join(place.folder, path);
  const real = await realpath(named).catch((cause: unknown) => {
    const code = readSystemErrorCode(cause) ?? "?";
    throw createReferenceError(place, ref, code === "ENOENT" ? "is not there" : `cannot be read (${code})`);
  });
  if (!real.startsWith(`${place.folder}${sep}`))
    throw createReferenceError(place, ref, "leads out of the pack");
  return real;
}

/** Decodes a reference, which is a URI, to its path; refuses one that leads out of the pack. */
function decodeReference(place: PackPlace, ref: string): string {
  let path: string;
  try {
    path = decodeURIComponent(ref);
  } catch {
    throw createReferenceError(place, ref, "is no path");
  }
  const parts = path.split(/[/\\]/);
  const isOut = isAbsolute(path) || parts.includes("..") || /^[A-Za-z][A-Za-z0-9+.-]*:/.test(path);
  if (isOut || path.includes("\0")) throw createReferenceError(place, ref, "leads out of the pack");
  return path;
}

function describeReferenceProblem(place: PackPlace, ref: string, fault: string): string {
  return `${describeReference(place, ref)} ${fault}`;
}

/** Names the agent, the key of its manifest and the reference there. */
function describeReference({ agentId, key }: PackPlace, ref: string): string {
  return `agent ${agentId}: ${key}: ${ref.slice(0, 200)}`;
}

function createReferenceError(place: PackPlace, ref: string, fault: string): CoordinationError {
  return new CoordinationError("INPUT_INVALID", describeReferenceProblem(place, ref, fault));
}
