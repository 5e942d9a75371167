/** Owns: the official OpenWOP JSON Schemas, where they lie beside this repository. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { decodeEvent, isFact, type RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";

const FOLDER = join(import.meta.dirname, "../../../shared/openwop/schemas");
const EVENTS = "https://openwop.dev/spec/v1/run-event.schema.json";
const PAYLOADS = "https://openwop.dev/spec/v1/run-event-payloads.schema.json";

interface Schema {
  readonly $id?: string;
  readonly $defs?: Readonly<
    Record<string, { readonly properties?: Readonly<Record<string, { readonly $ref?: string }>> }>
  >;
}

export interface OpenWopSchemas {
  /** What is wrong with an event: the envelope, and the payload where OpenWOP owns the type. */
  problemsOf(event: RunEvent): readonly string[];
}

/** Where the official schemas are absent, this host's own ones are all there is to check against. */
export function loadOpenWopSchemas(): OpenWopSchemas {
  const official = existsSync(FOLDER) ? officialSchemas() : undefined;
  return {
    problemsOf: (event) => {
      decodeEvent(JSON.parse(JSON.stringify(event)));
      return official?.(event) ?? [];
    },
  };
}

function officialSchemas(): (event: RunEvent) => string[] {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  (addFormats as unknown as (target: Ajv2020) => void)(ajv);
  const schemas = readdirSync(FOLDER)
    .filter((name) => name.endsWith(".schema.json"))
    .map((name) => JSON.parse(readFileSync(join(FOLDER, name), "utf8")) as Schema);
  for (const schema of schemas) if (schema.$id) ajv.addSchema(schema);
  const payloads = schemas.find(({ $id }) => $id === PAYLOADS);
  const index = payloads?.$defs?.["_typeIndex"]?.properties ?? {};
  return (event) => {
    const found: string[] = [];
    const check = (id: string, value: unknown): void => {
      const validate = ajv.getSchema(id);
      if (!validate) throw new Error(`there is no OpenWOP schema ${id}`);
      if (!validate(value)) found.push(`${event.type}: ${ajv.errorsText(validate.errors)}`);
    };
    check(EVENTS, event);
    const ref = index[event.type]?.$ref;
    if (ref) check(ref.startsWith("#") ? `${PAYLOADS}${ref}` : new URL(ref, PAYLOADS).href, event.payload);
    else if (!isFact(event)) found.push(`${event.type} has no payload schema in OpenWOP`);
    return found;
  };
}
