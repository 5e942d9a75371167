/**
 * Owns: the one book of what model calls used in this process. Calls under way outlive a reload. No truth: what was not
 * recorded when the process died is lost.
 */
import { randomUUID } from "node:crypto";
import { createUsageBook } from "../../../agents/coordination/runtime/usage/usage-book.ts";
import { shareInProcess } from "../host/share-in-process.ts";

/** Returns the book of this process. */
export const accessUsageBook = shareInProcess("usage-book", () => createUsageBook(randomUUID()));
