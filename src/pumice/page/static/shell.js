// The command that shows in the shell what a view shows.

import { JOB_KIND } from "./acts.js";
import { jobKey, namespaceOf } from "./words.js";

const quoted = (word) => (/^[\w./:-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

const COMMANDS = {
  cluster: () => "kubectl get nodes",
  nodes: (store, name) => `kubectl describe node ${quoted(name)}`,
  queues: () => "pumice queue list",
  jobs: () => "pumice job list -A --eta",
  job: ofJob,
  pod: (store, key) => `pumice why ${quoted(`pod/${key}`)}`,
  decisions: () => "pumice replay FILE", // or the folder that `pumice up --record DIR` and `pumice scheduler --record DIR` fill
  policy: () => "pumice lint",
  simulate: () => "pumice simulate --workload kubernetes:FILE --policy FILE",
};

function ofJob(store, subject) {
  const key = jobKey(store, subject), { owner, kind } = store.jobs.get(key) ?? {};
  if (key.startsWith("pod/")) return owner ? `kubectl get pods -n ${quoted(namespaceOf(key))}` : `pumice why ${quoted(key)}`;
  return `pumice why ${quoted(kind === JOB_KIND ? `job/${namespaceOf(key)}/${owner}` : `podgroup/${key}`)}`;
}

export const commandFor = (view, store, subject) => COMMANDS[view](store, subject);
