/** Owns: what stands for a value in a workflow: inputs of nodes, variables, conditions of edges. */
import { RE2JS } from "re2js";
import type { EdgeCondition, PortValue } from "../../contracts/workflows/workflow-definition.ts";
import type { GraphEdge, GraphNode, NodeGraph } from "./node-graph.ts";
import { findEndedBefore, type WorkflowRun } from "./workflow-state.ts";

export type Values = Readonly<Record<string, unknown>>;

/** The ports of an edge that does not name them (workflow-definition.schema.json). The first stands for all outputs where there is none of its name. */
const ALL_OUTPUTS = "output";
const INPUT = "input";

/** Returns the variables: defaults, then the inputs of `run.started`, then later changes. */
export function variablesOf(run: WorkflowRun, graph: NodeGraph): Values {
  const values: Record<string, unknown> = createInitialVariables(graph, run.started.inputs);
  for (const [name, value] of run.variables) values[name] = value;
  return values;
}

export function createInitialVariables(graph: NodeGraph, inputs: Values): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const { name, defaultValue } of graph.variables)
    if (defaultValue !== undefined) values[name] = defaultValue;
  return Object.assign(values, inputs);
}

export function variableOf(run: WorkflowRun, graph: NodeGraph, name: string): unknown {
  if (run.variables.has(name)) return run.variables.get(name);
  if (Object.hasOwn(run.started.inputs, name)) return run.started.inputs[name];
  return graph.variables.find((variable) => variable.name === name)?.defaultValue;
}

/**
 * Returns the inputs of a node: variables as they are now, outputs of other nodes as they were when it began. A port
 * without a value is not there.
 */
export function inputsOf(run: WorkflowRun, graph: NodeGraph, graphNode: GraphNode): Values {
  const began = run.nodes.get(graphNode.node.id)?.enteredSequence ?? Infinity;
  const values = new Map<string, unknown>();
  for (const [port, value] of Object.entries(graphNode.node.inputs))
    values.set(port, portValueOf({ run, graph, began }, value));
  for (const { port, value } of listBroughtValues(run, graphNode, began))
    if (values.get(port) === undefined) values.set(port, value);
  return Object.fromEntries([...values].filter(([, value]) => value !== undefined));
}

function isNamingPort({ sourceOutput, targetInput }: GraphEdge): boolean {
  return sourceOutput !== undefined || targetInput !== undefined;
}

/** Lists what the edges that name a port had brought when the node began, the newest value first. */
function listBroughtValues(run: WorkflowRun, { incoming }: GraphNode, began: number) {
  return incoming
    .filter(isNamingPort)
    .flatMap(({ sourceNodeId, sourceOutput = ALL_OUTPUTS, targetInput: port = INPUT, condition }) => {
      const source = findEndedBefore(run.nodes.get(sourceNodeId), began);
      if (source?.status !== "completed") return [];
      const { outputs = {}, endedSequence } = source;
      if (condition && !isHolding(condition, outputs)) return [];
      return [{ port, value: readOutput(outputs, sourceOutput), endedSequence }];
    })
    .toSorted((one, other) => other.endedSequence - one.endedSequence);
}

interface Reading {
  readonly run: WorkflowRun;
  readonly graph: NodeGraph;
  /** When the node that reads began. */
  readonly began: number;
}

function portValueOf({ run, graph, began }: Reading, value: PortValue): unknown {
  switch (value.type) {
    case "static":
      return value.value;
    case "variable":
      return variableOf(run, graph, value.variableName);
    case "connection": {
      const source = run.nodes.get(value.nodeId);
      return readPath((findEndedBefore(source, began) ?? source)?.outputs, value.outputKey);
    }
    case "expression":
      return readPath(variablesOf(run, graph), value.expression.replace(/^\$\.?|^variables\./, ""));
  }
}

/** The value of this name, or at a path such as `output.approved`; `undefined` where there is none. */
export function readPath(value: unknown, path: string): unknown {
  if (typeof value === "object" && value !== null && Object.hasOwn(value, path))
    return (value as Values)[path];
  let found = value;
  for (const key of path.split(".")) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, key)) return undefined;
    found = (found as Values)[key];
  }
  return found;
}

const PATTERN_CHARS_MAX = 200;
const EXPRESSION_CHARS_MAX = 2_000;

/** Operators of `expression`: a path, optionally compared with JSON. No part can take what another may: the time is linear. */
const COMPARISON = /^\s*(!?)([\w.$-]+)\s*(?:(===?|!==?)(.+))?$/s;

/** The outcome of each condition on each outputs: an edge is looked at again with every step of the run. */
const outcomesOf = new WeakMap<Values, Map<EdgeCondition, boolean>>();

