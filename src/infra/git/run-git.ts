/**
 * Owns: one run of the git program from its start until it and its group are gone.
 *
 * It asks nobody, fetches nothing, runs no hook and no shell, and never outlasts its time: a repository may be anybody's. A
 * process that leaves the group by itself (`setsid`) stays, and is not waited for.
 */
import { spawn, type ChildProcess } from "node:child_process";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import { addMs } from "../../agents/coordination/contracts/ids.ts";
import { describeError } from "../../agents/coordination/std/describe-error.ts";
import { waitWithin } from "../../agents/coordination/std/wait-for.ts";
import { pickInheritedVariables, signalProcessGroup } from "../../platform/process-group.ts";
import { readSystemErrorCode } from "../../platform/system-error.ts";

/** Checking out a large tree takes longest. */
const GIT_MS_MAX = 120_000;
/** The names of all files of a large tree. */
const OUTPUT_BYTES_MAX = 64_000_000;
const COMPLAINT_BYTES_MAX = 4_000;
/** After its exit, for the rest of what it says: somebody outside of its group may hold its pipes open. */
const DRAIN_MS = 2_000;

export type GitEnd =
  | { readonly kind: "done"; readonly output: Buffer }
  /** `message` is a sentence without its full stop. `exitCode` is absent where git did not start, or did not end by itself. */
  | { readonly kind: "failed"; readonly message: string; readonly exitCode?: number };

/** Where git works. */
export interface GitPlace {
  readonly folder: string;
  /** The folder of git's own files. Absent: as the work folder itself says, which an agent may have changed. */
  readonly gitDir?: string;
}

export interface GitCall extends GitPlace {
  readonly args: readonly string[];
  readonly input?: string | Buffer;
}

export type RunGit = (call: GitCall) => Promise<GitEnd>;

/** No repository may decide which programs run besides git, what is asked, and what is cleaned up meanwhile. */
const SETTINGS = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.quotePath=false",
  "core.pager=cat",
  "gc.auto=0",
  "maintenance.auto=false",
  "submodule.recurse=false",
  "commit.gpgSign=false",
  "credential.helper=",
];

/** Settings may name hooks, too, since git 2.54. `core.hooksPath` is only about those in files. */
const LIST_SETTINGS = ["config", "--list", "--name-only", "-z"];
/** Commands that change no index and no branch, and so run no hook. */
const WITHOUT_HOOKS = new Set("cat-file config hash-object ls-files ls-tree rev-parse show-ref".split(" "));
const HOOK = /^hook\.(?<name>.*)\.[^.]+$/su;
/** The variable that has the value of the setting: only by a variable can a hook be set whose name has an equals sign. */
const HOOKS_ENABLED = "COORDINATION_HOOKS_ENABLED";
/** Stands for bytes that are no UTF-8: git would be told another name. */
const REPLACEMENT = "\ufffd";

/**
 * Creates the function that runs git without any hooks: before a command that could run some it lists those that the
 * settings name, and turns them off one by one. A failed listing is the result of the call.
 */
export function createRunGit(clock: Clock, program = "git"): RunGit {
  const run = createRunWithOptions(clock, program);
  return async (call) => {
    if (WITHOUT_HOOKS.has(call.args[0] ?? "")) return run(call);
    const listed = await run({ ...call, args: LIST_SETTINGS, input: "" });
    // Without the exit code: it is that of another command.
    if (listed.kind === "failed") return { kind: "failed", message: listed.message };
    const hooks = listHookNames(listed.output);
    if (hooks.some((name) => name.includes(REPLACEMENT)))
      return { kind: "failed", message: "the name of a hook in the settings of git is no UTF-8" };
    return run(
      call,
      hooks.map((name) => `--config-env=hook.${name}.enabled=${HOOKS_ENABLED}`),
    );
  };
}

/** Lists the names of the hooks that a listing of settings has. */
function listHookNames(settings: Buffer): string[] {
  const names = settings.toString("utf8").split("\0");
  return [...new Set(names.flatMap((name) => HOOK.exec(name)?.groups?.["name"] ?? []))];
}

type RunWithOptions = (call: GitCall, options?: readonly string[]) => Promise<GitEnd>;

function createRunWithOptions(clock: Clock, program: string): RunWithOptions {
  const settings = SETTINGS.flatMap((setting) => ["-c", setting]);
  return async (call, options = []) => {
    const { folder, gitDir, args } = call;
    const place = gitDir === undefined ? [] : [`--git-dir=${gitDir}`, `--work-tree=${folder}`];
    try {
      const child = spawn(program, [...settings, ...options, ...place, ...args], {
        cwd: folder,
        env: createEnvironment(),
        detached: true,
        shell: false,
        windowsHide: true,
        stdio: ["pipe", "pipe", "pipe"],
      });
      return await awaitGitEnd(child, call, clock);
    } catch (error) {
      return { kind: "failed", message: describeStartFailure(error) };
    }
  };
}

