/** Owns: what of a node's memory is kept: with the time of the write, and without secrets (SR-1, MAE-2). */
import { addMs, isoTimestamp } from "../../contracts/ids.ts";
import type { MemoryWrite } from "../../ports/workflow-store.ts";
import type { Progress } from "../../workflow/progress.ts";
import type { WorkflowRun } from "../../workflow/state.ts";
import type { WorkflowHostParts } from "./workflow-parts.ts";

/** A shorter one would be found in texts that have nothing to do with it. */
const SECRET_CHARS_MIN = 8;

export function memoryWritesOf(
  { secrets, clock }: Pick<WorkflowHostParts, "secrets" | "clock">,
  run: WorkflowRun,
  notes: Progress["memory"],
): MemoryWrite[] {
  const now = clock.now();
  return notes.map(({ scope, id, content, tags, ttlMs, sequence }) => ({
    at: { tenant: run.started.owner.tenant, scope },
    sequence,
    entry: {
      id,
      content: redacted(resolved(content, secrets), secrets),
      tags: tags.filter((tag) => tag !== ""),
      createdAt: isoTimestamp(now),
      ...(ttlMs !== undefined && { expiresAt: isoTimestamp(addMs(now, ttlMs)) }),
    },
  }));
}

/** `{{secret:id}}` stands for a secret as a node would have it in its hands. */
function resolved(text: string, secrets: ReadonlyMap<string, string>): string {
  return text.replace(/\{\{secret:([^}]+)\}\}/g, (whole, id: string) => {
    const secret = secrets.get(id) ?? "";
    // One that would not be found again stays unresolved.
    return secret.length >= SECRET_CHARS_MIN ? secret : whole;
  });
}

/** The longest first: one may be part of another. */
export function redacted(text: string, secrets: ReadonlyMap<string, string>): string {
  const known = [...secrets]
    .filter(([, secret]) => secret.length >= SECRET_CHARS_MIN)
    .toSorted(([, one], [, other]) => other.length - one.length);
  return known.reduce((clean, [id, secret]) => clean.replaceAll(secret, `[REDACTED:${id}]`), text);
}
