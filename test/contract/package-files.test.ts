import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { findPackageFile, readPackageVersion } from "../../src/platform/package-files.ts";
import { createTempFolder } from "../support/temp-ledger.ts";

describe("a file that comes with the package", () => {
  test("is found above the module that asks, the nearest one first", () => {
    using folder = createTempFolder();
    mkdirSync(folder.file("dist/chunks"), { recursive: true });
    writeFileSync(folder.file("asked.json"), "far");
    const from = pathToFileURL(folder.file("dist/chunks/module.js")).href;
    expect(findPackageFile("asked.json", from)).toEqual(pathToFileURL(folder.file("asked.json")));
    writeFileSync(folder.file("dist/asked.json"), "near");
    expect(findPackageFile("asked.json", from)).toEqual(pathToFileURL(folder.file("dist/asked.json")));
  });

  test("is missed with its name and what to do", () => {
    expect(() => findPackageFile("no-such-file.json")).toThrow(
      "the package lacks no-such-file.json; install it again",
    );
  });

  test("tells the version of this package, and where its migrations are", () => {
    expect(readPackageVersion()).toBe(packageJson.version);
    const database = new URL("../../src/infra/sqlite/database/migrate.ts", import.meta.url);
    expect(existsSync(new URL("000001_ledger.sql", findPackageFile("migrations/", database.href)))).toBe(
      true,
    );
  });
});
