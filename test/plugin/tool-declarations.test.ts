import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import type { z } from "zod";
import {
  arbiterPolicySchema,
  budgetSchema,
  coordinationPlanSchema,
  coordinationStepSchema,
  failurePolicySchema,
  stepDefaultsSchema,
} from "../../src/agents/coordination/contracts/plan.ts";
import {
  PLAN_EXAMPLE,
  TOOL_DECLARATIONS,
  TOOL_NAMES,
  type ToolName,
} from "../../src/plugins/openclaw/declarations/tool-declarations.ts";
import { formatManifest } from "../../scripts/manifest.ts";

describe("what models read of the tools", () => {
  const ajv = new Ajv2020({ strict: true, strictTypes: false });
  const schemaOf = (name: ToolName): object =>
    TOOL_DECLARATIONS.find((each) => each.name === name)?.parameters ?? {};

  it.each(TOOL_NAMES)("%s has a valid JSON Schema", (name) => {
    expect(() => ajv.compile(schemaOf(name))).not.toThrow();
  });

  it("the schema takes the example and refuses a plan without steps", () => {
    const validate = ajv.compile(schemaOf("coordination_plan"));
    expect(validate(PLAN_EXAMPLE)).toBe(true);
    expect(validate({ plan: { objective: "o", steps: [] } })).toBe(false);
    expect(
      validate({ plan: { objective: "o", steps: [{ stepId: "a", task: "t", fanIn: { min: 0 } }] } }),
    ).toBe(false);
  });

  type Properties = Readonly<
    Record<string, { readonly properties?: Properties; readonly items?: { readonly properties: Properties } }>
  >;
  const { plan } = (schemaOf("coordination_plan") as { properties: { plan: { properties: Properties } } })
    .properties;
  const keysOf = (schema: z.ZodObject): string[] => Object.keys(schema.shape).toSorted();
  const listNames = (properties: Properties = {}): string[] => Object.keys(properties).toSorted();

  it("a plan has the fields of the contract, but for the owner, who is the caller", () => {
    expect(listNames(plan.properties)).toEqual(
      keysOf(coordinationPlanSchema).filter((key) => key !== "ownerSession"),
    );
    expect(listNames(plan.properties["steps"]?.items?.properties)).toEqual(keysOf(coordinationStepSchema));
    expect(listNames(plan.properties["defaults"]?.properties)).toEqual(keysOf(stepDefaultsSchema));
    expect(listNames(plan.properties["failurePolicy"]?.properties)).toEqual(keysOf(failurePolicySchema));
    expect(listNames(plan.properties["conflictPolicy"]?.properties)).toEqual(keysOf(arbiterPolicySchema));
    expect(listNames(plan.properties["budget"]?.properties)).toEqual(keysOf(budgetSchema));
  });

  it("the manifest declares them, without which the host does not offer them", () => {
    const manifest = JSON.parse(formatManifest()) as { contracts?: unknown };
    expect(manifest.contracts).toEqual({ tools: [...TOOL_NAMES] });
  });
});
