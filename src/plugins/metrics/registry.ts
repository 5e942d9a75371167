/** Owns: the values of the metrics, in a registry of prom-client of our own. M1 as in `definitions.ts`. */
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import {
  listLabelSets,
  METRICS,
  type GaugeName,
  type LabelsOf,
  type MetricDefinition,
  type Sample,
} from "./definitions.ts";

export interface MetricValues {
  readonly contentType: string;
  add(sample: Sample): void;
  set<N extends GaugeName>(name: N, labels: LabelsOf<N>, value: number): void;
  /** Returns all metrics in Prometheus' text format. */
  format(): Promise<string>;
}

type Instrument = Counter | Gauge | Histogram;

/** Creates the Prometheus registry with all metrics at zero; samples with unknown labels are dropped. */
export function createMetricValues(): MetricValues {
  const registry = new Registry();
  const definitions: readonly (readonly [string, MetricDefinition])[] = Object.entries(METRICS);
  const instruments = new Map<string, Instrument>(
    definitions.map(([name, definition]) => [name, createInstrument(registry, name, definition)]),
  );
  return {
    contentType: registry.contentType,
    add: (sample) => {
      if (!hasKnownLabels(sample)) return;
      const instrument = instruments.get(sample.name);
      if (instrument instanceof Counter) instrument.inc(sample.labels);
      if (instrument instanceof Histogram && "seconds" in sample)
        instrument.observe(sample.labels, sample.seconds);
    },
    set: (name, labels, value) => {
      const instrument = instruments.get(name);
      if (instrument instanceof Gauge) instrument.set(labels, value);
    },
    format: () => registry.metrics(),
  };
}

/** True where each label has a value that is defined for it (M1): another value would be another series. */
function hasKnownLabels({ name, labels }: Sample): boolean {
  const allowed: Readonly<Record<string, readonly string[]>> = METRICS[name].labels;
  return Object.entries(labels).every(([label, value]) => allowed[label]?.includes(value) === true);
}

/** Creates a metric in the registry, with all its series at 0. */
function createInstrument(registry: Registry, name: string, definition: MetricDefinition): Instrument {
  const { kind, help, labels } = definition;
  const options = { name, help, labelNames: Object.keys(labels), registers: [registry] };
  const sets = listLabelSets(labels);
  if (kind === "histogram") {
    const histogram = new Histogram({ ...options, buckets: [...definition.buckets] });
    for (const set of sets) histogram.zero(set);
    return histogram;
  }
  const instrument = kind === "counter" ? new Counter(options) : new Gauge(options);
  for (const set of sets) instrument.inc(set, 0);
  return instrument;
}
