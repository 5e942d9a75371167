/**
 * Owns: the rules of our language that a machine can hold (docs: CONTRIBUTING.md, "Language").
 *
 * A function's name begins with a verb, or with `is`, `has` or `can`; `xOf` and `xFromY` name what they return. `refuseX`
 * returns the refusal, and one that throws and returns nothing is `assertX`. No variable is called by a pronoun or a bare participle, and no type by a bare participle, a preposition or a word that says as little. An object literal is not spread into an object literal. No sentence of a comment
 * begins with "What" or "Of". Contracts, ports and hooks, which other authors read first, have a docstring on every export.
 */
import { FIRST_WORDS } from "./verbs.js";

const RETURNS_NOUN = /^[a-z][A-Za-z0-9]*(?:Of|From[A-Z][A-Za-z0-9]*)$/u;
/** Bare participles and adjectives before `Of` say nothing about what is returned. */
const VAGUE_NAMES = new Set(
  "it its going own given told said asked taken sure held lost known done gone them those these what who".split(
    " ",
  ),
);

const firstWordOf = (name) => /^_?([a-z]+|[A-Z_]+$)/u.exec(name)?.[1] ?? name;

function isPlainFunctionName(name) {
  if (/^[A-Z_]/u.test(name)) return true;
  const word = firstWordOf(name);
  if (RETURNS_NOUN.test(name)) return !VAGUE_NAMES.has(word);
  return FIRST_WORDS.has(word);
}

const isFunction = (node) => node?.type === "ArrowFunctionExpression" || node?.type === "FunctionExpression";

const returnsNothing = (returnType) => {
  const type = returnType?.typeAnnotation;
  const [resolved] = type?.typeArguments?.params ?? [];
  return type?.type === "TSVoidKeyword" || resolved?.type === "TSVoidKeyword";
};

const functionNames = {
  meta: {
    type: "suggestion",
    schema: [],
    messages: {
      verb: "`{{name}}` does not begin with a verb, nor with is, has or can.",
      refusal:
        "`{{name}}` returns no refusal: a function that throws is named by `assert` and what has to hold.",
    },
  },
  create(context) {
    const check = (id, { returnType }) => {
      if (id?.type !== "Identifier") return;
      const { name } = id;
      if (!isPlainFunctionName(name)) context.report({ node: id, messageId: "verb", data: { name } });
      if (/^refuse[A-Z]/u.test(name) && returnsNothing(returnType))
        context.report({ node: id, messageId: "refusal", data: { name } });
    };
    return {
      FunctionDeclaration: (node) => check(node.id, node),
      VariableDeclarator: ({ id, init }) => isFunction(init) && check(id, init),
    };
  },
};

const variableNames = {
  meta: {
    type: "suggestion",
    schema: [],
    messages: { noun: "`{{name}}` is no noun of the domain: say what is in it." },
  },
  create(context) {
    const check = (variable) => {
      const [identifier] = variable.identifiers;
      if (!identifier || !VAGUE_NAMES.has(variable.name)) return;
      const { type } = variable.defs[0] ?? {};
      if (type !== "Variable" && type !== "Parameter") return;
      context.report({ node: identifier, messageId: "noun", data: { name: variable.name } });
    };
    return {
      "Program:exit"(node) {
        const visit = (scope) => {
          for (const variable of scope.variables) check(variable);
          for (const child of scope.childScopes) visit(child);
        };
        const { scopeManager } = context.sourceCode;
        visit(scopeManager.acquire(node));
      },
    };
  },
};

/** A participle, a preposition, an adjective or the like: a reader cannot tell what a value of the type is. */
const VAGUE_TYPE_NAME =
  /^(?:[A-Z][a-z]+(?:ed|ing)|About|Again|Around|Begun|Beside|Both|Chosen|Done|Due|Found|Given|Gone|Heard|Held|Idle|Kept|Known|Left|Loose|Lost|Made|More|Of|Older|Past|Place|Ran|Raw|Said|Seen|Sent|Shown|Shrunk|Small|Spoilt|Taken|Three|Told|Under|What|Which|Who|Written|Wrong)$/u;
/** Nouns of that form, and names that plugins import by now. */
const TYPE_NAMES = new Set("Escalated Finding Found Heading Nothing Parsed Planned Wiring".split(" "));

const typeNames = {
  meta: {
    type: "suggestion",
    schema: [],
    messages: { noun: "`{{name}}` is no noun of the domain: say what a value of this type is." },
  },
  create(context) {
    const check = ({ id }) => {
      if (VAGUE_TYPE_NAME.test(id.name) && !TYPE_NAMES.has(id.name))
        context.report({ node: id, messageId: "noun", data: { name: id.name } });
    };
    return { TSInterfaceDeclaration: check, TSTypeAliasDeclaration: check };
  },
};

const literalSpreads = {
  meta: {
    type: "suggestion",
    fixable: "code",
    schema: [],
    messages: { plain: "Write the properties of this object in the object around it." },
  },
  create(context) {
    return {
      "ObjectExpression > SpreadElement > ObjectExpression"(node) {
        context.report({
          node,
          messageId: "plain",
          fix(fixer) {
            const { sourceCode } = context;
            const [first, last] = [node.properties[0], node.properties.at(-1)];
            if (!first || !last) return null;
            const text = sourceCode.text.slice(first.range[0], last.range[1]);
            return fixer.replaceText(node.parent, text);
          },
        });
      },
    };
  },
};

const HIDDEN_SUBJECT = /(?:^|[.!?] )(What|Of) /u;

const commentSentences = {
  meta: {
    type: "suggestion",
    schema: [],
    messages: { subject: 'Begin this sentence with its subject or its verb, not with "{{word}}".' },
  },
  create(context) {
    return {
      Program() {
        for (const comment of context.sourceCode.getAllComments()) {
          const text = comment.value.replace(/^[\s*]+/u, "").replaceAll(/\s*\n[\s*]*/gu, " ");
          const word = HIDDEN_SUBJECT.exec(text)?.[1];
          if (word) context.report({ loc: comment.loc, messageId: "subject", data: { word } });
        }
      },
    };
  },
};

const publicDocstrings = {
  meta: {
    type: "suggestion",
    schema: [],
    messages: { missing: "Say in a docstring what `{{name}}` is or does." },
  },
  create(context) {
    return {
      ExportNamedDeclaration(node) {
        const { declaration } = node;
        if (!declaration) return;
        const comment = context.sourceCode.getCommentsBefore(node).at(-1);
        if (comment?.type === "Block" && comment.value.startsWith("*")) return;
        const name = declaration.id?.name ?? declaration.declarations?.[0]?.id.name ?? "this";
        context.report({ node, messageId: "missing", data: { name } });
      },
    };
  },
};

export default {
  meta: { name: "language" },
  rules: {
    "function-names": functionNames,
    "variable-names": variableNames,
    "type-names": typeNames,
    "literal-spreads": literalSpreads,
    "comment-sentences": commentSentences,
    "public-docstrings": publicDocstrings,
  },
};
