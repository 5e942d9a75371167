/** Owns: which model a node asks and how, as the options of its run and its own configuration say (run-options.md). */
import { WORKFLOW_BOUNDS } from "../../contracts/workflows/workflow-bounds.ts";
import { isRecord } from "../../std/is-record.ts";
import type { Values } from "./values.ts";

export interface ModelOptions {
  readonly model?: string;
  readonly provider?: string;
  readonly routedModel?: string;
  readonly temperature?: number;
  readonly maxTokens: number;
}

const TEMPERATURE_MAX = 2;

/** The options that are read beside `ai` too. Any other name there belongs to the workflow. */
const PLAIN: ReadonlySet<string> = new Set(["model", "modelClass", "temperature", "maxTokens"]);

/**
 * Lists the values that a run gives for one of its model options, nested in `configurable.ai` and as `ai.<name>`. Null
 * stands for nothing.
 */
export function listAiOptionValues(configurable: Values, key: string): unknown[] {
  return [readNestedOptions(configurable)[key], configurable[`ai.${key}`]].filter(
    (value) => value !== undefined && value !== null,
  );
}

function readNestedOptions({ ai }: Values): Values {
  return isRecord(ai) ? ai : {};
}

/**
 * Returns the first value of a run's model option that `read` takes, from `configurable.ai`, then beside it;
 * `undefined` where there is none.
 */
export function readAiOption<T>(
  configurable: Values,
  key: string,
  read: (value: unknown) => T | undefined,
): T | undefined {
  const values = [...listAiOptionValues(configurable, key), ...(PLAIN.has(key) ? [configurable[key]] : [])];
  return values.map(read).find((value) => value !== undefined);
}

/**
 * Returns the overlay of a branch completed so that its model options count once it is put over those of the source,
 * name by name: each option has its value in every spelling that the source has, and `ai` has the members of the
 * source's that the overlay lacks.
 */
export function completeOverlay(source: Values, overlay: Values): Values {
  const values = readOverlaidOptions(overlay);
  const flat = [...values].flatMap(([key, value]) =>
    listFlatSpellings(key).flatMap((spelling) =>
      Object.hasOwn(source, spelling) ? [[spelling, value] as const] : [],
    ),
  );
  const ofSource = readNestedOptions(source);
  const nested = [...values].filter(([key]) => Object.hasOwn(ofSource, key));
  const isNested = overlay["ai"] === undefined ? nested.length > 0 : isRecord(overlay["ai"]);
  const ai = { ...ofSource, ...Object.fromEntries(nested), ...readNestedOptions(overlay) };
  return { ...Object.fromEntries(flat), ...overlay, ...(isNested && { ai }) };
}

/** Reads the options of a model that an overlay states in any spelling. One that is null there is left out. */
function readOverlaidOptions(overlay: Values): ReadonlyMap<string, unknown> {
  const flat = Object.keys(overlay).flatMap((name) => {
    if (name.startsWith("ai.")) return [name.slice("ai.".length)];
    return PLAIN.has(name) ? [name] : [];
  });
  const keys = [...Object.keys(readNestedOptions(overlay)), ...flat];
  return new Map(keys.map((key) => [key, readAiOption(overlay, key, (value) => value ?? undefined) ?? null]));
}

/** Lists the names by which an option may stand beside the nested `ai` object. */
function listFlatSpellings(key: string): string[] {
  return PLAIN.has(key) ? [`ai.${key}`, key] : [`ai.${key}`];
}

/**
 * Returns the name by which a host that routes to several providers knows the model of a call; `undefined` where there
 * is none. A model that the run names is the one of its provider, whatever slashes are in its name; any other may be
 * of another provider.
 */
export function findRoutedModel(
  { model, provider }: { readonly model?: string | undefined; readonly provider?: string | undefined },
  otherModel: string | undefined,
): string | undefined {
  const name = model ?? otherModel;
  if (name === undefined || provider === undefined || name.startsWith(`${provider}/`)) return name;
  const isOfOther = model === undefined && name.includes("/");
  return isOfOther ? undefined : readOptionName(`${provider}/${name}`);
}

/**
 * Reads the options of a model call from the run's and the node's configuration. The run's go before the node's; the
 * smaller bound of tokens counts, so neither can be exceeded.
 */
export function readModelOptions(
  configurable: Values | undefined,
  config: Values,
  defaultTokens: number,
): ModelOptions {
  const options = configurable ?? {};
  const modelOfRun = readAiOption(options, "model", readOptionName);
  const modelOfNode = readText(config["model"]);
  const model = modelOfRun ?? modelOfNode;
  const provider = readAiOption(options, "provider", readOptionName);
  const routedModel = provider && findRoutedModel({ model: modelOfRun, provider }, modelOfNode);
  const temperature =
    readAiOption(options, "temperature", (value) => readNumberWithin(value, 0, TEMPERATURE_MAX)) ??
    config["temperature"];
  const tokens = readAiOption(options, "maxTokens", (value) => readNumberWithin(value, 1));
  const bounds = [tokens, config["maxTokens"]].filter(isNumber);
  return {
    ...(model !== undefined && { model }),
    ...(provider !== undefined && { provider }),
    ...(routedModel !== undefined && { routedModel }),
    ...(isNumber(temperature) && { temperature }),
    maxTokens: bounds.length > 0 ? Math.min(...bounds) : defaultTokens,
  };
}

/**
 * Reads the options of a model call as releases did in which the node's configuration went before the run's. Replays
 * of their runs compare with these.
 */
export function readEarlierModelOptions(
  configurable: Values | undefined,
  config: Values,
  defaultTokens: number,
): ModelOptions {
  const { model, temperature, maxTokens }: Values = { ...configurable, ...config };
  return {
    ...(typeof model === "string" && { model }),
    ...(isNumber(temperature) && { temperature }),
    maxTokens: isNumber(maxTokens) ? maxTokens : defaultTokens,
  };
}

function readText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Reads the name of a model, a class or a provider, cut to its bound; `undefined` where the value is no such text. */
export function readOptionName(value: unknown): string | undefined {
  return readText(value)?.slice(0, WORKFLOW_BOUNDS.nameCharsMax);
}

/** Returns the value where it is a number within the bounds; `undefined` for any other value. */
export function readNumberWithin(
  value: unknown,
  least: number,
  most = Number.MAX_SAFE_INTEGER,
): number | undefined {
  return isNumber(value) && value >= least && value <= most ? value : undefined;
}

function isNumber(value: unknown): value is number {
  return typeof value === "number";
}
