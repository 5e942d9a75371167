import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { OpenCoordination } from "../../src/agents/coordination/ledger/state.ts";
import type { ResourceFiles } from "../../src/agents/coordination/ports/resource-files.ts";
import {
  createDeclaredResources,
  type DeclaredResources,
} from "../../src/agents/coordination/runtime/arbiter/declared-resources.ts";
import type { Participant } from "../../src/agents/coordination/runtime/arbiter/participants.ts";
import { createPlanSource } from "../../src/agents/coordination/runtime/log/plan-source.ts";
import { readState } from "../../src/agents/coordination/runtime/log/read-state.ts";
import {
  createRealSceneFiles,
  openScene,
  type Fields,
  type Scene,
  type SceneFiles,
} from "./arbiter-scene.ts";

interface DeclarerLookup {
  readonly declared: DeclaredResources;
  /** The steps at work that declare it. */
  readonly of: (resource: string) => Promise<string[]>;
}

function createDeclaredIn(s: Scene, files: ResourceFiles, folder: string): DeclarerLookup {
  const plans = createPlanSource({ content: s.store, settings: { stepTimeoutMs: 60_000 } });
  const declared = createDeclaredResources({ plans, files, folderOf: () => folder });
  return {
    declared,
    of: async (resource) => {
      const state = await readState(s.store, "plan-1" as CoordinationId);
      const participant = { state: state as OpenCoordination } as Participant;
      return (await declared.declarersOf(participant, resource)).map(({ spec }) => spec.stepId).toSorted();
    },
  };
}

async function openPlannedScene(
  steps: readonly Fields[],
  arrange: (files: SceneFiles) => void = () => undefined,
): Promise<{ s: Scene; of: DeclarerLookup["of"]; resource: (name: string) => string }> {
  const files = createRealSceneFiles();
  arrange(files);
  const s = await openScene({ files });
  await s.plan(steps);
  const { of } = createDeclaredIn(s, files.files, files.folder);
  return { s, of, resource: (name) => s.resource(name) };
}

describe("who declares a resource", () => {
  it("is the step at work whose plan names the file, from the workspace of its agent", async () => {
    const { s, of, resource } = await openPlannedScene([
      { stepId: "a", resources: ["file:notes.md"] },
      { stepId: "b" },
    ]);
    await using _ = s;
    expect(await of(resource("notes.md"))).toEqual(["a"]);
    expect(await of(resource("other.md"))).toEqual([]);
  });

  it("is who names a folder above it, and who names something below it", async () => {
    const { s, of, resource } = await openPlannedScene([
      { stepId: "folder", resources: ["file:src"] },
      { stepId: "file", resources: ["file:src/lib/deep.ts"] },
    ]);
    await using _ = s;
    expect(await of(resource("src/lib"))).toEqual(["file", "folder"]);
    expect(await of(resource("src/lib/deep.ts"))).toEqual(["file", "folder"]);
    expect(await of(resource("src/lib/other.ts"))).toEqual(["folder"]);
    expect(await of(resource("src-of-others"))).toEqual([]);
  });

  it("is found by the real path, through links, `..` and absolute names", async () => {
    const files: string[] = [];
    const { s, of, resource } = await openPlannedScene(
      [{ stepId: "a", resources: ["file:link/notes.md", "file:x/../plain.md"] }],
      ({ put, folder }) => {
        put("real/notes.md", "x");
        symlinkSync(join(folder, "real"), join(folder, "link"));
        files.push(folder);
      },
    );
    await using _ = s;
    expect(files).toHaveLength(1);
    expect(await of(resource("real/notes.md"))).toEqual(["a"]);
    expect(await of(resource("plain.md"))).toEqual(["a"]);
  });

  it("is the step whose plan names a file below the home folder by ~", async () => {
    const files = createRealSceneFiles();
    await using s = await openScene({ files });
    await s.plan([{ stepId: "a", resources: ["file:~/.ssh"] }]);
    const home = join(files.folder, "home");
    const { of } = createDeclaredIn(s, { ...files.files, home }, files.folder);
    expect(await of(s.resource("home/.ssh/key"))).toEqual(["a"]);
    expect(await of(s.resource("~/.ssh/key"))).toEqual([]);
  });

  it("is told for queues and names of plugin authors by the name alone", async () => {
    const { s, of } = await openPlannedScene([{ stepId: "a", resources: ["queue:mail", "crm:customer/1"] }]);
    await using _ = s;
    expect(await of("queue:mail")).toEqual(["a"]);
    expect(await of("crm:customer/1")).toEqual(["a"]);
    expect(await of("crm:customer/1/address")).toEqual([]);
    expect(await of("queue:mail2")).toEqual([]);
  });

  it("is nobody before the step runs and after it has ended", async () => {
    const { s, of, resource } = await openPlannedScene([
      { stepId: "a", resources: ["file:a.md"] },
      { stepId: "b", resources: ["file:b.md"], dependsOn: ["a"] },
      { stepId: "c" },
    ]);
    await using _ = s;
    expect([await of(resource("a.md")), await of(resource("b.md"))]).toEqual([["a"], []]);
    s.plans.end("a", { outcome: "completed", reply: "{}" });
    await s.clock.advance(1_000);
    expect([await of(resource("a.md")), await of(resource("b.md"))]).toEqual([[], ["b"]]);
  });

  it("is nobody where spawns are observed", async () => {
    const files = createRealSceneFiles();
    await using s = await openScene({ files });
    await s.child("a");
    const { declared } = createDeclaredIn(s, files.files, files.folder);
    const state = await readState(s.store, "co-1" as CoordinationId);
    const participant = { state: state as OpenCoordination } as Participant;
    expect(await declared.declarersOf(participant, s.resource("notes.md"))).toEqual([]);
  });

  it("is told again where the file system could not be asked the first time", async () => {
    const files = createRealSceneFiles();
    await using s = await openScene({ files });
    await s.plan([{ stepId: "a", resources: ["file:notes.md"] }]);
    let asks = 0;
    const failing: ResourceFiles = {
      ...files.files,
      locate: (path, folder) =>
        (asks += 1) === 1
          ? Promise.reject(new Error("too many open files"))
          : files.files.locate(path, folder),
    };
    const { of } = createDeclaredIn(s, failing, files.folder);
    await expect(of(s.resource("notes.md"))).rejects.toThrow("too many open files");
    expect(await of(s.resource("notes.md"))).toEqual(["a"]);
  });
});
