/** Owns: the names of the gateway methods and the scope that each needs. */

export const METHODS = {
  "coordination.plan.validate": "operator.read",
  "coordination.plan.run": "operator.write",
  "coordination.plan.fork": "operator.write",
  "coordination.plan.cancel": "operator.write",
  "coordination.cancel": "operator.write",
  "coordination.retry": "operator.write",
  "coordination.claims.release": "operator.write",
  "coordination.status": "operator.read",
  "coordination.questions": "operator.read",
  "coordination.answer": "operator.approvals",
  "coordination.page.link": "operator.read",
} as const;

export type MethodName = keyof typeof METHODS;
