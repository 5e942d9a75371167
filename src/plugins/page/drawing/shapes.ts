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

export interface Words {
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

export type Shape = Box | Words | Outline;

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

export function escapeMarkup(text: string): string {
  return text.replace(/[&<>"']/gu, (character) => ENTITIES[character] ?? "");
}

export function writeShape(shape: Shape): string {
  const className = escapeMarkup(shape.className);
  switch (shape.kind) {
    case "box":
      return `<rect class="${className}" x="${round(shape.x)}" y="${round(shape.y)}" width="${round(shape.width)}" height="${round(shape.height)}">${writeTitle(shape.label)}</rect>`;
    case "words":
      return `<text class="${className}" x="${round(shape.x)}" y="${round(shape.y)}">${escapeMarkup(shape.text)}</text>`;
    case "outline":
      return `<path class="${className}" d="${escapeMarkup(shape.path)}">${writeTitle(shape.label)}</path>`;
  }
}

function writeTitle(label: string | undefined): string {
  return label === undefined ? "" : `<title>${escapeMarkup(label)}</title>`;
}

export function round(value: number): number {
  return Math.round(value * 10) / 10;
}
