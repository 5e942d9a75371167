/** Owns: the inputs of a workflow as a JSON Schema. */
import type { WorkflowDefinition } from "../../../agents/coordination/contracts/workflows/workflow-definition.ts";

/** The keywords of a JSON schema, unchecked. */
type SchemaKeywords = Readonly<Record<string, unknown>>;

/**
 * Returns the JSON Schema of a workflow's inputs, which are its variables; those that the workflow requires and that
 * have no default are required.
 */
export function createInputSchema({ variables }: WorkflowDefinition): SchemaKeywords {
  const required = variables.flatMap(({ name, required: isRequired, defaultValue }) =>
    isRequired === true && defaultValue === undefined ? [name] : [],
  );
  return {
    type: "object",
    properties: Object.fromEntries(variables.map((variable) => [variable.name, createInputField(variable)])),
    ...(required.length > 0 && { required }),
  };
}

function createInputField({
  type,
  sensitive,
  defaultValue,
  ...more
}: WorkflowDefinition["variables"][number]): SchemaKeywords {
  const { description } = more;
  return {
    type,
    ...(typeof description === "string" && { description }),
    // The default of a sensitive variable may be a secret.
    ...(defaultValue !== undefined && sensitive !== true && { default: defaultValue }),
  };
}

/** Returns the description that a workflow's author wrote, or else a sentence with its name. */
export function describeWorkflow({ name, metadata }: WorkflowDefinition): string {
  const { description } = metadata;
  return typeof description === "string" && description !== "" ? description : `Runs the workflow ${name}.`;
}
