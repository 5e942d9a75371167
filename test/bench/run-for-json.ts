import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";

const OUTPUT_BYTES_MAX = 1_000_000;

/** Runs a Node.js program and returns the JSON that it printed. */
export function runForJson<T>(program: URL, args: readonly string[]): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const options = { maxBuffer: OUTPUT_BYTES_MAX };
  execFile(process.execPath, [fileURLToPath(program), ...args], options, (error, stdout, stderr) => {
    if (error) reject(new Error(`${fileURLToPath(program)} failed: ${stderr}`, { cause: error }));
    else resolve(JSON.parse(stdout) as T);
  });
  return promise;
}
