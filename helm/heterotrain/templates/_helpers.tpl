{{- define "heterotrain.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* Short enough for all that is appended to it. */}}
{{- define "heterotrain.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "heterotrain.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "heterotrain.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* The Deployment, its service account, the Lease, and the roles. */}}
{{- define "heterotrain.controller" -}}
{{ include "heterotrain.fullname" . }}-controller
{{- end }}

{{- define "heterotrain.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "heterotrain.controller" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.create is false: serviceAccount.name must be given" .Values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{/* Never changed once installed: they select pods. */}}
{{- define "heterotrain.selectorLabels" -}}
app.kubernetes.io/name: {{ include "heterotrain.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controller
{{- end }}

{{- define "heterotrain.labels" -}}
app.kubernetes.io/name: {{ include "heterotrain.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "heterotrain.image" -}}
{{- with .Values.image -}}
{{- if .registry }}{{ .registry }}/{{ end }}{{ .repository }}
{{- if .digest }}@{{ .digest }}{{ else }}:{{ default $.Chart.AppVersion .tag }}{{ end -}}
{{- end -}}
{{- end }}

{{/* The Service of the metrics is one of the names that the controller is called by. */}}
{{- define "heterotrain.config" -}}
{{- $service := printf "%s-metrics" (include "heterotrain.fullname" .) -}}
{{- $full := printf "%s.%s.svc" $service .Release.Namespace -}}
{{- $hosts := list $service (printf "%s.%s" $service .Release.Namespace) $full (printf "%s.cluster.local" $full) -}}
config.json: |
{{ merge (dict "allowedHosts" (concat $hosts (.Values.config.allowedHosts | default list))) .Values.config | toPrettyJson | indent 2 }}
{{- end }}

{{- define "heterotrain.hardwareConfigMap" -}}
{{- default (printf "%s-hardware" (include "heterotrain.fullname" .)) .Values.hardware.existingConfigMap -}}
{{- end }}

{{/* Whom a role is bound to. */}}
{{- define "heterotrain.subject" -}}
subjects:
- kind: ServiceAccount
  name: {{ include "heterotrain.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{/* The Secret with the certificate that metrics are served with; empty: the controller's own. */}}
{{- define "heterotrain.metricsSecret" -}}
{{- with .Values.metrics -}}
{{- if and .enabled .protected }}{{ .existingSecret }}{{ end -}}
{{- end -}}
{{- end }}

{{/* How metrics are scraped: of root, and monitor, the values of a ServiceMonitor or PodMonitor. */}}
{{- define "heterotrain.endpoint" -}}
- port: metrics
  path: /metrics
  {{- if .root.Values.metrics.protected }}
  scheme: https
  tlsConfig:
    {{- toYaml (default (dict "insecureSkipVerify" true) .monitor.tlsConfig) | nindent 4 }}
  {{- if .monitor.authorization }}
  authorization:
    {{- toYaml .monitor.authorization | nindent 4 }}
  {{- else }}
  bearerTokenFile: {{ required "metrics.podMonitor needs authorization.credentials, a Secret with a token: a PodMonitor cannot name a file" .monitor.bearerTokenFile }}
  {{- end }}
  {{- end }}
  interval: {{ .monitor.interval }}
  scrapeTimeout: {{ .monitor.scrapeTimeout }}
  {{- with .monitor.relabelings }}
  relabelings:
    {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with .monitor.metricRelabelings }}
  metricRelabelings:
    {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
