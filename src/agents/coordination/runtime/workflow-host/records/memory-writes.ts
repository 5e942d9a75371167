/** Owns: what of a node's memory is kept: with the time of the write, and without secrets (SR-1, MAE-2). */
import { addMs, formatTimestamp } from "../../../contracts/ids.ts";
import type { MemoryWrite } from "../../../ports/workflow-store.ts";
import type { RunProgress } from "../../../workflow/advance-run.ts";
import type { WorkflowRun } from "../../../workflow/state/workflow-state.ts";
import { findWriteScope } from "./fork-memory.ts";
import { maskText, SECRET_CHARS_MIN } from "./mask-secrets.ts";
import type { WorkflowHostDependencies } from "./workflow-dependencies.ts";

/**
 * Creates the memory entries to store for the notes of a run's nodes, with their times, in the scope that the run
 * writes to and with secrets masked.
 */
export function createMemoryWrites(
  { secrets, clock, sha256 }: Pick<WorkflowHostDependencies, "secrets" | "clock" | "sha256">,
  run: WorkflowRun,
  notes: RunProgress["memory"],
): MemoryWrite[] {
  const now = clock.now();
  return notes.map(({ scope, id, content, tags, ttlMs, sequence }) => ({
    at: { tenant: run.started.owner.tenant, scope: findWriteScope({ sha256 }, run, scope) },
    sequence,
    entry: {
      id,
      // As the store reads it back: half of a surrogate pair is stored as another character.
      content: maskText(resolveSecrets(content, secrets), secrets).toWellFormed(),
      tags: tags.filter((tag) => tag !== "").map((tag) => tag.toWellFormed()),
      createdAt: formatTimestamp(now),
      ...(ttlMs !== undefined && { expiresAt: formatTimestamp(addMs(now, ttlMs)) }),
    },
  }));
}

/**
 * Puts the secret in the place of `{{secret:id}}`, as a node would have it in its hands; one that is unknown, or too
 * short to be masked, stays as it is written.
 */
function resolveSecrets(text: string, secrets: ReadonlyMap<string, string>): string {
  return text.replace(/\{\{secret:([^}]+)\}\}/g, (whole, id: string) => {
    const secret = secrets.get(id) ?? "";
    // One that would not be found again stays unresolved.
    return secret.length >= SECRET_CHARS_MIN ? secret : whole;
  });
}
