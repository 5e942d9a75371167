/** Owns: that the core reads no clock and no locale, and waits for nothing (docs/architecture.md, "The core is pure"). */
const MESSAGE =
  "The core is pure: time, ids, seeds and randomness arrive as arguments; effects belong to runtime, infra and plugins.";

const pure = {
  meta: { type: "problem", schema: [], messages: { pure: MESSAGE } },
  create(context) {
    const report = (node) => context.report({ node, messageId: "pure" });
    return {
      "NewExpression[callee.name='Date'][arguments.length=0]": report,
      ":function[async=true]": report,
      AwaitExpression: report,
      "MemberExpression[property.name=/^toLocale|^localeCompare$/]": report,
    };
  },
};

export default { meta: { name: "core" }, rules: { pure } };
