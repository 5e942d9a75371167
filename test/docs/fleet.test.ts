/** Owns: that the example of several hosts names what there is: options of `serve`, services, secrets, volumes, files. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import type { CliHost } from "../../src/plugins/cli/terminal/cli-host.ts";
import { addServeCommand } from "../../src/plugins/cli/workflows/serve-command.ts";
import { OPEN, recordLedger } from "../cli/recorded-ledger.ts";
import { runCli } from "../cli/run-cli.ts";
import { createTempFolder } from "../support/temp-ledger.ts";

const FOLDER = join(import.meta.dirname, "..", "..", "examples", "fleet");

const serviceSchema = z.looseObject({
  command: z.array(z.string()).optional(),
  depends_on: z.record(z.string(), z.looseObject({ condition: z.string() })).optional(),
  environment: z.record(z.string(), z.string()).default({}),
  healthcheck: z.looseObject({ test: z.array(z.string()) }),
  ports: z.array(z.string()).default([]),
  secrets: z.array(z.string()).default([]),
  volumes: z.array(z.string()).default([]),
});
const fleetSchema = z.looseObject({
  services: z.record(z.string(), serviceSchema),
  volumes: z.record(z.string(), z.unknown()),
  secrets: z.record(z.string(), z.strictObject({ file: z.string() })),
});

const text = readFileSync(join(FOLDER, "compose.yaml"), "utf8");
const fleet = fleetSchema.parse(parse(text, { merge: true }));
const services = Object.entries(fleet.services);
const readme = readFileSync(join(FOLDER, "README.md"), "utf8");
const serves = services.filter(([name]) => name.startsWith("serve-"));
const scriptOf = (service: z.output<typeof serviceSchema>): string => service.command?.at(-1) ?? "";

function listServeOptions(): readonly string[] {
  const program = new Command();
  addServeCommand(program, { program: "openclaw-coordination" } as CliHost);
  return program.commands.flatMap(({ options }) => options.map(({ long }) => long ?? ""));
}

describe("examples/fleet", () => {
  it("has two hosts, a database and a balancer, each with a check of its health", () => {
    expect(services.map(([name]) => name).toSorted()).toEqual(["balancer", "postgres", "serve-a", "serve-b"]);
    for (const [, { healthcheck }] of services) expect(healthcheck.test[0]).toBe("CMD");
  });

  it("says that each host has process numbers of its own, as the file gives them", () => {
    const hasShared = serves.some(([, service]) => "pid" in service);
    expect({ hasShared, isTold: readme.includes("process numbers of its own") }).toEqual({
      hasShared: false,
      isTold: true,
    });
  });

  it("starts serve with options that there are", () => {
    expect(serves).toHaveLength(2);
    for (const [, service] of serves) {
      const [, serve = ""] = scriptOf(service).split("openclaw-coordination serve");
      const named = [...serve.matchAll(/--[a-z-]+/gu)].map(([option]) => option);
      expect(named).toContain("--ledger");
      expect(listServeOptions()).toEqual(expect.arrayContaining(named));
    }
  });

  it("has no secret in the file, and reads each from a file of its own that is not in the repository", () => {
    expect(text).not.toMatch(/password=(?!"[$][$][(]cat )|:\/\/\w+:\w+@|token [\w-]{8}/iu);
    for (const { file } of Object.values(fleet.secrets)) expect(file).toMatch(/^\.\/secrets\//u);
    expect(readFileSync(join(FOLDER, ".gitignore"), "utf8")).toContain("/secrets/");
    for (const [, { secrets, environment }] of services) {
      expect(Object.keys(fleet.secrets)).toEqual(expect.arrayContaining(secrets));
      const read = JSON.stringify(environment).matchAll(/\/run\/secrets\/(\w+)/gu);
      expect(secrets).toEqual(expect.arrayContaining([...read].map(([, name]) => name)));
    }
    for (const [, service] of serves) {
      const read = [...scriptOf(service).matchAll(/\/run\/secrets\/(\w+)/gu)].map(([, name]) => name);
      expect(read.toSorted()).toEqual(service.secrets.toSorted());
    }
  });

  it("listens on the loopback address only", () => {
    const ports = services.flatMap((service) => service[1].ports);
    expect(ports).toHaveLength(1);
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/u);
  });

  it("names services, volumes and files that there are", () => {
    const names = services.map(([name]) => name);
    for (const [, { depends_on: needed = {}, volumes }] of services) {
      expect(names).toEqual(expect.arrayContaining(Object.keys(needed)));
      for (const volume of volumes) {
        const [source = ""] = volume.split(":");
        if (source.startsWith("."))
          expect([source, existsSync(join(FOLDER, source))]).toEqual([source, true]);
        else expect(Object.keys(fleet.volumes)).toContain(source);
      }
    }
    const balanced = [...readFileSync(join(FOLDER, "Caddyfile"), "utf8").matchAll(/(serve-\w+):(\d+)/gu)];
    expect(balanced.map(([, name]) => name)).toEqual(serves.map(([name]) => name));
    for (const [, , port] of balanced)
      for (const [, service] of serves) expect(scriptOf(service)).toContain(`--port ${port}`);
  });
});

const MAIN = join(import.meta.dirname, "..", "..", "src", "plugins", "cli", "main.ts");
const USER = 65_534;
const isRoot = process.getuid?.() === 0;

/** Returns what the README has the shell of a container do with the ledger of a file. */
function readCopyScript(): string {
  const [, script = ""] = /serve-a sh -c '\n([^']+)' < ledger\.sqlite\n/u.exec(readme) ?? [];
  return script;
}

describe("the way of examples/fleet to take along a ledger that was a file", () => {
  it("copies a private file of one user as another one, who can write no folder but that of temporary files", async () => {
    using folder = createTempFolder();
    chmodSync(folder.path, 0o755);
    await recordLedger(folder.file("ledger.sqlite"), [OPEN]);
    chmodSync(folder.file("ledger.sqlite"), 0o600);
    writeFileSync(folder.file("password"), "p");
    mkdirSync(folder.file("bin"));
    const program = folder.file("bin/openclaw-coordination");
    writeFileSync(program, `#!/bin/sh\nexec ${process.execPath} ${MAIN} "$@"\n`, { mode: 0o755 });
    mkdirSync(folder.file("tmp"));
    if (isRoot) chownSync(folder.file("tmp"), USER, USER);
    // Another file stands for the server, which not every machine has.
    const script = readCopyScript()
      .replace("/run/secrets/postgres_password", folder.file("password"))
      .replace("postgres://coordination@postgres:5432/coordination", folder.file("tmp/new.sqlite"));
    const file = openSync(folder.file("ledger.sqlite"), "r");
    const shell = spawn("sh", ["-c", script], {
      cwd: "/",
      env: { PATH: `${folder.file("bin")}:${process.env["PATH"] ?? ""}`, TMPDIR: folder.file("tmp") },
      stdio: [file, "ignore", "inherit"],
      ...(isRoot && { uid: USER, gid: USER }),
    });
    expect(await once(shell, "exit")).toEqual([0, null]);
    closeSync(file);
    const { stdout } = await runCli(["list", "--json", "--ledger", folder.file("tmp/new.sqlite")]);
    expect(JSON.parse(stdout)).toMatchObject([{ coordinationId: OPEN.id }]);
  });
});
