import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { FileLook } from "../../src/agents/coordination/ports/resource-files.ts";
import {
  mergeChange,
  type MergeableChange,
  type MergedChange,
} from "../../src/agents/coordination/runtime/arbiter/merge-change.ts";
import type { ChangeProposal } from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import { createFormatMerge } from "../../src/infra/merge/format-merge.ts";
import { versionOf } from "./arbiter-scene.ts";

const BASE = "one\n-\ntwo\n";
const JSON_BASE = '{"a":1,"b":1}';
const KEPT = new Map([BASE, JSON_BASE].map((kept) => [versionOf(kept).slice("sha256:".length), kept]));

const dependencies = {
  content: { get: (sha256: string) => Promise.resolve(KEPT.get(sha256)) },
  textMerge: () => Promise.resolve(createFormatMerge()),
  refOf: (text: string) => ({ sha256: hash("sha256", text), bytes: text.length }),
};

const createTextLook = (of: string): FileLook => ({ kind: "text", version: versionOf(of), text: of });
const ABSENT: FileLook = { kind: "absent", version: "absent" };
const createWriteProposal = (subject: string) => (): ChangeProposal => ({ kind: "text", text: subject });
const createEditProposal =
  (from: string, to: string) =>
  (before: string | undefined): ChangeProposal =>
    before?.includes(from) ? { kind: "text", text: before.replace(from, to) } : { kind: "fails" };

async function mergeAndDescribe(change: Partial<MergeableChange>): Promise<string | undefined> {
  const merged: MergedChange = await mergeChange(dependencies, {
    resource: "file:/w/notes.md",
    propose: createWriteProposal("x\n"),
    look: createTextLook(BASE),
    base: versionOf(BASE),
    isBeingWritten: false,
    ...change,
  });
  if (merged.evidence.kind === "obstacle") {
    expect(merged.text).toBeUndefined();
    return merged.evidence.obstacle;
  }
  expect(merged.evidence.merged).toBe(versionOf(merged.text ?? ""));
  return merged.text;
}

describe("a merge", () => {
  it.each<readonly [string, Partial<MergeableChange>, string]>([
    [
      "of a write with what others wrote",
      { look: createTextLook("ONE\n-\ntwo\n"), propose: createWriteProposal("one\n-\nTWO\n") },
      "ONE\n-\nTWO\n",
    ],
    [
      "of a file that nobody has changed is what was proposed",
      { propose: createWriteProposal("new\n") },
      "new\n",
    ],
    [
      "of an edit with what others wrote",
      { look: createTextLook("ONE\n-\ntwo\n"), propose: createEditProposal("two", "2") },
      "ONE\n-\n2\n",
    ],
    [
      "of an edit that fits only what is there now was made with it in view",
      { look: createTextLook("ONE\n-\ntwo\n"), propose: createEditProposal("ONE", "1") },
      "1\n-\ntwo\n",
    ],
    [
      "of a file that is still to be created",
      { look: ABSENT, base: undefined, propose: createWriteProposal("new\n") },
      "new\n",
    ],
    [
      "of a file that was not there and still is not",
      { look: ABSENT, base: "absent", propose: createWriteProposal("n\n") },
      "n\n",
    ],
    [
      "of a file whose format has keys is by key",
      {
        resource: "file:/w/x.json",
        base: versionOf(JSON_BASE),
        look: createTextLook('{"a":2,"b":1}'),
        propose: createWriteProposal('{"a":1,"b":2}'),
      },
      '{"a":2,"b":2}',
    ],
    [
      "of two who created the same text",
      { look: createTextLook("same\n"), base: "absent", propose: createWriteProposal("same\n") },
      "same\n",
    ],
  ])("%s", async (_, change, result) => {
    expect(await mergeAndDescribe(change)).toBe(result);
  });
});

describe("there is no merge", () => {
  it.each<readonly [string, Partial<MergeableChange>, string]>([
    [
      "where both changed the same lines",
      { look: createTextLook("a\n-\ntwo\n"), propose: createWriteProposal("b\n-\ntwo\n") },
      "overlapping_changes",
    ],
    [
      "where both created a file",
      { look: createTextLook("a\n"), base: "absent", propose: createWriteProposal("b\n") },
      "overlapping_changes",
    ],
    [
      "where both created a file with other keys",
      {
        resource: "file:/w/x.yaml",
        look: createTextLook("a: 1\n"),
        base: "absent",
        propose: createWriteProposal("b: 1\n"),
      },
      "overlapping_changes",
    ],
    [
      "of what a tool owns",
      {
        resource: "file:/w/package-lock.json",
        look: createTextLook("ONE\n-\ntwo\n"),
        propose: createWriteProposal("one\n-\n2\n"),
      },
      "owned_by_tool",
    ],
    ["while somebody writes it", { isBeingWritten: true }, "being_written"],
    ["where the base is not known", { base: undefined, look: createTextLook("a\n") }, "no_base"],
    ["where nobody kept the base", { base: versionOf("gone"), look: createTextLook("a\n") }, "no_base"],
    ["of what is no text", { look: { kind: "other", version: "v", because: "not_text" } }, "not_text"],
    ["of what is too large", { look: { kind: "other", version: "v", because: "too_large" } }, "too_large"],
    ["of a folder", { look: { kind: "folder", version: "folder" } }, "not_a_file"],
    ["of what cannot be read", { look: { kind: "unreadable" } }, "not_a_file"],
    [
      "of a deletion",
      { look: createTextLook("a\n-\ntwo\n"), propose: () => ({ kind: "deleted" }) },
      "not_a_file",
    ],
    [
      "of a change that nobody can foretell",
      { look: createTextLook("a\n-\ntwo\n"), propose: undefined },
      "not_a_file",
    ],
    ["of a file that somebody deleted", { look: ABSENT, propose: createWriteProposal("b\n") }, "not_a_file"],
    [
      "of an edit of a file that is not there",
      { look: ABSENT, base: "absent", propose: createEditProposal("a", "b") },
      "not_a_file",
    ],
    [
      "of an edit that fits neither what was there nor what is there",
      { look: createTextLook("a\n"), propose: createEditProposal("nowhere", "x") },
      "does_not_apply",
    ],
  ])("%s", async (_, change, obstacle) => {
    expect(await mergeAndDescribe(change)).toBe(obstacle);
  });
});
