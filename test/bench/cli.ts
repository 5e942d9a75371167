/**
 * How long the command line takes to start: its version, and a list of a ledger of a thousand coordinations, against
 * `node -e 0`, in turn in each round. The program is the built one, as it is installed.
 */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { openRun } from "../support/ledger-fixtures.ts";
import { createTempFolder, openTestLedger, type TempFolder } from "../support/temp-ledger.ts";
import {
  alternate,
  findMedian,
  round,
  spreadOf,
  timeWork,
  type BenchOptions,
  type BenchRow,
} from "./bench-row.ts";

const BUILD = fileURLToPath(new URL("../../scripts/run.mjs", import.meta.url));
const PROGRAM = fileURLToPath(new URL("../../dist/plugins/cli/main.js", import.meta.url));
const RUNS = 1_000;
const TARGETS = { version: 2, list: 4 } as const;

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  execFileSync(process.execPath, [BUILD, "build"], { stdio: ["ignore", "ignore", "inherit"] });
  using folder = createTempFolder();
  const ledger = await fillLedger(folder, quick ? 50 : RUNS);
  const [bare = [], version = [], list = []] = await alternate(quick ? 3 : 15, [
    () => timeProgram(["-e", "0"]),
    () => timeProgram([PROGRAM, "--version"]),
    () => timeProgram([PROGRAM, "list", "--ledger", ledger]),
  ]);
  return [
    createRow("the command line: --version", { bare, times: version, target: TARGETS.version }),
    createRow("the command line: list", { bare, times: list, target: TARGETS.list }),
  ];
}

function timeProgram(args: readonly string[]): Promise<number> {
  return timeWork(() => {
    execFileSync(process.execPath, args, { stdio: ["ignore", "ignore", "inherit"] });
  });
}

async function fillLedger(folder: TempFolder, runs: number): Promise<string> {
  const path = folder.file("ledger.sqlite");
  const store = await openTestLedger(path);
  await Promise.all(Array.from({ length: runs }, (_, index) => store.append(openRun(index).request)));
  await store.close();
  return path;
}

interface ProgramTimes {
  readonly bare: readonly number[];
  readonly times: readonly number[];
  readonly target: number;
}

function createRow(name: string, { bare, times, target }: ProgramTimes): BenchRow {
  const ratios = times.map((ms, index) => ms / (bare[index] ?? Number.NaN));
  return {
    name,
    compares: "milliseconds from starting the process to its end, by those of node -e 0 of the same round",
    value: round(findMedian(ratios)),
    unit: "times",
    target: { is: "at most", value: target },
    detail: {
      ...spreadOf(ratios),
      ms: round(findMedian(times)),
      nodeMs: round(findMedian(bare)),
    },
  };
}