export function isHolding(condition: EdgeCondition, outputs: Values): boolean {
  const outcomes = outcomesOf.get(outputs) ?? new Map<EdgeCondition, boolean>();
  outcomesOf.set(outputs, outcomes);
  const before = outcomes.get(condition);
  if (before !== undefined) return before;
  const now = evaluate(condition, outputs);
  outcomes.set(condition, now);
  return now;
}

function evaluate(condition: EdgeCondition, outputs: Values): boolean {
  const { type = "expression", left = "", right } = condition;
  const value = readOutput(outputs, left);
  switch (type) {
    case "equals":
      return isSameValue(value, right);
    case "notEquals":
      return !isSameValue(value, right);
    case "contains":
      return isContaining(value, right);
    case "regex":
      return typeof value === "string" && typeof right === "string" && isMatching(right, value);
    case "expression":
      return isExpressionHolding(condition.expression ?? "", outputs);
  }
}

/** Returns the value at a path. `output` is all outputs, or an output of that name where the path leads nowhere among them. */
function readOutput(outputs: Values, path: string): unknown {
  const [first, ...rest] = path.split(".");
  const found = first === ALL_OUTPUTS && rest.length > 0 ? readPath(outputs, rest.join(".")) : undefined;
  return found === undefined ? readPath({ [ALL_OUTPUTS]: outputs, ...outputs }, path) : found;
}

function isContaining(value: unknown, part: unknown): boolean {
  if (Array.isArray(value)) return value.some((item) => isSameValue(item, part));
  return typeof value === "string" && typeof part === "string" && value.includes(part);
}

/** `!` negates the value before it is compared, as in JavaScript. An expression that cannot be read does not hold. */
function isExpressionHolding(expression: string, outputs: Values): boolean {
  const [, not, path, operator, literal] = COMPARISON.exec(expression) ?? [];
  if (path === undefined) return false;
  const found = readOutput(outputs, path);
  const value = not === "!" ? !found : found;
  if (operator === undefined || literal === undefined) return Boolean(value);
  const text = literal.trim();
  // Space without a literal behind it counts as one: so were runs judged that are read again.
  const isSame = isSameValue(value, literalOf(text === "" ? literal.slice(-1) : text));
  return operator.startsWith("!") ? !isSame : isSame;
}

/** JSON, a text in single quotes, or the text itself. */
function literalOf(text: string): unknown {
  const inSingleQuotes = /^'(.*)'$/s.exec(text)?.[1];
  try {
    return JSON.parse(inSingleQuotes === undefined ? text : quote(inSingleQuotes));
  } catch {
    return text;
  }
}

const REQUOTED: Readonly<Record<string, string>> = { "\\'": "'", '"': '\\"' };

/** Renders the inside of single quotes as a text of JSON: `it\\'s "so"` becomes `"it's \\"so\\""`. */
function quote(inside: string): string {
  return `"${inside.replace(/\\.|"/gs, (found) => REQUOTED[found] ?? found)}"`;
}

export function isSameValue(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length &&
    keys.every(
      (key) => Object.hasOwn(other, key) && isSameValue((one as Values)[key], (other as Values)[key]),
    )
  );
}

/** A longer text is no match: matching takes time for each character, and nothing else goes on meanwhile. */
const MATCHED_CHARS_MAX = 2_000;
/** Instructions of the automaton. */
const PATTERN_SIZE_MAX = 500;

/** Patterns of definitions come from whoever may register one: the engine's time is linear in the text. */
function isMatching(pattern: string, value: string): boolean {
  return value.length <= MATCHED_CHARS_MAX && (compilePattern(pattern)?.matcher(value).find() ?? false);
}

const PATTERNS_MAX = 200;
const patterns = new Map<string, RE2JS | undefined>();

function compilePattern(pattern: string): RE2JS | undefined {
  if (patterns.has(pattern)) return patterns.get(pattern);
  if (patterns.size >= PATTERNS_MAX) patterns.clear();
  const found = compile(pattern);
  patterns.set(pattern, found);
  return found;
}

function compile(pattern: string): RE2JS | undefined {
  if (pattern.length > PATTERN_CHARS_MAX) return undefined;
  try {
    const program = RE2JS.compile(pattern);
    return program.programSize() <= PATTERN_SIZE_MAX ? program : undefined;
  } catch {
    return undefined;
  }
}

/** Returns why a condition cannot be evaluated; `undefined` when it can. */
export function findConditionProblem({
  type = "expression",
  right,
  expression = "",
}: EdgeCondition): string | undefined {
  if (type === "expression" && expression.length > EXPRESSION_CHARS_MAX)
    return `its expression is longer than ${EXPRESSION_CHARS_MAX} characters`;
  if (type !== "regex") return undefined;
  if (typeof right !== "string" || right.length > PATTERN_CHARS_MAX) return "its pattern is no short text";
  return compile(right) ? undefined : "its pattern is none that is matched in short time";
}
