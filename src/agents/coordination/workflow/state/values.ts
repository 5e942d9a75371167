/** Owns: what stands for a value in a workflow: inputs of nodes, variables, conditions of edges. */
import { RE2JS } from "re2js";
import type { EdgeCondition, PortValue } from "../../contracts/workflows/workflow-definition.ts";
import type { GraphEdge, GraphNode, NodeGraph } from "./node-graph.ts";
import { findExecutionEndedBefore, type WorkflowRun } from "./workflow-state.ts";

export type Values = Readonly<Record<string, unknown>>;

/** The ports of an edge that does not name them (workflow-definition.schema.json). The first stands for all outputs where there is none of its name. */
const ALL_OUTPUTS = "output";
const INPUT = "input";

/**
 * Returns the variables of a run by name: their defaults, overridden by the inputs of `run.started`, then by later
 * changes.
 */
export function readVariables(run: WorkflowRun, graph: NodeGraph): Values {
  const values: Record<string, unknown> = createInitialVariables(graph, run.started.inputs);
  for (const [name, value] of run.variables) values[name] = value;
  return values;
}

/** Returns the variables with which a run of a graph begins: its inputs, and the defaults of the others. */
export function createInitialVariables(graph: NodeGraph, inputs: Values): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const { name, defaultValue } of graph.variables)
    if (defaultValue !== undefined) values[name] = defaultValue;
  return Object.assign(values, inputs);
}

/** Returns the value of a run's variable as it is now; `undefined` where it has none. */
export function readVariable(run: WorkflowRun, graph: NodeGraph, name: string): unknown {
  if (run.variables.has(name)) return run.variables.get(name);
  if (Object.hasOwn(run.started.inputs, name)) return run.started.inputs[name];
  return graph.variables.find((variable) => variable.name === name)?.defaultValue;
}

/**
 * Returns the inputs of a node by port: variables as they are now, outputs of other nodes as they were when it began.
 * A port without a value is left out.
 */
export function readNodeInputs(run: WorkflowRun, graph: NodeGraph, graphNode: GraphNode): Values {
  const began = run.nodes.get(graphNode.node.id)?.enteredSequence ?? Infinity;
  const values = new Map<string, unknown>();
  for (const [port, value] of Object.entries(graphNode.node.inputs))
    values.set(port, readPortValue({ run, graph, began }, value));
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
      const source = findExecutionEndedBefore(run.nodes.get(sourceNodeId), began);
      if (source?.status !== "completed") return [];
      const { outputs = {}, endedSequence } = source;
      if (condition && !isConditionHolding(condition, outputs)) return [];
      return [{ port, value: readOutput(outputs, sourceOutput), endedSequence }];
    })
    .toSorted((one, other) => other.endedSequence - one.endedSequence);
}

/** The run that a node reads its inputs from, and when the node began. */
interface PortReading {
  readonly run: WorkflowRun;
  readonly graph: NodeGraph;
  /** When the node that reads began. */
  readonly began: number;
}

function readPortValue({ run, graph, began }: PortReading, value: PortValue): unknown {
  switch (value.type) {
    case "static":
      return value.value;
    case "variable":
      return readVariable(run, graph, value.variableName);
    case "connection": {
      const source = run.nodes.get(value.nodeId);
      return readPath((findExecutionEndedBefore(source, began) ?? source)?.outputs, value.outputKey);
    }
    case "expression":
      return readPath(readVariables(run, graph), value.expression.replace(/^\$\.?|^variables\./, ""));
  }
}

/**
 * Returns the member of a value with this name, or at a path such as `output.approved`; `undefined` where there is
 * none.
 */
export function readPath(value: unknown, path: string): unknown {
  if (typeof value === "object" && value !== null && Object.hasOwn(value, path))
    return (value as Values)[path];
  let current = value;
  for (const key of path.split(".")) {
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, key)) return undefined;
    current = (current as Values)[key];
  }
  return current;
}

const PATTERN_CHARS_MAX = 200;
const EXPRESSION_CHARS_MAX = 2_000;

/** Operators of `expression`: a path, optionally compared with JSON. No part can take what another may: the time is linear. */
const COMPARISON = /^\s*(!?)([\w.$-]+)\s*(?:(===?|!==?)(.+))?$/s;

/** The outcome of each condition on each outputs: an edge is looked at again with every step of the run. */
const outcomesOf = new WeakMap<Values, Map<EdgeCondition, boolean>>();

/**
 * True when an edge's condition holds on a node's outputs; remembered for each outputs, because edges are looked at
 * again with every step.
 */
