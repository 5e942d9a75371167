/** Owns: tool calls as a host makes them, and what their tools do to the files. */
import { expect } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  MergedFile,
  ChangeProposal,
  WriteAnswer,
  WriteCall,
  WriteTarget,
} from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import type { SceneFiles } from "./arbiter-scene.ts";

export interface ToolCall extends WriteCall {
  /** The tool's effect on the files. */
  readonly tools: (params: unknown) => void;
}

let calls = 0;

interface Change {
  readonly name: string;
  readonly replaces: boolean;
  readonly propose: (before: string | undefined) => ChangeProposal;
}

/** A call of a tool that can be made to write other texts. */
export function change(
  files: Pick<SceneFiles, "put" | "text" | "remove" | "folder">,
  session: SessionKey,
  { tool, changes }: { readonly tool: string; readonly changes: readonly Change[] },
): ToolCall {
  calls += 1;
  const perform = (name: string, proposed: ChangeProposal): void => {
    if (proposed.kind === "text") files.put(name, proposed.text);
    else if (proposed.kind === "deleted") files.remove(name);
    else throw new Error(`${tool} does not fit ${name}`);
  };
  return {
    session,
    tool,
    callKey: `call-${calls}`,
    reads: [],
    targets: changes.map(({ name, propose, replaces }): WriteTarget => ({
      propose,
      replaces,
      at: { path: name, folder: files.folder },
    })),
    rewrite: (merged) => ({ merged }),
    tools: (params) => {
      const { merged = [] } = (params ?? {}) as { readonly merged?: readonly MergedFile[] };
      for (const [index, { name, propose }] of changes.entries()) {
        const instead = merged.find(({ target }) => target === index);
        if (instead) expect(files.text(name), "what a merge was made with").toBe(instead.current);
        perform(name, instead ? { kind: "text", text: instead.merged } : propose(files.text(name)));
      }
    },
  };
}

type Files = Parameters<typeof change>[0];

/** Writes the whole of one file, or of several. */
export function write(files: Files, session: SessionKey, texts: Readonly<Record<string, string>>): ToolCall {
  const changes = Object.entries(texts).map(([name, text]): Change => ({
    name,
    replaces: true,
    propose: () => ({ kind: "text", text }),
  }));
  return change(files, session, { tool: "write", changes });
}

export function edit(files: Files, session: SessionKey, words: readonly [string, string, string]): ToolCall {
  const [name, from, to] = words;
  const propose = (before: string | undefined): ChangeProposal =>
    before?.includes(from) === true ? { kind: "text", text: before.replace(from, to) } : { kind: "fails" };
  return change(files, session, { tool: "edit", changes: [{ name, replaces: false, propose }] });
}

export function remove(files: Files, session: SessionKey, name: string): ToolCall {
  const changes: Change[] = [{ name, replaces: false, propose: () => ({ kind: "deleted" }) }];
  return change(files, session, { tool: "apply_patch", changes });
}

/** Reads a file: what the session sees is what its next change is based on. */
export function read(files: Files, session: SessionKey, name: string): ToolCall {
  const call = change(files, session, { tool: "read", changes: [] });
  return { ...call, reads: [{ path: name, folder: files.folder }] };
}

/** A shell command that may change anything, and does what is given. */
export function createShellCall(
  files: Files,
  session: SessionKey,
  does: () => void = () => undefined,
): ToolCall {
  const call = change(files, session, { tool: "exec", changes: [] });
  return {
    ...call,
    mayTouchAnything: true,
    folder: files.folder,
    undetermined: { because: "undeclared" },
    tools: does,
  };
}

/** A shell command whose outputs are declared: a folder, or whatever it is. */
export function createOutputCall(files: Files, session: SessionKey, name: string): ToolCall {
  const call = change(files, session, { tool: "exec", changes: [] });
  return { ...call, targets: [{ at: { path: name, folder: files.folder }, replaces: true }] };
}

/** A message to somebody, or a place in a queue. */
export function createNamedCall(files: Files, session: SessionKey, resource: string): ToolCall {
  const call = change(files, session, { tool: "sessions_send", changes: [] });
  return { ...call, targets: [{ at: { resource }, replaces: false }] };
}

/** The answer to a write that may not happen. */
export type RefusedWrite = WriteAnswer & { kind: "refused" };
export type Review = WriteAnswer & { kind: "review" };

export function requireRefused(answer: WriteAnswer): RefusedWrite {
  if (answer.kind !== "refused") throw new Error(`not refused, but ${answer.kind}`);
  return answer;
}

export function requireReview(answer: WriteAnswer): Review {
  if (answer.kind !== "review") throw new Error(`not reviewed, but ${JSON.stringify(answer)}`);
  return answer;
}