function createEnvironment(): NodeJS.ProcessEnv {
  return {
    // Filters of the repository see them, too.
    ...pickInheritedVariables("TZ", "XDG_CONFIG_HOME"),
    GIT_TERMINAL_PROMPT: "0",
    GIT_ASKPASS: "",
    SSH_ASKPASS: "",
    GIT_EDITOR: "true",
    GIT_OPTIONAL_LOCKS: "0",
    // None. The setting `protocol.allow` would not do: settings of a repository for one protocol go before it.
    GIT_ALLOW_PROTOCOL: "none",
    GIT_LFS_SKIP_SMUDGE: "1",
    [HOOKS_ENABLED]: "false",
    LC_ALL: "C",
  };
}

/**
 * Sends git its input and waits for its end, which is forced once its time is over. @throws Error where git could not
 * be started
 */
async function awaitGitEnd(child: ChildProcess, { args, input }: GitCall, clock: Clock): Promise<GitEnd> {
  // First of all: where the process has no file left for the pipes, there is nothing but this.
  const failure = new Promise<never>((_, reject) => child.on("error", reject));
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  const closed = new Promise((resolve) => child.once("close", resolve));
  let isRunning = true;
  let stopped: string | undefined;
  const stop = (why: string): void => {
    stopped ??= `git ${args[0] ?? ""} ${why}`;
    if (isRunning) signalProcessGroup(child, "SIGKILL");
    releasePipes(child);
  };
  const cancel = clock.wakeAt(addMs(clock.now(), GIT_MS_MAX), () =>
    stop(`took longer than ${GIT_MS_MAX / 1_000} s and was stopped`),
  );
  const { output, complaint } = collectOutput(child, stop);
  child.stdin?.on("error", ignorePipeError);
  child.stdin?.end(input ?? "");
  try {
    const code = await Promise.race([exited, failure]);
    // A program that it started may still run, such as a filter of the repository. Later the number may be somebody else's.
    signalProcessGroup(child, "SIGKILL");
    isRunning = false;
    await waitWithin(clock, DRAIN_MS, closed, undefined);
    const isWhole = child.stdout?.readableEnded === true;
    releasePipes(child);
    if (stopped !== undefined) return { kind: "failed", message: stopped };
    if (code !== 0)
      return {
        kind: "failed",
        message: formatComplaint(complaint(), code),
        ...(code !== null && { exitCode: code }),
      };
    if (!isWhole) return { kind: "failed", message: "what git says could not be read to its end" };
    return { kind: "done", output: output() };
  } finally {
    cancel();
  }
}

/** The output of a program so far, and what it wrote of errors. */
interface CollectedOutput {
  readonly output: () => Buffer;
  readonly complaint: () => string;
}

/** Collects what git writes; calls `stop` where its output is too large. */
function collectOutput({ stdout, stderr }: ChildProcess, stop: (why: string) => void): CollectedOutput {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let complaint = "";
  stdout?.on("error", ignorePipeError);
  stderr?.on("error", ignorePipeError);
  stdout?.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > OUTPUT_BYTES_MAX) stop(`said more than ${OUTPUT_BYTES_MAX} bytes`);
    else chunks.push(chunk);
  });
  stderr?.on("data", (chunk: Buffer) => {
    if (complaint.length < COMPLAINT_BYTES_MAX) complaint += chunk.toString("utf8");
  });
  return { output: () => Buffer.concat(chunks), complaint: () => complaint };
}

/** Closes our ends of the pipes: somebody outside of the group may hold the other ends. */
function releasePipes({ stdin, stdout, stderr }: ChildProcess): void {
  for (const pipe of [stdin, stdout, stderr]) pipe?.destroy();
}

function describeStartFailure(error: unknown): string {
  return readSystemErrorCode(error) === "ENOENT"
    ? "git is not installed where the gateway runs, or the folder is gone"
    : `git could not be started: ${describeError(error)}`;
}

/** Returns the last line of git's complaint, which says what is wrong; the exit code where there is none. */
function formatComplaint(complaint: string, code: number | null): string {
  const lines = complaint.split("\n").filter((line) => /^(?:fatal|error):/u.test(line));
  const last = (lines.at(-1) ?? complaint.trim().split("\n").at(-1) ?? "").replace(/^(?:fatal|error): /u, "");
  return `git says: ${last.trim() || `exit code ${String(code)}`}`.replace(/\.$/u, "");
}

/** Ignores an error of git's pipes: its end tells it. */
function ignorePipeError(): void {
  // That git did not read its input, or is no longer listened to, is told by its end.
}
