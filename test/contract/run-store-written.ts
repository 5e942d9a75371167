/** Owns: runs of either kind as the suite of what their stores have in common appends them. */
import { openRun } from "../support/ledger-fixtures.ts";
import { appendEnd } from "./ledger-store-tested.ts";
import { beginRun, COMPLETED } from "./workflow-store-tested.ts";

export function writeCoordination(name: string) {
  const { author, request: begin } = openRun(name);
  return { begin, end: appendEnd(author) };
}

export function writeWorkflowRun(name: string) {
  const { author, request: begin } = beginRun(name);
  return { begin, end: author.append([COMPLETED], { status: "completed" }) };
}
