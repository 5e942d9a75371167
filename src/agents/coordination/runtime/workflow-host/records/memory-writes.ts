/** Owns: what of a node's memory is kept: with the time of the write, and without secrets (SR-1, MAE-2). */
import { addMs, formatTimestamp } from "../../../contracts/ids.ts";
import type { MemoryWrite } from "../../../ports/workflow-store.ts";
import type { Progress } from "../../../workflow/advance-run.ts";
import type { WorkflowRun } from "../../../workflow/state/workflow-state.ts";
import { placeOfWrites } from "./fork-memory.ts";
import type { WorkflowHostParts } from "./workflow-parts.ts";

/** A shorter one would be found in texts that have nothing to do with it. */
const SECRET_CHARS_MIN = 8;

export function memoryWritesOf(
  { secrets, clock, sha256 }: Pick<WorkflowHostParts, "secrets" | "clock" | "sha256">,
  run: WorkflowRun,
  notes: Progress["memory"],
): MemoryWrite[] {
  const now = clock.now();
  return notes.map(({ scope, id, content, tags, ttlMs, sequence }) => ({
    at: { tenant: run.started.owner.tenant, scope: placeOfWrites({ sha256 }, run, scope) },
    sequence,
    entry: {
      id,
      content: maskText(resolveSecrets(content, secrets), secrets),
      tags: tags.filter((tag) => tag !== ""),
      createdAt: formatTimestamp(now),
      ...(ttlMs !== undefined && { expiresAt: formatTimestamp(addMs(now, ttlMs)) }),
    },
  }));
}

/** `{{secret:id}}` stands for a secret as a node would have it in its hands. */
function resolveSecrets(text: string, secrets: ReadonlyMap<string, string>): string {
  return text.replace(/\{\{secret:([^}]+)\}\}/g, (whole, id: string) => {
    const secret = secrets.get(id) ?? "";
    // One that would not be found again stays unresolved.
    return secret.length >= SECRET_CHARS_MIN ? secret : whole;
  });
}

/** Masks every text in a value, names of members included. */
export function maskValue<T>(value: T, secrets: ReadonlyMap<string, string>): T {
  if (secrets.size === 0) return value;
  return JSON.parse(JSON.stringify(value), (_name, each: unknown) => {
    if (typeof each === "string") return maskText(each, secrets);
    if (typeof each !== "object" || each === null || Array.isArray(each)) return each;
    return Object.fromEntries(
      Object.entries(each).map(([name, member]) => [maskText(name, secrets), member]),
    );
  }) as T;
}

/** The longest first: one may be part of another. */
export function maskText(text: string, secrets: ReadonlyMap<string, string>): string {
  const secretsToMask = [...secrets]
    .filter(([, secret]) => secret.length >= SECRET_CHARS_MIN)
    .toSorted(([, one], [, other]) => other.length - one.length);
  return secretsToMask.reduce((clean, [id, secret]) => clean.replaceAll(secret, `[REDACTED:${id}]`), text);
}
