import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { once } from "node:events";
import { dirname, join, resolve } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { matchNoVerdict, createVerdict, createVerifierScene, type Scene } from "./verifier-scene.ts";

const hashText = (text: string): string => createHash("sha256").update(text).digest("hex");
const HELLO = hashText("hello");
const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 300);

function createFilledScene(change: Parameters<typeof createVerifierScene>[0] = {}): Scene {
  const scene = createVerifierScene(change);
  mkdirSync(join(scene.workspace, "src/deep"), { recursive: true });
  writeFileSync(join(scene.workspace, "src/a.txt"), "hello");
  writeFileSync(join(scene.workspace, "empty"), "");
  mkdirSync(scene.outside("secrets"));
  writeFileSync(scene.outside("secrets/key"), "hello");
  return scene;
}

describe("a check for a file", () => {
  it.each([
    [{ path: "src/a.txt" }, "pass"],
    [{ path: "./src//deep/../a.txt" }, "pass"],
    [{ path: "src/none/../a.txt" }, "pass"],
    [{ path: "src/a.txt", sha256: HELLO }, "pass"],
    [{ path: "empty", sha256: hashText("") }, "pass"],
    [{ path: "src/a.txt", sha256: hashText("hello\n") }, "fail"],
    [{ path: "src/b.txt" }, "fail"],
    [{ path: "src/b.txt", sha256: HELLO }, "fail"],
    [{ path: "none/at/all" }, "fail"],
    [{ path: "src" }, "fail"],
    [{ path: "src", sha256: HELLO }, "fail"],
    [{ path: "src/b.txt", absent: true }, "pass"],
    [{ path: "src/a.txt", absent: true }, "fail"],
    [{ path: "src", absent: true }, "fail"],
    [{ path: "src/a.txt", absent: true, sha256: HELLO }, "fail"],
    [{ path: "src/a.txt", absent: true, sha256: hashText("") }, "pass"],
    [{ path: "src/b.txt", absent: true, sha256: HELLO }, "pass"],
  ] as const)("finds of %j: %s", async (check, expected) => {
    using scene = createFilledScene();
    expect(await scene.check({ kind: "file", ...check })).toEqual(createVerdict(expected));
  });

  it.each(["/etc/passwd", "..", "../secrets/key", "src/../../secrets/key", ".", "src/..", "a\0b", "\ud800"])(
    "has no verdict of the path %j, there or not",
    async (path) => {
      using scene = createFilledScene();
      for (const absent of [true, false])
        expect(await scene.check({ kind: "file", path, absent })).toMatchObject(matchNoVerdict("failed"));
    },
  );

  it("has no verdict of a path that is written from the root, even into the workspace", async () => {
    using scene = createFilledScene();
    expect(await scene.check({ kind: "file", path: join(scene.workspace, "src/a.txt") })).toMatchObject(
      matchNoVerdict("failed"),
    );
  });

  it("follows links below the workspace, and takes it where it really is", async () => {
    using scene = createFilledScene();
    symlinkSync("src", join(scene.workspace, "link"));
    symlinkSync(join(scene.workspace, "src/a.txt"), join(scene.workspace, "absolute"));
    for (const path of ["link/a.txt", "absolute"])
      expect(await scene.check({ kind: "file", path, sha256: HELLO })).toEqual(createVerdict("pass"));
    const alias = scene.outside("alias");
    symlinkSync(scene.workspace, alias);
    using other = createVerifierScene({ workspaceOf: () => alias });
    expect(await other.check({ kind: "file", path: "src/a.txt", sha256: HELLO })).toEqual(
      createVerdict("pass"),
    );
  });

  it("has no verdict of what a link leads to outside, whether that is there or not", async () => {
    using scene = createFilledScene();
    symlinkSync(scene.outside("secrets"), join(scene.workspace, "out"));
    symlinkSync("../secrets/key", join(scene.workspace, "key"));
    symlinkSync("../secrets/none", join(scene.workspace, "dangling"));
    symlinkSync("key", join(scene.workspace, "twice"));
    symlinkSync("loop", join(scene.workspace, "loop"));
    for (const path of ["out", "out/key", "out/none", "key", "dangling", "twice", "loop", "loop/x"])
      for (const more of [{}, { absent: true }, { sha256: HELLO }, { sha256: HELLO, absent: true }])
        expect(await scene.check({ kind: "file", path, ...more })).toMatchObject(matchNoVerdict("failed"));
  });

  it.each([
    ["is not there", (scene: Scene) => rmSync(scene.workspace, { recursive: true })],
    [
      "is a link that leads nowhere",
      (scene: Scene) => {
        renameSync(scene.workspace, scene.outside("moved"));
        symlinkSync("none", scene.workspace);
      },
    ],
  ])("has no verdict where the workspace %s", async (_, spoil) => {
    using scene = createFilledScene();
    spoil(scene);
    for (const absent of [true, false])
      expect(await scene.check({ kind: "file", path: "src/a.txt", absent })).toMatchObject(
        matchNoVerdict("unavailable"),
      );
  });

  it.each(["", "src", "\0"])("has no verdict where the workspace is called %j", async (workspace) => {
    using scene = createFilledScene({ workspaceOf: () => workspace });
    for (const absent of [true, false])
      expect(await scene.check({ kind: "file", path: "package.json", absent })).toMatchObject(
        matchNoVerdict("unavailable"),
      );
  });

  it("asks for the workspace of the agent that did the work", async () => {
    using scene = createFilledScene({
      workspaceOf: (agent) => (agent === "coder" ? "/nowhere" : scene.workspace),
    });
    expect(await scene.check({ kind: "file", path: "empty" })).toMatchObject(matchNoVerdict("unavailable"));
    const answer = await scene.check({ kind: "file", path: "empty" }, { result: { agentId: "other" } });
    expect(answer).toEqual(createVerdict("pass"));
  });

  it("looks in the folder in which the work was done, and not out of it", async () => {
    using scene = createFilledScene();
    const result = { folder: scene.outside("secrets") };
    expect(await scene.check({ kind: "file", path: "key", sha256: HELLO }, { result })).toEqual(
      createVerdict("pass"),
    );
    expect(await scene.check({ kind: "file", path: "src/a.txt" }, { result })).toEqual(createVerdict("fail"));
    symlinkSync("../workspace/src", scene.outside("secrets/link"));
    for (const path of ["../workspace/src/a.txt", "link/a.txt", join(scene.workspace, "src/a.txt")])
      expect(await scene.check({ kind: "file", path }, { result })).toMatchObject(matchNoVerdict("failed"));
  });

  it("neither opens nor waits for a pipe without a writer", async () => {
    using scene = createFilledScene();
    spawnSync("mkfifo", [join(scene.workspace, "pipe")]);
    expect(await scene.check({ kind: "file", path: "pipe", sha256: HELLO })).toEqual(createVerdict("fail"));
    expect(await scene.check({ kind: "file", path: "pipe", absent: true })).toEqual(createVerdict("fail"));
  });

  it("has no verdict by the hash of a gigantic file, wanted or not, but sees that it is there", async () => {
    using scene = createFilledScene();
    truncateSync(join(scene.workspace, "empty"), 2 * 1_024 ** 3);
    for (const absent of [true, false])
      expect(await scene.check({ kind: "file", path: "empty", sha256: HELLO, absent })).toMatchObject(
        matchNoVerdict("failed"),
      );
    expect(await scene.check({ kind: "file", path: "empty" })).toEqual(createVerdict("pass"));
  });

  it("stops reading when its time is over", async () => {
    using scene = createFilledScene();
    truncateSync(join(scene.workspace, "empty"), 1_024 ** 3);
    const answer = await scene.check({ kind: "file", path: "empty", sha256: HELLO }, { withinMs: 30 });
    expect(answer).toMatchObject(matchNoVerdict("timed_out"));
  });

  it("has no verdict by the hash of a file that is written while it is read", async () => {
    using scene = createFilledScene();
    const path = join(scene.workspace, "src/a.txt");
    truncateSync(path, 200 * 1_024 ** 2);
    const answer = scene.check({ kind: "file", path: "src/a.txt", sha256: HELLO });
    const writer = setInterval(() => writeFileSync(path, "x", { flag: "a" }), 5);
    expect(await answer.finally(() => clearInterval(writer))).toMatchObject(matchNoVerdict("failed"));
  });

  it("never reads outside while folders are swapped with links under it", async () => {
    using scene = createFilledScene();
    // A hash that only the file outside has.
    writeFileSync(scene.outside("secrets/a.txt"), "outside");
    const swap = `
      const { renameSync, symlinkSync } = require("node:fs");
      symlinkSync(${JSON.stringify(scene.outside("secrets"))}, "link");
      process.stdout.write("ready");
      for (;;) {
        renameSync("src", "real"); renameSync("link", "src");
        renameSync("src", "link"); renameSync("real", "src");
      }`;
    const swapper = spawn(process.execPath, ["-e", swap], {
      cwd: scene.workspace,
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      await once(swapper.stdout, "data");
      const seen = new Set<string>();
      for (let tries = 0; tries < 2_000; tries += 1) {
        const answer = await scene.check({ kind: "file", path: "src/a.txt", sha256: hashText("outside") });
        seen.add(answer.kind === "verdict" ? answer.verdict : answer.message);
      }
      expect([...seen]).not.toContain("pass");
      // It was swapped while it was looked at indeed.
      expect(seen.size).toBeGreaterThan(1);
    } finally {
      swapper.kill("SIGKILL");
      await once(swapper, "exit");
    }
  });

  it("rules on no path that really leads outside, however it is written", async () => {
    using scene = createFilledScene();
    symlinkSync(scene.outside("secrets"), join(scene.workspace, "out"));
    symlinkSync("src/deep", join(scene.workspace, "in"));
    symlinkSync("../..", join(scene.workspace, "src/up"));
    const part = fc.constantFrom(
      "..",
      ".",
      "",
      "src",
      "deep",
      "a.txt",
      "out",
      "in",
      "up",
      "workspace",
      "secrets",
      "key",
    );
    const names = fc.array(part, { minLength: 1, maxLength: 7 });
    const root = realpathSync(scene.workspace);
    let outside = 0;
    await fc.assert(
      fc.asyncProperty(names, fc.boolean(), async (parts, absent) => {
        const path = parts.join("/");
        if (path === "") return;
        const answer = await scene.check({ kind: "file", path, absent });
        const whole = resolve(root, path);
        if (isBelow(root, whole) && !path.startsWith("/")) {
          if (existsSync(whole)) expect({ path, kind: answer.kind }).toEqual({ path, kind: "verdict" });
        } else {
          outside += 1;
          expect({ path, answer }).toMatchObject({ path, answer: matchNoVerdict("failed") });
        }
      }),
      { numRuns: RUNS },
    );
    expect(outside).toBeGreaterThan(RUNS / 10);
  });
});

/** The file that the kernel finds, or the nearest folder above that it finds. The workspace itself is not below itself. */
function isBelow(root: string, path: string): boolean {
  if (!path.startsWith(`${root}/`)) return false;
  if (existsSync(path)) return realpathSync(path).startsWith(`${root}/`);
  const above = dirname(path);
  return above === root || (existsSync(above) && realpathSync(above) === root) || isBelow(root, above);
}
