/** Owns: the git of the simulated machine: one repository, the worktrees of it that are on the disk, and what agents leave there. */
import { hash } from "node:crypto";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorktreeAttempt } from "../../src/agents/coordination/contracts/worktree-fields.ts";
import type {
  OpenWorktree,
  WorktreeChange,
  WorktreeCompared,
  WorktreeOnMachine,
  WorktreeOpened,
  Worktrees,
  WorktreeWrite,
  WorktreeWritten,
} from "../../src/agents/coordination/ports/worktrees.ts";
import { deriveSeed, diceOf } from "../crash/plan-dice.ts";
import type { FakeClock } from "../support/fake-clock.ts";
import type { HostRun } from "../crash/plan-host.ts";
import type { Life } from "./process-life.ts";
import type { SceneFiles } from "../support/value-files.ts";

/** The files of the commit that worktrees are made from. Whatever tools write into the folder is not committed. */
const COMMITTED: ReadonlyMap<string, string> = new Map(
  ["a.md", "merge.md", "folder/c.md"].map((path) => [path, "one\n-\ntwo\n-\nthree\n-\nfour\n-\nfive"]),
);
/** The answer of git about a worktree that was removed. */
export const ABSENT = "the worktree is not there";
const BASE = "a".repeat(40);

/** One file that was written into the folder of the repository. */
export interface MadeWrite {
  readonly name: string;
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

export interface SimulatedRepository {
  readonly worktrees: Worktrees;
  /** The names of the worktrees that are on the disk. */
  readonly names: ReadonlySet<string>;
  /** Those of them that could not be removed, as git said. */
  readonly unremovable: ReadonlySet<string>;
  readonly writes: readonly MadeWrite[];
  /** Files that the agent of a worktree changed, and that were neither written into the folder nor the same there. */
  listUnmerged(name: string): string[];
}

export interface RepositoryInput {
  readonly seed: number;
  readonly files: SceneFiles;
  /** The newest run of an agent in a folder. */
  readonly findRun: (folder: string) => HostRun | undefined;
  /** Hears of each write before it is made. */
  readonly hearWrite: (write: MadeWrite) => void;
  /** Hears of a removal before it is made, with the run of the agent that was there. */
  readonly hearRemoval: (name: string, run: HostRun | undefined) => void;
  readonly report: (problem: string) => void;
}

interface Repository extends RepositoryInput {
  readonly names: Set<string>;
  readonly attempts: Map<string, WorktreeAttempt>;
  readonly unremovable: Set<string>;
  readonly writes: MadeWrite[];
  /** Names and paths of files that were the same in a worktree and in the folder. */
  readonly same: Set<string>;
}

export function createRepository(input: RepositoryInput): SimulatedRepository {
  const repository: Repository = {
    ...input,
    names: new Set(),
    attempts: new Map(),
    unremovable: new Set(),
    writes: [],
    same: new Set(),
  };
  const { names, unremovable, writes, files } = repository;
  return {
    names,
    unremovable,
    writes,
    listUnmerged: (name) => listUnmerged(repository, name),
    worktrees: {
      findObstacle: () => Promise.resolve(undefined),
      open: (name, _, attempt) => {
        repository.attempts.set(name, attempt);
        return Promise.resolve(open(repository, name));
      },
      list: () => Promise.resolve(listOnMachine(repository)),
      compare: (worktree) => Promise.resolve(compare(repository, worktree)),
      texts: ({ name }, path) => {
        const [base, theirs, ours] = [
          COMMITTED.get(path),
          leaveText(repository, name, path),
          files.text(path),
        ];
        const isText = base !== undefined && theirs !== undefined && ours !== undefined;
        return Promise.resolve(isText ? { base, theirs, ours } : undefined);
      },
      versionOf: (_, { text }) => Promise.resolve(describeVersion(text)),
      write: (worktree, file) => Promise.resolve(write(repository, worktree, file)),
      keep: ({ name }) => Promise.resolve({ branch: `coordination/${name}`, folder: folderOf(name) }),
      remove: (name) => Promise.resolve(remove(repository, name)),
      forget: () => Promise.resolve(),
    },
  };
}

interface Slowness {
  readonly clock: FakeClock;
  readonly seed: number;
  readonly life: Life;
}

/** Git takes its time, and what it does is done at the end of it: in a process that died meanwhile, never. */
export function slowDown(worktrees: Worktrees, { clock, seed, life }: Slowness): Worktrees {
  const wait = async (subject: string, waits: readonly [number, ...number[]]): Promise<void> => {
    const ms = diceOf(deriveSeed(seed, `time for ${subject}`)).oneOf(waits);
    if (ms === 0) return;
    life.slowCalls += 1;
    await new Promise<void>((resolve) => {
      clock.wakeAt((clock.now() + ms) as EpochMs, resolve);
    });
    life.slowCalls -= 1;
  };
  return {
    ...worktrees,
    open: async (name, ...toOpen) => {
      await wait(`opening ${name}`, [0, 0, 0, 3_000, 8_000]);
      return worktrees.open(name, ...toOpen);
    },
    compare: async (worktree) => {
      await wait(`comparing ${worktree.name}`, [0, 0, 500, 8_000]);
      return worktrees.compare(worktree);
    },
    write: async (worktree, file) => {
      await wait(`writing ${worktree.name} ${file.path}`, [0, 0, 0, 400]);
      return worktrees.write(worktree, file);
    },
  };
}

/** Puts the committed files into the folder, as a checkout does. */
export function checkOut(files: SceneFiles): void {
  for (const [path, text] of COMMITTED) files.put(path, text);
}

export function folderOf(name: string): string {
  return `/worktrees/${name}`;
}

function describeVersion(text: string | undefined): string {
  return text === undefined ? "absent" : `100644 ${hash("sha256", text).slice(0, 40)}`;
}

function isChance({ seed }: Repository, subject: string, probability: number): boolean {
  return diceOf(deriveSeed(seed, `worktree ${subject}`)).chance(probability);
}

export function isAtWork(run: HostRun | undefined): run is HostRun {
  return run !== undefined && run.ending === undefined && run.forgottenAtMs === undefined;
}

function open(repository: Repository, name: string): WorktreeOpened {
  if (isAtWork(repository.findRun(folderOf(name))))
    repository.report(`W1: ${name} is made anew while its agent is at work`);
  if (isChance(repository, `open ${name}`, 0.05))
    return { kind: "refused", message: "the repository is locked" };
  repository.names.add(name);
  const branch = `coordination/${name}`;
  return { kind: "opened", repository: repository.files.folder, base: BASE, folder: folderOf(name), branch };
}

function listOnMachine({ attempts, names, files }: Repository): WorktreeOnMachine[] {
  const there = [...attempts].filter(([name]) => names.has(name));
  return there.map(([name, attempt]) => ({
    ...attempt,
    name,
    repository: files.folder,
    folder: folderOf(name),
    hasFolder: true,
    branch: `coordination/${name}`,
  }));
}

/** Returns the text of a file as the agent of a worktree left it, once it has completed its work. */
function leaveText({ seed, findRun }: Repository, name: string, path: string): string | undefined {
  const committed = COMMITTED.get(path);
  const dice = diceOf(deriveSeed(seed, `work of ${name} on ${path}`));
  if (findRun(folderOf(name))?.ending?.outcome !== "completed" || !dice.chance(0.4)) return committed;
  if (dice.chance(0.1)) return undefined;
  const line = dice.int(0, 4) * 2;
  const lines = (committed ?? "").split("\n");
  return lines.map((text, index) => (index === line ? `by ${name}` : text)).join("\n");
}

function listUnmerged(repository: Repository, name: string): string[] {
  const isWritten = (path: string): boolean =>
    repository.writes.some((write) => write.name === name && write.path === path);
  return [...COMMITTED.keys()].filter(
    (path) =>
      leaveText(repository, name, path) !== COMMITTED.get(path) &&
      !repository.same.has(`${name} ${path}`) &&
      !isWritten(path),
  );
}

function compare(repository: Repository, { name }: OpenWorktree): WorktreeCompared {
  if (isAtWork(repository.findRun(folderOf(name))))
    repository.report(`W2: ${name} is merged while its agent is at work`);
  if (!repository.names.has(name)) return { kind: "absent", message: ABSENT };
  if (isChance(repository, `compare ${name}`, 0.04)) return { kind: "failed", message: "git ended with 128" };
  if (isChance(repository, `much ${name}`, 0.04)) return { kind: "too_much", message: "it is too much" };
  const changes = [...COMMITTED].map(([path, text]): WorktreeChange => ({
    path,
    base: describeVersion(text),
    theirs: describeVersion(leaveText(repository, name, path)),
    ours: describeVersion(repository.files.text(path)),
  }));
  for (const { path, theirs, ours } of changes) if (theirs === ours) repository.same.add(`${name} ${path}`);
  return { kind: "compared", changes: changes.filter(({ base, theirs }) => base !== theirs) };
}

function write(repository: Repository, { name }: OpenWorktree, file: WorktreeWrite): WorktreeWritten {
  const { files, writes } = repository;
  const { path, before, after, text } = file;
  const current = describeVersion(files.text(path));
  if (current === after) return "written";
  if (current !== before) return "changed_meanwhile";
  if (isChance(repository, `write ${name} ${path}`, 0.05)) return "not_writable";
  const next = text ?? leaveText(repository, name, path);
  if (describeVersion(next) !== after) repository.report(`W2: ${name} writes another ${path} than it said`);
  const made = { name, path, before, after };
  repository.hearWrite(made);
  writes.push(made);
  if (next === undefined) files.remove(path);
  else files.put(path, next);
  return "written";
}

function remove(repository: Repository, name: string): string | undefined {
  repository.hearRemoval(name, repository.findRun(folderOf(name)));
  if (repository.names.has(name) && isChance(repository, `remove ${name}`, 0.05)) {
    repository.unremovable.add(name);
    return `the worktree ${name} could not be removed`;
  }
  repository.names.delete(name);
  return undefined;
}
