/** Owns: putting a drawing on the screen. */
import { svg, type SVGTemplateResult } from "lit";
import { round, type Shape } from "../../drawing/shapes.ts";
import { PATTERNS } from "../../drawing/timeline-style.ts";

export function showShape(shape: Shape): SVGTemplateResult {
  switch (shape.kind) {
    case "box":
      return svg`<rect class=${shape.className} x=${round(shape.x)} y=${round(shape.y)} width=${round(shape.width)} height=${round(shape.height)}><title>${shape.label ?? ""}</title></rect>`;
    case "words":
      return svg`<text class=${shape.className} x=${round(shape.x)} y=${round(shape.y)}>${shape.text}</text>`;
    case "outline":
      return svg`<path class=${shape.className} d=${shape.path}><title>${shape.label ?? ""}</title></path>`;
  }
}

export function showPatterns(): SVGTemplateResult {
  return svg`<defs>${PATTERNS.map(
    ({ id, turn }) =>
      svg`<pattern id=${id} width="6" height="6" patternUnits="userSpaceOnUse" patternTransform=${turn}><path class="hatch-${id}" d="M0 0V6"></path></pattern>`,
  )}</defs>`;
}