export function isConditionHolding(condition: EdgeCondition, outputs: Values): boolean {
  const outcomes = outcomesOf.get(outputs) ?? new Map<EdgeCondition, boolean>();
  outcomesOf.set(outputs, outcomes);
  const before = outcomes.get(condition);
  if (before !== undefined) return before;
  const now = evaluateCondition(condition, outputs);
  outcomes.set(condition, now);
  return now;
}

function evaluateCondition(condition: EdgeCondition, outputs: Values): boolean {
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
      return typeof value === "string" && typeof right === "string" && isMatchingRegex(right, value);
    case "expression":
      return isExpressionHolding(condition.expression ?? "", outputs);
  }
}

/**
 * Returns the value at a path among a node's outputs. `output` is the output of that name, else all of them;
 * `output.x` is the member `x` of all, else of the output of that name.
 */
function readOutput(outputs: Values, path: string): unknown {
  const [first, ...rest] = path.split(".");
  const found = first === ALL_OUTPUTS && rest.length > 0 ? readPath(outputs, rest.join(".")) : undefined;
  return found === undefined ? readPath({ [ALL_OUTPUTS]: outputs, ...outputs }, path) : found;
}

/** True when a list has the value, or a text the part. */
function isContaining(value: unknown, part: unknown): boolean {
  if (Array.isArray(value)) return value.some((item) => isSameValue(item, part));
  return typeof value === "string" && typeof part === "string" && value.includes(part);
}

/**
 * True when an expression holds; one that cannot be read does not. A leading `!` negates the value before it is
 * compared, as in JavaScript.
 */
function isExpressionHolding(expression: string, outputs: Values): boolean {
  const [, not, path, operator, literal] = COMPARISON.exec(expression) ?? [];
  if (path === undefined) return false;
  const found = readOutput(outputs, path);
  const value = not === "!" ? !found : found;
  if (operator === undefined || literal === undefined) return Boolean(value);
  const text = literal.trim();
  // Space without a literal behind it counts as one: so were runs judged that are read again.
  const isSame = isSameValue(value, parseLiteral(text === "" ? literal.slice(-1) : text));
  return operator.startsWith("!") ? !isSame : isSame;
}

/** Parses what an expression compares with: JSON, a text in single quotes, or the text itself. */
function parseLiteral(text: string): unknown {
  const inSingleQuotes = /^'(.*)'$/s.exec(text)?.[1];
  try {
    return JSON.parse(inSingleQuotes === undefined ? text : quoteAsJson(inSingleQuotes));
  } catch {
    return text;
  }
}

const REQUOTED: Readonly<Record<string, string>> = { "\\'": "'", '"': '\\"' };

/** Renders the inside of single quotes as a text of JSON: `it\\'s "so"` becomes `"it's \\"so\\""`. */
function quoteAsJson(inside: string): string {
  return `"${inside.replace(/\\.|"/gs, (found) => REQUOTED[found] ?? found)}"`;
}

/** True when two JSON values are equal, in whatever order their members are. */
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
function isMatchingRegex(pattern: string, value: string): boolean {
  return value.length <= MATCHED_CHARS_MAX && (compileCachedPattern(pattern)?.matcher(value).find() ?? false);
}

const PATTERNS_MAX = 200;
const patterns = new Map<string, RE2JS | undefined>();

function compileCachedPattern(pattern: string): RE2JS | undefined {
  if (patterns.has(pattern)) return patterns.get(pattern);
  if (patterns.size >= PATTERNS_MAX) patterns.clear();
  const found = compileBounded(pattern);
  patterns.set(pattern, found);
  return found;
}

/** Compiles a pattern; `undefined` for one that is no pattern, or too large to be matched in short time. */
function compileBounded(pattern: string): RE2JS | undefined {
  if (pattern.length > PATTERN_CHARS_MAX) return undefined;
  try {
    const program = RE2JS.compile(pattern);
    return program.programSize() <= PATTERN_SIZE_MAX ? program : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns why the condition of an edge is refused: its expression is too long, or its pattern is none that is matched
 * in short time; `undefined` for any other.
 */
export function findConditionProblem({
  type = "expression",
  right,
  expression = "",
}: EdgeCondition): string | undefined {
  if (type === "expression" && expression.length > EXPRESSION_CHARS_MAX)
    return `its expression is longer than ${EXPRESSION_CHARS_MAX} characters`;
  if (type !== "regex") return undefined;
  if (typeof right !== "string" || right.length > PATTERN_CHARS_MAX) return "its pattern is no short text";
  return compileBounded(right) ? undefined : "its pattern is none that is matched in short time";
}
