/** Measures this machine and prints what it found against the budgets of docs/architecture.md, missed ones too. */
import { parseArgs } from "node:util";
import { isMet, type BenchOptions, type BenchRow } from "./bench-row.ts";

type Measure = (options: BenchOptions) => Promise<BenchRow[]>;

/** Each file exports `measure`; it is loaded when its turn comes, so that one does not weigh on the other's memory. */
const BENCHES: Readonly<Record<string, () => Promise<{ measure: Measure }>>> = {
  append: () => import("./append.ts"),
  "postgres-append": () => import("./postgres-append.ts"),
  "postgres-workflows": () => import("./postgres-workflows.ts"),
  "take-over": () => import("./take-over.ts"),
  memory: () => import("./memory.ts"),
  "memory-as-of": () => import("./memory-as-of.ts"),
  steps: () => import("./steps.ts"),
  scale: () => import("./scale.ts"),
  hooks: () => import("./hooks.ts"),
  gateway: () => import("./gateway.ts"),
  openwop: () => import("./openwop.ts"),
  replay: () => import("./replay.ts"),
  "replay-coordination": () => import("./replay-coordination.ts"),
  "fork-plan": () => import("./fork-plan.ts"),
  "openwop-scale": () => import("./openwop-scale.ts"),
  "openwop-streams": () => import("./openwop-streams.ts"),
  tenants: () => import("./tenants.ts"),
};

const HELP = `npm run bench [-- options]

  --quick        smaller sizes, in a fraction of the time; no figures to quote
  --json         for programs
  --only <name>  one of: ${Object.keys(BENCHES).join(", ")}
  --help         show this

Examples:
  npm run bench
  npm run bench -- --only replay
`;

const { values } = parseArgs({
  options: {
    help: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    only: { type: "string" },
  },
});

const { only } = values;
const wanted = Object.entries(BENCHES).filter(([name]) => only === undefined || only === name);
if (values.help) {
  process.stdout.write(HELP);
  process.exit(0);
}
if (wanted.length === 0) {
  process.stderr.write(`there is no ${JSON.stringify(only)} to measure\n\n${HELP}`);
  process.exit(2);
}

const rows: BenchRow[] = [];
for (const [name, load] of wanted) {
  process.stderr.write(`measuring ${name} ...\n`);
  const { measure } = await load();
  rows.push(...(await measure({ quick: values.quick })));
}
process.stdout.write(values.json ? `${JSON.stringify(rows, null, 2)}\n` : rows.map(textOf).join("\n"));

function textOf(row: BenchRow): string {
  const detail = Object.entries(row.detail ?? {}).map(
    ([name, value]) => `${name} ${value.toLocaleString("en")}`,
  );
  const lines = [
    `${verdictOf(row)}  ${row.value.toLocaleString("en")} ${row.unit}  ${row.name}`,
    `        ${row.compares}`,
    ...(detail.length > 0 ? [`        ${detail.join(", ")}`] : []),
  ];
  return `${lines.join("\n")}\n`;
}

function verdictOf(row: BenchRow): string {
  if (!row.target) return "      ";
  const wanted = `${row.target.is} ${row.target.value.toLocaleString("en")}`;
  return `${isMet(row) ? "met   " : "MISSED"} (${wanted})`;
}
