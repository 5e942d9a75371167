/** Owns: writing a timeline as one HTML file. An existing file is not replaced. */
import { open } from "node:fs/promises";
import { resolve } from "node:path";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { formatBytes } from "../../../agents/coordination/std/quantities.ts";
import { renderTimelineHtml, type TimelinePage } from "../../page/drawing/timeline-document.ts";
import type { CliHost } from "../terminal/cli-host.ts";
import { formatPrintable } from "../terminal/printable.ts";
import { writeJson, writeLines } from "../terminal/run-command.ts";

interface Target {
  readonly file: string;
  readonly isJson: boolean;
}

/**
 * Writes a timeline as a new HTML file, and prints its path and size. @throws CoordinationError `INPUT_INVALID` where
 * the file is there already or cannot be written
 */
export async function saveTimeline(
  host: CliHost,
  page: TimelinePage,
  { file, isJson }: Target,
): Promise<void> {
  const text = renderTimelineHtml(page);
  const path = resolve(file);
  try {
    await using handle = await open(path, "wx");
    await handle.writeFile(text);
  } catch (error) {
    throw new CoordinationError("INPUT_INVALID", `--html ${file}: ${describeWriteFailure(error)}`, {
      cause: error,
    });
  }
  const bytes = Buffer.byteLength(text);
  if (isJson) await writeJson(host, { file: path, bytes });
  else
    await writeLines(host, [
      `wrote ${formatPrintable(path, host.stdout.terminal.unicode)}, ${formatBytes(bytes)}`,
    ]);
}

function describeWriteFailure(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "EEXIST") return "there is such a file; choose another name or remove it";
  return code === "ENOENT" ? "its folder does not exist" : `it cannot be written (${code ?? "unknown"})`;
}
