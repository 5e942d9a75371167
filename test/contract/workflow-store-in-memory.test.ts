import { memoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { describeWorkflowStore } from "./workflow-store.suite.ts";

describeWorkflowStore("memory", () => {
  const ledger = memoryWorkflowLedger();
  return Promise.resolve({
    open: () => {
      const workflows = ledger.open();
      return Promise.resolve({ workflows, close: () => workflows.close() });
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
});
