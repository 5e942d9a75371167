/** Owns: what fields of a workflow run's events are, wherever they occur. */
import { z } from "zod";
import { WORKFLOW_BOUNDS } from "./workflow-bounds.ts";

export const text = z.string().max(WORKFLOW_BOUNDS.textCharsMax);
export const name = z.string().min(1).max(WORKFLOW_BOUNDS.nameCharsMax);
export const record = z.record(z.string(), z.unknown());
export const count = z.int().min(0);
export const share = z.number().min(0).max(1);
export const agentId = z.string().min(3).max(WORKFLOW_BOUNDS.nameCharsMax);
/** Of an event whose cause is on another host. */
export const causationHostId = name.optional();
export const errorObject = z.object({ code: name, message: text.min(1), details: record.optional() });
