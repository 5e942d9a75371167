/**
 * `node plan-process.ts MEASURE PLANS`: measures in a process of its own, as the other side of the comparison does, and
 * prints JSON.
 */
import { measureCompile, measureHeld, measurePlans, type PlansToRun } from "./measure-plans.ts";

const MEASURES = { run: measurePlans, held: measureHeld, compile: measureCompile };

const [, , measure = "run", plans = "{}"] = process.argv;
const found = await MEASURES[measure as keyof typeof MEASURES](JSON.parse(plans) as PlansToRun);
process.stdout.write(JSON.stringify(found));
