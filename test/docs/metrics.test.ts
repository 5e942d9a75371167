import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { METRICS, type MetricDefinition } from "../../src/plugins/metrics/definitions.ts";
import { GAUGE_BOUNDS } from "../../src/plugins/metrics/read-gauges.ts";
import { readTableRows, unwrapText } from "./read-tables.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/metrics.md"), "utf8");

function describeLabels({ labels }: MetricDefinition): string {
  const described = Object.entries(labels).map(([label, values]) => `\`${label}\` (${values.join(", ")})`);
  return described.join(", ") || "none";
}

function nameUnit(name: string): string {
  return /_(seconds|bytes)$/u.exec(name)?.[1] ?? "count";
}

describe("docs/metrics.md", () => {
  it("has every metric with its kind, unit, labels and meaning, in the same order and the same words", () => {
    const expected = Object.entries(METRICS).map(([name, definition]) => [
      `\`${name}\``,
      definition.kind,
      nameUnit(name),
      describeLabels(definition),
      definition.help,
    ]);
    expect(readTableRows(page, "metric")).toEqual(expected);
  });

  it("says how much is looked at", () => {
    const text = unwrapText(page);
    expect(text).toContain(`the newest ${GAUGE_BOUNDS.runningMax.toLocaleString("en")} that run`);
    expect(text).toContain(`the ${GAUGE_BOUNDS.askingMax.toLocaleString("en")} that asked last`);
  });
});
