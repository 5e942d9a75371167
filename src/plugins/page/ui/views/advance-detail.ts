/** Owns: the durations of work that goes on, some time after the server told of it. While nothing happens, nothing else changes. */
import type { Timeline } from "../../../reports/timeline.ts";
import type { TreeNode } from "../../../reports/tree.ts";
import type { CoordinationDetail } from "../../contract/runs.ts";

/**
 * Returns a coordination's detail with the durations of what goes on advanced to `nowMs`, by the server's clock, as if
 * nothing happened since; the same detail where no time passed.
 */
export function advanceDetail(detail: CoordinationDetail, nowMs: number): CoordinationDetail {
  const passedMs = nowMs - detail.atMs;
  if (passedMs <= 0) return detail;
  return {
    ...detail,
    timeline: advanceTimeline(detail.timeline, passedMs),
    tree: { ...detail.tree, tree: advanceNode(detail.tree.tree, passedMs) },
    atMs: nowMs,
  };
}

/** Steps in other states have the duration of an attempt that has ended. */
const GROWING: ReadonlySet<string> = new Set(["waiting", "dispatched", "running"]);

/**
 * True while any duration in a coordination's tree grows: its own work goes on, or a plan of one of its agents, which
 * may outlive it.
 */
export function hasGrowingDurations({ tree }: CoordinationDetail): boolean {
  return hasGrowingNode(tree.tree);
}

function hasGrowingNode({ status, children }: TreeNode): boolean {
  return GROWING.has(status) || children.some(hasGrowingNode);
}

function advanceTimeline(timeline: Timeline, passedMs: number): Timeline {
  if (timeline.endedAtMs !== undefined) return timeline;
  return {
    ...timeline,
    durationMs: timeline.durationMs + passedMs,
    rows: timeline.rows.map((row) =>
      GROWING.has(row.status) ? { ...row, durationMs: row.durationMs + passedMs } : row,
    ),
  };
}

function advanceNode(node: TreeNode, passedMs: number): TreeNode {
  const children = node.children.map((child) => advanceNode(child, passedMs));
  if (node.durationMs === undefined || !GROWING.has(node.status)) return { ...node, children };
  return { ...node, durationMs: node.durationMs + passedMs, children };
}
