/**
 * Owns: whether the names in a folder differ by more than upper and lower case. That is a matter of the file system, and
 * on some of the single folder. It is found out by asking for what is there in the other case; nothing is written.
 */
import type { FileCalls, FileFacts } from "./file-calls.ts";

export interface LetterCase {
  /** `folders` leads from the root to the folder in question, which exists. `inIt` is an entry of it. */
  isIgnored(folders: readonly Folder[], inIt?: Entry): Promise<boolean>;
  /** Returns the answer that was found for the folder before; `undefined` where none was. */
  recall(folder: FileFacts): boolean | undefined;
}

interface Folder {
  readonly path: string;
  readonly facts: FileFacts;
}

interface Entry {
  readonly name: string;
  readonly facts: FileFacts;
}

const NAMES_TRIED = 32;
const FOLDERS_REMEMBERED = 10_000;

export function createLetterCase(calls: FileCalls): LetterCase {
  const caseByFolder = new Map<string, boolean>();
  const recall = (folder: FileFacts): boolean | undefined => caseByFolder.get(formatKey(folder));

  async function readCaseOfFolder(folder: Folder, inIt?: Entry): Promise<boolean | undefined> {
    const before = recall(folder.facts);
    if (before !== undefined) return before;
    const found = (inIt && (await probe(calls, folder, inIt))) ?? (await probeEntries(calls, folder));
    if (found === undefined) return undefined;
    if (caseByFolder.size >= FOLDERS_REMEMBERED) caseByFolder.clear();
    caseByFolder.set(formatKey(folder.facts), found);
    return found;
  }

  return {
    isIgnored: async (folders, inIt) => {
      const device = folders.at(-1)?.facts.dev;
      let entry = inIt;
      for (const folder of folders.toReversed()) {
        // Nothing in it tells: it is as the folder that it is in, unless another device begins here.
        if (folder.facts.dev !== device) break;
        const found = await readCaseOfFolder(folder, entry);
        if (found !== undefined) return found;
        entry = undefined;
      }
      return calls.path.sep === "\\";
    },
    recall,
  };
}

function formatKey({ dev, ino }: FileFacts): string {
  return `${dev}:${ino}`;
}

/** `undefined` where no entry tells. */
async function probeEntries(calls: FileCalls, folder: Folder): Promise<boolean | undefined> {
  for (const name of await listNames(calls, folder)) {
    if (swapCase(name) === name) continue;
    const facts = await factsOf(calls, calls.path.join(folder.path, name));
    const found = facts && (await probe(calls, folder, { name, facts }));
    if (found !== undefined) return found;
  }
  return undefined;
}

async function listNames(calls: FileCalls, folder: Folder): Promise<readonly string[]> {
  try {
    return await calls.someNames(folder.path, NAMES_TRIED);
  } catch {
    return [];
  }
}

/**
 * Another name of the same file tells only where the file has no other: `a` and `A` may be linked to one. An entry that
 * is replaced or removed meanwhile tells nothing.
 */
async function probe(calls: FileCalls, folder: Folder, entry: Entry): Promise<boolean | undefined> {
  const other = swapCase(entry.name);
  if (other === entry.name) return undefined;
  const found = await factsOf(calls, calls.path.join(folder.path, other));
  const after = await factsOf(calls, calls.path.join(folder.path, entry.name));
  if (!after || !isSame(after, entry.facts)) return undefined;
  if (!found || !isSame(found, after)) return false;
  return after.isDirectory() || after.nlink === 1n ? true : undefined;
}

function isSame(a: FileFacts, b: FileFacts): boolean {
  return a.dev === b.dev && a.ino === b.ino;
}

/** `undefined` where there is nothing, or nothing that may be seen. */
async function factsOf(calls: FileCalls, path: string): Promise<FileFacts | undefined> {
  try {
    return await calls.lstat(path);
  } catch {
    return undefined;
  }
}

/** Letters of ASCII only: no file system disagrees on their case. */
function swapCase(name: string): string {
  return name.replace(/[a-zA-Z]/gu, (letter) =>
    letter >= "a" ? letter.toUpperCase() : letter.toLowerCase(),
  );
}
