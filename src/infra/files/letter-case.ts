/**
 * Owns: whether the names in a folder differ by more than upper and lower case. That is a matter of the file system, and
 * on some of the single folder. It is found out by asking for what is there in the other case; nothing is written.
 */
import type { FileCalls, FileFacts } from "./file-calls.ts";

export interface LetterCase {
  /** `folders` leads from the root to the folder in question, which exists. `inIt` is an entry of it. */
  isIgnored(folders: readonly Folder[], inIt?: DirectoryEntry): Promise<boolean>;
  /** Returns the answer that was found for the folder before; `undefined` where none was. */
  recall(folder: FileFacts): boolean | undefined;
}

interface Folder {
  readonly path: string;
  readonly facts: FileFacts;
}

/** An entry of a folder, with the facts about it. */
interface DirectoryEntry {
  readonly name: string;
  readonly facts: FileFacts;
}

const NAMES_TRIED = 32;
const FOLDERS_REMEMBERED = 10_000;

/**
 * Creates the lookup of which folders ignore upper and lower case; it probes their entries, and remembers what it
 * found out.
 */
export function createLetterCaseLookup(calls: FileCalls): LetterCase {
  const caseByFolder = new Map<string, boolean>();
  const recall = (folder: FileFacts): boolean | undefined => caseByFolder.get(formatFolderKey(folder));

  /** Returns whether the folder ignores case, from memory or by probing; `undefined` where nothing in it tells. */
  async function findCaseOfFolder(folder: Folder, inIt?: DirectoryEntry): Promise<boolean | undefined> {
    const before = recall(folder.facts);
    if (before !== undefined) return before;
    const ignoresCase =
      (inIt && (await probeCaseByEntry(calls, folder, inIt))) ?? (await probeCaseByEntries(calls, folder));
    if (ignoresCase === undefined) return undefined;
    if (caseByFolder.size >= FOLDERS_REMEMBERED) caseByFolder.clear();
    caseByFolder.set(formatFolderKey(folder.facts), ignoresCase);
    return ignoresCase;
  }

  return {
    isIgnored: async (folders, inIt) => {
      const device = folders.at(-1)?.facts.dev;
      let entry = inIt;
      for (const folder of folders.toReversed()) {
        // Nothing in it tells: it is as the folder that it is in, unless another device begins here.
        if (folder.facts.dev !== device) break;
        const found = await findCaseOfFolder(folder, entry);
        if (found !== undefined) return found;
        entry = undefined;
      }
      return calls.path.sep === "\\";
    },
    recall,
  };
}

function formatFolderKey({ dev, ino }: FileFacts): string {
  return `${dev}:${ino}`;
}

/** Returns whether a folder ignores case, by the first of its entries that tells; `undefined` where none does. */
async function probeCaseByEntries(calls: FileCalls, folder: Folder): Promise<boolean | undefined> {
  for (const name of await listNamesToProbe(calls, folder)) {
    if (swapCase(name) === name) continue;
    const facts = await readFacts(calls, calls.path.join(folder.path, name));
    const found = facts && (await probeCaseByEntry(calls, folder, { name, facts }));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Lists the first names in a folder; none where it cannot be read. */
async function listNamesToProbe(calls: FileCalls, folder: Folder): Promise<readonly string[]> {
  try {
    return await calls.someNames(folder.path, NAMES_TRIED);
  } catch {
    return [];
  }
}

/**
 * Returns whether a folder ignores case, by looking for an entry of it in the other case. `undefined` where that does
 * not tell: the file has several names, as `a` and `A` may be linked to one, or it was replaced or removed meanwhile.
 */
async function probeCaseByEntry(
  calls: FileCalls,
  folder: Folder,
  entry: DirectoryEntry,
): Promise<boolean | undefined> {
  const other = swapCase(entry.name);
  if (other === entry.name) return undefined;
  const found = await readFacts(calls, calls.path.join(folder.path, other));
  const after = await readFacts(calls, calls.path.join(folder.path, entry.name));
  if (!after || !isSameFile(after, entry.facts)) return undefined;
  if (!found || !isSameFile(found, after)) return false;
  return after.isDirectory() || after.nlink === 1n ? true : undefined;
}

function isSameFile(a: FileFacts, b: FileFacts): boolean {
  return a.dev === b.dev && a.ino === b.ino;
}

/** Returns the facts of a path, of a link itself; `undefined` for nothing, or nothing that may be seen. */
async function readFacts(calls: FileCalls, path: string): Promise<FileFacts | undefined> {
  try {
    return await calls.lstat(path);
  } catch {
    return undefined;
  }
}

/** Swaps upper and lower case of ASCII letters only: no file system disagrees on their case. */
function swapCase(name: string): string {
  return name.replace(/[a-zA-Z]/gu, (letter) =>
    letter >= "a" ? letter.toUpperCase() : letter.toLowerCase(),
  );
}
