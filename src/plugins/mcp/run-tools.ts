/** Owns: the list of tools of the MCP server that are about runs of any workflow, and of these `status` and `verify`. */
import { z } from "zod";
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import type { Caller } from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { verifyWorkflowRun } from "../../agents/coordination/runtime/workflow-host/verify-workflow-runs.ts";
import { formatCount } from "../../agents/coordination/std/quantities.ts";
import { listTenantRuns } from "../openwop/runs/list-tenant-runs.ts";
import { waitForRun } from "../openwop/runs/run-access.ts";
import { createAnswerTool } from "./answer-run-tool.ts";
import { describeCoordinationFailure, waitForCoordination } from "./ask-operator.ts";
import { createRunResult } from "./describe-run.ts";
import { createQuestionsTool } from "./list-questions-tool.ts";
import { MCP_BOUNDS } from "./mcp-bounds.ts";
import {
  createFailureResult,
  createRefusalResult,
  createTool,
  createToolResult,
  idSchema,
  limitSchema,
  MORE_RUNS,
  type McpDependencies,
  type McpTool,
  type OperatorAccess,
  type ToolResult,
} from "./mcp-tool.ts";

/**
 * Lists the MCP tools that work on runs: `status`, the questions, `verify` and, where answers are allowed, the one
 * that answers.
 */
export function listRunTools(dependencies: McpDependencies): readonly McpTool[] {
  return [
    createStatusTool(dependencies),
    createQuestionsTool(dependencies),
    ...(dependencies.mayAnswer ? [createAnswerTool(dependencies)] : []),
    createVerifyTool(dependencies),
  ];
}

const statusSchema = z.strictObject({
  runId: idSchema.optional().describe("The run to look at; without it the newest runs are listed."),
  waitSeconds: z
    .number()
    .min(0)
    .max(MCP_BOUNDS.waitSecondsMax)
    .default(0)
    .describe("With runId: wait so long for the run to end or to ask somebody."),
  limit: limitSchema.describe("Without runId: list at most so many runs."),
});

function createStatusTool(dependencies: McpDependencies): McpTool {
  const words = {
    name: "status",
    title: "How runs are",
    description:
      "Tells how a run is: its status, its outputs when it has ended, its question when it waits. Without runId, the newest runs.",
    isReadOnly: true,
  };
  return createTool(words, statusSchema, async ({ runId, waitSeconds, limit: most }, { caller, signal }) => {
    if (runId === undefined) return await createRunListing(dependencies, caller, most);
    const waitMs = waitSeconds * 1_000;
    const found = await waitForRun(dependencies, runId, { caller, signal, waitMs, until: "asking" });
    if (found.kind === "done") return await createRunResult(dependencies, caller, found.value);
    const { operator } = dependencies;
    return operator && found.code === "not_found"
      ? await waitForCoordination(dependencies, { operator, coordinationId: runId, signal, waitMs })
      : createRefusalResult(found);
  });
}

async function createRunListing(
  dependencies: McpDependencies,
  caller: Caller,
  most: number,
): Promise<ToolResult> {
  const { runs, next } = await listTenantRuns(dependencies, caller, { limit: most });
  const shown = runs.map(({ runId, summary }) => ({
    runId,
    workflowId: summary.workflowId,
    status: summary.status,
    startedAt: new Date(summary.createdAtMs).toISOString(),
  }));
  const words = `${formatCount(shown.length, "run")}, the newest first.`;
  return createToolResult(next ? `${words} ${MORE_RUNS}` : words, {
    runs: shown,
    isMore: next !== undefined,
  });
}

function createVerifyTool(dependencies: McpDependencies): McpTool {
  const { operator } = dependencies;
  const words = {
    name: "verify",
    title: "Prove the log",
    description: operator
      ? "Proves the log of a run, or the whole ledger: every stored byte, every hash, every event's meaning."
      : "Proves the log of a run: every stored byte, every hash, every event's meaning.",
    isReadOnly: true,
  };
  if (!operator)
    return createTool(words, z.strictObject({ runId: idSchema }), ({ runId }, { caller }) =>
      verifyRunLog(dependencies, caller, runId),
    );
  return createTool(words, z.strictObject({ runId: idSchema.optional() }), ({ runId }, { caller, signal }) =>
    runId === undefined ? verifyWholeLedger(operator, signal) : verifyRunLog(dependencies, caller, runId),
  );
}

async function verifyRunLog({ runs }: McpDependencies, caller: Caller, runId: string): Promise<ToolResult> {
  const entry = await runs.entry(runId as CoordinationId);
  if (entry?.summary.tenant !== caller.tenant)
    return createFailureResult(`there is no run ${runId} (not_found)`);
  const { events, problems } = await verifyWorkflowRun(runs, entry);
  const isWhole = problems.length === 0;
  const verdict = isWhole ? "holds" : `is damaged: ${formatCount(problems.length, "problem")}`;
  const data = { runId, ok: isWhole, events, problems };
  return createToolResult(`The log of ${runId} ${verdict}.`, data, { isError: !isWhole });
}

async function verifyWholeLedger(operator: OperatorAccess, signal: AbortSignal): Promise<ToolResult> {
  try {
    const verified = await operator.verifyLedger(signal);
    const isWhole = verified["ok"] === true;
    return createToolResult(isWhole ? "The ledger holds." : "The ledger is damaged.", verified, {
      isError: !isWhole,
    });
  } catch (error) {
    return createFailureResult(
      signal.aborted ? "The proof was cancelled." : describeCoordinationFailure(error),
    );
  }
}
