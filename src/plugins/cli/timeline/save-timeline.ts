/** Owns: writing a timeline as one HTML file, whole or not at all. An existing file is not replaced. */
import { lstatSync } from "node:fs";
import { resolve } from "node:path";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { formatBytes } from "../../../agents/coordination/std/quantities.ts";
import { createWholeFile } from "../../../platform/whole-file.ts";
import { renderTimelineHtml, type TimelinePage } from "../../page/drawing/timeline-document.ts";
import type { CliHost } from "../terminal/cli-host.ts";
import { formatPrintable } from "../terminal/printable.ts";
import { parseFilePath, writeJson, writeLines } from "../terminal/run-command.ts";
import { readSystemErrorCode } from "../../../platform/system-error.ts";

/** The file that a timeline is saved to, and in which form. */
interface TimelineTarget {
  readonly file: string;
  readonly isJson: boolean;
}

/**
 * Writes a timeline as a new HTML file (mode 0600), and prints its path and size. @throws CoordinationError `INPUT_INVALID` where
 * the file is there already or cannot be written
 */
export async function saveTimeline(
  host: CliHost,
  page: TimelinePage,
  { file, isJson }: TimelineTarget,
): Promise<void> {
  const path = resolve(parseFilePath(file, "--html"));
  const text = renderTimelineHtml(page);
  try {
    createWholeFile(path, text);
  } catch (error) {
    throw new CoordinationError("INPUT_INVALID", `--html ${file}: ${describeWriteFailure(path, error)}`, {
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

function describeWriteFailure(path: string, error: unknown): string {
  const code = readSystemErrorCode(error);
  if (code === "EEXIST")
    return lstatSync(path, { throwIfNoEntry: false })?.isDirectory()
      ? "this is a folder; name a file in it"
      : "there is such a file; choose another name or remove it";
  return code === "ENOENT" ? "its folder does not exist" : `it cannot be written (${code ?? "unknown"})`;
}
