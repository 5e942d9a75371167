/**
 * Compiles src to dist and puts beside it what the compiler does not know: the SQL migrations and the bin's mode.
 * It does not check types, which takes most of the compiler's time: `npm run types` does.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, rmSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");
const MIGRATIONS = join("infra", "sqlite", "migrations");

rmSync(join(ROOT, "dist"), { recursive: true, force: true });
const tsc = [
  join(ROOT, "node_modules", "typescript", "bin", "tsc"),
  "-p",
  "tsconfig.build.json",
  "--noCheck",
];
const { status } = spawnSync(process.execPath, tsc, { cwd: ROOT, stdio: "inherit" });
if (status === 0) {
  cpSync(join(ROOT, "src", MIGRATIONS), join(ROOT, "dist", MIGRATIONS), { recursive: true });
  chmodSync(join(ROOT, "dist", "plugins", "cli", "main.js"), 0o755);
}
process.exitCode = status ?? 1;
