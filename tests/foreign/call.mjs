// Reads one {operation, params, every} a line, calls the unmodified SDK, answers one JSON line each.
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.SDK_FOLDER + "/");
const sdk = await import(pathToFileURL(require.resolve("@aws-sdk/client-mturk")));
// No endpoint is given here: it comes from AWS_ENDPOINT_URL_MTURK.
const client = new sdk.MTurkClient({});

async function answer({ operation, params, every }) {
  if (params.ExpireAt) params.ExpireAt = new Date(params.ExpireAt);
  if (!every) return await client.send(new sdk[operation + "Command"](params));
  const rows = [];
  for await (const page of sdk["paginate" + operation]({ client }, params)) rows.push(...(page[every] ?? []));
  return { rows };
}

for await (const line of createInterface({ input: process.stdin })) {
  let said;
  try {
    said = { result: await answer(JSON.parse(line)) };
  } catch (error) {
    said = { error: { code: error.name, turk_code: error.TurkErrorCode ?? "", message: error.message } };
  }
  process.stdout.write(JSON.stringify(said) + "\n");
}
