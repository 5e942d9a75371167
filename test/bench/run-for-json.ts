import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";

const OUTPUT_BYTES_MAX = 1_000_000;

/**
 * Runs a Node.js program and returns the JSON that it printed; `undefined` when it ends with `absentCode`, and what it
 * said of that goes to stderr.
 */
export function runForJson<T>(
  program: URL,
  args: readonly string[],
  { absentCode }: { readonly absentCode?: number } = {},
): Promise<T | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<T | undefined>();
  const options = { maxBuffer: OUTPUT_BYTES_MAX };
  execFile(process.execPath, [fileURLToPath(program), ...args], options, (error, stdout, stderr) => {
    if (!error) resolve(JSON.parse(stdout) as T);
    else if (absentCode !== undefined && error.code === absentCode) {
      process.stderr.write(stderr);
      resolve(undefined);
    } else reject(new Error(`${fileURLToPath(program)} failed: ${stderr}`, { cause: error }));
  });
  return promise;
}
