/** Owns: which steps of a plan that are at work name a resource as their own. */
import { expandHome, isClaimCovering, parseFileResource } from "../../contracts/resource-names.ts";
import type { AgentId, StepId } from "../../contracts/ids.ts";
import type { Step } from "../../ledger/state.ts";
import type { ResourceFiles } from "../../ports/resource-files.ts";
import type { Participant } from "./participants.ts";
import { listSuperiors } from "./split-claims.ts";
import type { IndexedGraph, PlanSource } from "../log/plan-source.ts";

export interface DeclaredResources {
  /** The steps at work that declare the resource, what is above it or below it, without those that the participant works for. */
  declarersOf(participant: Participant, resource: string): Promise<readonly Step[]>;
}

/**
 * Returns the lookup that lists the steps at work whose plan declares a resource; it remembers, per compiled plan,
 * where declared names lead.
 */
export function createDeclaredResources(dependencies: {
  readonly plans: PlanSource;
  readonly files: ResourceFiles;
  readonly folderOf: (agent: AgentId) => string;
}): DeclaredResources {
  /** The resources that the names of a step lead to, per compiled plan. */
  const located = new WeakMap<IndexedGraph, Map<StepId, Promise<string[]>>>();
  const resourcesOf = (graph: IndexedGraph, step: Step): Promise<string[]> => {
    const ofGraph = located.get(graph) ?? new Map<StepId, Promise<string[]>>();
    located.set(graph, ofGraph);
    const { stepId, agentId } = step.spec;
    const declared = ofGraph.get(stepId) ?? locate(graph.stepOf.get(stepId)?.resources ?? [], agentId);
    ofGraph.set(stepId, declared);
    // A name that could not be located is asked about again.
    declared.catch(() => ofGraph.delete(stepId));
    return declared;
  };
  const locate = async (names: readonly string[], agent: AgentId): Promise<string[]> => {
    const found = await Promise.all(names.map((name) => locateOne(name, agent)));
    return found.filter((name) => name !== undefined);
  };
  const locateOne = async (name: string, agent: AgentId): Promise<string | undefined> => {
    const { files } = dependencies;
    const file = parseFileResource(name);
    // Where a path of another machine leads is known there.
    if (!file || (file.machine !== undefined && file.machine !== files.machine)) return name;
    return files.locate(expandHome(file.path, files.home), dependencies.folderOf(agent));
  };
  return {
    declarersOf: async ({ state, stepId: participant }, resource) => {
      if (!state.plan) return [];
      const graph = await dependencies.plans.graphOf(state);
      const superiors = new Set(listSuperiors(state, participant));
      const declarers: Step[] = [];
      for (const stepId of state.plan.running) {
        const step = state.steps.get(stepId);
        if (!step || superiors.has(stepId) || !graph.stepOf.get(stepId)?.resources.length) continue;
        const names = await resourcesOf(graph, step);
        if (names.some((name) => isClaimCovering(name, resource) || isClaimCovering(resource, name)))
          declarers.push(step);
      }
      return declarers;
    },
  };
}
