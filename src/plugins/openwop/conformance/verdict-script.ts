/** Owns: the verdicts on children that a workflow of the suite scripts, in place of asking the verifier. */
import { z } from "zod";
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import { verdictSchema, type Verdict } from "../../../agents/coordination/contracts/verification.ts";
import { WORKFLOW_BOUNDS } from "../../../agents/coordination/contracts/workflows/workflow-bounds.ts";
import type { GraphNode } from "../../../agents/coordination/workflow/state/node-graph.ts";
import type { NodePlay } from "../../../agents/coordination/workflow/node-contract/node-type.ts";
import { isRecord } from "../../../agents/coordination/std/is-record.ts";

const SCRIPT_MAX = 1_000;
const keys = z
  .array(z.string().min(1).max(WORKFLOW_BOUNDS.nameCharsMax))
  .max(BOUNDS.criteriaMax)
  .transform((kinds) => [...new Set(kinds)]);

/** A verdict alone, or with what else a critic may say. */
const scriptedVerdictSchema = z.union([
  verdictSchema.transform((verdict): ScriptedVerdict => ({ verdict })),
  z.object({
    verdict: verdictSchema,
    criteria: keys.optional(),
    confidence: z.number().min(0).max(1).optional(),
  }),
]);

interface ScriptedVerdict {
  readonly verdict: Verdict;
  readonly criteria?: readonly string[] | undefined;
  readonly confidence?: number | undefined;
}

const scriptSchema = z.array(scriptedVerdictSchema).min(1).max(SCRIPT_MAX);

const NAME = "mockVerdicts";

function findVerdictScript({ node: { config } }: GraphNode): unknown {
  const { verifier } = config;
  return isRecord(verifier) ? verifier[NAME] : undefined;
}

/** True where a node has a script for its verifier in the conformance suite. */
export function hasVerdictScript(node: GraphNode): boolean {
  return findVerdictScript(node) !== undefined;
}

/**
 * Lists what is wrong with the script of a node's verifier, a sentence for each problem; empty where it is right, or
 * there is none.
 */
export function listScriptProblems(node: GraphNode): string[] {
  const script = findVerdictScript(node);
  const parsed = script === undefined ? undefined : scriptSchema.safeParse(script);
  const issues = parsed?.error?.issues ?? [];
  return issues.map(
    ({ path, message }) => `node ${node.node.id}: ${["verifier", NAME, ...path].join(".")}: ${message}`,
  );
}

const scripts = new WeakMap<object, readonly ScriptedVerdict[]>();

/** Returns the scripted verdicts of a node, parsed once; none where the script is missing or wrong. */
function parseVerdictScript(node: GraphNode): readonly ScriptedVerdict[] {
  const script = findVerdictScript(node);
  if (typeof script !== "object" || script === null) return [];
  const verdicts = scripts.get(script) ?? scriptSchema.safeParse(script).data ?? [];
  scripts.set(script, verdicts);
  return verdicts;
}

/** The k-th completed child gets the k-th verdict, and the last one repeats. */
export const playVerdict: NodePlay["playVerdict"] = ({ node, nodeRun }, verifier) => {
  const script = parseVerdictScript(node);
  const scripted = script[Math.max(0, Math.min(nodeRun.completedChildren, script.length) - 1)];
  if (!scripted) return undefined;
  const { verdict, confidence, criteria = verifier.criteria } = scripted;
  return {
    agentId: verifier.agentId,
    verdict,
    ...(criteria.length > 0 && { criteria: [...criteria] }),
    ...(confidence !== undefined && { confidence }),
  };
};
