import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { listLayerArrows } from "./read-layers.ts";

const page = readFileSync(join(import.meta.dirname, "..", "..", "docs", "architecture.md"), "utf8");
const [, diagram = ""] = /```mermaid\n(.+?)```/su.exec(page) ?? [];

describe("the diagram of the layers", () => {
  it("has exactly the arrows that the import table allows", () => {
    const drawn = diagram
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => /^\w+ -\.?->? ?\S/u.test(line));
    expect(drawn.toSorted()).toEqual(listLayerArrows());
  });

  it("names every layer once", () => {
    const named = [...diagram.matchAll(/^\s*(\w+)\["/gmu)].map(([, name]) => name);
    const layers = new Set(listLayerArrows().flatMap((arrow) => [arrow.split(" ")[0], arrow.split(" ")[2]]));
    expect(named.toSorted()).toEqual([...layers].toSorted());
  });
});
