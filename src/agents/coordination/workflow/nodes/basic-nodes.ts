/** Owns: the nodes that need nobody: they pass on, wait or fail. */
import { addMs } from "../../contracts/ids.ts";
import type { NodeType, NodeView } from "../node-contract/node-type.ts";
import { readNodeInputs } from "../state/values.ts";

export const noop: NodeType = { step: () => ({ kind: "complete", outputs: {} }) };

/** Every input port is an output port. */
export const echo = ({ run, graph, node }: NodeView) =>
  ({ kind: "complete", outputs: readNodeInputs(run, graph, node) }) as const;

export const fail: NodeType = {
  step: ({ node: { node } }) => {
    const { code, message } = node.config;
    return {
      kind: "fail",
      error: {
        code: typeof code === "string" && code !== "" ? code : "conformance_test_failure",
        message: typeof message === "string" && message !== "" ? message : "Intentional conformance failure",
      },
    };
  },
};

const DELAY_MS_MAX = 24 * 3_600_000;

export const delay: NodeType = {
  isPausable: true,
  step: (view) => {
    const atMs = addMs(view.nodeRun.startedAtMs, readDelayMs(view));
    return view.now >= atMs ? { kind: "complete", outputs: {} } : { kind: "wait", atMs };
  },
};

/** Returns the delay in milliseconds, under any of the names that definitions use. */
function readDelayMs({ run, graph, node }: NodeView): number {
  const { config } = node.node;
  const candidates = [
    readNodeInputs(run, graph, node)["delayMs"],
    config["delayMs"],
    config["durationMs"],
    config["ms"],
  ];
  const ms =
    candidates.find((value): value is number => typeof value === "number" && Number.isFinite(value)) ?? 0;
  return Math.min(Math.max(0, ms), DELAY_MS_MAX);
}
