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

/** Lists what `configurable.ai` has of an option, nested and with dots. Null stands for nothing. */
export function listBelowAi(configurable: Values, key: string): unknown[] {
  return [readNested(configurable)[key], configurable[`ai.${key}`]].filter(
    (value) => value !== undefined && value !== null,
  );
}

function readNested({ ai }: Values): Values {
  return isRecord(ai) ? ai : {};
}

/** Reads an option of `configurable.ai`; what the protocol has beside it comes second. A value that cannot be read hides no other. */
export function readAiOption<T>(
  configurable: Values,
  key: string,
  read: (value: unknown) => T | undefined,
): T | undefined {
  const values = [...listBelowAi(configurable, key), ...(PLAIN.has(key) ? [configurable[key]] : [])];
  return values.map(read).find((value) => value !== undefined);
}

/**
 * Returns the overlay with which a branch's options of a model count once it is put over those of the source, name by name: each
 * option has its value in every spelling that the source has, and `ai` has the members of the source's that the overlay lacks.
 */
export function completeOverlay(source: Values, overlay: Values): Values {
  const values = readOverlaidOptions(overlay);
  const flat = [...values].flatMap(([key, value]) =>
    listFlatSpellings(key).flatMap((spelling) =>
      Object.hasOwn(source, spelling) ? [[spelling, value] as const] : [],
    ),
  );
  const ofSource = readNested(source);
  const nested = [...values].filter(([key]) => Object.hasOwn(ofSource, key));
  const isNested = overlay["ai"] === undefined ? nested.length > 0 : isRecord(overlay["ai"]);
  const ai = { ...ofSource, ...Object.fromEntries(nested), ...readNested(overlay) };
  return { ...Object.fromEntries(flat), ...overlay, ...(isNested && { ai }) };
}

/** Reads the options of a model that an overlay states in any spelling. One that is null there is left out. */
function readOverlaidOptions(overlay: Values): ReadonlyMap<string, unknown> {
  const flat = Object.keys(overlay).flatMap((name) => {
    if (name.startsWith("ai.")) return [name.slice("ai.".length)];
    return PLAIN.has(name) ? [name] : [];
  });
  const keys = [...Object.keys(readNested(overlay)), ...flat];
  return new Map(keys.map((key) => [key, readAiOption(overlay, key, (value) => value ?? undefined) ?? null]));
}

function listFlatSpellings(key: string): string[] {
  return PLAIN.has(key) ? [`ai.${key}`, key] : [`ai.${key}`];
}

/**
 * Returns the model's name for a host that routes to several providers; `undefined` where there is none. A model that the run
 * names is the one of its provider, whatever slashes are in its name; any other may be of another provider.
 */
export function findRoutedModel(
  { model, provider }: { readonly model?: string | undefined; readonly provider?: string | undefined },
  otherModel: string | undefined,
): string | undefined {
  const name = model ?? otherModel;
  if (name === undefined || provider === undefined || name.startsWith(`${provider}/`)) return name;
  const isOfOther = model === undefined && name.includes("/");
  return isOfOther ? undefined : readName(`${provider}/${name}`);
}

/** Reads the options of a call. The run's go before the node's; the smaller bound of tokens counts, so neither can be exceeded. */
export function readModelOptions(
  configurable: Values | undefined,
  config: Values,
  defaultTokens: number,
): ModelOptions {
  const options = configurable ?? {};
  const modelOfRun = readAiOption(options, "model", readName);
  const modelOfNode = readText(config["model"]);
  const model = modelOfRun ?? modelOfNode;
  const provider = readAiOption(options, "provider", readName);
  const routedModel = provider && findRoutedModel({ model: modelOfRun, provider }, modelOfNode);
  const temperature =
    readAiOption(options, "temperature", (value) => readNumber(value, 0, TEMPERATURE_MAX)) ??
    config["temperature"];
  const tokens = readAiOption(options, "maxTokens", (value) => readNumber(value, 1));
  const bounds = [tokens, config["maxTokens"]].filter(isNumber);
  return {
    ...(model !== undefined && { model }),
    ...(provider !== undefined && { provider }),
    ...(routedModel !== undefined && { routedModel }),
    ...(isNumber(temperature) && { temperature }),
    maxTokens: bounds.length > 0 ? Math.min(...bounds) : defaultTokens,
  };
}

/** Reads the options as releases did in which the node's configuration went first. Replays of their runs compare with these. */
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

/** Reads the name of a model, a class or a provider. */
export function readName(value: unknown): string | undefined {
  return readText(value)?.slice(0, WORKFLOW_BOUNDS.nameCharsMax);
}

/** Reads a number within bounds. */
export function readNumber(
  value: unknown,
  least: number,
  most = Number.MAX_SAFE_INTEGER,
): number | undefined {
  return isNumber(value) && value >= least && value <= most ? value : undefined;
}

function isNumber(value: unknown): value is number {
  return typeof value === "number";
}
