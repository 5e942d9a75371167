/** Owns: a host that is sent requests with one idempotency key, before workflow runs that end at once, late or at a question. */
import { chain, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { createWorkflowScene, type SceneOptions, type WorkflowScene } from "../support/workflow-scene.ts";
import { createFakeFace, createPost, type FakeFace } from "./http-fake-host.ts";

export const NOOP = createWorkflow("noop", { nodes: [createNode("only")] });
const GATE = createWorkflow("gate", { nodes: [createNode("gate", "core.approvalGate")] });
const LATER = createWorkflow("later", {
  nodes: [createNode("wait", "core.delay", { delayMs: 1_000 }), createNode("gate", "core.approvalGate")],
  edges: chain("wait>gate"),
});

/** A scene of workflows, and the HTTP interface that serves it. */
export interface KeyedScene {
  readonly face: FakeFace;
  readonly scene: WorkflowScene;
}

export function serveKeyed(options: SceneOptions = {}): KeyedScene {
  const scene = createWorkflowScene({ definitions: [NOOP, GATE, LATER], ...options });
  return { scene, face: createFakeFace({ host: scene.host, clock: scene.clock }) };
}

export async function postKeyed(
  { face }: Pick<KeyedScene, "face">,
  path: string,
  body: unknown,
): Promise<Response> {
  return await face.app.request(path, createPost(body, { "idempotency-key": "k1" }));
}
