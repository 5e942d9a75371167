/** Owns: holding any answer of a host against the official schema of its name, where these lie beside this repository. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

const FOLDER = join(import.meta.dirname, "../../../shared/openwop/schemas");

const official = existsSync(FOLDER) ? loadOfficial() : undefined;

function loadOfficial(): Ajv2020 {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  (addFormats as unknown as (target: Ajv2020) => void)(ajv);
  for (const name of readdirSync(FOLDER).filter((file) => file.endsWith(".schema.json")))
    ajv.addSchema(JSON.parse(readFileSync(join(FOLDER, name), "utf8")) as object);
  return ajv;
}

/** `name` is that of a file, such as `capabilities`. */
export function findSchemaProblems(name: string, value: unknown): readonly string[] {
  if (!official) return [];
  const validate = official.getSchema(`https://openwop.dev/spec/v1/${name}.schema.json`);
  if (!validate) throw new Error(`there is no OpenWOP schema ${name}`);
  return validate(value) ? [] : [`${name}: ${official.errorsText(validate.errors)}`];
}
