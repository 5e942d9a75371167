import { defineConfig } from "oxlint";

const PURE =
  "The core is pure: time, ids, seeds and randomness arrive as arguments; effects belong to runtime, infra and plugins.";

const PURE_GLOBALS = [
  "process",
  "console",
  "crypto",
  "setTimeout",
  "setInterval",
  "setImmediate",
  "fetch",
  "performance",
];

/** Rules about what TypeScript knows of a value. */
const TYPES = [
  "ban-ts-comment",
  "consistent-type-exports",
  "consistent-type-imports",
  "no-deprecated",
  "no-dynamic-delete",
  "no-empty-object-type",
  "no-explicit-any",
  "no-extraneous-class",
  "no-generated-empty-object-type",
  "no-invalid-void-type",
  "no-misused-promises",
  "no-mixed-enums",
  "no-namespace",
  "no-non-null-asserted-nullish-coalescing",
  "no-non-null-assertion",
  "no-require-imports",
  "no-unnecessary-boolean-literal-compare",
  "no-unnecessary-template-expression",
  "no-unnecessary-type-arguments",
  "no-unnecessary-type-assertion",
  "no-unnecessary-type-constraint",
  "no-unnecessary-type-conversion",
  "no-unnecessary-type-parameters",
  "no-unsafe-argument",
  "no-unsafe-assignment",
  "no-unsafe-call",
  "no-unsafe-enum-assignment",
  "no-unsafe-enum-comparison",
  "no-unsafe-function-type",
  "no-unsafe-member-access",
  "no-unsafe-return",
  "only-throw-error",
  "prefer-literal-enum-member",
  "prefer-promise-reject-errors",
  "prefer-reduce-type-parameter",
  "prefer-return-this-type",
  "related-getter-setter-pairs",
  "require-await",
  "restrict-plus-operands",
  "unified-signatures",
  "use-unknown-in-catch-callback-variable",
].map((rule) => `typescript/${rule}`);

const STATEMENTS = [
  "no-array-constructor",
  "no-case-declarations",
  "no-empty",
  "no-fallthrough",
  "no-prototype-builtins",
  "no-regex-spaces",
  "no-unexpected-multiline",
  "no-useless-assignment",
  "no-useless-constructor",
  "no-var",
  "prefer-const",
  "prefer-rest-params",
  "prefer-spread",
  "preserve-caught-error",
];

export default defineConfig({
  plugins: ["eslint", "typescript"],
  jsPlugins: ["./scripts/lint/plain-language.js", "./scripts/lint/pure-core.js"],
  options: { typeAware: true, reportUnusedDisableDirectives: "error" },
  ignorePatterns: ["dist/", "reference/"],
  categories: { correctness: "error" },
  rules: {
    ...listErrors(STATEMENTS),
    complexity: ["error", { max: 10, variant: "modified" }],
    "max-lines": ["error", 400],
    "max-lines-per-function": ["error", { max: 60, skipComments: true, skipBlankLines: true }],
    "max-params": ["error", 4],
    "typescript/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
  },
  overrides: [
    {
      files: ["src/agents/coordination/**/*.ts"],
      excludeFiles: ["src/agents/coordination/runtime/**", "src/agents/coordination/ports/**"],
      rules: {
        "no-restricted-globals": ["error", ...PURE_GLOBALS.map((name) => ({ name, message: PURE }))],
        "no-restricted-properties": [
          "error",
          { object: "Date", property: "now", message: PURE },
          { object: "Math", property: "random", message: PURE },
        ],
        "no-restricted-imports": ["error", { patterns: [{ group: ["node:*"], message: PURE }] }],
        "core/pure": "error",
      },
    },
    {
      files: ["**/*.ts"],
      rules: {
        ...listErrors(TYPES),
        "typescript/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
        "typescript/no-unnecessary-condition": ["error", { allowConstantLoopConditions: true }],
        "typescript/restrict-template-expressions": ["error", { allowBoolean: true, allowNumber: true }],
        "typescript/switch-exhaustiveness-check": [
          "error",
          { considerDefaultExhaustiveForUnions: true, requireDefaultForNonUnion: true },
        ],
        "typescript/require-array-sort-compare": "off",
        "typescript/return-await": ["error", "error-handling-correctness-only"],
        "no-useless-rename": "error",
        ...listErrors([
          "language/function-names",
          "language/variable-names",
          "language/type-names",
          "language/literal-spreads",
        ]),
      },
    },
    {
      files: ["**/*.js", "**/*.mjs"],
      env: { node: true },
      // TypeScript does not look at them, so nothing else tells of a misspelt name.
      rules: { "no-undef": "error", "typescript/no-floating-promises": "off" },
    },
    {
      files: [
        "src/agents/coordination/contracts/**/*.ts",
        "src/agents/coordination/ports/*.ts",
        "src/plugins/hooks/*.ts",
        "src/plugins/openclaw/writes/resources.ts",
      ],
      rules: { "language/public-docstrings": "error" },
    },
    {
      files: ["src/**/*.ts", "scripts/**/*.ts", "test/**/*.ts"],
      rules: { "language/comment-sentences": "error" },
    },
    {
      files: ["test/**/*.ts", "scripts/**/*.ts"],
      rules: { "max-lines-per-function": "off", "typescript/no-non-null-assertion": "off" },
    },
  ],
});

function listErrors(rules: readonly string[]): Record<string, "error"> {
  return Object.fromEntries(rules.map((rule) => [rule, "error"]));
}
