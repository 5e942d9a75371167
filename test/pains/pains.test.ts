/**
 * Complaints of people who run subagents, each told twice: what the plain host does, and what it does with the flag
 * on. docs/pains.md is the table of these tests; those with a restart are in restarts.test.ts.
 */
import { afterAll, beforeAll, it } from "vitest";
import {
  tellReceipt,
  tellBurntRetries,
  tellRaceOfEnds,
  tellLostAnnounce,
  tellMissingSynthesis,
} from "./delivery-stories.ts";
import { createRules } from "./failing-model.ts";
import { tellAbort, tellTimeout, tellEndlessSpawns } from "./limit-stories.ts";
import { openPair, type Pair } from "./pair.ts";
import { tellRepeatedSpawn, tellLostAnswer, tellSecondStart, tellZombie } from "./repeat-stories.ts";
import { tellTraces, tellBarrier, tellHalfResult, tellLostUpdate } from "./result-stories.ts";

let pair: Pair;

beforeAll(async () => {
  pair = await openPair({ createRules });
});

afterAll(() => pair.close());

it("P1 a lost announce: a child that ends without a word is told to nobody", () => tellLostAnnounce(pair));
it("P3 retries are burnt: a turn that failed for good is tried again without its model", () =>
  tellBurntRetries(pair));
it("P4 nobody can tell whether a result was delivered", () => tellReceipt(pair));
it("P5 no barrier: an agent that needs two of three results gets them one by one", () => tellBarrier(pair));
it("P6 the parent never writes its synthesis: a model that goes on waiting is not asked again", () =>
  tellMissingSynthesis(pair));
it("P8 a watchdog starts work a second time that still runs", () => tellSecondStart(pair));
it("P9 an error after the child was made: the spawn is repeated, and two do the work", () =>
  tellLostAnswer(pair));
it("P10 one spawn becomes many: what is asked for again is done again", () => tellRepeatedSpawn(pair));
it("P11 lost update: the second writer of a file wins silently", () => tellLostUpdate(pair));
it("P12 races on a session's file: children that end at once", () => tellRaceOfEnds(pair));
it("P14 an abort leaves children at work", () => tellAbort(pair));
it("P15 a timeout is not a contract: what the child has spawned goes on", () => tellTimeout(pair));
it("P17 one run, several traces", () => tellTraces(pair));
it("P18 completed at half of the work: a result that says so itself counts like any other", () =>
  tellHalfResult(pair));
it("P19 no fencing: an agent that was replaced still acts", () => tellZombie(pair));
it("P20 no budget: nothing stops an agent that spawns again and again", () => tellEndlessSpawns(pair));
