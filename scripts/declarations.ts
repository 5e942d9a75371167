/**
 * Owns: the declarations of what the package exports, one file for each entry, and the report of each in docs/api. API Extractor rolls
 * them up, because OpenClaw copies every file of a plugin each time that it loads it.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Extractor, ExtractorConfig, ExtractorLogLevel } from "@microsoft/api-extractor";
import packageJson from "../package.json" with { type: "json" };

const ROOT = join(import.meta.dirname, "..");
const REPORTS = join(ROOT, "docs", "api");
/** Not below node_modules: there everything would be of another package. It is removed at the end. */
const RAW = join(ROOT, "dist", "declarations");

interface Entry {
  /** `coordination` for the package itself, else as in `openclaw-coordination/hooks`. */
  readonly name: string;
  /** Where its declarations lie in the package. */
  readonly types: string;
}

function listEntries(): Entry[] {
  return Object.entries(packageJson.exports).flatMap(([path, target]) =>
    typeof target === "string"
      ? []
      : [{ name: path === "." ? "coordination" : path.slice(2), types: target.types }],
  );
}

/** Writes the declarations into dist. Returns the entries whose report in docs/api is not what they are; `write` writes those anew. */
export function writeDeclarations(reports: "compare" | "write"): string[] {
  rmSync(RAW, { recursive: true, force: true });
  emitDeclarations();
  mkdirSync(REPORTS, { recursive: true });
  const changed = listEntries().filter((entry) => !writeEntry(entry, reports));
  rmSync(RAW, { recursive: true });
  return changed.map(({ name }) => name);
}

function emitDeclarations(): void {
  const tsc = [
    join(ROOT, "node_modules", "typescript", "bin", "tsc"),
    "-p",
    "tsconfig.build.json",
    "--outDir",
    RAW,
  ];
  const { status } = spawnSync(process.execPath, tsc, { cwd: ROOT, stdio: "inherit" });
  if (status !== 0) throw new Error("The declarations could not be made: run `npm run types` to see why.");
}

/** Writes the declarations of an entry. Returns whether its report is as it was. */
function writeEntry({ name, types }: Entry, reports: "compare" | "write"): boolean {
  const config = ExtractorConfig.prepare({
    configObjectFullPath: undefined,
    packageJsonFullPath: join(ROOT, "package.json"),
    configObject: {
      projectFolder: ROOT,
      mainEntryPointFilePath: types.replace("./dist", RAW),
      compiler: { tsconfigFilePath: join(ROOT, "tsconfig.json") },
      apiReport: { enabled: true, reportFileName: name, reportFolder: REPORTS, reportTempFolder: RAW },
      docModel: { enabled: false },
      dtsRollup: { enabled: true, untrimmedFilePath: join(ROOT, types) },
      messages: {
        compilerMessageReporting: { default: { logLevel: ExtractorLogLevel.Error } },
        extractorMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
        tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
      },
    },
  });
  const { apiReportChanged, errorCount } = Extractor.invoke(config, {
    localBuild: reports === "write",
    messageCallback: (message) => {
      // The version of its compiler, once for each export, and that a report differs: that is returned.
      if (message.logLevel !== ExtractorLogLevel.Error) message.handled = true;
    },
  });
  if (errorCount > 0) throw new Error(`The declarations of ${name} could not be rolled up.`);
  return !apiReportChanged;
}
