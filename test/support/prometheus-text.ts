/** Owns: reading Prometheus' text format as strictly as `promtool check metrics` does, which is not at hand everywhere. */

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  /** By the whole name of the series, labels included. */
  readonly samples: ReadonlyMap<string, number>;
}

const HELP = /^# HELP ([a-z_][a-z0-9_]*) ((?:[^\\\n]|\\[\\n])+)$/u;
const TYPE = /^# TYPE ([a-z_][a-z0-9_]*) (counter|gauge|histogram)$/u;
const SAMPLE = /^([a-z_][a-z0-9_]*)(?:\{(.*)\})? (\+Inf|-Inf|NaN|-?[0-9.]+(?:e[+-]?[0-9]+)?)$/u;
const LABELS = /([a-z_][a-z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/uy;
/** Prometheus counts in seconds and bytes. */
const OTHER_UNIT =
  /(?:^|_)(?:ms|millis|milliseconds|micros|nanos|minutes|hours|days|kb|mb|kilobytes|percent)(?:_|$)/u;
const TYPE_IN_NAME = /(?:^|_)(?:counter|gauge|histogram|summary)(?:_|$)/u;

/** @throws Error that names the first line that is not as it should be */
export function parsePrometheusText(text: string): Map<string, Family> {
  if (!text.endsWith("\n")) throw new Error("the last line does not end");
  const families = new Map<string, Family>();
  for (const block of text.trimEnd().split("\n\n")) {
    const family = parseFamily(block.split("\n"));
    if (families.has(family.name)) throw new Error(`${family.name} is there twice`);
    families.set(family.name, family);
  }
  return families;
}

function parseFamily([help = "", type = "", ...lines]: readonly string[]): Family {
  const [name, words] = matchLine(HELP, help);
  const [typedName, kind] = matchLine(TYPE, type);
  if (typedName !== name) fail(type);
  checkName(name, kind);
  const suffixes = kind === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
  const metrics = new Set(suffixes.map((suffix) => `${name}${suffix}`));
  const samples = new Map<string, number>();
  for (const line of lines) {
    const [metric, labels, value] = matchLine(SAMPLE, line);
    const series = `${metric}${formatLabels(labels, line)}`;
    if (!metrics.has(metric) || samples.has(series)) fail(line);
    samples.set(series, parseValue(value));
  }
  if (samples.size === 0) throw new Error(`${name} has no series`);
  checkHistogram(name, samples);
  return { name, help: words, type: kind, samples };
}

/** Returns what the groups of the pattern stand for. */
function matchLine(pattern: RegExp, line: string): [string, string, string] {
  const [, first = "", second = "", third = ""] = pattern.exec(line) ?? fail(line);
  return [first, second, third];
}

function parseValue(text: string): number {
  return Number(text.replace("Inf", "Infinity"));
}

function checkName(name: string, kind: string): void {
  if ((kind === "counter") !== name.endsWith("_total")) throw new Error(`${name} is a ${kind}`);
  if (OTHER_UNIT.test(name)) throw new Error(`${name} is not in seconds or bytes`);
  if (TYPE_IN_NAME.test(name) || /_(?:bucket|sum|count|info)$/u.test(name))
    throw new Error(`${name} says what it is`);
}

function formatLabels(labels: string, line: string): string {
  const pairs: string[] = [];
  LABELS.lastIndex = 0;
  while (LABELS.lastIndex < labels.length) {
    const [, label = "", value = ""] = LABELS.exec(labels) ?? fail(line);
    if (label.startsWith("__")) fail(line);
    pairs.push(`${label}="${value}"`);
  }
  return pairs.length === 0 ? "" : `{${pairs.toSorted().join(",")}}`;
}

interface Bucket {
  readonly bound: number;
  readonly value: number;
}

/** Each set of labels has buckets that grow up to its count. A metric of another kind has none. */
function checkHistogram(name: string, samples: ReadonlyMap<string, number>): void {
  const buckets = new Map<string, Bucket[]>();
  for (const [series, value] of samples) {
    const [, bound] = /[{,]le="([^"]+)"/u.exec(series) ?? [];
    if (bound === undefined) continue;
    const labels = series.slice(`${name}_bucket`.length).replace(/le="[^"]+",?/u, "");
    const set = labels.replace(",}", "}").replace("{}", "");
    buckets.set(set, [...(buckets.get(set) ?? []), { bound: parseValue(bound), value }]);
  }
  for (const [set, all] of buckets) {
    all.forEach((bucket, index) => checkBucket(name, bucket, all[index - 1]));
    const last = all.at(-1);
    if (last?.bound !== Infinity) throw new Error(`${name}${set} has a last bucket with an end`);
    if (samples.get(`${name}_count${set}`) !== last.value) throw new Error(`${name}${set} has another count`);
    if (!samples.has(`${name}_sum${set}`)) throw new Error(`${name}${set} has no sum`);
  }
}

function checkBucket(name: string, bucket: Bucket, before: Bucket | undefined): void {
  if (before && (bucket.bound <= before.bound || bucket.value < before.value))
    throw new Error(`${name} has a bucket out of order: ${bucket.bound}`);
}

function fail(line: string): never {
  throw new Error(`not in Prometheus' text format: ${line}`);
}

/** Returns the series that are not 0, buckets left out. */
export function readCounted(families: ReadonlyMap<string, Family>): Record<string, number> {
  const samples = [...families.values()].flatMap((family) => [...family.samples]);
  return Object.fromEntries(samples.filter(([series, value]) => value !== 0 && !series.includes("_bucket")));
}
