/** Owns: what a shell command changes, as far as an operator declared it. */
import { resolve } from "node:path";
import type { ConflictsConfig } from "../../../agents/coordination/contracts/config/config.ts";
import type { WriteTarget } from "../../../agents/coordination/runtime/arbiter/write-call.ts";
import { resolveFolder, PATH_CHARS_MAX, parsePlainPath } from "./host-path.ts";
import { matchCommand, type CommandMatch } from "./match-command.ts";
import { readParam, readTextParam, withoutArgumentEnd } from "./param.ts";
import { UNREADABLE, type ToolCall, type ToolReading } from "./tool-reading.ts";

function createUndeclared(folder: string): ToolReading {
  return {
    targets: [],
    reads: [],
    undetermined: { because: "undeclared" },
    mayTouchAnything: true,
    folder,
  };
}

/** A program in the host's own sandbox, which reaches nothing but tools: each of their calls is read by itself. */
const CODE_MODE = "code_mode_exec";

export function readExecCall({ params, folder, config, toolKind }: ToolCall): ToolReading | undefined {
  if (toolKind === CODE_MODE) return undefined;
  const command = readTextParam(params, "command");
  const workdir = workdirOf(params, folder);
  if (command === undefined || workdir === undefined)
    return { ...UNREADABLE, mayTouchAnything: true, folder };
  const declared = findDeclaredOutputs(withoutArgumentEnd(command), config);
  const place = placeOf(folder, workdir);
  if (!declared) return createUndeclared(place);
  const targets = declared.outputs.flatMap((output) => createOutputTarget(output, workdir));
  return {
    targets,
    reads: [],
    ...((declared.hasMore || !isEnvironmentHarmless(readParam(params, "env"))) && {
      undetermined: { because: "undeclared" },
    }),
    mayTouchAnything: true,
    folder: place,
  };
}

/** A command that works below the session's folder may change what is beside that, too. */
function placeOf(folder: string, workdir: string): string {
  const [top, place] = [resolve(folder), resolve(workdir)];
  return place === top || place.startsWith(`${top}/`) ? folder : place;
}

/** Variables that say how an output looks. Any other may make a program write, or run another. */
const SAYS_LOOK = /^(?:CI|NO_COLOR|FORCE_COLOR|TERM|LANG|LC_[A-Z]+|TZ)$/u;

function isEnvironmentHarmless(env: unknown): boolean {
  if (env === undefined || env === null) return true;
  if (typeof env !== "object" || Array.isArray(env)) return false;
  return Object.entries(env).every(([name, value]) => SAYS_LOOK.test(name) && typeof value === "string");
}

/** The host takes it literally, without `~`. A blank one is no folder, and the command does not run. */
function workdirOf(params: unknown, folder: string): string | undefined {
  const workdir = withoutArgumentEnd(readTextParam(params, "workdir") ?? "");
  if (workdir.length > PATH_CHARS_MAX) return undefined;
  return workdir.trim() === "" ? folder : resolveFolder(folder, workdir.trim());
}

function findDeclaredOutputs(command: string, { commands }: ConflictsConfig): CommandMatch | undefined {
  for (const { command: pattern, outputs } of commands) {
    const match = matchCommand(pattern, command);
    if (match) return { ...match, outputs: [...outputs, ...match.outputs] };
  }
  return undefined;
}

/**
 * Creates the target of a command's output, whose later content is not known, so that another step's work may be
 * what is lost.
 */
function createOutputTarget(output: string, workdir: string): readonly WriteTarget[] {
  const path = parsePlainPath(output);
  return path === undefined ? [] : [{ at: { path, folder: workdir }, replaces: true }];
}

/** Actions of `process` that tell a command under way nothing. Its changes meanwhile are the caller's own. */
const LOOKING = new Set(["poll", "log", "kill", "clear", "remove"]);

export function readProcessCall({ params, folder }: ToolCall): ToolReading | undefined {
  const action = readTextParam(params, "action");
  if (action === "list") return undefined;
  if (action !== undefined && LOOKING.has(action))
    return { targets: [], reads: [], mayTouchAnything: true, folder };
  return createUndeclared(folder);
}

/** A terminal is the operator's own; only what is typed into it changes something. */
export function readTerminalCall({ params, folder }: ToolCall): ToolReading | undefined {
  return readTextParam(params, "action") === "input" ? createUndeclared(folder) : undefined;
}
