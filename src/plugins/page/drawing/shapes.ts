/** Owns: a drawing as data, which the page puts on the screen and the file writes as text. */

export interface Box {
  readonly kind: "box";
  readonly className: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  /** The text for a pointer that rests on it. */
  readonly label?: string;
}

/** A text in a drawing. */
export interface TextShape {
  readonly kind: "words";
  readonly className: string;
  readonly x: number;
  readonly y: number;
  readonly text: string;
}

export interface Outline {
  readonly kind: "outline";
  readonly className: string;
  /** The commands of an SVG path. */
  readonly path: string;
  readonly label?: string;
}

export type Shape = Box | TextShape | Outline;

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Returns a text with the characters that mean something in HTML and SVG as entities. */
export function escapeMarkup(text: string): string {
  return text.replace(/[&<>"']/gu, (character) => ENTITIES[character] ?? "");
}

/** Returns a shape as the text of one SVG element, with all texts escaped. */
export function renderSvgShape(shape: Shape): string {
  const className = escapeMarkup(shape.className);
  switch (shape.kind) {
    case "box":
      return `<rect class="${className}" x="${roundToTenth(shape.x)}" y="${roundToTenth(shape.y)}" width="${roundToTenth(shape.width)}" height="${roundToTenth(shape.height)}">${renderSvgTitle(shape.label)}</rect>`;
    case "words":
      return `<text class="${className}" x="${roundToTenth(shape.x)}" y="${roundToTenth(shape.y)}">${escapeMarkup(shape.text)}</text>`;
    case "outline":
      return `<path class="${className}" d="${escapeMarkup(shape.path)}">${renderSvgTitle(shape.label)}</path>`;
  }
}

function renderSvgTitle(label: string | undefined): string {
  return label === undefined ? "" : `<title>${escapeMarkup(label)}</title>`;
}

/** Returns a coordinate rounded to one decimal place. */
export function roundToTenth(value: number): number {
  return Math.round(value * 10) / 10;
}
