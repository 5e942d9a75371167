/** Owns: `Worktrees` in memory: one repository whose files have short texts, and a crash at any call. */
import type {
  OpenWorktree,
  WorktreeChange,
  WorktreeOnMachine,
  Worktrees,
  WorktreeWritten,
} from "../../src/agents/coordination/ports/worktrees.ts";

import type { ResourceFiles } from "../../src/agents/coordination/ports/resource-files.ts";

type Files = Map<string, string>;

export interface FakeWorktrees extends Worktrees {
  /** The folder of the repository, as arbitration sees it. */
  readonly files: ResourceFiles;
  /** Files in the folder of the repository. */
  readonly folder: Files;
  /** Files in each worktree, by name. */
  readonly trees: ReadonlyMap<string, Files>;
  /** The names of the calls so far. */
  readonly calls: readonly string[];
  /** Why none can be made. */
  obstacle: string | undefined;
  /** From this call on nothing answers, before or after it has done its work. */
  crash: { readonly at: number; readonly after: boolean } | undefined;
}

const REPOSITORY = "/nowhere";

export function createFakeWorktrees(files: Readonly<Record<string, string>>): FakeWorktrees {
  const base: Files = new Map(Object.entries(files));
  const folder: Files = new Map(base);
  const trees = new Map<string, Files>();
  const bases = new Map<string, Files>();
  const calls: string[] = [];
  const attempts = new Map<string, WorktreeOnMachine>();
  const treeOf = ({ name }: OpenWorktree): Files => trees.get(name) ?? new Map<string, string>();
  const baseOf = ({ name }: OpenWorktree): Files => bases.get(name) ?? base;
  const call = async <T>(name: string, work: () => T): Promise<T> => {
    calls.push(name);
    await Promise.resolve();
    const { at, after } = fake.crash ?? { at: Infinity, after: false };
    if (calls.length > at || (calls.length === at && !after)) throw new Error("the process is gone");
    const result = work();
    if (calls.length === at) throw new Error("the process is gone");
    return result;
  };
  const fake: FakeWorktrees = {
    files: {
      locate: (path) => Promise.resolve(`file:${path}`),
      spelledName: (path) => Promise.resolve(`file:${path}`),
      look: (resource) => {
        const text = folder.get(resource.slice(`file:${REPOSITORY}/`.length));
        if (text === undefined) return Promise.resolve({ kind: "absent", version: "absent" });
        return Promise.resolve({ kind: "text", version: versionOf(text), text });
      },
      sharedName: () => Promise.resolve(undefined),
      hasMoreEntries: () => Promise.resolve(false),
      stamp: () => Promise.resolve(undefined),
      findChanged: () => Promise.resolve({ paths: [], isWhole: true }),
    },
    folder,
    trees,
    calls,
    obstacle: undefined,
    crash: undefined,
    findObstacle: () => call("findObstacle", () => fake.obstacle),
    open: (name, _, { signal: _signal, ...attempt }, merged) =>
      call("open", () => {
        if (fake.obstacle !== undefined) return { kind: "refused", message: fake.obstacle };
        const paths = merged.flatMap((files) => files.paths);
        bases.set(name, replaceFiles(base, folder, paths));
        trees.set(name, new Map(bases.get(name)));
        const branch = `coordination/${name}`;
        const tree = `/worktrees/${name}`;
        const place = { repository: REPOSITORY, folder: tree, branch };
        attempts.set(name, { name, hasFolder: true, ...place, ...attempt });
        return { kind: "opened", base: "a".repeat(40), ...place };
      }),
    // No crash here: every start looks, and only what comes after a crash finds anything.
    list: () => Promise.resolve([...attempts.values()].filter(({ name }) => trees.has(name))),
    compare: (worktree) =>
      call("compare", () => {
        if (!trees.has(worktree.name)) return { kind: "absent", message: "the worktree is gone" };
        const sides = { base: baseOf(worktree), theirs: treeOf(worktree), ours: folder };
        return { kind: "compared", changes: listChanges(sides) };
      }),
    texts: (worktree, path) =>
      call("texts", () => {
        const sides = [baseOf(worktree), treeOf(worktree), folder];
        const [inBase, theirs, ours] = sides.map((side) => side.get(path));
        if (inBase === undefined || theirs === undefined || ours === undefined) return undefined;
        return { base: inBase, theirs, ours };
      }),
    versionOf: (_, { text }) => call("versionOf", () => versionOf(text)),
    write: (worktree, { path, before, after, text }) =>
      call("write", (): WorktreeWritten => {
        const current = versionOf(folder.get(path));
        if (current === after) return "written";
        if (current !== before) return "changed_meanwhile";
        const next = text ?? treeOf(worktree).get(path);
        if (next === undefined) folder.delete(path);
        else folder.set(path, next);
        return "written";
      }),
    keep: ({ name }) =>
      call("keep", () => ({ branch: `coordination/${name}`, folder: `/worktrees/${name}` })),
    remove: (name) =>
      call("remove", () => {
        trees.delete(name);
        return undefined;
      }),
    forget: () => Promise.resolve(),
  };
  return fake;
}

function replaceFiles(base: Files, folder: Files, paths: readonly string[]): Files {
  const replaced: Files = new Map(base);
  for (const path of paths) {
    const text = folder.get(path);
    if (text === undefined) replaced.delete(path);
    else replaced.set(path, text);
  }
  return replaced;
}

function versionOf(text: string | undefined): string {
  return text === undefined ? "absent" : `100644 ${Buffer.from(text).toString("hex").slice(0, 100)}`;
}

interface Sides {
  readonly base: Files;
  readonly theirs: Files;
  readonly ours: Files;
}

function listChanges({ base, theirs, ours }: Sides): WorktreeChange[] {
  return [...new Set([...base.keys(), ...theirs.keys()])]
    .filter((path) => base.get(path) !== theirs.get(path))
    .map((path) => ({
      path,
      base: versionOf(base.get(path)),
      theirs: versionOf(theirs.get(path)),
      ours: versionOf(ours.get(path)),
    }));
}
