/** Owns: how an operator names a program that the plugin runs. No plan and no model can name one. */
import { z } from "zod";
import { BOUNDS } from "./bounds.ts";

/** The settings of a program that is run: its command, arguments, folder and variables. */
export const programFields = {
  command: z.string().min(1).max(BOUNDS.resourceCharsMax).describe("The program, without a shell."),
  args: z
    .array(z.string().max(BOUNDS.resourceCharsMax))
    .max(BOUNDS.acpArgumentsMax)
    .default([])
    .describe("Its arguments."),
  env: z
    .record(z.string().min(1).max(BOUNDS.idCharsMax), z.string().max(BOUNDS.resourceCharsMax))
    .default({})
    .describe("Added to PATH, HOME, LANG and TMPDIR, the only variables that are passed on."),
};
