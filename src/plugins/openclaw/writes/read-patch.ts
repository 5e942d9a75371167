/**
 * Owns: reading the patches of the host's `apply_patch`. Patches that the tool would not read are not read here. Does not own: what
 * a patch makes of a file (`apply-chunks.ts`).
 */

export type Hunk = {
  readonly path: string;
  /** The lines that it was read from. */
  readonly lines: readonly string[];
} & (
  | { readonly kind: "add"; readonly contents: string }
  | { readonly kind: "delete" }
  | { readonly kind: "update"; readonly movePath?: string; readonly chunks: readonly Chunk[] }
);

export interface Chunk {
  /** A line that is looked for first; the chunk is behind it. */
  readonly context: string;
  readonly oldLines: readonly string[];
  readonly newLines: readonly string[];
  /** For each new line the old line that it is, where it is one. */
  readonly keeps: readonly (number | undefined)[];
  readonly atEnd: boolean;
}

export const PATCH_BEGIN = "*** Begin Patch";
export const PATCH_END = "*** End Patch";
export const ADD_FILE = "*** Add File: ";
export const DELETE_FILE = "*** Delete File: ";
export const UPDATE_FILE = "*** Update File: ";
const MOVE_TO = "*** Move to: ";
export const AT_END = "*** End of File";
export const CHUNK = "@@";

/**
 * Returns the hunks of a patch in the form of `apply_patch`, one for each change of a file; `undefined` for what is no
 * patch, or has none.
 */
export function readPatch(input: string): readonly Hunk[] | undefined {
  const lines = extractPatchLines(input.trim().split(/\r?\n/u));
  const hunks: Hunk[] = [];
  for (let at = 0; lines && at < lines.length;) {
    const hunk = readHunk(lines, at);
    if (!hunk) return undefined;
    hunks.push(hunk);
    at += hunk.lines.length;
  }
  return hunks.length > 0 ? hunks : undefined;
}

/**
 * Returns the lines between the begin and the end mark of a patch, which may stand in a shell's here-document;
 * `undefined` for what is no patch.
 */
function extractPatchLines(lines: readonly string[]): readonly string[] | undefined {
  if (isPatch(lines)) return lines.slice(1, -1);
  const isDocument = /^<<(?:EOF|'EOF'|"EOF")$/u.test(lines[0] ?? "") && (lines.at(-1) ?? "").endsWith("EOF");
  const inner = lines.slice(1, -1);
  return lines.length >= 4 && isDocument && isPatch(inner) ? inner.slice(1, -1) : undefined;
}

function isPatch(lines: readonly string[]): boolean {
  return lines[0]?.trim() === PATCH_BEGIN && lines.at(-1)?.trim() === PATCH_END;
}

function readHunk(lines: readonly string[], at: number): Hunk | undefined {
  const header = lines[at]?.trim() ?? "";
  if (header.startsWith(ADD_FILE)) return readAddHunk(lines, at, header.slice(ADD_FILE.length));
  if (header.startsWith(DELETE_FILE))
    return { kind: "delete", path: header.slice(DELETE_FILE.length), lines: lines.slice(at, at + 1) };
  if (header.startsWith(UPDATE_FILE)) return readUpdateHunk(lines, at, header.slice(UPDATE_FILE.length));
  return undefined;
}

function readAddHunk(lines: readonly string[], at: number, path: string): Hunk {
  let end = at + 1;
  while (lines[end]?.startsWith("+")) end += 1;
  const contents = lines.slice(at + 1, end).map((line) => `${line.slice(1)}\n`);
  return { kind: "add", path, contents: contents.join(""), lines: lines.slice(at, end) };
}

function readUpdateHunk(lines: readonly string[], at: number, path: string): Hunk | undefined {
  const next = lines[at + 1]?.trim() ?? "";
  const movePath = next.startsWith(MOVE_TO) ? next.slice(MOVE_TO.length) : undefined;
  const read = readChunks(lines, at + (movePath === undefined ? 1 : 2));
  if (!read) return undefined;
  return {
    kind: "update",
    path,
    ...(movePath !== undefined && { movePath }),
    chunks: read.chunks,
    lines: lines.slice(at, read.end),
  };
}

function readChunks(lines: readonly string[], at: number) {
  const chunks: Chunk[] = [];
  let end = at;
  for (let line = lines[end]; line !== undefined && !line.startsWith("***"); line = lines[end]) {
    const read = line.trim() === "" ? { end: end + 1 } : readChunk(lines, end, chunks.length === 0);
    if (!read) return undefined;
    if ("chunk" in read) chunks.push(read.chunk);
    end = read.end;
  }
  return chunks.length > 0 ? { chunks, end } : undefined;
}

interface ReadChunk {
  readonly chunk: Chunk;
  /** The line behind it. */
  readonly end: number;
}

function readChunk(lines: readonly string[], at: number, isFirst: boolean): ReadChunk | undefined {
  const header = lines[at] ?? "";
  const hasHeader = header === CHUNK || header.startsWith(`${CHUNK} `);
  if (!hasHeader && !isFirst) return undefined;
  const begin = hasHeader ? at + 1 : at;
  const read: ChunkLines = { oldLines: [], newLines: [], keeps: [] };
  let end = begin;
  while (addChunkLine(lines[end], read)) end += 1;
  if (end === begin) return undefined;
  const atEnd = lines[end] === AT_END;
  const context = hasHeader ? header.slice(CHUNK.length + 1) : "";
  return { chunk: { ...read, context, atEnd }, end: atEnd ? end + 1 : end };
}

interface ChunkLines {
  readonly oldLines: string[];
  readonly newLines: string[];
  readonly keeps: (number | undefined)[];
}

/**
 * Adds a line to the lines of a chunk; false for a line that is none of them. An empty line is a kept one: models
 * leave the blank before it out.
 */
function addChunkLine(line: string | undefined, { oldLines, newLines, keeps }: ChunkLines): boolean {
  if (line === undefined) return false;
  const mark = line[0] ?? " ";
  const text = line.slice(1);
  if (mark === " ") keeps.push(oldLines.length);
  else if (mark === "+") keeps.push(undefined);
  else if (mark !== "-") return false;
  if (mark !== "+") oldLines.push(text);
  if (mark !== "-") newLines.push(text);
  return true;
}
