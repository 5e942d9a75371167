/** Owns: reading the workflow definitions of a folder, JSON or YAML, with what is wrong in each file. */
import { readdir } from "node:fs/promises";
import { extname, join } from "node:path";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { describeProblems } from "../../../agents/coordination/contracts/validation.ts";
import {
  readWorkflowDefinition,
  type WorkflowDefinition,
} from "../../../agents/coordination/contracts/workflows/workflow-definition.ts";
import { compileWorkflow } from "../../../agents/coordination/workflow/state/graph.ts";
import { describeSlips, loadPlanFile } from "./plan-file.ts";

const EXTENSIONS: ReadonlySet<string> = new Set([".json", ".yaml", ".yml"]);

/** @throws CoordinationError `INPUT_INVALID` naming every file that is no workflow, and why. */
export async function readWorkflowFolder(folder: string): Promise<WorkflowDefinition[]> {
  const names = await listNames(folder);
  const definitions: WorkflowDefinition[] = [];
  const problems: string[] = [];
  for (const name of names) {
    const read = await readWorkflow(join(folder, name));
    if ("problem" in read) problems.push(`${name}: ${read.problem}`);
    else if (definitions.some(({ id }) => id === read.definition.id))
      problems.push(`${name}: there is another workflow ${read.definition.id} in the folder`);
    else definitions.push(read.definition);
  }
  if (problems.length > 0)
    throw new CoordinationError("INPUT_INVALID", `${folder}\n  ${problems.join("\n  ")}`);
  return definitions;
}

async function listNames(folder: string): Promise<string[]> {
  try {
    const names = await readdir(folder);
    return names.filter((name) => EXTENSIONS.has(extname(name).toLowerCase())).toSorted();
  } catch (cause) {
    const { code = "?" } = cause as NodeJS.ErrnoException;
    throw new CoordinationError("INPUT_INVALID", `${folder}: the folder cannot be read (${code})`, { cause });
  }
}

async function readWorkflow(
  file: string,
): Promise<{ readonly definition: WorkflowDefinition } | { readonly problem: string }> {
  const loaded = await loadPlanFile(file);
  if (!loaded.ok) return { problem: describeSlips(loaded.problems) };
  const parsed = readWorkflowDefinition(loaded.value);
  if (!parsed.ok) return { problem: describeProblems(parsed.problems) };
  const compiled = compileWorkflow(parsed.value, "");
  return compiled.ok ? { definition: parsed.value } : { problem: compiled.problems.join("; ") };
}
