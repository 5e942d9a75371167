/** Owns: the official OpenWOP JSON Schemas, where they lie beside this repository. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { decodeEvent, isFact, type RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import {
  decodeWorkflowEvent,
  type WorkflowEvent,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";

const FOLDER = join(import.meta.dirname, "../../../shared/openwop/schemas");
const EVENTS = "https://openwop.dev/spec/v1/run-event.schema.json";
const PAYLOADS = "https://openwop.dev/spec/v1/run-event-payloads.schema.json";
const SNAPSHOT = "https://openwop.dev/spec/v1/run-snapshot.schema.json";

interface Schema {
  readonly $id?: string;
  readonly $defs?: Readonly<
    Record<string, { readonly properties?: Readonly<Record<string, { readonly $ref?: string }>> }>
  >;
}

export interface OpenWopSchemas {
  /** Lists the problems of an event: the envelope, and the payload where OpenWOP owns the type. */
  problemsOf(event: RunEvent): readonly string[];
  /** The same for an event of a workflow run. */
  problemsOfWorkflow(event: WorkflowEvent): readonly string[];
  /** Lists the problems of a run as a host shows it. */
  problemsOfSnapshot(snapshot: unknown): readonly string[];
}

/** Where the official schemas are absent, this host's own ones are all there is to check against. */
export function loadOpenWopSchemas(): OpenWopSchemas {
  const official = existsSync(FOLDER) ? loadOfficialSchemas() : undefined;
  return {
    problemsOf: (event) => {
      decodeEvent(JSON.parse(JSON.stringify(event)));
      return official?.event(event, !isFact(event)) ?? [];
    },
    problemsOfWorkflow: (event) => {
      const stored = decodeWorkflowEvent(JSON.parse(JSON.stringify(event)));
      return official?.event(stored, !event.type.startsWith("coordination.")) ?? [];
    },
    problemsOfSnapshot: (snapshot) => official?.snapshot(JSON.parse(JSON.stringify(snapshot))) ?? [],
  };
}

interface Official {
  /** `isKnown`: of a type that OpenWOP has a payload schema for. */
  event(event: RunEvent | WorkflowEvent, isKnown: boolean): string[];
  snapshot(snapshot: unknown): string[];
}

function loadOfficialSchemas(): Official {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  (addFormats as unknown as (target: Ajv2020) => void)(ajv);
  const schemas = readdirSync(FOLDER)
    .filter((name) => name.endsWith(".schema.json"))
    .map((name) => JSON.parse(readFileSync(join(FOLDER, name), "utf8")) as Schema);
  for (const schema of schemas) if (schema.$id) ajv.addSchema(schema);
  const payloads = schemas.find(({ $id }) => $id === PAYLOADS);
  const index = payloads?.$defs?.["_typeIndex"]?.properties ?? {};
  const check = (id: string, value: unknown, name: string): string[] => {
    const validate = ajv.getSchema(id);
    if (!validate) throw new Error(`there is no OpenWOP schema ${id}`);
    return validate(value) ? [] : [`${name}: ${ajv.errorsText(validate.errors)}`];
  };
  return {
    event: (event, isKnown) => {
      const { type, payload } = event;
      const found = check(EVENTS, event, type);
      const ref = index[type]?.$ref;
      if (ref) {
        const id = ref.startsWith("#") ? `${PAYLOADS}${ref}` : new URL(ref, PAYLOADS).href;
        found.push(...check(id, payload, type));
      } else if (isKnown) found.push(`${type} has no payload schema in OpenWOP`);
      return found;
    },
    snapshot: (snapshot) => check(SNAPSHOT, snapshot, "snapshot"),
  };
}
