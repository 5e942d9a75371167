/** Owns: which characters of a text nobody would see, on the page and on a terminal, and that emoji stay as they are. */
import { describe, expect, it } from "vitest";
import { formatJson, formatPrintable } from "../../src/plugins/cli/terminal/printable.ts";
import { formatVisibleLine, formatVisibleText } from "../../src/plugins/page/drawing/visible-text.ts";

const HIDDEN = [
  0x00_ad, 0x03_4f, 0x11_5f, 0x17_b5, 0x18_0b, 0x20_0b, 0x20_0c, 0x20_0d, 0x20_2e, 0x31_64, 0xfe_00, 0xfe_0e,
  0xfe_0f, 0xff_a0, 0xe_00_41, 0xe_01_00, 0xe_01_ef,
];
const EMOJI = ["👩‍👩‍👧", "❤️", "1️⃣", "👩🏽‍🚀", "🏳️‍🌈", "🇩🇪", "🐈‍⬛"];

function nameCharacter(codePoint: number): string {
  return `U+${codePoint.toString(16).toUpperCase().padStart(4, "0")}`;
}

describe("a character that is not seen", () => {
  it.each(HIDDEN.map((codePoint) => [nameCharacter(codePoint), String.fromCodePoint(codePoint)]))(
    "%s is shown by its name on the page, and as a replacement on a terminal",
    (name, hidden) => {
      const text = `all is well${hidden}.`;
      expect(formatVisibleLine(text)).toBe(`all is well[${name}].`);
      expect(formatVisibleText(text)).toBe(`all is well[${name}].`);
      expect(formatPrintable(text, true)).toBe("all is well\ufffd.");
      expect(formatJson({ text })).not.toContain(hidden);
      expect(JSON.parse(formatJson({ text }))).toEqual({ text });
    },
  );

  it("is shown behind an emoji, too, where it does not belong to it", () => {
    expect(formatVisibleLine("❤️\ufe0f.")).toBe("❤️[U+FE0F].");
    expect(formatVisibleLine("👩\u200d.")).toBe("👩[U+200D].");
  });
});

describe("a character without a width of its own that a script needs", () => {
  it.each([
    ["Persian", "می‌خواهم خانه‌ها"],
    ["Sinhala", "ශ්‍රී ලංකා"],
    ["Hindi", "क्‍ष क्‌ष"],
    ["Bengali", "র‌্যাব"],
  ])("stays in %s as it is", (_, text) => {
    expect(formatVisibleLine(text)).toBe(text);
    expect(formatPrintable(text, true)).toBe(text);
  });
});

describe("an emoji", () => {
  it.each(EMOJI)("%s stays as it is", (emoji) => {
    const text = `so ${emoji} it goes`;
    expect(formatVisibleLine(text)).toBe(text);
    expect(formatVisibleText(text)).toBe(text);
    expect(formatPrintable(text, true)).toBe(text);
  });
});
