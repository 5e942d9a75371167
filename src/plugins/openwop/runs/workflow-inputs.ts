/** Owns: the inputs of a workflow as a JSON Schema. */
import type { WorkflowDefinition } from "../../../agents/coordination/contracts/workflows/workflow-definition.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A variable is an input; one without a default that the workflow requires must be given. */
export function createInputSchema({ variables }: WorkflowDefinition): Fields {
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
}: WorkflowDefinition["variables"][number]): Fields {
  const { description } = more;
  return {
    type,
    ...(typeof description === "string" && { description }),
    // The default of a sensitive variable may be a secret.
    ...(defaultValue !== undefined && sensitive !== true && { default: defaultValue }),
  };
}

/** A sentence about the workflow: its author's, or one with its name. */
export function describeWorkflow({ name, metadata }: WorkflowDefinition): string {
  const { description } = metadata;
  return typeof description === "string" && description !== "" ? description : `Runs the workflow ${name}.`;
}
