/** Puts one planted fault into the source while it is loaded: `PLANTED_FAULT` names it. Loaded with `--import` before all others. */
import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { applyFault, PLANTED_FAULTS } from "./planted-faults.ts";

const ROOT = join(import.meta.dirname, "../..");
const name = process.env["PLANTED_FAULT"];
const fault = PLANTED_FAULTS.find((each) => each.name === name);
if (!fault) throw new Error(`there is no planted fault ${JSON.stringify(name)}`);
const target = pathToFileURL(join(ROOT, fault.file)).href;

registerHooks({
  load: (url, context, nextLoad) => {
    const loaded = nextLoad(url, context);
    if (url !== target) return loaded;
    const { source } = loaded;
    const text = typeof source === "string" ? source : Buffer.from(source as Uint8Array).toString("utf8");
    return { ...loaded, source: applyFault(fault, text) };
  },
});
