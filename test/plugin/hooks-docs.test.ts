/** Owns: that what an author reads is true: the examples of docs/hooks.md compile, and its figures are those of the code. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { HOOK_BUDGETS_MS, HOOK_KINDS, HOOK_LIMITS } from "../../src/plugins/hooks/hook-limits.ts";
import { readTableRows } from "../docs/read-tables.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const page = readFileSync(join(ROOT, "docs/hooks.md"), "utf8");
const examples = [...page.matchAll(/```ts\n(.+?)```/gsu)].map(([, text = ""]) => text);

/** The compiler's problems of texts, each as a file of its own beside the sources. */
function problemsOf(texts: readonly string[]): string[] {
  const { config } = ts.readConfigFile(join(ROOT, "tsconfig.json"), (path) => readFileSync(path, "utf8")) as {
    config: { compilerOptions: object };
  };
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, ROOT);
  const nameHookFiles = (name: string): string[] => [join(ROOT, `src/plugins/hooks/${name}.ts`)];
  const paths = {
    "openclaw-coordination/hooks": nameHookFiles("hooks"),
    "openclaw-coordination/testing": nameHookFiles("testing"),
  };
  const files = new Map(texts.map((text, index) => [join(ROOT, "test", `example-${index}.ts`), text]));
  const base = ts.createCompilerHost({ ...options, paths });
  const host: ts.CompilerHost = {
    ...base,
    fileExists: (path) => files.has(path) || base.fileExists(path),
    readFile: (path) => files.get(path) ?? base.readFile(path),
    getSourceFile: (path, language, ...rest) => {
      const text = files.get(path);
      return text === undefined
        ? base.getSourceFile(path, language, ...rest)
        : ts.createSourceFile(path, text, language);
    },
  };
  const program = ts.createProgram([...files.keys()], { ...options, paths }, host);
  return [...files.keys()].flatMap((path) => {
    const file = program.getSourceFile(path);
    const found = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)];
    return found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"));
  });
}

describe("docs/hooks.md", () => {
  it("has examples that compile", () => {
    expect(examples.length).toBeGreaterThan(6);
    const broken = (examples[0] ?? "").replace('"holder"', '"nobody"');
    const problems = problemsOf([...examples, broken]);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain('"nobody"');
  });

  it("lists every hook", () => {
    expect(readTableRows(page, "hook").map(([hook]) => hook)).toEqual(
      HOOK_KINDS.map((kind) => `\`${kind}\``),
    );
  });

  it("has the figures of the code", () => {
    const [, budgets] = readTableRows(page, "setting").map(([, usual, bounds]) => ({ usual, bounds }));
    const formatSeconds = (kind: keyof typeof HOOK_BUDGETS_MS, which: "usual" | "most"): string =>
      `${String(HOOK_BUDGETS_MS[kind][which] / 1_000)} s`;
    expect(budgets?.usual).toBe(
      `\`arbitrate\`, \`decide\` ${formatSeconds("decide", "usual")}; \`verify\` ${formatSeconds("verify", "usual")}; ` +
        `\`escalate\` ${formatSeconds("escalate", "usual")}; \`observe\` ${formatSeconds("observe", "usual")}`,
    );
    const most = [
      formatSeconds("arbitrate", "most"),
      formatSeconds("verify", "most"),
      formatSeconds("escalate", "most"),
    ];
    expect(budgets?.bounds).toContain(`${most.join(", ")} and ${formatSeconds("observe", "most")}`);
    expect(page).toContain(`up to ${HOOK_LIMITS.reloadMs / 1_000} s, and then fail closed`);
    expect(page).toContain(`back within ${HOOK_LIMITS.gatesClosedMs / 60_000} minutes`);
    expect(page).toContain(`${HOOK_LIMITS.observedMax.toLocaleString("en")} wait`);
    expect(page).toContain(`at most ${HOOK_LIMITS.pluginIdCharsMax} of`);
  });
});
