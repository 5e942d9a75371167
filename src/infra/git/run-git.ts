/**
 * Owns: one run of the git program from its start until it and its group are gone.
 *
 * It asks nobody, fetches nothing, runs no hook and no shell, and never outlasts its time: a repository may be anybody's.
 */
import { spawn, type ChildProcess } from "node:child_process";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import { addMs } from "../../agents/coordination/contracts/ids.ts";

/** Checking out a large tree takes longest. */
const GIT_MS_MAX = 120_000;
/** The names of all files of a large tree. */
const OUTPUT_BYTES_MAX = 64_000_000;
const COMPLAINT_BYTES_MAX = 4_000;

export type GitEnd =
  | { readonly kind: "done"; readonly output: Buffer }
  /** `message` is a sentence without its full stop. */
  | { readonly kind: "failed"; readonly message: string };

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
  "protocol.allow=never",
  "commit.gpgSign=false",
  "credential.helper=",
];

export function createRunGit(clock: Clock, program = "git"): RunGit {
  const settings = SETTINGS.flatMap((setting) => ["-c", setting]);
  return ({ folder, gitDir, args, input }) =>
    new Promise((resolve) => {
      const place = gitDir === undefined ? [] : [`--git-dir=${gitDir}`, `--work-tree=${folder}`];
      const child = spawn(program, [...settings, ...place, ...args], {
        cwd: folder,
        env: createEnvironment(),
        detached: true,
        shell: false,
        windowsHide: true,
        stdio: ["pipe", "pipe", "pipe"],
      });
      follow(child, { clock, args, resolve });
      child.stdin.on("error", ignore);
      child.stdin.end(input ?? "");
    });
}

function createEnvironment(): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("GIT_"));
  return {
    ...Object.fromEntries(inherited),
    GIT_TERMINAL_PROMPT: "0",
    GIT_ASKPASS: "",
    SSH_ASKPASS: "",
    GIT_EDITOR: "true",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_LFS_SKIP_SMUDGE: "1",
    LC_ALL: "C",
  };
}

interface Following {
  readonly clock: Clock;
  readonly args: readonly string[];
  readonly resolve: (end: GitEnd) => void;
}

function follow(
  child: ChildProcess & { readonly stdout: NodeJS.ReadableStream; readonly stderr: NodeJS.ReadableStream },
  { clock, args, resolve }: Following,
): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let complaint = "";
  let stopped: string | undefined;
  const stop = (why: string): void => {
    stopped ??= why;
    killGroup(child);
  };
  const cancel = clock.wakeAt(addMs(clock.now(), GIT_MS_MAX), () =>
    stop(`git ${args[0] ?? ""} took longer than ${GIT_MS_MAX / 1_000} s and was stopped`),
  );
  child.stdout.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > OUTPUT_BYTES_MAX) stop(`git ${args[0] ?? ""} said more than ${OUTPUT_BYTES_MAX} bytes`);
    else chunks.push(chunk);
  });
  child.stderr.on("data", (chunk: Buffer) => {
    if (complaint.length < COMPLAINT_BYTES_MAX) complaint += chunk.toString("utf8");
  });
  child.on("error", (error: NodeJS.ErrnoException) => {
    cancel();
    resolve({ kind: "failed", message: describeStart(error) });
  });
  // A program that it started may still run, such as a filter of the repository. Later the number may be somebody else's.
  child.on("exit", () => killGroup(child));
  child.on("close", (code) => {
    cancel();
    if (stopped === undefined && code === 0) resolve({ kind: "done", output: Buffer.concat(chunks) });
    else resolve({ kind: "failed", message: stopped ?? formatComplaint(complaint, code) });
  });
}

function describeStart({ code, message }: NodeJS.ErrnoException): string {
  return code === "ENOENT"
    ? "git is not installed where the gateway runs, or the folder is gone"
    : `git could not be started: ${message}`;
}

/** Returns the last line that git complains in, which says what is wrong. */
function formatComplaint(complaint: string, code: number | null): string {
  const lines = complaint.split("\n").filter((line) => /^(?:fatal|error):/u.test(line));
  const last = (lines.at(-1) ?? complaint.trim().split("\n").at(-1) ?? "").replace(/^(?:fatal|error): /u, "");
  return `git says: ${last.trim() || `exit code ${String(code)}`}`.replace(/\.$/u, "");
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // The group is gone, or this is Windows, which has none.
    child.kill("SIGKILL");
  }
}

function ignore(): void {
  // That git did not read its input is told by its end.
}
