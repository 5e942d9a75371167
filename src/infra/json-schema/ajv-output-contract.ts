/**
 * Owns: holding outputs against a schema with ajv. Schemas and outputs are written by models: nothing of them may hang the
 * process, fill its memory or become code that does anything but compare.
 */
import { Ajv2020 } from "ajv/dist/2020.js";
import { _, type ErrorObject, type KeywordCxt } from "ajv";
import { SchemaEnv } from "ajv/dist/compile/index.js";
import type { OutputContract, OutputProblem } from "../../agents/coordination/ports/output-contract.ts";
import { describeErrors } from "./describe-errors.ts";
import { areDistinct } from "./distinct-items.ts";
import { createLinearPattern, type LinearPattern } from "./linear-pattern.ts";
import { createUsableSchema, WORK, type SchemaKeywords, type WorkOf } from "./usable-schema.ts";
import { createWorkBudget, WorkExceeded, type WorkMeter } from "./work-meter.ts";

/** In characters of schemas and instructions of patterns, each of which takes up to 100 bytes. */
const CACHED_WEIGHT_MAX = 300_000;
const CACHED_MAX = 256;
/** Characters whose number is found in the time of a unit. */
const CHARS_PER_UNIT = 32;

/** A schema that was compiled, and checks outputs. */
interface CompiledSchema {
  readonly weight: number;
  validate(outputs: unknown): readonly ErrorObject[];
  /** Gives back what the last check left behind. */
  forget(): void;
  readonly names: ReadonlySet<string>;
}

/**
 * Creates the check of outputs against JSON Schemas, which lists their problems; a schema that cannot be used is a
 * problem, too. Schemas that were compiled are kept for later checks.
 */
export function createAjvOutputContract(): OutputContract {
  const cache = new Map<string, CompiledSchema>();
  const work = createWorkBudget();
  const compiledOf = (schema: SchemaKeywords): CompiledSchema => {
    const key = JSON.stringify(schema);
    const compiled = cache.get(key) ?? compileSchema(schema, key.length, work.meter);
    keepInCache(cache, key, compiled);
    return compiled;
  };
  return {
    check: (schema, outputs) => {
      work.restart();
      try {
        return listOutputProblems(compiledOf(schema), outputs);
      } catch (error) {
        return [createUnusableSchemaProblem(error)];
      }
    },
  };
}

/** Lists what is wrong with outputs; one problem that is `isUnchecked` where the check takes too long. */
function listOutputProblems(compiled: CompiledSchema, outputs: unknown): readonly OutputProblem[] {
  try {
    return describeErrors(compiled.validate(outputs), { outputs, names: compiled.names });
  } catch (error) {
    if (!(error instanceof WorkExceeded) && !(error instanceof RangeError)) throw error;
    const message = "holding this against the schema takes too long; make the output or the schema simpler";
    return [{ path: "(root)", message, isUnchecked: true }];
  } finally {
    compiled.forget();
  }
}

/**
 * Returns the problem for a schema that cannot be compiled. Schemas are refused where they are written; this one was
 * recorded by a version that took it, or by another program.
 */
function createUnusableSchemaProblem(error: unknown): OutputProblem {
  const isTooDeep = error instanceof RangeError;
  const why = isTooDeep ? "it is nested too deeply" : "the validator does not take it";
  return { path: "(root)", message: `the schema is not usable: ${why}`, isUnchecked: true };
}

/** Puts a schema last into the cache, and drops those that were used longest ago beyond the bounds. */
function keepInCache(cache: Map<string, CompiledSchema>, key: string, compiled: CompiledSchema): void {
  cache.delete(key);
  cache.set(key, compiled);
  let sum = 0;
  for (const each of cache.values()) sum += each.weight;
  for (const [oldest, { weight }] of cache) {
    if (cache.size === 1 || (cache.size <= CACHED_MAX && sum <= CACHED_WEIGHT_MAX)) return;
    cache.delete(oldest);
    sum -= weight;
  }
}

/** Compiles a schema with an ajv of its own, because an ajv never forgets what it compiled. */
function compileSchema(schema: SchemaKeywords, chars: number, meter: WorkMeter): CompiledSchema {
  const patterns: LinearPattern[] = [];
  const regExp = Object.assign(
    (source: string): LinearPattern => {
      const pattern = createLinearPattern(source, meter);
      patterns.push(pattern);
      return pattern;
    },
    { code: "" },
  );
  const ajv = new Ajv2020({
    // Without allErrors the code is nested as deep as a schema is long, and overflows the stack.
    allErrors: true,
    strict: false,
    meta: false,
    validateSchema: false,
    validateFormats: false,
    addUsedSchema: false,
    inlineRefs: false,
    ownProperties: true,
    verbose: true,
    messages: false,
    logger: false,
    code: { regExp, optimize: false },
  });
  // Keeping track of what is evaluated fails beside patternProperties, and is for keywords that a plan may not have.
  ajv.opts.unevaluated = false;
  ajv.removeKeyword("uniqueItems");
  ajv.addKeyword({
    keyword: "uniqueItems",
    type: "array",
    schemaType: "boolean",
    errors: false,
    compile: (isOn: boolean) => (items: readonly unknown[]) => !isOn || areDistinct(items, meter),
  });
  const spend = (units: number): void => meter.spend(units);
  ajv.addKeyword({
    // Before all that looks at alternatives.
    keyword: WORK,
    before: "not",
    schemaType: "object",
    code: (context: KeywordCxt) => writeMeteringCode(context, spend),
  });
  const { schema: usable, names } = createUsableSchema(schema);
  const validate = ajv.compile(usable);
  return {
    weight: patterns.reduce((sum, { size }) => sum + size, chars),
    names,
    validate: (outputs) => (validate(outputs) ? [] : (validate.errors ?? [])),
    forget: () => {
      // The errors hold on to the outputs.
      for (const each of [validate.schemaEnv, ...Object.values(validate.schemaEnv.refs)])
        if (each instanceof SchemaEnv && each.validate) each.validate.errors = null;
      for (const pattern of patterns) pattern.forget();
    },
  };
}

/**
 * Writes the code that spends the work of one schema. As code, because a function for each schema would double the
 * time of compiling.
 */
function writeMeteringCode({ gen, data, schema }: KeywordCxt, spend: (units: number) => void): void {
  const { fixed, perItem, perKey, isLengthCounted } = schema as WorkOf;
  const call = gen.scopeValue("func", { ref: spend });
  let units = _`${fixed}`;
  if (isLengthCounted)
    units = _`${units} + (typeof ${data} == "string" ? ${data}.length / ${CHARS_PER_UNIT} : 0)`;
  if (perItem > 0) units = _`${units} + (Array.isArray(${data}) ? ${data}.length * ${perItem} : 0)`;
  if (perKey > 0) {
    const count = gen.scopeValue("func", { ref: countKeysOfObject });
    units = _`${units} + ${count}(${data}) * ${perKey}`;
  }
  gen.code(_`${call}(${units})`);
}

function countKeysOfObject(value: unknown): number {
  return typeof value === "object" && value !== null ? Object.keys(value).length : 0;
}
