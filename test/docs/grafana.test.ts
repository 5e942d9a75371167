/** Owns: that the dashboard and the rules of the example ask for metrics and labels that there are. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { METRICS, type MetricDefinition } from "../../src/plugins/metrics/definitions.ts";

const FOLDER = new URL("../../examples/grafana/", import.meta.url);

interface Panel {
  readonly title: string;
  readonly description: string;
  readonly fieldConfig: { readonly defaults: { readonly unit: string } };
  readonly targets: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
}

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly summary: string; readonly description: string };
}

const { panels } = JSON.parse(readFileSync(new URL("dashboard.json", FOLDER), "utf8")) as {
  readonly panels: readonly Panel[];
};
const { groups } = parse(readFileSync(new URL("alerts.yaml", FOLDER), "utf8")) as {
  readonly groups: readonly { readonly rules: readonly Rule[] }[];
};
const rules = groups.flatMap((group) => group.rules);
const expressions = [
  ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
  ...rules.map(({ alert, expr }) => [alert, expr] as const),
];

const DEFINITIONS: Readonly<Record<string, MetricDefinition>> = METRICS;

/** The definition of the metric that a series is of; those of a histogram have endings. */
function findDefinition(series: string): MetricDefinition | undefined {
  const ofHistogram = DEFINITIONS[series.replace(/_(?:bucket|sum|count)$/u, "")];
  return ofHistogram?.kind === "histogram" ? ofHistogram : DEFINITIONS[series];
}

/** Labels of a selector that the metric does not have, and values that they cannot have. */
function listWrongMatchers(definition: MetricDefinition, matchers: string): string[] {
  return [...matchers.matchAll(/(\w+)(=~|!=|=)"([^"]*)"/gu)].flatMap(
    ([matcher, label = "", sign, value = ""]) => {
      const values = definition.labels[label] ?? [];
      const wanted = sign === "=~" ? value.split("|") : [value];
      return wanted.every((one) => values.includes(one)) ? [] : [matcher];
    },
  );
}

describe.each(expressions)("%s: %s", (_, expr) => {
  const series = [...expr.matchAll(/(coordination_\w+)(?:\{([^}]*)\})?/gu)];

  it("asks for metrics that there are, by values that their labels have", () => {
    expect(series.length).toBeGreaterThan(0);
    for (const [, name = "", matchers = ""] of series) {
      const definition = findDefinition(name);
      expect(definition, name).toBeDefined();
      expect(definition && listWrongMatchers(definition, matchers)).toEqual([]);
      // A rate of what may fall is none.
      expect(expr.includes(`rate(${name}`) && definition?.kind === "gauge").toBe(false);
    }
  });

  it("groups by labels that the metrics have", () => {
    const labels = series.flatMap(([, name = ""]) => Object.keys(findDefinition(name)?.labels ?? {}));
    const grouped = [...expr.matchAll(/by \(([^)]*)\)/gu)].flatMap(([, names = ""]) => names.split(/,\s*/u));
    expect(grouped.filter((label) => label !== "le" && !labels.includes(label))).toEqual([]);
  });
});

describe("the example for Grafana", () => {
  it("has a title, a unit and words on every panel, and asks the chosen Prometheus", () => {
    for (const { title, description, fieldConfig, targets } of panels) {
      expect(title.length * description.length * fieldConfig.defaults.unit.length).toBeGreaterThan(0);
      expect(targets.every(({ datasource }) => datasource.uid === "${datasource}")).toBe(true);
    }
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
  });

  it("shows every metric that there is, except how many things were begun", () => {
    const shown = expressions.map(([, expr]) => expr).join("\n");
    const missing = Object.keys(METRICS).filter((name) => !shown.includes(name));
    expect(missing).toEqual([
      "coordination_opened_total",
      "coordination_attempts_total",
      "coordination_open_coordinations",
      "coordination_ledger_runs",
    ]);
  });

  it("says with every alert what it means and what to do", () => {
    for (const { annotations } of rules) {
      expect(annotations.summary).not.toBe("");
      expect(annotations.description).not.toBe("");
    }
  });
});
