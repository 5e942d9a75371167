/** Owns: files that are values: nothing waits for a disk, so that moving a clock lets everything finish. */
import { hash } from "node:crypto";
import { posix } from "node:path";
import type { ResourceFiles } from "../../src/agents/coordination/ports/resource-files.ts";

/** The files that calls change. */
export interface SceneFiles extends Disposable {
  readonly files: ResourceFiles;
  readonly folder: string;
  readonly put: (name: string, content: string | Buffer) => void;
  /** `undefined` where there is none. */
  readonly text: (name: string) => string | undefined;
  readonly remove: (name: string) => void;
}

export function createValueFiles(): SceneFiles {
  const texts = new Map<string, string>();
  /** Every path that was ever written: a search that finds too much. */
  const touched = new Set<string>();
  const folder = "/repo";
  return {
    folder,
    files: {
      locate: (path, from) => Promise.resolve(`file:${posix.resolve(from, path)}`),
      spelledName: (path, from) => Promise.resolve(`file:${posix.resolve(from, path)}`),
      look: (resource) => {
        const path = resource.slice("file:".length);
        const text = texts.get(path);
        if (text !== undefined) return Promise.resolve({ kind: "text", version: versionOf(text), text });
        const isFolder = [...texts.keys()].some((name) => name.startsWith(`${path}/`));
        return Promise.resolve(
          isFolder ? { kind: "folder", version: "folder" } : { kind: "absent", version: "absent" },
        );
      },
      sharedName: () => Promise.resolve(undefined),
      hasMoreEntries: (resource, count) => {
        const below = `${resource.slice("file:".length)}/`;
        const paths = [...texts.keys()].filter((path) => path.startsWith(below));
        const names = new Set(paths.map((path) => path.slice(below.length).split("/")[0]));
        return Promise.resolve(names.size > count);
      },
      stamp: (resource) => {
        const path = resource.slice("file:".length);
        const isFolder = [...texts.keys()].some((name) => name.startsWith(`${path}/`));
        return Promise.resolve(texts.get(path) ?? (isFolder ? undefined : "absent"));
      },
      findChanged: () => Promise.resolve({ paths: [...touched], isWhole: true }),
    },
    put: (name, content) => {
      texts.set(`${folder}/${name}`, content.toString());
      touched.add(`${folder}/${name}`);
    },
    text: (name) => texts.get(`${folder}/${name}`),
    remove: (name) => {
      texts.delete(`${folder}/${name}`);
    },
    [Symbol.dispose]: () => undefined,
  };
}

export function versionOf(text: string): string {
  return `sha256:${hash("sha256", text)}`;
}
