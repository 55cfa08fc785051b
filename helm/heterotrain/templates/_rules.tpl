{{/* The rules of the controller's roles: of what has no namespace, or is read in all of
     them, and of the jobs' namespaces. The comments are part of what is installed. */}}
{{- define "heterotrain.rulesOfCluster" }}
# Which GPUs there are.
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, watch]
# Which GPUs are taken, by whomever.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
- apiGroups: [heterotrain.io]
  resources: [clustermodelprofiles]
  verbs: [list, watch]
# What Pod Security holds the pods of a namespace to, by its labels.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [list, watch]
# Which job comes first.
- apiGroups: [scheduling.k8s.io]
  resources: [priorityclasses]
  verbs: [list, watch]
{{- end }}

{{- define "heterotrain.rulesOfJobs" }}
- apiGroups: [heterotrain.io]
  resources: [modelprofiles]
  verbs: [list, watch]
# Jobs are read; only their status is written, as the spec belongs to its author. A finished
# job is deleted when its ttlSecondsAfterFinished are over. Here and below, get: what became
# of a write whose answer was lost.
- apiGroups: [heterotrain.io]
  resources: [heterotrainingjobs]
  verbs: [get, list, watch, delete]
- apiGroups: [heterotrain.io]
  resources: [heterotrainingjobs/status]
  verbs: [patch]
# Owner references with blockOwnerDeletion, where OwnerReferencesPermissionEnforcement is on.
- apiGroups: [heterotrain.io]
  resources: [heterotrainingjobs/finalizers]
  verbs: [update]
# The pods of jobs. The scheduler binds them, once their scheduling gates are lifted (patch).
- apiGroups: [""]
  resources: [pods]
  verbs: [get, create, patch, delete]
# A job's plans.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, patch, delete]
# A job's headless Service, which goes with the job.
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch]
# What the controller tells people.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}
