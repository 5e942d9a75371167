/** Owns: a disk that fails when it is told to (`failing-disk.c`), for a process that is started with it. */
import { execFileSync, spawnSync } from "node:child_process";
import { openSync, readSync, writeFileSync, writeSync } from "node:fs";
import { constants } from "node:os";
import { fileURLToPath } from "node:url";

const SOURCE = fileURLToPath(new URL("failing-disk.c", import.meta.url));
const CONTROL = { bytes: 48, error: 0, at: 8, lasting: 16, partial: 24, count: 32, failed: 40 } as const;

/** A failure of an operation: write, flush, truncate, rename or open. */
export interface DiskFault {
  readonly error: "EIO" | "ENOSPC";
  /** The operation that fails, counted from 1. */
  readonly at: number;
  /** All operations from there on fail. */
  readonly isLasting: boolean;
  /** A write that fails has written its first half. */
  readonly isPartial: boolean;
}

/** True where what is preloaded can be built, and is for: Linux. */
export function canFailDisks(): boolean {
  return process.platform === "linux" && spawnSync("cc", ["--version"]).status === 0;
}

/** Returns the variables with which a process has its files of `folder` on such a disk. Builds what is preloaded. */
export function buildFailingDisk(folder: string): Record<string, string> {
  const library = `${folder}.failing-disk.so`;
  const control = `${folder}.failing-disk`;
  execFileSync("cc", ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, SOURCE, "-ldl"]);
  writeFileSync(control, Buffer.alloc(CONTROL.bytes));
  return { LD_PRELOAD: library, FAILING_DISK_FOLDER: `${folder}/`, FAILING_DISK_CONTROL: control };
}

export interface FailingDisk {
  /** Begins to count, and fails from now on as it is told. */
  arm(fault?: DiskFault): void;
  /** Nothing fails any more. Returns how many operations there were, and how many of them failed. */
  disarm(): { readonly operations: number; readonly failures: number };
}

/** Tells the disk of the process that was started with `environment`, or with the environment of this one. */
export function openFailingDisk(environment = process.env): FailingDisk {
  const file = openSync(environment["FAILING_DISK_CONTROL"] ?? "", "r+");
  const write = (values: readonly number[]): void => {
    writeSync(file, new BigInt64Array(values.map(BigInt)), 0, CONTROL.bytes, 0);
  };
  return {
    arm: (fault) => {
      const { error, at = 0, isLasting = false, isPartial = false } = fault ?? {};
      const errno = error ? constants.errno[error] : 0;
      write([errno, at, Number(isLasting), Number(isPartial), 0, 0]);
    },
    disarm: () => {
      const values = new BigInt64Array(CONTROL.bytes / 8);
      readSync(file, values, 0, CONTROL.bytes, 0);
      write([0, 0, 0, 0, 0, 0]);
      const readAt = (offset: number): number => Number(values[offset / 8]);
      return { operations: readAt(CONTROL.count), failures: readAt(CONTROL.failed) };
    },
  };
}
