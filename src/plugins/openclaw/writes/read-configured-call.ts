/** Owns: what a call of a tool changes that an operator described in the configuration. */
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import type { WatchedTool } from "../../../agents/coordination/contracts/config/config.ts";
import type { WriteTarget } from "../../../agents/coordination/runtime/arbiter/write-call.ts";
import { joinFolder, parsePlainPath } from "./host-path.ts";
import { readParam } from "./param.ts";
import { normalizeSessionName } from "./read-session-call.ts";
import { createResourceTarget } from "./resource-target.ts";
import { UNREADABLE, type ToolCall, type ToolReading } from "./tool-reading.ts";

/**
 * Returns the files, sessions and queues that a call changes, from the arguments that the configuration names for its
 * tool. An argument that is missing may be one that the tool does not need; where all are missing, what the call
 * changes is undetermined. One that is there and is neither a text nor a list of texts makes the call unreadable.
 */
export function readConfiguredCall(
  { paths, sessions, queues, cwd }: WatchedTool,
  call: ToolCall,
): ToolReading {
  const folder = cwd === undefined ? call.folder : readWorkingFolder(call, cwd);
  const targets = [
    ...createTargets(call, paths, (path) =>
      folder === undefined ? undefined : createPathTarget(path, folder),
    ),
    ...createTargets(call, sessions, (key) => createSessionTarget(key)),
    ...createTargets(call, queues, (name) => createResourceTarget(`queue:${name.trim()}`)),
  ];
  const read = targets.filter((target) => target !== undefined);
  const isRead = read.length > 0 && read.length === targets.length;
  return isRead ? { targets: read, reads: [] } : { ...UNREADABLE, targets: read };
}

function createTargets(
  { params }: ToolCall,
  names: readonly string[] | undefined,
  toTarget: (value: string) => WriteTarget | undefined,
): readonly (WriteTarget | undefined)[] {
  return (names ?? []).flatMap((name) => listValuesAt(params, name)).map(createTextConverter(toTarget));
}

/** Creates the function that makes a target of a text, and `undefined` of a blank one or of anything else. */
function createTextConverter(toTarget: (value: string) => WriteTarget | undefined) {
  return (value: unknown) => (typeof value === "string" && value.trim() !== "" ? toTarget(value) : undefined);
}

/**
 * Creates the target of a path; `undefined` for what is none. Its later content is not known, so that another step's
 * work may be what is lost.
 */
function createPathTarget(path: string, folder: string): WriteTarget | undefined {
  const plain = parsePlainPath(path);
  return plain === undefined ? undefined : { at: { path: plain, folder }, replaces: true };
}

function readWorkingFolder({ params, folder }: ToolCall, name: string): string | undefined {
  const [value, ...others] = listValuesAt(params, name);
  if (value === undefined) return folder;
  const path = typeof value === "string" && others.length === 0 ? parsePlainPath(value) : undefined;
  return path === undefined ? undefined : joinFolder(folder, path);
}

/** Stands for what is not there because something else is in its place; no text, so it makes a call unreadable. */
const NEITHER: readonly unknown[] = [false];

/** Lists every value at a path of parameters, through lists on the way; a missing value is left out. */
function listValuesAt(params: unknown, name: string): readonly unknown[] {
  let values: readonly unknown[] = [params];
  for (const part of name.split(".")) {
    values = values.flatMap((value) =>
      typeof value === "object" ? toList(readParam(value, part)) : NEITHER,
    );
    // One more than may be, so that too many are seen to be.
    values = values.slice(0, BOUNDS.resourcesPerCallMax + 1);
  }
  return values;
}

/** Returns a list cut to one element more than may be, a single value as a list, and nothing as an empty one. */
function toList(value: unknown): readonly unknown[] {
  if (value === undefined || value === null) return [];
  return Array.isArray(value)
    ? (value as readonly unknown[]).slice(0, BOUNDS.resourcesPerCallMax + 1)
    : [value];
}

function createSessionTarget(key: string): ReturnType<typeof createResourceTarget> {
  const name = normalizeSessionName(key);
  return name === undefined ? undefined : createResourceTarget(`session:${name}`);
}
