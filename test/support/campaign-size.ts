/** Owns: how long the campaigns of the tests are: short in `npm test`, long in `npm run test:long`. */

interface CampaignSizes {
  readonly short: number;
  readonly long: number;
}

/** Returns how many rounds a campaign has. The variable of the environment counts more than either size. */
export function chooseCampaignSize(variable: string, { short, long }: CampaignSizes): number {
  const size = process.env["TEST_CAMPAIGN"] === "long" ? long : short;
  return Number(process.env[variable] ?? size);
}
