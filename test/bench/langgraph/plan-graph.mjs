/**
 * Owns: how each shape of plan is said in LangGraph. A shape has a second form where that ran faster: `loop` and `tasks`
 * are `chain`, `sends` is `wide`. Only the first form gives each step a node of its own, as a plan does.
 *
 * Fan-in is one edge from each step: all steps of one width end in the same super-step, so the joining node runs once. The
 * list form, `addEdge([...], node)`, names its channel after all the steps and stores that name with every step's result.
 */
import { Annotation, END, Send, START, StateGraph, entrypoint, task } from "@langchain/langgraph";

const DIAMOND = 4;

/** Results of steps that run at the same time are appended, those of a chain replace each other. */
const collecting = Annotation.Root({
  outputs: Annotation({ reducer: (kept, more) => kept.concat(more), default: () => [] }),
});
const replacing = Annotation.Root({ outputs: Annotation() });

/**
 * Each takes the number of steps and `node(name, dependencies)`, an async node that does nothing but note its times.
 * `reset` is called before each run.
 */
const SHAPES = {
  chain: (steps, node) => {
    const names = numbered("step", steps);
    const graph = new StateGraph(replacing);
    for (const [index, name] of names.entries()) {
      const before = index === 0 ? [] : [names[index - 1]];
      addNode(graph, name, before, node);
    }
    return { graph: graph.addEdge(names.at(-1), END), stepsRun: steps };
  },
  /** The chain as one node that goes back to itself: its checkpoints do not grow. */
  loop: (steps, node) => {
    let index = 0;
    const graph = new StateGraph(replacing)
      .addNode("step", () => {
        const before = index === 0 ? [] : [`step-${index - 1}`];
        return node(`step-${index++}`, before)();
      })
      .addEdge(START, "step")
      .addConditionalEdges("step", () => (index < steps ? "step" : END), ["step", END]);
    return { graph, stepsRun: steps, reset: () => (index = 0) };
  },
  /** The chain in the functional API: one super-step, so a result is stored for each step but no checkpoint. */
  tasks: (steps, node) => {
    const names = numbered("step", steps);
    const step = task("step", (index) => node(names[index], index === 0 ? [] : [names[index - 1]])());
    const runAll = async () => {
      let result;
      for (let index = 0; index < steps; index += 1) result = await step(index);
      return result;
    };
    const compile = ({ checkpointer }) => entrypoint({ name: "plan", checkpointer }, runAll);
    return { graph: { compile }, stepsRun: steps };
  },
  wide: (steps, node) => {
    const names = numbered("step", steps);
    const graph = new StateGraph(collecting);
    for (const name of names) addNode(graph, name, [], node);
    addNode(graph, "join", names, node);
    return { graph: graph.addEdge("join", END), stepsRun: steps + 1 };
  },
  /** The same as one node that is sent to once per step. */
  sends: (steps, node) => {
    const names = numbered("step", steps);
    const graph = new StateGraph(collecting)
      .addNode("step", (name) => node(name, [])())
      .addNode("join", node("join", names))
      .addConditionalEdges(START, () => names.map((name) => new Send("step", name)), ["step"])
      .addEdge("step", "join")
      .addEdge("join", END);
    return { graph, stepsRun: steps + 1 };
  },
  diamonds: (steps, node) => {
    const graph = new StateGraph(collecting);
    const count = Math.max(1, Math.round(steps / DIAMOND));
    let last = [];
    for (let index = 0; index < count; index += 1) {
      const [top, left, right, bottom] = ["top", "left", "right", "bottom"].map((name) => `${name}-${index}`);
      addNode(graph, top, last, node);
      addNode(graph, left, [top], node);
      addNode(graph, right, [top], node);
      addNode(graph, bottom, [left, right], node);
      last = [bottom];
    }
    return { graph: graph.addEdge(last[0], END), stepsRun: count * DIAMOND };
  },
};

export function planGraph(shape, steps, node) {
  return SHAPES[shape](steps, node);
}

function numbered(prefix, count) {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}

function addNode(graph, name, dependencies, node) {
  graph.addNode(name, node(name, dependencies));
  for (const before of dependencies.length > 0 ? dependencies : [START]) graph.addEdge(before, name);
}
