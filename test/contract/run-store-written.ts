/** Owns: runs of either kind as the suites of what their stores have in common append them. */
import type { AppendRequest } from "../../src/agents/coordination/ports/ledger-store.ts";
import type { WorkflowAppend } from "../../src/agents/coordination/ports/workflow-store.ts";
import { openRun, spawnOf } from "../support/ledger-fixtures.ts";
import { appendEnd } from "./ledger-store-tested.ts";
import type { OwnedAuthor } from "./run-owners-tested.ts";
import { beginRun, COMPLETED, createNodeStarted } from "./workflow-store-tested.ts";

export function writeCoordination(name: string) {
  const { author, request: begin } = openRun(name);
  return { begin, end: appendEnd(author) };
}

export function writeWorkflowRun(name: string) {
  const { author, request: begin } = beginRun(name);
  return { begin, end: author.append([COMPLETED], { status: "completed" }) };
}

export function createCoordinationAuthor(name: string): OwnedAuthor<AppendRequest> {
  const { author, request: begin } = openRun(name);
  let calls = 0;
  return {
    runId: author.runId,
    begin,
    propose: () => author.propose(spawnOf(`next-${calls + 1}`)),
    append: () => author.append(spawnOf(`next-${(calls += 1)}`)),
    end: () => appendEnd(author),
  };
}

export function createWorkflowRunAuthor(name: string): OwnedAuthor<WorkflowAppend> {
  const { author, request: begin } = beginRun(name);
  return {
    runId: author.runId,
    begin,
    propose: () => author.propose([createNodeStarted("next")]),
    append: () => author.append([createNodeStarted("next")]),
    end: () => author.append([COMPLETED], { status: "completed" }),
  };
}
