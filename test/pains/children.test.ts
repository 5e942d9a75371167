/** Bounds on the acts, words and cost of children: P21 to P30, all in one pair of gateways. docs/pains.md is the table of these tests. */
import { afterAll, beforeAll, it } from "vitest";
import { BILL_CONFIG, BUDGET, PRICED_MODEL, tellBill, tellTree } from "./bill-stories.ts";
import { CHAT, CHAT_CONFIG, sayInParentsName, tellRawWords } from "./chat-stories.ts";
import { collectLongResult, readLongResult, tellFloods } from "./long-result-stories.ts";
import type { Json } from "../support/gateway-client.ts";
import { mergeConfig } from "../support/gateway-config.ts";
import { openPair, type Pair } from "./pair.ts";
import { tellPrivileges } from "./privilege-stories.ts";
import { tellKillAmongRefusals, tellRateLimits } from "./rate-limit-stories.ts";
import { ROUTED_MODELS, ROUTER, tellLies, TRUTH_CONFIG } from "./truth-stories.ts";
import { createAnsweringParent, tellCompaction, tellProgress } from "./upwards-stories.ts";
import { tellHalfDoneWork } from "./worktree-stories.ts";

const MODELS: Json = { models: { providers: { mock: { models: [PRICED_MODEL, ...ROUTED_MODELS] } } } };

let pair: Pair;

beforeAll(async () => {
  pair = await openPair({
    createRules: () => [createAnsweringParent("the blue one")],
    plugins: [CHAT, ROUTER],
    configPatch: [BILL_CONFIG, TRUTH_CONFIG, CHAT_CONFIG].reduce(mergeConfig, MODELS),
    phase1: { budget: BUDGET },
  });
});

afterAll(() => pair.close());

it("P22 raw child text: when its parent has nothing to say, a child's own words reach the user's chat", () =>
  tellRawWords(pair));
it("lets the parent say in the chat what its child found, in the same words", () => sayInParentsName(pair));
it("P24 no progress while a child works, and no question from the child to its parent", () =>
  tellProgress(pair));
it("P26 no least privilege: a child that is told to look only overwrites, deletes and spawns", () =>
  tellPrivileges(pair));
it("P28 compaction forgets the children, and they are spawned again", () => tellCompaction(pair));
it("P29 no live tree: a grandchild is a row like any other, and nothing says whose", () => tellTree(pair));
it("P30 no bill of the tree: cost is summed nowhere, and nothing stops what spawns and calls on", () =>
  tellBill(pair));
it("P27 rate limits: many children hit the limit of their provider at once and retry in step", ({
  annotate,
}) => tellRateLimits(pair, annotate));
it("goes on after a kill among refused calls, and completes each step once (P27)", () =>
  tellKillAmongRefusals(pair));
it("P25 wrong folder: two agents of one repository see each other's half-done work", () =>
  tellHalfDoneWork(pair));

// Last, because each later look at what the models were asked reads these megabytes too.
it("P23 results flood the parent's context and bill", () => tellFloods(pair));
it("keeps a long result whole, and lets its parent read and search it bit by bit", () =>
  readLongResult(pair));
it("bounds what a parent collects or reads of a transcript, too", () => collectLongResult(pair));

// The flag is turned in it, with other settings.
it("P21 a lie about the model: a child runs on another one than asked, and the host says that it was applied", () =>
  tellLies(pair));
