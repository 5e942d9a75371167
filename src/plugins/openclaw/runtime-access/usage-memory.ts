/**
 * Owns: the one book of what model calls used in this process. Calls under way outlive a reload, and module instances
 * share nothing else, so it lies on `globalThis`. No truth: what was not recorded when the process died is lost.
 */
import { randomUUID } from "node:crypto";
import { createUsageBook, type UsageBook } from "../../../agents/coordination/runtime/usage/usage-book.ts";

const KEY = Symbol.for("openclaw-coordination.usage-book");

type Holder = { [KEY]?: UsageBook };

export function accessUsageBook(): UsageBook {
  const existing = (globalThis as Holder)[KEY];
  if (existing) return existing;
  const book = createUsageBook(randomUUID());
  (globalThis as Holder)[KEY] = book;
  return book;
}
