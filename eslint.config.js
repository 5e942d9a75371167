import js from "@eslint/js";
import tseslint from "typescript-eslint";
import { plainLanguage } from "./scripts/lint/plain-language.js";

const PURE =
  "The core is pure: time, ids, seeds and randomness arrive as arguments; effects belong to runtime, infra and plugins.";

const pureGlobals = [
  "process",
  "console",
  "crypto",
  "setTimeout",
  "setInterval",
  "setImmediate",
  "fetch",
  "performance",
];

const scriptGlobals = ["process", "console", "URL", "performance", "setInterval", "clearInterval"];

export default tseslint.config(
  { ignores: ["dist/", "node_modules/", "reference/"] },
  js.configs.recommended,
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      complexity: ["error", { max: 10, variant: "modified" }],
      "max-lines": ["error", 400],
      "max-lines-per-function": ["error", { max: 60, skipComments: true, skipBlankLines: true }],
      "max-params": ["error", 4],
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/consistent-type-exports": "error",
      "@typescript-eslint/switch-exhaustiveness-check": [
        "error",
        { considerDefaultExhaustiveForUnions: true, requireDefaultForNonUnion: true },
      ],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
      "@typescript-eslint/no-unnecessary-condition": ["error", { allowConstantLoopConditions: true }],
      "@typescript-eslint/consistent-type-definitions": "off",
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
    },
  },
  {
    files: ["src/agents/coordination/**/*.ts"],
    ignores: ["src/agents/coordination/runtime/**", "src/agents/coordination/ports/**"],
    rules: {
      "no-restricted-globals": ["error", ...pureGlobals.map((name) => ({ name, message: PURE }))],
      "no-restricted-properties": [
        "error",
        { object: "Date", property: "now", message: PURE },
        { object: "Math", property: "random", message: PURE },
      ],
      "no-restricted-syntax": [
        "error",
        { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: PURE },
        { selector: ":function[async=true]", message: PURE },
        { selector: "AwaitExpression", message: PURE },
        { selector: "MemberExpression[property.name=/^toLocale|^localeCompare$/]", message: PURE },
      ],
      "no-restricted-imports": ["error", { patterns: [{ group: ["node:*"], message: PURE }] }],
    },
  },
  {
    files: ["**/*.ts"],
    plugins: { language: plainLanguage },
    rules: {
      "language/function-names": "error",
      "language/variable-names": "error",
      "language/literal-spreads": "error",
      "no-useless-rename": "error",
    },
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
    rules: { "max-lines-per-function": "off", "@typescript-eslint/no-non-null-assertion": "off" },
  },
  {
    files: ["**/*.js", "**/*.mjs"],
    extends: [tseslint.configs.disableTypeChecked],
    languageOptions: { globals: Object.fromEntries(scriptGlobals.map((name) => [name, "readonly"])) },
  },
);
