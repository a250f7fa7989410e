// The command that shows in the shell what a view shows.

import { JOB_KIND } from "./acts.js";
import { usageChoices } from "./usage.js";
import { jobKey, namespaceOf } from "./words.js";

const quoted = (word) => (/^[\w./:-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

const folder = (store) => (store.recordings ? quoted(store.recordings) : "DIR"); // what `--record DIR` names
const usageOptions = (parameters) => Object.entries(usageChoices(parameters)).filter(([, value]) => value).map(([name, value]) => ` --${name} ${value}`).join("");

const COMMANDS = {
  cluster: () => "kubectl get nodes",
  nodes: (store, name) => `kubectl describe node ${quoted(name)}`,
  queues: () => "pumice queue list",
  usage: (store, _, parameters) => `pumice usage ${folder(store)}${usageOptions(parameters)}`,
  jobs: () => "pumice job list -A --eta",
  job: ofJob,
  pod: (store, key) => `pumice why ${quoted(`pod/${key}`)}`,
  decisions: (store, number) => (store.recordings ? `pumice replay ${folder(store)} ${number ? `--cycle ${number.split("/")[0]}` : "--list"}` : "kubectl get events -A"),
  policy: () => "pumice lint",
  defrag: () => "pumice defrag",
  simulate: () => "pumice simulate --workload kubernetes:FILE --policy FILE",
};

function ofJob(store, subject) {
  const key = jobKey(store, subject), { owner, kind } = store.jobs.get(key) ?? {};
  if (key.startsWith("pod/")) return owner ? `kubectl get pods -n ${quoted(namespaceOf(key))}` : `pumice why ${quoted(key)}`;
  return `pumice why ${quoted(kind === JOB_KIND ? `job/${namespaceOf(key)}/${owner}` : `podgroup/${key}`)}`;
}

export const commandFor = (view, store, subject, parameters) => COMMANDS[view](store, subject, parameters);
