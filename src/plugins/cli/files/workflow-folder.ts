/** Owns: reading the workflow definitions of a folder, JSON or YAML, with what is wrong in each file. */
import { join } from "node:path";
import { createInputError, isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { describeProblems } from "../../../agents/coordination/contracts/validation.ts";
import {
  readWorkflowDefinition,
  type WorkflowDefinition,
} from "../../../agents/coordination/contracts/workflows/workflow-definition.ts";
import { compileWorkflow } from "../../../agents/coordination/workflow/state/graph.ts";
import { listFolder } from "./list-folder.ts";
import { describeSyntaxProblems, isJsonOrYamlFile, readJsonOrYaml } from "./read-json-or-yaml.ts";

/**
 * Returns the workflows of all definition files in a folder. @throws CoordinationError `INPUT_INVALID` naming every
 * file that is no workflow, and why, also two workflows of one id
 */
export async function readWorkflowFolder(folder: string): Promise<WorkflowDefinition[]> {
  const names = (await listFolder(folder)).filter(isJsonOrYamlFile);
  const definitions: WorkflowDefinition[] = [];
  const problems: string[] = [];
  for (const name of names) {
    const read = await readWorkflowFile(join(folder, name));
    if ("problem" in read) problems.push(`${name}: ${read.problem}`);
    else if (definitions.some(({ id }) => id === read.definition.id))
      problems.push(`${name}: there is another workflow ${read.definition.id} in the folder`);
    else definitions.push(read.definition);
  }
  if (problems.length > 0) throw createInputError(`${folder}\n  ${problems.join("\n  ")}`);
  return definitions;
}

/**
 * Reads a workflow and compiles it, and returns what is wrong with it in its place; throws where the file cannot be
 * read or is too large.
 */
async function readWorkflowFile(
  file: string,
): Promise<{ readonly definition: WorkflowDefinition } | { readonly problem: string }> {
  const loaded = await readJsonOrYaml(file, "a workflow").catch(createReadProblem);
  if ("problem" in loaded) return loaded;
  if (!loaded.ok) return { problem: describeSyntaxProblems(loaded.problems) };
  const parsed = readWorkflowDefinition(loaded.value);
  if (!parsed.ok) return { problem: describeProblems(parsed.problems) };
  const compiled = compileWorkflow(parsed.value, "");
  return compiled.ok ? { definition: parsed.value } : { problem: compiled.problems.join("; ") };
}

/** Returns why a file cannot be read. Rethrows whatever is no error of ours. */
function createReadProblem(error: unknown): { readonly problem: string } {
  if (!isCoordinationError(error)) throw error;
  return { problem: error.message };
}
