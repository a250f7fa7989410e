{{/* What the three programs' pods have in common. Each helper gets the root as .root, and a program's values as .part. */}}

{{/* Shadow and canary run beside Volcano, so neither their pods nor their objects may be taken for Volcano's. */}}
{{- define "pumice.schedulerApp" -}}
{{ if eq .Values.mode "live" }}volcano-scheduler{{ else }}pumice-trial{{ end }}
{{- end }}

{{- define "pumice.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end }}

{{- define "pumice.podMetadata" -}}
{{- with .part.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
labels:
  app: {{ .app }}
  {{- with .part.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "pumice.podSpec" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- with .part.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .part.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.tolerations }}
tolerations:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- with .part.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.topologySpreadConstraints }}
topologySpreadConstraints:
{{- toYaml . | nindent 0 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "pumice.container" -}}
image: {{ include "pumice.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
livenessProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 10
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 5
resources:
  requests:
    cpu: {{ .part.cpu }}
    memory: {{ .part.memory }}
  limits:
    cpu: {{ .part.cpuLimit }}
    memory: {{ .part.memoryLimit }}
securityContext:
  {{- include "pumice.confined" . | nindent 2 }}
{{- end }}

{{/* The user is said here too, not only of the pod: else that of Volcano's containers would stay. */}}
{{- define "pumice.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 10001
capabilities: {drop: [ALL]}
{{- end }}

{{- define "pumice.podDisruptionBudget" -}}
{{- if .part.podDisruptionBudget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
spec:
  maxUnavailable: {{ .part.podDisruptionBudget.maxUnavailable }}
  selector:
    matchLabels: {app: {{ .app }}}
{{- end }}
{{- end }}

{{/* What the API servers ask the webhooks about, by path: the webhook's name, and the rule. */}}
{{- define "pumice.webhooks" -}}
/jobs/mutate: {name: mutatejob.volcano.sh, group: batch.volcano.sh, version: v1alpha1, operations: [CREATE]}
/jobs/validate: {name: validatejob.volcano.sh, group: batch.volcano.sh, version: v1alpha1, operations: [CREATE, UPDATE]}
/podgroups/mutate: {name: mutatepodgroup.volcano.sh, group: scheduling.volcano.sh, version: v1beta1, operations: [CREATE]}
/podgroups/validate: {name: validatepodgroup.volcano.sh, group: scheduling.volcano.sh, version: v1beta1, operations: [CREATE]}
/pods/mutate: {name: mutatepod.volcano.sh, group: "", version: v1, operations: [CREATE]}
/pods/validate: {name: validatepod.volcano.sh, group: "", version: v1, operations: [CREATE]}
/queues/mutate: {name: mutatequeue.volcano.sh, group: scheduling.volcano.sh, version: v1beta1, operations: [CREATE]}
/queues/validate: {name: validatequeue.volcano.sh, group: scheduling.volcano.sh, version: v1beta1, operations: [CREATE, DELETE, UPDATE]}
/hypernodes/validate: {name: validatehypernodes.volcano.sh, group: topology.volcano.sh, version: v1alpha1, operations: [CREATE, UPDATE]}
/cronjobs/mutate: {name: mutatecronjob.volcano.sh, group: batch.volcano.sh, version: v1alpha1, operations: [CREATE]}
/cronjobs/validate: {name: validatecronjob.volcano.sh, group: batch.volcano.sh, version: v1alpha1, operations: [CREATE, UPDATE]}
/jobflows/validate: {name: validatejobflow.volcano.sh, group: flow.volcano.sh, version: v1alpha1, operations: [CREATE, UPDATE]}
{{- end }}

{{/*
Helm deletes what the last revision had and this one has not. Until 1.15 Volcano's own chart has the definitions among its templates without
a word that they are to stay, so that an upgrade from it would delete them, and with them all jobs and queues.
*/}}
{{- define "pumice.definitionsStay" -}}
{{- if .Release.IsUpgrade }}
{{- range $definition := (lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "").items }}
{{- $annotations := $definition.metadata.annotations | default dict }}
{{- $ours := and (eq (get $annotations "meta.helm.sh/release-name") $.Release.Name) (eq (get $annotations "meta.helm.sh/release-namespace") $.Release.Namespace) }}
{{- if and $ours (hasSuffix ".volcano.sh" $definition.spec.group) (ne (get $annotations "helm.sh/resource-policy") "keep") }}
{{- fail (printf "this upgrade would delete the CustomResourceDefinition %s, and with it every object of its kind. Say first that it stays: kubectl annotate crd %s helm.sh/resource-policy=keep (docs/from-volcano.md has the command for all of them)" $definition.metadata.name $definition.metadata.name) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/*
The account of a program that takes part in an election, and its right to the Lease. Helm deletes roles at once, while pods are told to end
only later. So these stay when the release goes: the leader gives its Lease up, and whoever comes next leads at once. They allow nothing else.
*/}}
{{- define "pumice.candidate" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  annotations: {helm.sh/resource-policy: keep}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .name }}-leases
  namespace: {{ .root.Release.Namespace }}
  annotations: {helm.sh/resource-policy: keep}
rules:
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .name }}-leases
  namespace: {{ .root.Release.Namespace }}
  annotations: {helm.sh/resource-policy: keep}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ .name }}-leases
subjects:
- kind: ServiceAccount
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
{{- end }}
