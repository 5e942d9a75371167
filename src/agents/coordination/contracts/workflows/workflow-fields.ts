/** Owns: what fields of a workflow run's events are, wherever they occur. */
import { z } from "zod";
import { WORKFLOW_BOUNDS } from "./workflow-bounds.ts";

/** The schema of a text. */
export const text = z.string().max(WORKFLOW_BOUNDS.textCharsMax);
/** The schema of a name. */
export const name = z.string().min(1).max(WORKFLOW_BOUNDS.nameCharsMax);
/** The schema of an object whose members are not known. */
export const record = z.record(z.string(), z.unknown());
/** The schema of a count. */
export const count = z.int().min(0);
/** The schema of a share from 0 to 1. */
export const share = z.number().min(0).max(1);
/** The schema of an agent's id. */
export const agentId = z.string().min(3).max(WORKFLOW_BOUNDS.nameCharsMax);
/** The host of an event's cause, where that is another one. */
export const causationHostId = name.optional();
/** The schema of an error: a code, a message and details. */
export const errorObject = z.object({ code: name, message: text.min(1), details: record.optional() });
