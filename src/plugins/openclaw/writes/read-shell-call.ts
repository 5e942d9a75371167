/** Owns: what a shell command changes, as far as an operator declared it. */
import { resolve } from "node:path";
import type { ConflictsConfig } from "../../../agents/coordination/contracts/config/config.ts";
import type { WriteTarget } from "../../../agents/coordination/runtime/arbiter/write-call.ts";
import { joinFolder, PATH_CHARS_MAX, parsePlainPath } from "./host-path.ts";
import { matchCommand, type CommandMatch } from "./match-command.ts";
import { readParam, readTextParam, removeArgumentEnd } from "./param.ts";
import { UNREADABLE, type ToolCall, type ToolReading } from "./tool-reading.ts";

function createUndeclaredReading(folder: string): ToolReading {
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

/**
 * Returns the files that a shell command of `exec` is declared by the operator to write; what any other command
 * changes is undetermined. `undefined` for the host's code mode, which is no shell.
 */
export function readExecCall({ params, folder, config, toolKind }: ToolCall): ToolReading | undefined {
  if (toolKind === CODE_MODE) return undefined;
  const command = readTextParam(params, "command");
  const workdir = readWorkdir(params, folder);
  if (command === undefined || workdir === undefined)
    return { ...UNREADABLE, mayTouchAnything: true, folder };
  const declared = findDeclaredOutputs(removeArgumentEnd(command), config);
  const touchedFolder = findTouchedFolder(folder, workdir);
  if (!declared) return createUndeclaredReading(touchedFolder);
  const targets = declared.outputs.flatMap((output) => createOutputTarget(output, workdir));
  return {
    targets,
    reads: [],
    ...((declared.hasMore || !isEnvironmentHarmless(readParam(params, "env"))) && {
      undetermined: { because: "undeclared" },
    }),
    mayTouchAnything: true,
    folder: touchedFolder,
  };
}

/**
 * Returns the folder where a command may change anything: the session's, or its own where that lies elsewhere. A
 * command that works below the session's folder may change what is beside that, too.
 */
function findTouchedFolder(folder: string, workdir: string): string {
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

/**
 * Returns the folder in which a command runs; `undefined` for a path that is too long. The host takes it literally,
 * without `~`.
 */
function readWorkdir(params: unknown, folder: string): string | undefined {
  const workdir = removeArgumentEnd(readTextParam(params, "workdir") ?? "");
  if (workdir.length > PATH_CHARS_MAX) return undefined;
  return workdir.trim() === "" ? folder : joinFolder(folder, workdir.trim());
}

function findDeclaredOutputs(command: string, { commands }: ConflictsConfig): CommandMatch | undefined {
  for (const { command: pattern, outputs } of commands) {
    const match = matchCommand(pattern, command);
    if (match) return { ...match, outputs: [...outputs, ...match.outputs] };
  }
  return undefined;
}

/**
 * Creates the target of a command's output; none for what is no path. Its later content is not known, so that another
 * step's work may be what is lost.
 */
function createOutputTarget(output: string, workdir: string): readonly WriteTarget[] {
  const path = parsePlainPath(output);
  return path === undefined ? [] : [{ at: { path, folder: workdir }, replaces: true }];
}

/** Actions of `process` that tell a command under way nothing. Its changes meanwhile are the caller's own. */
const LOOKING = new Set(["poll", "log", "kill", "clear", "remove"]);

/**
 * Returns what a call of `process` may change: anything, with no target named, for actions that give a command no
 * input; undetermined for others; `undefined` for `list`.
 */
export function readProcessCall({ params, folder }: ToolCall): ToolReading | undefined {
  const action = readTextParam(params, "action");
  if (action === "list") return undefined;
  if (action !== undefined && LOOKING.has(action))
    return { targets: [], reads: [], mayTouchAnything: true, folder };
  return createUndeclaredReading(folder);
}

/**
 * Returns an undetermined change for a call of `terminal` that types something in, and `undefined` for any other: a
 * terminal is the operator's own.
 */
export function readTerminalCall({ params, folder }: ToolCall): ToolReading | undefined {
  return readTextParam(params, "action") === "input" ? createUndeclaredReading(folder) : undefined;
}
