/** Measures this machine and prints what it found against the budgets of docs/architecture.md, missed ones too. */
import { parseArgs } from "node:util";
import type { BenchOptions, BenchRow } from "./bench-row.ts";
import { formatDetails, formatTable, judgeRow } from "./format-rows.ts";
import { installPeers, type Peer } from "./peers.ts";
import { checkMachine } from "./steady-machine.ts";

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
  "two-steps": () => import("./two-steps.ts"),
  "chain-commits": () => import("./chain-commits.ts"),
  scale: () => import("./scale.ts"),
  curves: () => import("./curves.ts"),
  hooks: () => import("./hooks.ts"),
  gateway: () => import("./gateway.ts"),
  "gateway-start": () => import("./gateway-start.ts"),
  cli: () => import("./cli.ts"),
  openwop: () => import("./openwop.ts"),
  replay: () => import("./replay.ts"),
  "replay-coordination": () => import("./replay-coordination.ts"),
  "fork-plan": () => import("./fork-plan.ts"),
  "openwop-scale": () => import("./openwop-scale.ts"),
  "openwop-streams": () => import("./openwop-streams.ts"),
  tenants: () => import("./tenants.ts"),
};

const PEERS: Readonly<Record<string, Peer>> = {
  "postgres-workflows": "dbos",
  "two-steps": "dbos",
  steps: "langgraph",
  openwop: "openworkflow",
};

const HELP = `npm run bench [-- options]

  --quick        smaller sizes, in a fraction of the time; no figures to quote
  --details      below the table, what was compared and the figures behind each row
  --json         for programs
  --no-peers     do not install the programs that some rows compare with (LangGraph JS, DBOS, OpenWorkflow)
  --only <name>  one of: ${Object.keys(BENCHES).join(", ")}
  --help         show this

Verdicts: met, MISSED, or unclear where the rounds lie on both sides of the target.

Examples:
  npm run bench
  npm run bench -- --only replay --details
`;

const { values } = parseArgs({
  allowNegative: true,
  options: {
    help: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    details: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    peers: { type: "boolean", default: true },
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

if (values.peers) installPeers(wanted.flatMap(([name]) => PEERS[name] ?? []));
const machine = checkMachine();
machine.sample();
const rows: BenchRow[] = [];
for (const [name, load] of wanted) {
  process.stderr.write(`measuring ${name} ...\n`);
  const { measure } = await load();
  rows.push(...(await measure({ quick: values.quick })));
  machine.sample();
}
if (values.json) {
  const judged = rows.map((row) => ({ ...row, verdict: judgeRow(row) }));
  process.stdout.write(`${JSON.stringify({ machine: machine.describe(), rows: judged }, null, 2)}\n`);
} else {
  process.stdout.write(formatTable(rows));
  if (values.details) process.stdout.write(`\n${formatDetails(rows)}`);
  process.stdout.write(`\n${machine.describe()}\n`);
}
